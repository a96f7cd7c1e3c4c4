"""Batches of rows through a device: copied in, encoded, copied out, on a stream each.

Batch k is copied in while the kernels see to k - 1 and the ids of k - 2 are copied out. The host
waits for a batch's counts only, and only when the next one's kernels have been asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from saphira_gpu._arrays import I64, U8, U32, U64, Offsets
from saphira_gpu.batch import Batch
from saphira_gpu.devices import Device, DeviceMemoryError, Event, RowTooLarge
from saphira_gpu.engines.cpu import Hit
from saphira_gpu.engines.cuda.memory import MOST_BYTES, Sizes
from saphira_gpu.engines.cuda.rows import DeviceRows

# Readable zero bytes behind the text of a batch.
PADDING = 64
_SLOTS = 3
# A copy between pageable and pinned memory is shared out in parts of this many bytes.
_PART = 8 << 20
_COPY_THREADS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Added tokens that the core has put into text already: where, and their ids."""

    at: I64
    ids: U32


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Rows that are ready for a device. placed: for a model that rewrites text; added tokens are
    searched for where it is None. offsets: ascending, of whichever width."""

    batch: Batch
    placed: Placed | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Launched:
    """Arrays on a device that kernels are writing. ids: uint16 or uint32, bounded by the text.
    row_offsets: int64[n_rows + 1], the last is how many ids there are. counters: uint64. hits:
    uint64[n_added] or None."""

    ids: Any
    row_offsets: Any
    counters: Any
    hits: Any


class Pipeline(Protocol):
    """The stages of one model on one device."""

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
        """Asks for all stages of a batch, and waits for nothing. text: uint8[n_bytes + PADDING],
        zero from n_bytes on. dtype: of the ids."""
        ...

    def hit(self, counters: U64, offsets: Offsets) -> Hit | None:
        """special="error": the first added token, of a batch's counters and row offsets."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """A batch that is done. first, last: its rows. row_offsets: int64, from 0. ids: on the host,
    valid until the next batch; None where only counts or ids on the device are wanted."""

    first: int
    last: int
    row_offsets: I64
    counters: U64
    hits: U64 | None
    launched: Launched
    ids: np.ndarray[Any, Any] | None


Sink = Callable[[Done], None]


@dataclass(slots=True)
class _Pinned:
    """Host memory to copy from and to, which grows as it's asked for more."""

    device: Device
    memory: np.ndarray[Any, Any] | None = None

    def take(self, n: int, dtype: Any) -> np.ndarray[Any, Any]:
        size = n * np.dtype(dtype).itemsize
        if self.memory is None or self.memory.nbytes < size:
            self.memory = None
            self.memory = self.device.pinned(max(size, 4096), np.uint8)
        return self.memory[:size].view(dtype)


@dataclass(slots=True, eq=False)
class _Slot:
    """Memory of one batch in flight, and what is known of it."""

    text_in: _Pinned
    offsets_in: _Pinned
    validity_in: _Pinned
    offsets_out: _Pinned
    counters_out: _Pinned
    hits_out: _Pinned
    ids_out: _Pinned
    # On the device; they stay for the next batch that fits.
    text: Any = None
    offsets: Any = None
    validity: Any = None
    first: int = 0
    last: int = 0
    launched: Launched | None = None
    counted: Event | None = None
    copied: Event | None = None
    outs: list[Any] = field(default_factory=list)

    def release(self) -> None:
        self.text = self.offsets = self.validity = self.launched = None


def _slot(device: Device) -> _Slot:
    p = [_Pinned(device) for _ in range(7)]
    return _Slot(p[0], p[1], p[2], p[3], p[4], p[5], p[6])


