"""Stages classify, remap, boundaries and pieces of the CUDA path on the host executor, against the
core: check build first, then fast."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from saphira_gpu.batch import Batch, cumulated
from saphira_gpu.devices.host import HostDevice, Schedule
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda import pretok
from saphira_gpu.engines.cuda.rows import counter_numbers, new_counters
from saphira_gpu.engines.cuda.tables import SchemeTables
from saphira_gpu.errors import UnsupportedError
from tests import oracles
from tests.on_executor import SCHEDULES, need_compiler
from tests.pretok_cases import (
    CASES,
    SCHEMES,
    SIZES,
    compare_boundaries,
    compare_classify,
    compare_inside,
    compare_pieces,
    one_row,
    random_rows,
    random_text,
    same_bitmap,
    upload,
)

need_compiler()
BUILDS = pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
TILE = 29 * 64  # bytes of a tile of 32 threads


@BUILDS
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, schedule: Schedule, check: bool) -> None:
    device = HostDevice(check=check, schedule=schedule)
    for n, threads in SIZES:
        CASES[case](device, n, threads)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_texts(scheme: str) -> None:
    source = oracles.rng(f"cuda pretok {scheme}")
    for number in range(max(24, oracles.FUZZ_SIZE // 4)):
        text = random_text(source, source.choice((300, 2000, 9000)), source.choice((0.1, 0.6)))
        batch = random_rows(source, text, source.choice((4.0, 40.0, 900.0, 1e9)))
        device = HostDevice(check=number % 3 == 0, schedule=SCHEDULES[number % 4])
        threads = source.choice((32, 32, 64, 96, 256))
        compare_boundaries(device, scheme, batch, threads, staged=number % 2 == 0)


def test_random_classes_and_spans() -> None:
    source = oracles.rng("cuda classes")
    for number in range(max(40, oracles.FUZZ_SIZE // 4)):
        text = random_text(source, source.choice((100, 1000, 5000)), 0.4)
        batch = random_rows(source, text, source.choice((3.0, 40.0, 1e9)))
        device = HostDevice(check=number % 3 == 0, schedule=SCHEDULES[number % 4])
        compare_classify(device, batch, source.choice((32, 64, 256)))
        compare_inside(device, source.choice(SCHEMES), batch, 32)


# Texts whose state reaches over many tiles: what is repeated, and how it ends.
RUNS: dict[str, tuple[bytes, bytes]] = {
    "digits": (b"7", b""),
    "digits of two bytes": ("٣".encode(), b"5"),
    "digits and a word": (b"1234567" * 300 + b"a", b""),
    "spaces": (b" ", b"a"),
    "newlines": (b"\n", b" b"),
    "white space": (b"\n" + b" " * 5000, b"x"),
    "white space that ends in a newline": (b"\n" + b"\t" * 7000 + b"\n", b""),
    "mixed white space": (" \n\t\u3000\r ".encode(), b""),
    "wide white space": (("\n" + "\u3000" * 3000).encode(), b"a"),
    "punctuation and newlines": (b"!\n/\n", b""),
    "punctuation and many newlines": (b"?" + b"\n" * 6000, b"/"),
    "upper and lower": (b"aA", b""),
    "upper": ("Áא".encode() + b"A" * 5000 + b"b", b""),
    "upper that ends": ("Áא".encode() + b"A" * 5000 + b"!", b"A"),
    "letters": (b"e", b""),
    "CJK": ("漢字".encode(), b""),
    "kana and Han": ("漢かな字".encode(), b"1"),
    "Han numbers": ("〇".encode(), "漢".encode()),
    "marks": ("\u0301".encode(), b"'s"),
    "marks behind a sign": (b"a.." + "\u0301".encode() * 2500, b"\n"),
    "joined emoji": ("👩\u200d👩\u200d👧".encode(), b""),
    "invalid": (b"\xf0\x9f\x98\xff\xe4\xb8", b""),
    "lone bytes": (b"\x80", b"\xc3"),
    "apostrophes": (b"'", b"s"),
    "contractions": (b"a's're'll", b"'"),
    "literals": (b"<|startoftext|><|endoftext|", b"|>"),
    "a sign and letters": (b"$" + b"a" * 5000 + "é".encode(), b""),
    "other": ("\ue000".encode() * 1500, b"a"),
}


@pytest.mark.parametrize("name", RUNS)
def test_long_runs(name: str) -> None:
    """Runs over several tiles, of small tiles and of the largest; rows cut them in one of three."""
    unit, end = RUNS[name]
    source = random.Random(name)
    for i, scheme in enumerate(SCHEMES):
        for check, n, threads in ((True, 9 * TILE + 17, 32), (False, 40_000, 256)):
            device = HostDevice(check=check, schedule=SCHEDULES[i % 4])
            batch = one_row(unit, n, end)
            compare_boundaries(device, scheme, batch, threads)
        rows = random_rows(source, batch.data[:12_000].tobytes(), 4000.0)
        compare_boundaries(HostDevice(), scheme, rows, 32, staged=True)


def test_what_is_done_again() -> None:
    """Each way of repair is used: tiles in pass 1, tiles in pass 2, runs that lead out."""

    def counted(scheme: str, unit: bytes, n: int) -> dict[str, int]:
        return compare_boundaries(HostDevice(), scheme, one_row(unit, n), 32)

    digits = counted("cl100k", b"7", 60 * TILE)
    assert digits["TILES_AGAIN"] >= 35 and digits["TILES_SERIAL"] >= 20
    assert counted("gpt2", b"a bc", 60 * TILE)["TILES_AGAIN"] == 0
    words = counted("o200k", b"The words of a text, 12 of them. ", 60 * TILE)
    assert words["TILES_AGAIN"] == words["TILES_SERIAL"] == words["OPEN"] == 0
    assert counted("o200k", "Á中".encode() + b"A" * 3 * TILE + b"b", 60 * TILE)["OPEN"] >= 19
    assert counted("deepseek", b"\n" + b" " * 3 * TILE + b"b", 60 * TILE)["OPEN"] >= 19


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lengths_about_a_tile(scheme: str) -> None:
    lengths = [0, 1, 2, 63, 64, 65, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 65]
    source = random.Random(scheme)
    for n in lengths:
        for text in (random_text(source, n), b"7" * n, b"\n" + b" " * n):
            compare_boundaries(HostDevice(check=True), scheme, one_row(text or b"x", n), 32)
    rows = Batch.from_texts([random_text(source, n) for n in lengths])
    compare_boundaries(HostDevice(), scheme, rows, 32, staged=True)


def test_empty_rows() -> None:
    offsets = np.zeros(100_001, np.int64)
    offsets[50_000:] = 8
    batch = Batch(np.frombuffer("a' \u3000b1".encode(), np.uint8), offsets)
    for scheme in SCHEMES:
        compare_boundaries(HostDevice(check=True), scheme, batch, 64, staged=True)
    compare_classify(HostDevice(check=True), batch, 32)


def test_one_empty_text() -> None:
    batch = Batch(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    for scheme in SCHEMES:
        compare_boundaries(HostDevice(check=True), scheme, batch, 32, staged=True)
    compare_classify(HostDevice(check=True), batch, 32)
    compare_pieces(HostDevice(check=True), np.zeros(1, np.uint64), 0, 32)


@BUILDS
@pytest.mark.parametrize("threads", [32, 64, 256])
def test_dense_and_sparse_pieces(threads: int, check: bool) -> None:
    """A piece a byte takes several turns through shared memory; look-back crosses its window."""
    rng = np.random.default_rng(threads)
    for schedule in SCHEDULES:
        device = HostDevice(check=check, schedule=schedule)
        for n, share in ((64 * 300, 1.0), (64 * 3000 + 5, 0.2), (64 * 4000, 0.001), (20_000, 0.9)):
            flags = np.zeros(64 * pretok.words_of(n), np.uint8)
            flags[:n] = rng.random(n) < share
            words = np.packbits(flags, bitorder="little").view(np.uint64)
            compare_pieces(device, words, n, threads)


def test_stages_one_after_the_other() -> None:
    """Text to positions, with the buffers that one stage leaves to the next."""
    device = HostDevice(check=True)
    batch = random_rows(random.Random(5), random_text(random.Random(5), 7000), 300.0)
    text, n, segments = upload(device, batch)
    scheme, counters = SchemeTables.of(device, "o200k"), new_counters(device)
    starts = pretok.boundaries(device, scheme, text, n, segments, counters, threads=64)
    found = pretok.pieces(device, starts, n, counters, threads=32)
    count = int(device.to_host(counters)[counter_numbers()["PIECES"]])
    flags = np.unpackbits(cpu.boundaries("o200k", batch).view(np.uint8), bitorder="little")
    expected = [*np.flatnonzero(flags), n]
    np.testing.assert_array_equal(device.to_host(found.start[: count + 1]), expected)


def test_padding_has_no_effect() -> None:
    """Up to 15 bytes behind the text share a load with it."""
    for tail in range(1, 17):
        batch = one_row(b"ab 1", 64 + tail)
        device = HostDevice(check=True)
        text, n, segments = upload(device, batch, padding=ord("'"))
        for name in ("cl100k", "o200k", "clip"):
            scheme = SchemeTables.of(device, name)
            starts = pretok.boundaries(device, scheme, text, n, segments, new_counters(device))
            same_bitmap(device.to_host(starts), cpu.boundaries(name, batch), n)


def test_nul_is_of_no_class() -> None:
    """So bytes behind the text are the same in both forms of stage boundaries."""
    assert not cpu.core_table("sa_scheme_ascii_bits", np.uint8).reshape(-1, 128)[:, 0].any()


def test_unknown_scheme() -> None:
    with pytest.raises(UnsupportedError, match="o201k"):
        SchemeTables.of(HostDevice(), "o201k")


# ---- real text ----


def _corpus(folder: Path, name: str, n: int) -> Batch:
    """The first n bytes of a corpus, in its own rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    column = parquet.read_table(folder / "corpora" / f"{name}.parquet").column("text")
    lengths, parts, total = [], [], 0
    for value in column:
        part = value.as_py().encode()[: n - total]
        parts.append(part)
        lengths.append(len(part))
        total += len(part)
        if total >= n:
            break
    data = np.frombuffer(b"".join(parts), np.uint8)
    return Batch(data, cumulated(np.array(lengths, np.int64)))


