"""Stages probe and merge on a device: a value for every piece, by the table or by merging.

A value (kernels/shared/value.h) is up to three ids, or where more are in the spill list. The table
lives with the encoder and is filled by its batches; ids never depend on what is in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from saphira_gpu._arrays import U32, U64
from saphira_gpu.devices import Device, Dims
from saphira_gpu.devices.source import kernels_folder
from saphira_gpu.engines.cpu import Engine, ffi
from saphira_gpu.engines.cuda.rows import Marks, counter_numbers

# A piece of more bytes is in no table, unless it is a token.
LONGEST_KEPT = 255
# Pieces of so many bytes are merged by a warp, and by a block; shorter ones by a thread each.
MIDDLE = 33
LONG = 513
# Bytes of a window of the warp, and of the block.
_MIDDLE_WINDOW = 512
_LONG_WINDOW = 4096
# Blocks of 256 threads beyond these find no more room on any GPU.
_BLOCKS = 2048
# Slots of the hot table, HOT of kernels/probe.cu, and its blocks: each copies the table, and no GPU
# has room for more of them at a time.
_HOT = 2048
_HOT_BLOCKS = 1024
# Pieces of a batch that are counted for it.
_HOT_PIECES = 4 << 20
# Blocks that merge by windows; each has its shared memory.
_WINDOW_BLOCKS = 512


@cache
def table_numbers() -> dict[str, int]:
    """Index of each counter of a table by its name, without SA_TABLE_; COUNTERS: how many."""
    text = (kernels_folder() / "counters.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names = re.findall(r"\bSA_TABLE_(\w+)", text)
    return {name: number for number, name in enumerate(names)}


def grid(n: int, threads: int, most: int = _BLOCKS) -> Dims:
    """Blocks for n threads of work, of kernels that go on until the work is done."""
    return (max(1, min(-(-n // threads), most)),)


@dataclass(frozen=True, slots=True, eq=False)
class ModelTables:
    """A model's merges on a device, uploaded from the core's memory.

    facts: sa_model_facts by name. arguments: what kernels take as MODEL_PARAMS.
    """

    facts: dict[str, int]
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, device: Device, engine: Engine) -> ModelTables:
        names = [name for name, _ in ffi.typeof("sa_model_facts").fields]
        facts = dict(zip(names, engine.table("facts", np.int64).tolist(), strict=True))
        try:
            displace = device.to_device(engine.table("displace", np.uint16))
        except KeyError:
            displace = None
        arguments = (
            device.to_device(engine.table("byte_ids", np.uint32)),
            device.to_device(engine.table("byte_ids_end", np.uint32)),
            device.to_device(engine.table("left_out", np.uint8)),
            device.to_device(engine.table("byte_pair_rank", np.uint32)),
            device.to_device(engine.table("pairs", np.uint64)),
            np.uint32(facts["pair_shift"]),
            displace,
            np.uint32(facts["displace_shift"]),
            device.to_device(engine.table("result", np.uint32)),
            device.to_device(engine.table("length", np.uint16)),
            *(np.uint32(facts[f]) for f in ("longest", "monotone", "has_ends", "leaves_out")),
        )
        return cls(facts, arguments)


class PieceTable:
    """Pieces and their values on a device, from batch to batch; new ones hold the model's tokens.

    bits: of the number of slots, 32 bytes each; raised where tokens would take more than a quarter.
    arena_bytes: for pieces of more than 15 bytes. kept_ids: for values of more than three ids.
    limit: slots that may be used, half by default. Raises MemoryError if tokens find no room.

    has_hot: whether `make_hot` has made the hot table since the table was new or cleared.
    """

    def __init__(
        self,
        device: Device,
        engine: Engine,
        bits: int = 20,
        arena_bytes: int = 8 << 20,
        kept_ids: int = 2 << 20,
        limit: int | None = None,
    ) -> None:
        facts = engine.table("facts", np.int64).tolist()
        self._device = device
        lengths = np.diff(engine.table("token_offsets", np.int64))
        whole = (engine.table("whole", np.uint8) != 0) & (lengths > 0)
        names = [name for name, _ in ffi.typeof("sa_model_facts").fields]
        if facts[names.index("has_ends")]:
            whole &= engine.table("token_ends", np.uint8) != 0  # a whole piece ends a word
        self._tokens: U32 = np.flatnonzero(whole).astype(np.uint32)
        self._offsets: U32 = engine.table("token_offsets", np.int64).astype(np.uint32)
        self._bytes = np.append(engine.table("token_bytes", np.uint8), np.zeros(64, np.uint8))
        while 4 * len(self._tokens) > 1 << bits:
            bits += 1
        token_lengths = lengths[self._tokens]
        self.bits = bits
        self.limit = (1 << bits) // 2 if limit is None else limit
        self.arena_bytes = arena_bytes + int(token_lengths[token_lengths > 15].sum())
        self.kept_ids = kept_ids
        self.longest = max(LONGEST_KEPT, int(token_lengths.max(initial=0)))
        self.slots = device.zeros(4 << bits, np.uint64)
        self.arena = device.zeros(self.arena_bytes + 64, np.uint8)
        self.spill = device.empty(kept_ids, np.uint32)
        self.counters = device.zeros(table_numbers()["COUNTERS"], np.uint64)
        self.hot = device.zeros(2 * _HOT, np.uint64)
        self.best = device.zeros(_HOT, np.uint64)
        self.has_hot = False
        self._seed()

    @property
    def nbytes(self) -> int:
        arrays = (self.slots, self.arena, self.spill, self.hot, self.best)
        return sum(int(array.nbytes) for array in arrays)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What kernels take as TABLE_PARAMS."""
        return (
            *(self.slots, np.uint32(self.bits), self.arena, np.uint64(self.arena_bytes)),
            *(self.spill, np.uint64(self.kept_ids), self.counters),
        )

    def room_for(self, n_bytes: int) -> None:
        """Sees that the spill list has room for a batch of n_bytes of text; before the batch."""
        need = self.kept_ids + n_bytes
        if need > 1 << 32:
            raise ValueError(f"a batch of {n_bytes} bytes: positions in the spill list are uint32")
        if self.spill.size < need:
            grown = self._device.empty(need, np.uint32)
            if self.kept_ids:
                self._device.main.copy(grown[: self.kept_ids], self.spill[: self.kept_ids])
            self.spill = grown

    def full(self, counters: U64) -> bool:
        """Whether what is new finds no room any more. counters: the table's, fetched."""
        number = table_numbers()
        return bool(
            counters[number["USED"]] >= self.limit
            or counters[number["SPILL"]] > self.kept_ids
            or counters[number["BYTES"]] > self.arena_bytes
        )

    def clear(self) -> None:
        """Back to the tokens alone; between batches, whose values are then good no more."""
        with self._device.current():
            self.slots.fill(0)
            self.counters.fill(0)
        self.has_hot = False
        self._seed()

    def _seed(self, threads: int = 256) -> None:
        device, n = self._device, len(self._tokens)
        if n == 0:
            return
        numbers = np.zeros(counter_numbers()["COUNTERS"], np.uint64)
        numbers[counter_numbers()["MISSES"]] = n
        counters, tokens = device.to_device(numbers), device.to_device(self._tokens)
        text, offsets = device.to_device(self._bytes), device.to_device(self._offsets)
        slot_of = device.empty(n, np.uint32)
        args: tuple[Any, ...] = (
            *(text, offsets, tokens, self.slots, np.uint32(self.bits), np.uint64(1 << self.bits)),
            *(np.uint32(self.longest), slot_of, self.counters, counters),
        )
        device.kernel("misses.cu", "claim")(grid(n, threads), (threads,), args)
        args = (text, offsets, tokens, slot_of, *self.arguments, counters)
        device.kernel("misses.cu", "seed")(grid(n, threads), (threads,), args)
        if device.to_host(self.counters)[table_numbers()["LOST"]]:
            raise MemoryError(f"a table of 2^{self.bits} slots has no room for {n} tokens")


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of a batch on a device, as stage pieces leaves them.

    text: uint8[n_bytes and at least 64 more], at a multiple of 16. piece_start: uint32[bound + 1],
    those of counters[SA_COUNTER_PIECES] pieces and the end. bound: pieces at most. fixed: bitmap of
    pieces that have their value already (`fixed_values`), or None.
    """

    text: Any
    n_bytes: int
    piece_start: Any
    bound: int
    counters: Any
    fixed: Any = None


def fixed_values(
    device: Device, starts: Any, ranks: Any, marks: Marks, values: Any, threads: int = 256
) -> None:
    """Values of fixed pieces. starts, ranks: bitmap of piece starts, and its ranks by words."""
    room = int(marks.fixed_at.size)
    args = (starts, ranks, marks.fixed_at, marks.fixed_id, values, marks.counters)
    device.kernel("probe.cu", "fixed_values")(grid(room, threads), (threads,), args)


def probe(
    device: Device,
    table: PieceTable,
    pieces: Pieces,
    values: Any,
    *,
    hot: bool = False,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> Any:
    """Values of the pieces that the table has, 0 for others; uint64[bound].

    hot: by a look into the hot table first, which was made. Returns the others: uint32[bound],
    counters[SA_COUNTER_MISSES] piece numbers in any order.
    """
    missed = device.empty(max(pieces.bound, 1), np.uint32)
    more = (table.hot,) if hot else ()
    args = (
        *(pieces.text, pieces.piece_start, pieces.fixed, table.slots, np.uint32(table.bits)),
        *(table.arena, np.uint32(table.longest), *more, values, missed, pieces.counters),
    )
    shape = grid(pieces.bound, threads, min(blocks, _HOT_BLOCKS) if hot else blocks)
    name = "probe_hot" if hot else "probe_pieces"
    device.kernel("probe.cu", name)(shape, (threads,), args)
    return missed


def make_hot(
    device: Device,
    table: PieceTable,
    pieces: Pieces,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> None:
    """Makes the hot table of the pieces that a batch, which has its values, met most."""
    bits = np.uint32(table.bits)
    args: tuple[Any, ...] = (pieces.text, pieces.piece_start, table.slots, bits)
    args = (*args, np.uint64(_HOT_PIECES), pieces.counters)
    shape = grid(min(pieces.bound, _HOT_PIECES), threads, blocks)
    device.kernel("probe.cu", "hot_count")(shape, (threads,), args)
    args = (table.slots, bits, table.best)
    device.kernel("probe.cu", "hot_pick")(grid(1 << table.bits, threads, blocks), (threads,), args)
    args = (table.slots, table.best, table.hot)
    device.kernel("probe.cu", "hot_fill")(grid(_HOT, threads, blocks), (threads,), args)
    table.has_hot = True


@dataclass(frozen=True, slots=True, eq=False)
class Misses:
    """Missed pieces on their way. slot_of: uint32 for each, its slot in the table, all ones for
    none. short, middle, long, whole: uint32, numbers of misses to be merged, by length class; how
    many is in counters."""

    missed: Any
    slot_of: Any
    short: Any
    middle: Any
    long: Any
    whole: Any


def claim(
    device: Device,
    table: PieceTable,
    pieces: Pieces,
    missed: Any,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> Misses:
    """A slot of the table for each different miss, and lists of those to be merged."""
    shape = grid(pieces.bound, threads, blocks)
    n, bits = pieces.n_bytes, np.uint32(table.bits)
    slot_of, short = (device.empty(max(pieces.bound, 1), np.uint32) for _ in range(2))
    middle, long, whole = (
        device.empty(n // least + 1, np.uint32) for least in (MIDDLE, LONG, LONG)
    )
    args: tuple[Any, ...] = (
        *(pieces.text, pieces.piece_start, missed, table.slots, bits, np.uint64(table.limit)),
        *(np.uint32(LONGEST_KEPT), slot_of, table.counters, pieces.counters),
    )
    device.kernel("misses.cu", "claim")(shape, (threads,), args)
    args = (
        *(pieces.piece_start, missed, slot_of, table.slots, np.uint32(MIDDLE), np.uint32(LONG)),
        *(short, middle, long, pieces.counters),
    )
    device.kernel("misses.cu", "deal")(shape, (threads,), args)
    return Misses(missed, slot_of, short, middle, long, whole)


def merge(
    device: Device,
    model: ModelTables,
    table: PieceTable,
    pieces: Pieces,
    misses: Misses,
    values: Any,
    *,
    threads: int = 128,
    long_threads: int = 256,
    long_window: int = _LONG_WINDOW,
    blocks: int = _BLOCKS,
) -> None:
    """Merges what `claim` has listed: values into the table's slots, or of pieces without one.

    `PieceTable.room_for` was called. threads, long_threads: at most 256. long_window: bytes, a
    multiple of 32, at least eight times the longest token or long pieces take long.
    """
    at = counter_numbers()
    common = (pieces.text, pieces.piece_start, misses.missed, misses.slot_of)
    tail = (*model.arguments, *table.arguments)
    n = max(pieces.n_bytes, 1)
    kept = device.empty(n, np.uint8) if model.facts["leaves_out"] else None
    args: tuple[Any, ...] = (*common, misses.short, *tail, values, pieces.counters)
    kernel = device.kernel("merge.cu", "merge_short")
    kernel(grid(pieces.bound, threads, blocks), (threads,), args, shared_mem=256 * threads)
    kernel = device.kernel("merge.cu", "merge_windows")
    for name, work, block, window, least in (
        ("MIDDLE", misses.middle, 32, _MIDDLE_WINDOW, MIDDLE),
        ("LONG", misses.long, long_threads, long_window, LONG),
    ):
        numbers = (
            np.uint32(at[f"WORK_{name}"]),
            np.uint32(at[f"TICKET_{name}"]),
            np.uint32(window),
        )
        args = (*common, work, *numbers, misses.whole, *tail, kept, values, pieces.counters)
        shape = grid(pieces.n_bytes // least, 1, _WINDOW_BLOCKS)
        kernel(shape, (block,), args, shared_mem=_window_bytes(window))
    scratch = device.empty(n // 16 + 8, np.uint32)
    args = (*common, misses.whole, scratch, *tail, kept, values, pieces.counters)
    device.kernel("merge.cu", "merge_whole")((1,), (long_threads,), args)


def _window_bytes(capacity: int) -> int:
    """WINDOW_BYTES of kernels/merge.cuh."""
    return 16 * capacity + 8 * (capacity // 32 + 2) + 8 * 33


def resolve(
    device: Device,
    table: PieceTable,
    pieces: Pieces,
    misses: Misses,
    values: Any,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> None:
    """Values of all misses, from the slots that they or their equals have claimed."""
    args = (misses.missed, misses.slot_of, table.slots, values, pieces.counters)
    device.kernel("misses.cu", "resolve")(grid(pieces.bound, threads, blocks), (threads,), args)
