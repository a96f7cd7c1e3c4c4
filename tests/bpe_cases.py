"""Stages probe, merge and emit on any device against the core: ids and row offsets of every batch.

CASES are those of tests/mutate_kernels.py: n is about how many bytes of text there are.

    SAPHIRA_TEST_DATA=… python -m tests.bpe_cases --bytes 2000000 --check 256000

compares the ids of the corpora's first bytes on the host executor, in two batches each.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from saphira_gpu._arrays import I64, U32, U64
from saphira_gpu.batch import Batch
from saphira_gpu.devices import Device
from saphira_gpu.devices.host import HostDevice, Schedule
from saphira_gpu.engines.cpu import boundaries
from saphira_gpu.engines.cuda import bpe
from saphira_gpu.engines.cuda import emit as stage_emit
from saphira_gpu.engines.cuda.rows import DeviceRows, Marks, counter_numbers
from tests.bpe_models import engine_of

NO_ID = 0xFFFFFFFF

# ---- what the stages must say ----


@cache
def _ids_of(name: str, piece: bytes) -> tuple[int, ...]:
    engine = engine_of(name)
    if engine.plan.whole_piece_first:
        found = _whole(name).get(piece)
        if found is not None:
            return (found,)
    return tuple(engine.bpe(piece))


@cache
def _whole(name: str) -> dict[bytes, int]:
    plan = engine_of(name).plan
    data, offsets = plan.token_bytes.tobytes(), plan.token_offsets.tolist()
    tokens: dict[bytes, int] = {}
    for id in range(plan.n_ids):
        tokens.setdefault(data[offsets[id] : offsets[id + 1]], id)
    return tokens


@dataclass(slots=True)
class Coder:
    """A model on a device with a table of pieces, as an encoder keeps them.

    threads: of blocks. window: of long pieces. hot: whether every batch makes the hot table of the
    next one. fetched: what the last batch left, by name.
    """

    device: Device
    name: str
    bits: int = 12
    arena_bytes: int = 1 << 14
    kept_ids: int = 1 << 12
    limit: int | None = None
    threads: int = 64
    blocks: int = 7
    window: int = 4096
    hot: bool = False
    fetched: dict[str, int] = field(default_factory=dict)
    table: bpe.PieceTable = field(init=False)
    model: bpe.ModelTables = field(init=False)

    def __post_init__(self) -> None:
        engine = engine_of(self.name)
        self.model = bpe.ModelTables.of(self.device, engine)
        more = (self.bits, self.arena_bytes, self.kept_ids, self.limit)
        self.table = bpe.PieceTable(self.device, engine, *more)

    def encode(
        self,
        texts: Sequence[bytes],
        fixed: dict[int, int] | None = None,
        rows: Sequence[int] = (),
        dtype: Any = np.uint32,
    ) -> tuple[np.ndarray[Any, Any], I64]:
        """Ids of pieces, and int64 where those of each row start; fixed: piece → its id, or NO_ID;
        rows: pieces that start one."""
        device, table = self.device, self.table
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=starts[1:])
        n = int(starts[-1])
        text = device.to_device(np.frombuffer(b"".join(texts) + bytes(64), np.uint8))
        numbers = np.zeros(counter_numbers()["COUNTERS"], np.uint64)
        numbers[counter_numbers()["PIECES"]] = len(texts)
        numbers[counter_numbers()["FIXED"]] = len(fixed or ())
        counters = device.to_device(numbers)
        bitmap, ranks = _bitmap(starts[:-1], n), _ranks(starts[:-1], n)
        on_device = device.to_device(bitmap), device.to_device(ranks)
        values = device.empty(max(n, 1), np.uint64)
        fixed_bits = None
        if fixed is not None:
            at = starts[list(fixed)]
            fixed_bits = device.to_device(_bitmap(at, n))
            order = np.random.default_rng(1).permutation(len(at))
            listed = [at[order].astype(np.uint32), np.array(list(fixed.values()), np.uint32)[order]]
            lists = [device.to_device(a) if len(a) else device.empty(1, np.uint32) for a in listed]
            marks = Marks(None, fixed_bits, None, lists[0], lists[1], counters)
            bpe.fixed_values(device, *on_device, marks, values, self.threads)
        piece_start = device.to_device(starts.astype(np.uint32))
        pieces = bpe.Pieces(text, n, piece_start, n, counters, fixed_bits)
        table.room_for(n)
        shape = {"threads": self.threads, "blocks": self.blocks}
        missed = bpe.probe(device, table, pieces, values, hot=table.has_hot, **shape)
        misses = bpe.claim(device, table, pieces, missed, **shape)
        bpe.merge(
            device, self.model, table, pieces, misses, values, **shape,
            long_threads=self.threads, long_window=self.window,
        )  # fmt: skip
        bpe.resolve(device, table, pieces, misses, values, **shape)
        if self.hot:
            bpe.make_hot(device, table, pieces, **shape)
        ids = device.empty(max(n, 1), dtype)
        group_ids = stage_emit.emit(device, values, n, table.spill, ids, counters, **shape)
        offsets = np.append(starts[list(rows)], n)
        batch_rows = DeviceRows(device.to_device(offsets), len(offsets) - 1)
        row_ids = stage_emit.row_ids(device, batch_rows, *on_device, values, group_ids, **shape)
        found = device.to_host(counters)
        self.fetched = {
            key: int(found[i]) for key, i in counter_numbers().items() if i < len(found)
        }
        return device.to_host(ids[: self.fetched["IDS"]]), device.to_host(row_ids)

    def check(
        self,
        texts: Sequence[bytes],
        fixed: dict[int, int] | None = None,
        rows: Sequence[int] = (0,),
        dtype: Any = np.uint32,
    ) -> None:
        """Encodes and compares with the core."""
        expected: list[int] = []
        before = [0]
        for i, text in enumerate(texts):
            if fixed is not None and i in fixed:
                expected += [fixed[i]] if fixed[i] != NO_ID else []
            else:
                expected += _ids_of(self.name, text)
            before.append(len(expected))
        ids, row_ids = self.encode(texts, fixed, rows, dtype)
        np.testing.assert_array_equal(ids, expected)
        np.testing.assert_array_equal(row_ids, [*(before[row] for row in rows), before[-1]])


def _bitmap(at: I64, n: int) -> U64:
    flags = np.zeros((n // 64 + 1) * 64, np.uint8)
    flags[at] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _ranks(at: I64, n: int) -> U32:
    return np.searchsorted(at, np.arange(n // 64 + 1) * 64).astype(np.uint32)


# ---- cases ----


def random_pieces(source: random.Random, letters: bytes, n: int, longest: int) -> list[bytes]:
    """Pieces of n bytes or a few more in all; many of them equal."""
    pieces: list[bytes] = []
    total = 0
    while total < n:
        if pieces and source.random() < 0.4:
            piece = source.choice(pieces)
        else:
            length = source.choice((1, 2, 5, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 40, longest))
            piece = bytes(source.choices(letters, k=min(length, longest)))
        pieces.append(piece)
        total += len(piece)
    return pieces


def _mixed(device: Device, name: str, n: int, threads: int, **more: Any) -> None:
    source = random.Random(n + threads)
    coder = Coder(device, name, threads=min(threads, 256), **more)
    for letters in (b"abc ", b"ab"):
        pieces = random_pieces(source, letters, n, 70)
        fixed = {i: source.choice((NO_ID, 7, 300)) for i in range(len(pieces)) if i % 9 == 4}
        rows = [0, *sorted(source.choices(range(len(pieces)), k=5))]
        dtype = np.uint16 if letters == b"ab" else np.uint32
        coder.check(pieces, fixed, rows, dtype)


def mixed(device: Device, n: int, threads: int) -> None:
    """Pieces of every kind: in the table, found twice, fixed."""
    _mixed(device, "few", n, threads)


def not_monotone(device: Device, n: int, threads: int) -> None:
    _mixed(device, "shuffled", n, threads)
    coder = Coder(device, "shuffled", threads=min(threads, 256), window=64)
    coder.check([b"cc", bytes(random.Random(n).choices(b"abc", k=520))])
    assert coder.fetched["WORK_WHOLE"] == 1


def left_out(device: Device, n: int, threads: int) -> None:
    source = random.Random(n)
    coder = Coder(device, "sparse", threads=min(threads, 256))
    coder.check(random_pieces(source, b"abcxyz ", n, 600))
    coder.check([b"xyz" * 200, b"x", b"y" * 4200, b"xa" * 2100, b"q" * 40 + b"a"])
    coder.check([b"q" * k + b"abcb"[:few] for k in (40, 600) for few in range(5)])
    coder = Coder(device, "sparse", limit=0, threads=min(threads, 256))
    coder.check([b"x", b"y"] * 40)
    assert coder.fetched["WORK_SHORT"] == 80
    coder = Coder(device, "sparse", threads=min(threads, 256), window=64)
    coder.check([b"yz", bytes(source.choices(b"abcxyz ", k=700)), b"xa" * 400])
    assert coder.fetched["WORK_WHOLE"] == 2


def suffixes(device: Device, n: int, threads: int) -> None:
    _mixed(device, "ends", n, threads)
    coder = Coder(device, "ends", threads=min(threads, 256), window=256)
    coder.check(
        [b"de", b"df", b"dea", b"dfa", b"ade", b"adf", b"q" * 40 + b"de", b"q" * 40 + b"df"]
    )
    text = bytes(random.Random(n).choices(b"abc ", k=n + 600))
    coder.check([text])
    assert coder.fetched["WORK_WHOLE"] == 0
    coder = Coder(device, "ends", threads=min(threads, 256), window=64)
    coder.check([text, b"q" * 600 + b"de", text + b"df"])
    assert coder.fetched["WORK_WHOLE"] == 3


def tokens_first(device: Device, n: int, threads: int) -> None:
    coder = Coder(device, "whole_first", threads=min(threads, 256))
    pieces = [b"aaaaabbbb", b"zq", b"long " * 7, b"x" * 300, b"y" * 255, b"x" * 299, b"w" * 4096]
    coder.check([*pieces, b"y" * 254, *pieces, *random_pieces(random.Random(n), b"abz", n, 300)])


def full(device: Device, n: int, threads: int) -> None:
    """No room in the table, in its arena, in the spill list; one after the other and at once."""
    for more in (
        {"bits": 10, "limit": 0},
        {"bits": 10, "limit": 350},
        {"bits": 11, "arena_bytes": 40},
        {"kept_ids": 9},
        {"bits": 10, "limit": 400, "arena_bytes": 30, "kept_ids": 5},
    ):
        _mixed(device, "few", min(n, 900), threads, **more)


def equal_misses(device: Device, n: int, threads: int) -> None:
    """All of a batch wait for two merges."""
    coder = Coder(device, "few", threads=min(threads, 256), blocks=48)
    count = n // 9 + 1
    coder.check([b"abcdeabc" + b"d" * (i % 2) for i in range(count)])
    work = coder.fetched
    assert work["WORK_SHORT"] == min(count, 2)
    assert work["MISSES"] == count
    coder.check([b"abcdeabc" + b"d" * (i % 2) for i in range(count)])
    assert coder.fetched["MISSES"] == 0


def strides(device: Device, n: int, threads: int) -> None:
    """Several times as many misses as a grid has threads."""
    source = random.Random(n)
    coder = Coder(device, "few", threads=32, blocks=1 + n % 2)
    pieces = [bytes(source.choices(b"abcde", k=source.randint(4, 9))) for _ in range(160)]
    coder.check([*pieces, *pieces[::-1]])
    assert coder.fetched["WORK_SHORT"] > 128


def few_ids(device: Device, n: int, threads: int) -> None:
    """Longer pieces of two ids to five, in windows, in one that they fill, and without."""
    runs = [b"z" * 40, *(b"a" * k for k in (96, 112, 120, 124, 576, 704, 736, 752)), b"z" * 1024]
    wholes = [b"a" * 2100, b"a" * 512 + b"z" + b"a" * 512]
    for window, whole in ((1024, 2), (256, 7)):
        coder = Coder(device, "long_tokens", threads=min(threads, 256), window=window)
        coder.check([*runs, *wholes, *runs[:5][::-1]])
        assert coder.fetched["WORK_WHOLE"] == whole
    coder.check(wholes)
    ids = sum(len(_ids_of("long_tokens", piece)) for piece in wholes)
    assert coder.fetched["MERGE_STEPS"] == sum(map(len, wholes)) - ids
    coder.check([b"za" * 700])  # leaves behind the next batch's ids what the last could merge with
    coder.check([b"a" * 601])


def same_windows(device: Device, n: int, threads: int) -> None:
    """Windows that hold the same bytes as the one before, or all but one; next to such pieces."""
    source = random.Random(n)
    coder = Coder(device, "few", threads=min(threads, 256), window=128)
    units = [bytes(source.choices(b"abcde", k=k)) for k in (1, 2, 3, 5, 8)]
    texts = [b"b" + b"a" * 700, b"a" * 600, b"a" * 601, b"ab" * 300 + b"ba" * 300]
    coder.check([*texts, *((unit * 600)[: source.randint(513, 700)] for unit in units)])
    assert coder.fetched["WORK_WHOLE"] == 0
    # The second window, 98 bytes on, holds what the first one does from its second byte on.
    coder.check([b"q" + (b"q" + bytes(source.choices(b"uvwxyz", k=96))) * 7])
    # One letter's run is merged once, and its end; windows do for tokens of an eighth of them.
    coder = Coder(device, "doubles", threads=min(threads, 256), window=128)
    coder.check([b"a" * (2000 + n)])
    assert coder.fetched["WORK_WHOLE"] == 0 and coder.fetched["MERGE_STEPS"] < 4 * 128
    # Windows of letters that never merge end at the very end of the piece.
    coder = Coder(device, "ends", threads=min(threads, 256), window=96)
    coder.check([b"q" * (96 + k * (96 - 2 * 10)) for k in (6, 7)])
    assert coder.fetched["WORK_WHOLE"] == 0


def long_pieces(device: Device, n: int, threads: int) -> None:
    """Windows: one, some, and where they don't do."""
    source = random.Random(n)
    for name, window in (("few", 256), ("few", 128), ("shuffled", 256), ("long_tokens", 256)):
        coder = Coder(device, name, threads=min(threads, 256), window=window)
        texts = [bytes(source.choices(letters, k=513 + n % 977)) for letters in (b"abcde", b"ab")]
        coder.check([*texts, b"a" * (513 + n % 500), b"ab" * 300, b"z" * 700])


