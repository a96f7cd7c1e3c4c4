"""All stages of a batch, as kernels: rows, special, boundaries, pieces, probe, merge, emit."""

from __future__ import annotations

from typing import Any

import numpy as np

from saphira_gpu._arrays import U32, U64, Offsets
from saphira_gpu.batch import Batch
from saphira_gpu.devices import Device
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda import bpe, emit, pretok, rows, special
from saphira_gpu.engines.cuda.batches import PADDING, Launched, Placed
from saphira_gpu.engines.cuda.rows import DeviceRows, Marks, counter_numbers
from saphira_gpu.engines.cuda.tables import AlphabetTables, SchemeTables
from saphira_gpu.engines.cuda.verify import Stages

# Slots of the table of pieces, 32 bytes each: 2^20 where there is room for them.
_MOST_BITS, _LEAST_BITS = 20, 8
# The table takes at most this part of the memory there is.
_TABLE_PART = 8
# How many batches go by before somebody looks whether the table is full, and what is hot.
_BATCHES_A_LOOK = 64
# Batches of less text do without the hot table: blocks copy 32 MB of it, and it saves 4 or 5 bytes
# of the table for each byte of text (bench/gpu_model.py).
_HOT_LEAST = 16 << 20


class KernelStages:
    """The stages of one model on one device: its tables, and the table of pieces that lives on.

    total: bytes of device memory that there may be, by which the table is sized. hot_least: bytes
    of text from which on a batch makes and uses the table's hot part.
    """

    def __init__(self, device: Device, base: cpu.Engine, total: int) -> None:
        self.device, self.base = device, base
        self.alphabet = AlphabetTables.of(device)
        self.scheme = SchemeTables.of(device, base.plan.scheme, self.alphabet)
        self.model = bpe.ModelTables.of(device, base)
        self.added = None if base.rewrites else special.AddedTables.of(device, base)
        most = max(total // (_TABLE_PART * 48), 1).bit_length() - 1
        bits = max(_LEAST_BITS, min(_MOST_BITS, most))
        self.table = bpe.PieceTable(device, base, bits, arena_bytes=8 << bits, kept_ids=2 << bits)
        self.hot_least = _HOT_LEAST
        self._launches = 0

    def launch(
        self,
        text: Any,
        n_bytes: int,
        rows: DeviceRows,
        special: str,
        placed: Placed | None,
        *,
        dtype: np.dtype[Any],
        hits: bool,
    ) -> Launched:
        """Asks for all stages of a batch. See `batches.Pipeline`."""
        device = self.device
        if self._launches % _BATCHES_A_LOOK == 0:
            self._make_room()
        self._launches += 1
        marks, counted = self._marks(text, n_bytes, rows, special, placed, hits)
        starts, pieces = self._split(text, n_bytes, marks)
        values = self._values(text, n_bytes, marks, starts, pieces)
        ids = device.empty(max(n_bytes, 1), dtype)
        groups = emit.emit(device, values, n_bytes, self.table.spill, ids, marks.counters)
        offsets = emit.row_ids(device, rows, starts, pieces.ranks, values, groups)
        return Launched(ids, offsets, marks.counters, counted)

    def hit(self, counters: U64, offsets: Offsets) -> cpu.Hit | None:
        return special.hit(counters, offsets)

    def look(self, batch: Batch, special: str, placed: Placed | None) -> Stages:
        """Runs the stages and fetches what each of them made of a text. See `verify.Looker`."""
        device, n = self.device, batch.n_bytes
        begin = int(batch.offsets[0])
        padded = np.zeros(n + PADDING, np.uint8)
        padded[:n] = batch.data[begin : begin + n]
        with device.current():
            text, on_device = device.to_device(padded), DeviceRows.of(device, batch)
            marks, _ = self._marks(text, n, on_device, special, placed, False)
            tags, _ = pretok.classify(device, self.alphabet, text, n, marks.segments)
            starts, pieces = self._split(text, n, marks)
            values = self._values(text, n, marks, starts, pieces)
            n_pieces = int(device.to_host(marks.counters)[counter_numbers()["PIECES"]])
            return Stages(
                device.to_host(marks.segments),
                device.to_host(tags),
                device.to_host(starts),
                device.to_host(pieces.start[: n_pieces + 1]),
                self._ids_of(device.to_host(values[:n_pieces])),
            )

    # ---- the stages in turn ----

    def _marks(
        self,
        text: Any,
        n_bytes: int,
        on_device: DeviceRows,
        mode: str,
        placed: Placed | None,
        hits: bool,
    ) -> tuple[Marks, Any]:
        """Where rows and added tokens are, and the hits of each added token, if they are wanted."""
        device = self.device
        counters = rows.new_counters(device)
        if placed is not None:
            marks = rows.placed_pieces(
                device, placed.at.astype(np.uint32), placed.ids, n_bytes, counters
            )
            rows.row_segments(device, on_device, marks)
            return marks, None
        added = self.added
        assert added is not None
        counted = device.zeros(max(added.n_added, 1), np.uint64) if hits else None
        searched = added.searched(mode, hits)
        room = rows.null_room(on_device, n_bytes) + (added.room(n_bytes) if searched else 0)
        marks = rows.new_marks(device, n_bytes, room, counters)
        rows.row_segments(device, on_device, marks)
        if searched:
            special.find(device, added, text, n_bytes, on_device, marks, mode, counted)
        return marks, None if counted is None else counted[: added.n_added]

    def _split(self, text: Any, n_bytes: int, marks: Marks) -> tuple[Any, pretok.Pieces]:
        starts = pretok.boundaries(
            self.device, self.scheme, text, n_bytes, marks.segments, marks.counters,
            inside=marks.inside,
        )  # fmt: skip
        return starts, pretok.pieces(self.device, starts, n_bytes, marks.counters)

    def _values(
        self, text: Any, n_bytes: int, marks: Marks, starts: Any, pieces: pretok.Pieces
    ) -> Any:
        device, table, model = self.device, self.table, self.model
        table.room_for(n_bytes)
        values = device.empty(max(n_bytes, 1), np.uint64)
        bpe.fixed_values(device, starts, pieces.ranks, marks, values)
        todo = bpe.Pieces(text, n_bytes, pieces.start, n_bytes, marks.counters, marks.fixed)
        large = n_bytes >= self.hot_least
        missed = bpe.probe(device, table, todo, values, hot=large and table.has_hot)
        misses = bpe.claim(device, table, todo, missed)
        bpe.merge(device, model, table, todo, misses, values)
        bpe.resolve(device, table, todo, misses, values)
        if large and not table.has_hot:
            bpe.make_hot(device, table, todo)
        return values

    def _make_room(self) -> None:
        """Empties the table of pieces where nothing new finds room in it, and has its hot part made
        again by the next batch."""
        self.table.has_hot = False
        if self.table.full(self.device.to_host(self.table.counters)):
            self.table.clear()

    def _ids_of(self, values: U64) -> tuple[U32, Any]:
        """The ids of some values, and int64[n + 1], where those of each start."""
        few = (values >> np.uint64(60)) & np.uint64(3)
        many = (values >> np.uint64(32)) & np.uint64(0xFFFFFFF)
        counts = np.where(few > 0, few, many).astype(np.int64)
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        found = np.zeros(int(offsets[-1]), np.uint32)
        for i in range(3):
            has = np.flatnonzero(few > i)
            shifted = (values[has] >> np.uint64(20 * i)) & np.uint64(0xFFFFF)
            found[offsets[has] + i] = shifted.astype(np.uint32)
        for i in np.flatnonzero((few == 0) & (counts > 0)).tolist():
            at = int(values[i]) & 0xFFFFFFFF
            part = self.table.spill[at : at + int(counts[i])]
            found[offsets[i] : offsets[i + 1]] = self.device.to_host(part)
        return found, offsets
