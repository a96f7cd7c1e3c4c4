"""Stage rows on a device: where segments start, and which pieces have their id already."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from saphira_gpu._arrays import U32
from saphira_gpu.batch import Batch
from saphira_gpu.devices import Device
from saphira_gpu.devices.source import kernels_folder


@cache
def counter_numbers() -> dict[str, int]:
    """Index of each counter by its name, without SA_COUNTER_; SA_COUNTERS is how many there are."""
    text = (kernels_folder() / "counters.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    body = re.search(r"enum \{(.*?)\}", text, re.DOTALL)
    names = re.findall(r"\bSA_(?:COUNTER_)?(\w+)", body[1] if body else "")
    return {name: number for number, name in enumerate(names)}


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """Rows of a batch on a device: text[offsets[i] - offsets[0] : offsets[i + 1] - offsets[0]].

    offsets: int32 or int64 [n_rows + 1], ascending. validity: Arrow's bitmap (uint8), row i at bit
    validity_offset + i, or None.
    """

    offsets: Any
    n_rows: int
    validity: Any = None
    validity_offset: int = 0

    @classmethod
    def of(cls, device: Device, batch: Batch) -> DeviceRows:
        """Uploads a batch's offsets and validity, not its text."""
        validity, skip = None, 0
        if batch.validity is not None:
            first = batch.validity_offset // 8
            skip = batch.validity_offset - 8 * first
            last = (batch.validity_offset + batch.n_rows + 7) // 8
            validity = device.to_device(batch.validity[first:last]) if last > first else None
        offsets = device.to_device(np.ascontiguousarray(batch.offsets))
        return cls(offsets, batch.n_rows, validity, skip)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What kernels take for rows: offsets, their width, how many rows, validity."""
        width = np.dtype(self.offsets.dtype).itemsize
        return (
            self.offsets.view(np.uint8),
            np.uint32(width),
            np.uint64(self.n_rows),
            self.validity,
            np.uint64(self.validity_offset),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """What stages rows and special say of a text of n bytes, on a device.

    segments, fixed, inside: uint64[n // 64 + 1], bit i is byte i: where a segment starts (bit n is
        set), the first byte of a fixed piece, its other bytes.
    fixed_at, fixed_id: uint32, the fixed pieces in any order, counters[SA_COUNTER_FIXED] of them;
        id SA_NO_ID: a piece without ids.
    counters: uint64[SA_COUNTERS] of kernels/counters.h.
    """

    segments: Any
    fixed: Any
    inside: Any
    fixed_at: Any
    fixed_id: Any
    counters: Any

    @property
    def list_arguments(self) -> tuple[Any, ...]:
        """What kernels take that add fixed pieces."""
        return (self.fixed, self.inside, self.fixed_at, self.fixed_id, self.counters)


def new_counters(device: Device) -> Any:
    return device.zeros(counter_numbers()["COUNTERS"], np.uint64)


def new_marks(device: Device, n_bytes: int, room: int, counters: Any) -> Marks:
    """Marks without any bit. room: fixed pieces that there may be."""
    words = n_bytes // 64 + 1
    segments, fixed, inside = (device.zeros(words, np.uint64) for _ in range(3))
    room = max(room, 1)
    at, number = device.empty(room, np.uint32), device.empty(room, np.uint32)
    return Marks(segments, fixed, inside, at, number, counters)


def null_room(rows: DeviceRows, n_bytes: int) -> int:
    """Fixed pieces that row_segments may add."""
    return 0 if rows.validity is None else min(rows.n_rows, n_bytes)


def row_segments(device: Device, rows: DeviceRows, marks: Marks, threads: int = 256) -> None:
    """Marks where rows start, and null rows with bytes under them as fixed pieces without ids.

    marks: with room for `null_room` fixed pieces.
    """
    grid = ((rows.n_rows + threads) // threads,)
    args = (*rows.arguments, marks.segments, *marks.list_arguments)
    device.kernel("rows.cu", "row_segments")(grid, (threads,), args)


def placed_pieces(
    device: Device, at: U32, ids: U32, n_bytes: int, counters: Any, threads: int = 256
) -> Marks:
    """Marks of a text that the core has made (`engines.cpu.prepare`), with the added tokens in it.

    at, ids: uint32, where each token's placeholder byte is, and its id; a null row has no bytes in
    such text. Rows are to be marked too (`row_segments`).
    """
    marks = new_marks(device, n_bytes, len(at), counters)
    if len(at) == 0:
        return marks
    marks = Marks(
        marks.segments, marks.fixed, marks.inside,
        device.to_device(at), device.to_device(ids), counters,
    )  # fmt: skip
    n = np.uint32(len(at))
    args = (marks.fixed_at, n, marks.segments, marks.fixed, marks.counters)
    grid = ((len(at) + threads - 1) // threads,)
    device.kernel("rows.cu", "placed_pieces")(grid, (threads,), args)
    return marks
