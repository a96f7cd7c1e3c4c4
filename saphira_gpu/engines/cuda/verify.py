"""The byte-exact gate: rows of a device's ids against the core's, and which stage differs first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from saphira_gpu._arrays import I64, U8, U32, U64
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda.batches import Placed
from saphira_gpu.errors import VerifyError


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """What the stages made of a text of n bytes: one row, or what the core rewrote it to.

    segments: bitmap of segment starts, bit n set. tags: uint8[n], 0xFF within a character.
    boundaries: bitmap of piece starts. pieces: uint32, where they start, and n. values: the ids of
    each piece, and int64[n_pieces + 1], where they start.
    """

    segments: U64
    tags: U8
    boundaries: U64
    pieces: U32
    values: tuple[U32, I64]

    @property
    def named(self) -> Iterable[tuple[str, tuple[np.ndarray[Any, Any], ...]]]:
        """The stages in order, with what to compare."""
        yield "segments", (self.segments,)
        yield "tags", (self.tags,)
        yield "boundaries", (self.boundaries,)
        yield "pieces", (self.pieces,)
        yield "values", self.values


class Looker(Protocol):
    """Runs the stages one by one and fetches what each of them made."""

    def look(self, batch: Batch, special: str, placed: Placed | None) -> Stages: ...


def chosen(seed: int, first: int, n: int, share: float) -> I64:
    """Which of the n rows from number `first` on are verified: each with probability `share`, the
    same ones for the same seed (splitmix64)."""
    if share >= 1:
        return np.arange(n, dtype=np.int64)
    if share <= 0:
        return np.zeros(0, np.int64)
    with np.errstate(over="ignore"):
        x = np.arange(first + 1, first + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(seed)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return np.flatnonzero(x < np.uint64(int(share * 2**64))).astype(np.int64)


def taken(batch: Batch, rows: I64) -> Batch:
    """Some rows of a batch."""
    if len(rows) == batch.n_rows:
        return batch
    lengths = np.diff(batch.offsets).astype(np.int64)[rows]
    starts = np.asarray(batch.offsets, np.int64)[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = batch.data[_runs(starts, lengths, offsets)]
    valid = batch.valid
    validity = None if valid is None else np.packbits(valid[rows], bitorder="little")
    return Batch(data, offsets, validity)


def _runs(starts: I64, lengths: I64, offsets: I64) -> I64:
    """The indices of runs that start at `starts`, one after the other."""
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def compare(
    engine: cpu.Engine,
    looker: Looker,
    batch: Batch,
    special: str,
    threads: int,
    rows: I64,
    got_offsets: I64,
    got_ids: U32 | None,
    seed: int,
) -> None:
    """Encodes those rows on the CPU too. got_offsets, got_ids: the device's, of all rows; without
    ids only how many there are is compared.

    Raises VerifyError of the first row that differs, by its number in the batch.
    """
    if not len(rows):
        return
    some = taken(batch, rows)
    try:
        want = engine.encode(some, special, threads, ids=got_ids is not None)
    except cpu.Hit as hit:
        row = int(rows[hit.row])
        found = f"the CPU finds added token {hit.added} at byte {hit.byte}, the device none"
        raise VerifyError(row, "segments", seed, [], [], found) from None
    counts, expected = np.diff(got_offsets)[rows], np.diff(want.offsets)
    wrong = counts != expected
    if got_ids is not None and not wrong.any():
        assert want.ids is not None
        mine = got_ids[_runs(got_offsets[rows], counts, want.offsets)]
        differs = mine != want.ids
        if differs.any():
            at = int(np.argmax(differs))
            wrong[np.searchsorted(want.offsets, at, "right") - 1] = True
    if not wrong.any():
        return
    index = int(np.argmax(wrong))
    row = int(rows[index])
    own = some if len(rows) == 1 else taken(some, np.array([index]))
    mine_ids: list[int] = []
    if got_ids is not None:
        mine_ids = got_ids[got_offsets[row] : got_offsets[row + 1]].tolist()
    alone = engine.encode(own, special, 1)
    cpu_ids = [] if alone.ids is None else alone.ids.tolist()
    stage, detail = first_difference(engine, looker, own, special)
    if got_ids is None:
        detail = f"{counts[index]} ids on the device, {expected[index]} on the CPU; {detail}"
    raise VerifyError(row, stage, seed, mine_ids, cpu_ids, detail)


def first_difference(
    engine: cpu.Engine, looker: Looker, row: Batch, special: str
) -> tuple[str, str]:
    """The name of the first stage that makes something else of one row than the core, and where."""
    if engine.rewrites:
        made = engine.prepare(row, special, 1)
        text, placed = made.batch, Placed(made.fixed_at, made.fixed_ids)
    else:
        text, placed = _from_zero(row), None
    mine = looker.look(text, special, placed)
    right = expected_stages(engine, text, special, placed)
    for (name, got), (_, want) in zip(mine.named, right.named, strict=True):
        for a, b in zip(got, want, strict=True):
            if len(a) != len(b):
                return name, f"{len(a)} items on the device, {len(b)} on the CPU"
            differs = np.flatnonzero(a != b)
            if len(differs):
                i = int(differs[0])
                return name, f"at {i}: {int(a[i])} on the device, {int(b[i])} on the CPU"
    return "ids", "the stages before it agree when this row is run alone"


def _from_zero(batch: Batch) -> Batch:
    begin, end = int(batch.offsets[0]), int(batch.offsets[-1])
    return Batch(batch.data[begin:end], np.asarray(batch.offsets, np.int64) - begin, None)


def expected_stages(engine: cpu.Engine, row: Batch, special: str, placed: Placed | None) -> Stages:
    """What the core makes of one row that starts at byte 0, stage by stage."""
    n = row.n_bytes
    text = row.data[:n]
    fixed: dict[int, tuple[int, int | None]] = {}
    if placed is not None:
        for at, number in zip(placed.at.tolist(), placed.ids.tolist(), strict=True):
            fixed[at] = at + 1, number
    else:
        for start, end, added in engine.find_special(special, text.tobytes()):
            fixed[start] = end, int(engine.plan.added_ids[added])
    cuts = {0, n} | set(fixed) | {end for end, _ in fixed.values()}
    inside = np.zeros(n + 1, np.bool_)
    for start, (end, _) in fixed.items():
        inside[start + 1 : end] = True
    segments = np.zeros(n + 1, np.bool_)
    segments[sorted(cuts)] = True
    pieces_of = Batch(text, np.array(sorted(cuts), np.int64))
    tags, _ = cpu.classify(pieces_of)
    starts = np.zeros(n + 1, np.bool_)
    if n:
        bits = cpu.boundaries(engine.plan.scheme, pieces_of).astype("<u8").view(np.uint8)
        starts[:n] = np.unpackbits(bits, count=n, bitorder="little")
    starts &= ~inside
    at = np.flatnonzero(starts).astype(np.uint32)
    pieces = np.append(at, np.uint32(n)).astype(np.uint32)
    values: list[int] = []
    counts = [0]
    raw = text.tobytes()
    for first, last in zip(pieces[:-1].tolist(), pieces[1:].tolist(), strict=True):
        own = fixed.get(first)
        if own is None:
            values += engine.bpe(raw[first:last])
        elif own[1] is not None:
            values.append(own[1])
        counts.append(len(values))
    return Stages(
        words(segments), tags, words(starts), pieces,
        (np.array(values, np.uint32), np.array(counts, np.int64)),
    )  # fmt: skip


def words(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> U64:
    """bool[n + 1] as uint64[n // 64 + 1], bit i is flag i."""
    packed = np.packbits(flags, bitorder="little")
    full = np.zeros(8 * ((len(flags) - 1) // 64 + 1), np.uint8)
    full[: len(packed)] = packed
    return full.view("<u8").astype(np.uint64)
