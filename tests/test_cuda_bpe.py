"""Stages probe, merge and emit of the CUDA path on the host executor, against the core."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from saphira_gpu.devices.host import HostDevice, Schedule
from saphira_gpu.engines.cuda import bpe
from tests.bpe_cases import CASES, NO_ID, SIZES, Coder, random_pieces
from tests.bpe_models import MODELS, engine_of
from tests.on_executor import SCHEDULES, need_compiler

need_compiler()


@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, schedule: Schedule, check: bool) -> None:
    device = HostDevice(check=check, schedule=schedule)
    for n, threads in SIZES:
        CASES[case](device, n, threads)


@pytest.mark.parametrize("name", MODELS)
def test_all_lengths(name: str) -> None:
    """Around every limit: keys of a word and of two, classes of merging, what a table keeps."""
    source = random.Random(name)
    coder = Coder(HostDevice(), name, bits=14, threads=128, blocks=48)
    letters = b"aab" if name.startswith("long") else b"abc "
    pieces = [bytes(source.choices(letters, k=n)) for n in (*range(1, 70), *range(240, 270))]
    coder.check([*pieces, *pieces[::-1]])
    coder.check(pieces)
    pieces = [bytes(source.choices(letters, k=n)) for n in range(1, 601, 1 + (len(name) % 3))]
    coder.check(pieces, rows=range(0, len(pieces), 3))


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "o200k_base"])
def test_embedded_models(name: str) -> None:
    source = random.Random(name)
    check = HostDevice(check=True)
    coder = Coder(check, name, bits=18, arena_bytes=1 << 20, kept_ids=1 << 16, blocks=48)
    words = [
        b" the",
        b" of",
        b"ing",
        "\u4f60\u597d".encode(),
        b"    ",
        b"\n\n",
        b"x" * 20,
        b"\0",
        b"a\0",
    ]
    for _ in range(2):
        pieces = [source.choice(words) for _ in range(300)]
        pieces += random_pieces(source, bytes(range(256)), 1500, 40)
        pieces += random_pieces(source, b"etaoin shrdlu", 1500, 300)
        coder.check(pieces, rows=(0, 100, 100, 350), dtype=np.uint32)
    if engine_of(name).plan.n_ids <= 1 << 16:
        coder.check(pieces, dtype=np.uint16)


@pytest.mark.parametrize("name", ["gpt2", "o200k_base"])
def test_runs_and_random_letters(name: str) -> None:
    """Pieces of many windows: linear, whatever is in them."""
    coder = Coder(HostDevice(), name, bits=18, arena_bytes=1 << 20, threads=128, blocks=16)
    source = random.Random(name)
    for n in (1, 2, 3, 127, 128, 129, 255, 256, 4095, 4096, 4097, 8191, 100_000):
        coder.check([b"a" * n, b"b", b" " * n])
    coder.check([bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=20_000)), b" end"])
    coder.check([bytes(source.choices(range(256), k=9000)), b"0" * 5000, b"=-" * 3000])


def test_table_lives_over_batches() -> None:
    """What a batch has merged, the next one finds; cleared, the table has the tokens alone."""
    device = HostDevice(check=True)
    coder = Coder(device, "few", bits=12)
    source = random.Random(3)
    pieces = sorted(set(random_pieces(source, b"abcd", 4000, 255)))
    tokens = np.count_nonzero(engine_of("few").table("whole", np.uint8))
    coder.check(pieces)
    first = coder.fetched["MISSES"]
    assert 0 < first < len(pieces)
    coder.check(pieces)
    assert coder.fetched["MISSES"] == 0
    counters = device.to_host(coder.table.counters)
    number = bpe.table_numbers()
    assert counters[number["USED"]] == tokens + first
    assert not coder.table.full(counters)
    coder.table.clear()
    assert device.to_host(coder.table.counters)[number["USED"]] == tokens
    coder.check(pieces)
    assert coder.fetched["MISSES"] == first


def test_full_tables_say_so() -> None:
    device = HostDevice(check=True)
    bounds: tuple[dict[str, Any], ...] = ({"limit": 315}, {"arena_bytes": 3}, {"kept_ids": 2})
    for more in bounds:
        coder = Coder(device, "few", bits=11, **more)
        assert not coder.table.full(device.to_host(coder.table.counters))
        coder.check([b"abcdeabcdeabcdeabcde" + bytes([c]) for c in b"abcdefgh"])
        counters = device.to_host(coder.table.counters)
        assert coder.table.full(counters), (more, counters)


def test_steps_are_those_of_the_core() -> None:
    """A merge takes a symbol away: each different piece's bytes less its ids, windows apart."""
    coder = Coder(HostDevice(), "few", bits=12)
    source = random.Random(4)
    pieces = sorted(set(random_pieces(source, b"abcd", 3000, 500)))
    coder.check(pieces)
    whole = engine_of("few")
    missed = [piece for piece in pieces if len(whole.bpe(piece)) > 1]
    assert coder.fetched["MISSES"] == len(missed)
    assert coder.fetched["MERGE_STEPS"] == sum(len(p) - len(whole.bpe(p)) for p in missed)


def test_nothing() -> None:
    for check in (True, False):
        coder = Coder(HostDevice(check=check), "few")
        coder.check([], rows=())
        coder.check([b"a"], fixed={0: NO_ID}, rows=(0, 0, 0))
        assert coder.fetched["IDS"] == 0


def test_tokens_that_find_no_room_are_an_error() -> None:
    """Tokens take a quarter of the slots at most, whatever was asked for."""
    table = bpe.PieceTable(HostDevice(), engine_of("whole_first"), bits=1)
    assert 1 << table.bits >= 4 * 343
    with pytest.raises(ValueError, match="uint32"):
        table.room_for(1 << 32)