class Conveyor:
    """Carries the rows of a text through a pipeline. One thread at a time."""

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        self._device = device
        self._pipeline = pipeline
        self._in, self._out = device.stream(), device.stream()
        self._slots = [_slot(device) for _ in range(_SLOTS)]
        # How many batches ran, and how often one was halved for want of room.
        self.batches = self.halved = 0

    def run(
        self,
        text: Text,
        special: str,
        sizes: Sizes,
        sink: Sink,
        *,
        dtype: np.dtype[Any],
        hits: bool = False,
        fetch: bool = True,
    ) -> Sizes:
        """Gives every batch to the sink, in order. fetch: with its ids in host memory.

        Returns the bounds that held in the end. Raises Hit under special="error", and RowTooLarge
        for a row that finds no room on its own.
        """
        batch = text.batch
        offsets = batch.offsets
        flight: deque[_Slot] = deque()
        first = number = 0
        try:
            while first < batch.n_rows:
                last = _end(offsets, first, sizes)
                n = int(offsets[last]) - int(offsets[first])
                slot = self._slots[number % _SLOTS]
                try:
                    if n > MOST_BYTES:
                        raise DeviceMemoryError(f"a batch is at most {MOST_BYTES} bytes")
                    self._launch(slot, text, first, last, special, dtype, hits)
                except DeviceMemoryError as error:
                    slot.launched = None
                    self._drain(flight, text, special, sink, fetch)
                    self.release()
                    if last - first == 1:
                        raise RowTooLarge(first, n, str(error)) from None
                    sizes = sizes.halved(n, last - first)
                    self.halved += 1
                    continue
                flight.append(slot)
                if len(flight) > 1:
                    self._count(flight[-2], text, special, fetch)
                self._ask_counts(slot)
                if len(flight) == _SLOTS:
                    self._finish(flight.popleft(), sink, fetch)
                first, number = last, number + 1
                self.batches += 1
            self._drain(flight, text, special, sink, fetch)
        except BaseException:
            self.release()
            raise
        return sizes

    # ---- one batch ----

    def _launch(
        self,
        slot: _Slot,
        text: Text,
        first: int,
        last: int,
        special: str,
        dtype: np.dtype[Any],
        hits: bool,
    ) -> None:
        device, batch = self._device, text.batch
        begin, end = int(batch.offsets[first]), int(batch.offsets[last])
        n = end - begin
        slot.first, slot.last, slot.copied = first, last, None
        bytes_in = slot.text_in.take(n + PADDING, np.uint8)
        copy_shared(bytes_in[:n], batch.data[begin:end])
        bytes_in[n:] = 0
        offsets_in = slot.offsets_in.take(last - first + 1, np.int64)
        np.subtract(batch.offsets[first : last + 1], begin, out=offsets_in, casting="unsafe")
        validity_in, skip = None, 0
        if batch.validity is not None:
            bit = batch.validity_offset + first
            skip = bit % 8
            bits = batch.validity[bit // 8 : (bit + last - first + 7) // 8]
            validity_in = slot.validity_in.take(len(bits), np.uint8)
            validity_in[:] = bits
        fresh = [
            self._fit(slot, "text", n + PADDING, np.uint8),
            self._fit(slot, "offsets", len(offsets_in), np.int64),
            validity_in is not None and self._fit(slot, "validity", len(validity_in), np.uint8),
        ]
        if any(fresh):  # kernels that were asked for before may be using that memory still
            self._in.wait(device.main.record())
        on_device = slot.text[: n + PADDING], slot.offsets[: len(offsets_in)]
        self._in.copy(on_device[0], bytes_in)
        self._in.copy(on_device[1], offsets_in)
        validity = None
        if validity_in is not None:
            validity = slot.validity[: len(validity_in)]
            self._in.copy(validity, validity_in)
        device.main.wait(self._in.record())
        rows = DeviceRows(on_device[1], last - first, validity, skip)
        placed = None if text.placed is None else _within(text.placed, begin, end)
        with device.current():
            slot.launched = self._pipeline.launch(
                on_device[0], n, rows, special, placed, dtype=dtype, hits=hits
            )

    def _fit(self, slot: _Slot, name: str, n: int, dtype: Any) -> bool:
        """Makes room for n items; whether the memory is new."""
        have = getattr(slot, name)
        if have is not None and have.size >= n:
            return False
        setattr(slot, name, None)
        setattr(slot, name, self._device.empty(n, dtype))
        return True

    def _ask_counts(self, slot: _Slot) -> None:
        launched = slot.launched
        assert launched is not None
        self._out.wait(self._device.main.record())
        found = [(slot.offsets_out, launched.row_offsets), (slot.counters_out, launched.counters)]
        if launched.hits is not None:
            found.append((slot.hits_out, launched.hits))
        slot.outs = []
        for pinned, array in found:
            slot.outs.append(pinned.take(array.size, array.dtype))
            self._out.copy(slot.outs[-1], array)
        slot.counted = self._out.record()

    def _count(self, slot: _Slot, text: Text, special: str, fetch: bool) -> None:
        """Waits for a batch's counts, and asks for its ids."""
        assert slot.counted is not None and slot.launched is not None
        slot.counted.synchronize()
        if special == "error" and text.placed is None:
            offsets = text.batch.offsets[slot.first : slot.last + 1]
            hit = self._pipeline.hit(slot.outs[1], offsets)
            if hit is not None:
                raise Hit(slot.first + hit.row, hit.byte, hit.added)
        total = int(slot.outs[0][-1])
        if fetch:
            ids = slot.launched.ids[:total]
            slot.outs.append(slot.ids_out.take(total, ids.dtype))
            self._out.copy(slot.outs[-1], ids)
        slot.copied = self._out.record()

    def _finish(self, slot: _Slot, sink: Sink, fetch: bool) -> None:
        assert slot.copied is not None and slot.launched is not None
        slot.copied.synchronize()
        launched, outs = slot.launched, slot.outs
        hits = outs[2] if launched.hits is not None else None
        ids = outs[-1] if fetch else None
        sink(Done(slot.first, slot.last, outs[0], outs[1], hits, launched, ids))
        slot.launched, slot.outs = None, []

    def _drain(
        self, flight: deque[_Slot], text: Text, special: str, sink: Sink, fetch: bool
    ) -> None:
        """Finishes all that is in flight."""
        if flight and flight[-1].copied is None:
            self._count(flight[-1], text, special, fetch)
        while flight:
            self._finish(flight.popleft(), sink, fetch)

    def release(self) -> None:
        """Gives back the memory of batches, once nothing touches it any more."""
        try:
            self._device.synchronize()
            for stream in (self._in, self._out):
                stream.record().synchronize()
        finally:
            for slot in self._slots:
                slot.release()


def copy_shared(target: U8, source: U8) -> None:
    """target[:] = source, by several threads where it is long."""
    n = len(source)
    if n < 2 * _PART:
        target[:] = source
        return

    def part(at: int) -> None:
        target[at : at + _PART] = source[at : at + _PART]

    with ThreadPoolExecutor(_COPY_THREADS) as pool:
        list(pool.map(part, range(0, n, _PART)))


def _end(offsets: Offsets, first: int, sizes: Sizes) -> int:
    """The end of the batch that starts at a row: as many rows as fit, one at least."""
    limit = int(offsets[first]) + sizes.bytes
    stop = min(len(offsets) - 1, first + sizes.rows)
    # The last offset within the limit; rows without bytes at the limit come with it.
    end = first + int(np.searchsorted(offsets[first : stop + 1], limit, "right")) - 1
    return max(end, first + 1)


def _within(placed: Placed, begin: int, end: int) -> Placed:
    first, last = np.searchsorted(placed.at, (begin, end)).tolist()
    return Placed(placed.at[first:last] - begin, placed.ids[first:last])


def joined(device: Device, parts: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """Arrays on a device as one, in memory that other libraries may keep."""
    if len(parts) == 1:
        return parts[0]
    whole = device.lasting(sum(part.size for part in parts), dtype)
    at = 0
    for part in parts:
        device.main.copy(whole[at : at + part.size], part)
        at += part.size
    return whole