CORPORA = ("english", "code", "multiscript", "chat_markdown")


@pytest.mark.parametrize("corpus", CORPORA)
def test_corpus(corpus: str, test_data: Path) -> None:
    batch = _corpus(test_data, corpus, 100_000)
    small = _corpus(test_data, corpus, 16_000)
    for i, scheme in enumerate(SCHEMES):
        compare_boundaries(HostDevice(schedule=SCHEDULES[i % 4]), scheme, batch, 256, staged=True)
        compare_boundaries(HostDevice(check=True, schedule=SCHEDULES[i % 4]), scheme, small, 64)
    compare_classify(HostDevice(), batch, 256)


@pytest.mark.long
@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_corpus_long(scheme: str, corpus: str, test_data: Path) -> None:
    compare_boundaries(HostDevice(), scheme, _corpus(test_data, corpus, 2_000_000), 256)
    small = _corpus(test_data, corpus, 256_000)
    for schedule in SCHEDULES[:3]:
        compare_boundaries(HostDevice(check=True, schedule=schedule), scheme, small, 128)


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS)
def test_megabyte_runs(name: str) -> None:
    unit, end = RUNS[name]
    for scheme in SCHEMES:
        compare_boundaries(HostDevice(), scheme, one_row(unit, 1_000_000, end), 256)