def joins(device: Device, n: int, threads: int) -> None:
    """Windows that end within a chain, so that their last boundaries are wrong; some too long."""
    source = random.Random(n)
    coder = Coder(device, "chain", threads=min(threads, 256), window=64)
    for longest in (12, 17, 90):
        text = bytearray()
        while len(text) < 530 + n // 8:
            first = source.randrange(1, 100)
            text += bytes(range(first, first + source.randrange(1, longest)))
        coder.check([bytes(text)])
        assert longest > 17 or coder.fetched["WORK_WHOLE"] == 0
    coder.check([(bytes(range(1, last)) * 400)[: 530 + n % 50] for last in (6, 16)])
    assert coder.fetched["WORK_WHOLE"] == 0
    if n < 1000:
        return
    # Every boundary of a window is wrong but the first; every one; ends that are taken for a word's
    # shift them all. The window is another one than it was; the tokens of a boundary are one.
    for name, window, units, whole in (
        ("long_chain", 64, (50, *range(1, 17)), 0),
        ("long_chain", 64, (*range(1, 40),), 1),
        ("chain_ends", 64, (50, *range(1, 16)), 0),
        ("odd_chain", 96, (*range(1, 18), 1), None),
        ("headed_chain", 32, (ord("x"), 1, *range(1, 8)), None),
    ):
        coder = Coder(device, name, threads=32, window=window)
        times = 1 if name == "headed_chain" else 4
        coder.check([(b"".join(bytes([i]) * times for i in units) * 90)[:600]])
        assert whole is None or coder.fetched["WORK_WHOLE"] == whole


