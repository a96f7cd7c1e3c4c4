"""Stages rows and special of the CUDA path on the host executor, against the core."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from saphira_gpu.batch import Batch
from saphira_gpu.devices.host import HostDevice, Schedule
from saphira_gpu.engines.cpu import Engine
from saphira_gpu.engines.cuda import special as stage_special
from saphira_gpu.plan import build
from saphira_gpu.spec import AddedToken, Spec
from tests import oracles
from tests.on_executor import SCHEDULES, need_compiler
from tests.special_cases import (
    CASES,
    MODES,
    SIZES,
    Added,
    batch_of,
    compare,
    engine_of,
    random_added,
    random_text,
    run,
)

need_compiler()


@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, schedule: Schedule, check: bool) -> None:
    device = HostDevice(check=check, schedule=schedule)
    for n, threads in SIZES:
        CASES[case](device, n, threads)


@pytest.mark.parametrize("mode", MODES)
def test_random_models(mode: str) -> None:
    """Every pair of flags among the tokens of a model, sooner or later."""
    source = oracles.rng(f"cuda special {mode}")
    for number in range(max(20, oracles.FUZZ_SIZE // 2)):
        added = random_added(source)
        text = random_text(source, added, 700)
        batch = batch_of(source, text, source.choice((3.0, 9.0, 40.0, 1e9)), 0.05, number % 2 == 0)
        device = HostDevice(check=number % 3 == 0, schedule=SCHEDULES[number % 4])
        compare(device, engine_of(added), batch, mode, source.choice((32, 64, 256)), 3)


@pytest.mark.parametrize("flags", ["".join(f) for f in product(*(("", c) for c in "snlrw"))])
def test_all_flags(flags: str) -> None:
    """One token with each set of flags beside others, in every place of a short text."""
    added: Added = (("<x>", flags), (" ", "lr"), ("ab", "n"), ("\u3000a", ""))
    parts = ["<x>", " ", "a", "b", "\u3000", ".", "\n"]
    texts = ["".join(parts) for parts in product(parts, repeat=3)]
    rest = random.Random(flags)
    texts += ["".join(rest.choices(parts, k=rest.randint(4, 12))) for _ in range(150)]
    batch = Batch.from_texts(texts)
    for mode in MODES[:3]:
        compare(HostDevice(), engine_of(added), batch, mode, 64)


def test_cases_of_special_tokens(test_data: Path) -> None:
    """Those without a normalizer; where there is one, the core finds the tokens."""
    cases = json.loads((test_data / "cases/special_token_cases.json").read_text())
    cases = [case for case in cases if case["normalizer"] is None]
    assert len(cases) == 35
    small = oracles.small_spec()
    for case in cases:
        made = tuple(
            AddedToken(id=256 + i, **token) for i, token in enumerate(case["added_tokens"])
        )
        engine = Engine(build(Spec(made, small.pretok, small.bpe)))
        at = oracles.byte_positions(case["input"])
        batch = Batch.from_texts([case["input"]])
        special = "hf_plain" if case["encode_special_tokens"] else "parse"
        got = run(HostDevice(check=True), engine, batch, special, 64)
        expected = {at[row[2]]: row[1] for row in case["expected"] if row[0] == "added"}
        ids = {token.content: token.id for token in made}
        contents = {number: content for content, number in ids.items()}
        assert [start for start, _ in got["list"]] == sorted(expected), case
        for start, number in got["list"]:
            assert contents[number] in expected[start], case
        compare(HostDevice(), engine, batch, special, 64)


def test_empty_rows() -> None:
    offsets = np.zeros(100_001, np.int32)
    offsets[50_000:] = 7
    batch = Batch(np.frombuffer(b"ab<x>  ", np.uint8), offsets)
    engine = engine_of((("<x>", "r"),))
    for device in (HostDevice(), HostDevice(schedule=Schedule("reverse", resident=48))):
        compare(device, engine, batch, "parse", 256)
        compare(device, engine, Batch(batch.data, offsets[:40_000]), "parse", 256)
    compare(HostDevice(check=True), engine, Batch(batch.data, offsets[49_000:51_000]), "parse", 256)


def test_no_rows() -> None:
    batch = Batch(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    compare(HostDevice(check=True), engine_of((("<x>", ""),)), batch, "parse", 32)


def test_a_long_row_with_few_tokens() -> None:
    """The walk goes from candidate to candidate, 2048 bytes a step."""
    text = b"a" * 500_000 + b"<x>" + b" " * 500_000 + b"<x"
    device = HostDevice(count=True)
    compare(
        device, engine_of((("<x>", "r"), ("<x> a", ""))), Batch.from_texts([text]), "parse", 256
    )
    assert (
        device.counters["special_rows"]["collectives"]
        < 32 * (2 * 1_000_000 / 2048 + 500_000 / 32) * 1.5
    )


def test_what_is_searched() -> None:
    device = HostDevice()
    plain = stage_special.AddedTables.of(device, engine_of((("<x>", ""),)))
    blank = stage_special.AddedTables.of(device, engine_of((("<x>", ""), ("  ", ""))))
    none = stage_special.AddedTables.of(device, engine_of(()))
    assert not plain.searched("plain", False)
    assert plain.searched("plain", True) and plain.searched("hf_plain", False)
    assert blank.searched("plain", False)
    assert not none.searched("parse", True) and none.room(100) == 0
