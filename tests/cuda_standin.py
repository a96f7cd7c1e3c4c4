"""The stages of a model without kernels: the core encodes what a device was given.

For tests of what is around the stages. It reads text, offsets and validity from the device's
memory, and puts ids and counts there, bounded as the kernels' are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saphira_gpu._arrays import U64, Offsets
from saphira_gpu.batch import Batch
from saphira_gpu.devices import Device
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda import special as stage_special
from saphira_gpu.engines.cuda.batches import PADDING, Launched, Placed
from saphira_gpu.engines.cuda.rows import DeviceRows, counter_numbers
from saphira_gpu.engines.cuda.verify import Stages, expected_stages

TABLES = 10_000  # bytes of its tables
PER_BYTE = 20  # bytes that a batch takes on the device for each one of text


class StandIn:
    def __init__(self, device: Device, base: cpu.Engine, total: int) -> None:
        self.device, self.base, self.total = device, base, total
        self.tables = device.zeros(TABLES, np.uint8)
        self.batches: list[tuple[int, int]] = []  # bytes and rows of each

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
        device = self.device
        room = device.empty(n_bytes * PER_BYTE, np.uint8)
        data = device.to_host(text)
        assert len(data) == n_bytes + PADDING and not data[n_bytes:].any()
        validity = None if rows.validity is None else device.to_host(rows.validity)
        offsets = device.to_host(rows.offsets)
        assert offsets[0] == 0 and offsets[-1] == n_bytes and len(offsets) == rows.n_rows + 1
        batch = Batch(data[:n_bytes], offsets, validity, rows.validity_offset)
        self.batches.append((n_bytes, rows.n_rows))
        counters = np.zeros(counter_numbers()["COUNTERS"], np.uint64)
        counted = np.zeros(len(self.base.plan.added_ids), np.int64)
        try:
            made, id_offsets, counted = self.encode(batch, special, hits)
        except cpu.Hit as hit:
            made, id_offsets = np.zeros(0, np.uint32), np.zeros(rows.n_rows + 1, np.int64)
            at = int(offsets[hit.row]) + hit.byte
            in_row = hit.byte < offsets[hit.row + 1] - offsets[hit.row]
            key = at << 32 | int(in_row) << 31 | hit.added
            counters[counter_numbers()["SPECIAL_ERROR"]] = key ^ (1 << 64) - 1
        ids = np.full(max(n_bytes, 1), 0xABAB, dtype)
        ids[: len(made)] = made
        del room
        return Launched(
            device.to_device(ids),
            device.to_device(id_offsets),
            device.to_device(counters),
            device.to_device(counted.astype(np.uint64)) if hits else None,
        )

    def encode(self, batch: Batch, special: str, hits: bool) -> tuple[Any, Any, Any]:
        done = self.base.encode(batch, special, 1, hits=hits)
        return done.ids, done.offsets, done.hits

    def hit(self, counters: U64, offsets: Offsets) -> cpu.Hit | None:
        return stage_special.hit(counters, offsets)

    def look(self, batch: Batch, special: str, placed: Placed | None) -> Stages:
        return expected_stages(self.base, batch, special, placed)