def dense(device: Device, n: int, threads: int) -> None:
    """A table with hardly a free slot: pieces that differ in one byte meet, what finds no slot in
    as many steps as there are is merged on its own; found again, or not, it is itself."""
    source = random.Random(n)
    letters = bytes(range(ord("a"), ord("z") + 1))
    alike = []
    for size, places in ((17, (0, 7, 8, 15, 16)), (9, (0, 7, 8)), (15, (8, 14))):
        base = bytes(source.choices(letters, k=size))
        alike += [base[:i] + bytes([c]) + base[i + 1 :] for i in places for c in letters]
    source.shuffle(alike)
    short = [bytes((a, b, c)) for a in letters[:16] for b in letters[:16] for c in letters[:7]]
    coder = Coder(device, "few", 11, 1 << 14, 1 << 13, 1 << 11, threads=min(threads, 256))
    coder.check(short[:1250])
    coder.check([*alike, *alike[::3]])
    assert coder.fetched["MISSES"] > len(alike)
    coder.check(alike)
    assert coder.fetched["MISSES"] < 10
    coder.check(short)
    coder.check(short[::-1])
    assert coder.fetched["MISSES"] > 0


def classes(device: Device, n: int, threads: int) -> None:
    """Who merges a piece: up to 32 bytes a thread, up to 512 a warp."""
    coder = Coder(device, "few", threads=min(threads, 256))
    coder.check([b"ab" * (size // 2) + b"a" * (size % 2) for size in (31, 32, 33, 512, 513, 514)])
    found = [coder.fetched[f"WORK_{name}"] for name in ("SHORT", "MIDDLE", "LONG", "WHOLE")]
    assert found == [2, 2, 2, 0]


def met_again(device: Device, n: int, threads: int) -> None:
    """A second batch finds what the first one has merged, whatever its length and its ids."""
    coder = Coder(device, "few", 13, 1 << 15, threads=min(threads, 256))
    pieces = [*{*random_pieces(random.Random(n), b"abcd", n, 300)}]
    pieces = [piece for piece in pieces if len(piece) <= 255]
    merged = [p for p in pieces if p not in _whole("few")]
    coder.check(pieces)
    assert coder.fetched["MISSES"] == len(merged)
    assert coder.fetched["MERGE_STEPS"] == sum(len(p) - len(_ids_of("few", p)) for p in merged)
    coder.check(pieces)
    assert coder.fetched["MISSES"] == 0


def hot_pieces(device: Device, n: int, threads: int) -> None:
    """Short pieces by the hot table: keys with one home, values of every kind, pieces that differ
    in zeros or in length alone, long ones that start as short ones do."""
    source = random.Random(n)
    for name, letters in (("few", b"abcde"), ("sparse", b"ab q")):
        coder = Coder(device, name, 13, threads=min(threads, 256), hot=True)
        alike = [b"a", b"a\0", b"a\0\0", b"\0", b"\0\0", b"\0" * 7, b"\0" * 8, b"zzzzzzz", b"zzzz"]
        alike += [b"abcdefg", b"abcdefg\0", b"abcdefgh", b"abcdefg" * 2, b"abcdefg" * 3]
        words = [bytes(source.choices(letters, k=source.randrange(1, 8))) for _ in range(n // 3)]
        pieces = [*alike, *source.choices(words or alike, k=n // 3), *words]
        coder.check(pieces)
        pairs = hot_words(pieces)
        found = device.to_host(coder.table.hot).reshape(-1, 2)
        for home, word in enumerate(found[:, 0].tolist()):
            assert word in pairs.get(home, (0,)), home
        source.shuffle(pieces)
        coder.check([*pieces, b"abcd", b"aaaaaaa"], fixed={0: NO_ID, 1: 7})
        coder.table.clear()
        assert not coder.table.has_hot
        coder.check(pieces)


def hot_words(pieces: Sequence[bytes]) -> dict[int, tuple[int, ...]]:
    """Home in the hot table → first words of the slots that may be there: met most of all there."""
    homes: dict[int, dict[int, int]] = {}
    for piece in pieces:
        if len(piece) > 7:
            continue
        word = int.from_bytes(piece.ljust(7, b"\0") + bytes([len(piece)]), "little")
        low, high = word & 0xFFFFFFFF, word >> 32
        hashed = (low * 0x9E3779B1 + high * 0x85EBCA77) & 0xFFFFFFFF  # kernels/shared/hash.h
        times = homes.setdefault(hashed >> 21, {})
        times[word] = times.get(word, 0) + 1
    most = {home: max(times.values()) for home, times in homes.items()}
    return {
        home: tuple(word for word, n in times.items() if n == most[home])
        for home, times in homes.items()
    }


def same_starts(device: Device, n: int, threads: int) -> None:
    """Pieces of one length whose first 7 bytes are equal, in a table so small that they meet; and
    between them long ones that found no room for their bytes, which are nobody's."""
    coder = Coder(device, "few", 11, 0, 1 << 14, threads=min(threads, 256))
    short = [b"abcdefg%04d" % i for i in range(n // 8 + 2)]
    long = [b"%020d" % i for i in range(n // 25)]
    coder.check(short + long)
    coder.check(long + short)
    assert coder.fetched["MISSES"] == len(long)


def tile_ends(device: Device, n: int, threads: int) -> None:
    """Emit: pieces around its tiles and around what two lanes and two loads have; ids around its
    windows; spilled pieces everywhere, also over windows and longer than one; each a row."""
    source = random.Random(n)
    coder = Coder(device, "few", 13, 1 << 15, threads=min(threads, 256), blocks=2)
    tile, kinds = 4 * min(threads, 256), (np.uint16, np.uint32)
    counts = {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, tile - 1, tile, tile + 1}
    for i, count in enumerate(sorted(count for count in counts if count <= n // 2 + 3)):
        few = [source.choice((b"z", b"zy", b"zyx", b"zyxwv", b"zyxwvutsr")) for _ in range(count)]
        for kind in kinds if count == tile else (kinds[i % 2],):
            coder.check(few, rows=range(count), dtype=kind)
    for i, total in enumerate((2047, 2048, 2049, 4096, 4100) if n > 1 else ()):
        dense = [b"zyxwvut"] * (min(tile, 300) - 1)
        left = total - 7 * len(dense)
        dense += [b"z" * left] if left > 0 else []
        source.shuffle(dense)
        coder.check([b"y", *dense], {0: NO_ID}, range(len(dense)), kinds[i % 2])


def alignments(device: Device, n: int, threads: int) -> None:
    """Probe: a warp's pieces fill its part of shared memory, at every position in a word."""
    coder = Coder(device, "few", 13, 1 << 15, threads=min(threads, 256))
    for length in (15, 16, 17, 33) if n > 1 else (16,):
        for lead in range(1, 9):
            pieces = [b"x" * lead, *(b"%0*d" % (length, i) for i in range(36))]
            coder.check(pieces)
            coder.check(pieces[::-1])
            assert coder.fetched["MISSES"] == 0


CASES: dict[str, Callable[[Device, int, int], None]] = {
    case.__name__: case
    for case in (
        mixed, not_monotone, left_out, suffixes, tokens_first, full, equal_misses, strides,
        few_ids, same_windows, long_pieces, joins, classes, dense, met_again, hot_pieces,
        same_starts, tile_ends, alignments,
    )
}  # fmt: skip
# n and threads of the suite.
SIZES = ((1, 32), (500, 64), (2001, 256))


# ---- the corpora, at length ----

SCHEMES = {"gpt2": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}


def corpus_pieces(path: Path, n_bytes: int, scheme: str) -> tuple[list[bytes], list[int], Batch]:
    """Pieces of a corpus's first documents, those that start a document, and the documents."""
    import pyarrow.parquet

    documents: list[bytes] = []
    total = 0
    for text in pyarrow.parquet.read_table(path, columns=["text"])["text"].to_pylist():
        if total >= n_bytes or not text:
            continue
        documents.append(text.encode()[: n_bytes - total])
        total += len(documents[-1])
    data = b"".join(documents)
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    batch = Batch(np.frombuffer(data, np.uint8), offsets)
    words = boundaries(scheme, batch)
    at = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:total])
    ends = [*at[1:].tolist(), total]
    pieces = [data[a:b] for a, b in zip(at.tolist(), ends, strict=True)]
    return pieces, np.searchsorted(at, offsets[:-1]).tolist(), batch


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=2_000_000, help="in the fast build")
    parser.add_argument("--check", type=int, default=256_000, help="in the check build")
    options = parser.parse_args(argv)
    for path in sorted((Path(os.environ["SAPHIRA_TEST_DATA"]) / "corpora").glob("*.parquet")):
        for name, scheme in SCHEMES.items():
            for check, n_bytes in ((True, options.check), (False, options.bytes)):
                pieces, rows, batch = corpus_pieces(path, n_bytes, scheme)
                expected = engine_of(name).encode(batch, "plain", 1)
                device = HostDevice(check=check, schedule=Schedule("random", resident=48))
                room = (18, 1 << 20, 1 << 18)
                coder = Coder(device, name, *room, threads=128, blocks=48)
                seconds = []
                for _ in range(2):
                    begin = time.perf_counter()
                    ids, row_ids = coder.encode(pieces, rows=rows)
                    seconds.append(f"{(time.perf_counter() - begin) / batch.n_bytes * 1e6:.2f}")
                    np.testing.assert_array_equal(ids, expected.ids)
                    np.testing.assert_array_equal(row_ids, expected.offsets)
                build_name = "check" if check else "fast"
                print(
                    f"{path.stem} {name} {build_name}: {batch.n_bytes} bytes, {len(ids)} ids "
                    f"equal; seconds per MB, new and met before: {', '.join(seconds)}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
