"""The engine of a device: the contract of `engines.cpu.Engine.encode`, and ids that stay there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from saphira_gpu._arrays import I64, U32
from saphira_gpu.batch import Batch, cumulated
from saphira_gpu.devices import Device
from saphira_gpu.engines import cpu
from saphira_gpu.engines._memory import Output
from saphira_gpu.engines.cuda import memory, verify
from saphira_gpu.engines.cuda.batches import Conveyor, Done, Pipeline, Placed, Text, joined
from saphira_gpu.engines.cuda.output import DeviceArray, DeviceTokens
from saphira_gpu.engines.settings import DEFAULTS, Settings
from saphira_gpu.errors import UnsupportedError, VerifyError
from saphira_gpu.plan import Plan
from saphira_gpu.report import Report


class Stages(Pipeline, verify.Looker, Protocol):
    """A pipeline whose stages can be looked at one by one."""


# (device, the core's engine, bound of device memory in bytes) → the stages of its model.
Make = Callable[[Device, cpu.Engine, int], Stages]


def refused(plan: Plan) -> str | None:
    """Why a model doesn't run on a device; None if it does."""
    if not plan.scheme:
        return (
            "this tokenizer splits text by a program of stages, which runs on the CPU only; its "
            "split is no compiled scheme"
        )
    return None


class Engine:
    """A model on one device: its tables, its pretoken table, and what carries batches to it.

    From several threads, one call runs at a time.
    """

    def __init__(self, base: cpu.Engine, device: Device, name: str, make: Make) -> None:
        reason = refused(base.plan)
        if reason:
            raise UnsupportedError(f"device={name!r}: {reason}; use device='auto' or 'cpu'")
        self.base = base
        self.device = device
        self._make = make
        self._lock = threading.Lock()
        self._stages: Stages | None = None
        self._conveyor: Conveyor | None = None
        self._asked: int | None = None
        self._total = self._resident = 0
        self._rows_seen = 0
        self._narrow = np.dtype(np.uint16 if base.plan.n_ids <= 1 << 16 else np.uint32)

    # ---- the contract of cpu.Engine ----

    def encode(
        self,
        batch: Batch,
        special: str,
        threads: int,
        *,
        ids: bool = True,
        hits: bool = False,
        settings: Settings = DEFAULTS,
        report: Report | None = None,
    ) -> cpu.Encoded:
        """Ids of every row, as `engines.cpu.Engine.encode`. report: gets what the device did.

        Raises Hit under special="error", RowTooLarge (rows as in the batch), VerifyError.
        """
        with self._lock:
            sink = _ToHost(batch.n_rows, batch.n_bytes, len(self.base.plan.added_ids), ids)
            n_bytes = self._run(
                batch, special, threads, sink, settings, report,
                dtype=self._narrow, hits=hits, fetch=ids,
            )  # fmt: skip
            made = sink.finish()
            self._verify(batch, special, threads, sink.offsets, made, settings, report)
            return cpu.Encoded(made, sink.offsets, sink.hits, n_bytes, 0, 0, 0)

    # ---- ids that stay ----

    def encode_on_device(
        self,
        batch: Batch,
        special: str,
        threads: int,
        dtype: np.dtype[Any],
        settings: Settings = DEFAULTS,
        report: Report | None = None,
        hits: bool = False,
    ) -> tuple[DeviceTokens, cpu.Encoded]:
        """The same with ids that stay on the device, of a dtype of 2 or 4 bytes; the counts on the
        host."""
        with self._lock:
            own = np.dtype(np.uint16 if dtype.itemsize == 2 else np.uint32)
            n_added = len(self.base.plan.added_ids)
            sink = _ToDevice(self.device, batch.n_rows, n_added, own)
            n_bytes = self._run(
                batch, special, threads, sink, settings, report,
                dtype=own, hits=hits, fetch=False,
            )  # fmt: skip
            values = joined(self.device, sink.parts, own)
            offsets = _kept(self.device, sink.offsets)
            self.device.synchronize()
            rows = self._chosen(batch, settings)
            if len(rows):
                made = self.device.to_host(values).astype(np.uint32, copy=False)
                self._compare(batch, special, threads, rows, sink.offsets, made, settings, report)
            tokens = DeviceTokens(
                DeviceArray(self.device, values.view(dtype)),
                DeviceArray(self.device, offsets),
                batch.valid,
            )
            return tokens, cpu.Encoded(None, sink.offsets, sink.hits, n_bytes, 0, 0, 0)

    def together(self, parts: list[DeviceTokens], dtype: np.dtype[Any]) -> DeviceTokens:
        """Rows of several chunks as one."""
        if len(parts) == 1:
            return parts[0]
        with self._lock:
            device = self.device
            values = joined(device, [part.values.raw for part in parts], dtype)
            counts = [np.diff(part.offsets.to_numpy()) for part in parts]
            offsets = _kept(device, cumulated(np.concatenate([_NONE, *counts])))
            device.synchronize()
        valid = None
        if any(part.validity is not None for part in parts):
            own = [np.ones(len(p), np.bool_) if p.validity is None else p.validity for p in parts]
            valid = np.concatenate(own)
        return DeviceTokens(DeviceArray(device, values), DeviceArray(device, offsets), valid)

    # ---- what both do ----

    def _run(
        self,
        batch: Batch,
        special: str,
        threads: int,
        sink: _Sink,
        settings: Settings,
        report: Report | None,
        *,
        dtype: np.dtype[Any],
        hits: bool,
        fetch: bool,
    ) -> int:
        """Runs all batches; bytes of text encoded."""
        conveyor = self._ready(settings)
        text = self._text(batch, special, threads, sink, hits)
        before = conveyor.batches, conveyor.halved
        try:
            conveyor.run(
                text, special, memory.sizes(self._total, self._resident), sink,
                dtype=dtype, hits=hits and text.placed is None, fetch=fetch,
            )  # fmt: skip
        except cpu.Hit as hit:
            self._confirm(batch, special, hit, settings)
            raise
        if report is not None:
            report.add(
                Report(
                    device_batches=conveyor.batches - before[0],
                    device_halved=conveyor.halved - before[1],
                    device_bytes=text.batch.n_bytes,
                    device_memory=self.device.memory().peak,
                )
            )
        return text.batch.n_bytes

    def _ready(self, settings: Settings) -> Conveyor:
        """Tables on the device, and its memory bounded, as this call asks."""
        asked = settings.device_memory
        if self._conveyor is None or (asked is not None and asked != self._asked):
            if self._conveyor is not None:
                self._conveyor.release()
            self._conveyor = self._stages = None
            self.device.limit_memory(None)
            self._total = memory.budget(self.device, asked)
            self._asked = asked
            self.device.limit_memory(self._total)
            with self.device.current():
                self._stages = self._make(self.device, self.base, self._total)
            self._resident = self.device.memory().used
            self._conveyor = Conveyor(self.device, self._stages)
        return self._conveyor

    def _text(self, batch: Batch, special: str, threads: int, sink: _Sink, hits: bool) -> Text:
        """The text that goes to the device: as it is, or as the core rewrites it."""
        if not self.base.rewrites:
            return Text(batch)
        made = self.base.prepare(batch, special, threads, hits=hits)
        sink.hits += made.hits
        return Text(made.batch, Placed(made.fixed_at, made.fixed_ids))

    def _chosen(self, batch: Batch, settings: Settings) -> I64:
        rows = verify.chosen(settings.seed, self._rows_seen, batch.n_rows, settings.verify)
        self._rows_seen += batch.n_rows
        return rows

    def _verify(
        self,
        batch: Batch,
        special: str,
        threads: int,
        offsets: I64,
        ids: U32 | None,
        settings: Settings,
        report: Report | None,
    ) -> None:
        rows = self._chosen(batch, settings)
        self._compare(batch, special, threads, rows, offsets, ids, settings, report)

    def _compare(
        self,
        batch: Batch,
        special: str,
        threads: int,
        rows: I64,
        offsets: I64,
        ids: U32 | None,
        settings: Settings,
        report: Report | None,
    ) -> None:
        assert self._stages is not None
        verify.compare(
            self.base, self._stages, batch, special, threads, rows, offsets, ids, settings.seed
        )
        if report is not None:
            report.add(Report(verified_rows=len(rows), verify_seed=settings.seed))

    def _confirm(self, batch: Batch, special: str, hit: cpu.Hit, settings: Settings) -> None:
        """special="error": the CPU must find the same added token in that row."""
        if self.base.rewrites:
            return  # the core found it
        row = verify.taken(batch, np.array([hit.row]))
        found = "the device finds added token {} at byte {}, the CPU {}"
        other = "none"
        try:
            self.base.encode(row, special, 1, ids=False)
        except cpu.Hit as own:
            if (own.byte, own.added) == (hit.byte, hit.added):
                return
            other = f"{own.added} at {own.byte}"
        found = found.format(hit.added, hit.byte, other)
        raise VerifyError(hit.row, "segments", settings.seed, [], [], found)


_NONE = np.zeros(0, np.int64)


def _kept(device: Device, array: I64) -> Any:
    """An array on the device for other libraries to keep."""
    pinned = device.pinned(array.shape, array.dtype)
    pinned[:] = array
    made = device.lasting(array.shape, array.dtype)
    device.main.copy(made, pinned)
    device.synchronize()  # `pinned` may go
    return made


class _Sink:
    """Collects the counts of batches. offsets: int64[n_rows + 1]. hits: int64[n_added]."""

    def __init__(self, n_rows: int, n_added: int) -> None:
        self.offsets: I64 = np.zeros(n_rows + 1, np.int64)
        self.hits: I64 = np.zeros(n_added, np.int64)

    def __call__(self, done: Done) -> None:
        base = int(self.offsets[done.first])
        self.offsets[done.first + 1 : done.last + 1] = done.row_offsets[1:] + base
        if done.hits is not None:
            self.hits += done.hits.astype(np.int64)


class _ToHost(_Sink):
    def __init__(self, n_rows: int, n_bytes: int, n_added: int, ids: bool) -> None:
        super().__init__(n_rows, n_added)
        self._output: Output | None = cpu.room(n_bytes) if ids else None
        self._n = 0

    def __call__(self, done: Done) -> None:
        super().__call__(done)
        if self._output is None or done.ids is None:
            return
        need = self._n + len(done.ids)
        if need > len(self._output.ids):  # a model that makes text longer
            larger = cpu.room(2 * need)
            larger.ids[: self._n] = self._output.ids[: self._n]
            self._output = larger
        self._output.ids[self._n : need] = done.ids
        self._n = need

    def finish(self) -> U32 | None:
        return None if self._output is None else self._output.finish(self._n)


class _ToDevice(_Sink):
    """parts: the ids of each batch, in memory of their own."""

    def __init__(self, device: Device, n_rows: int, n_added: int, dtype: np.dtype[Any]) -> None:
        super().__init__(n_rows, n_added)
        self._device, self._dtype = device, dtype
        self.parts: list[Any] = []

    def __call__(self, done: Done) -> None:
        super().__call__(done)
        total = int(done.row_offsets[-1])
        if total or not self.parts:
            part = self._device.lasting(total, self._dtype)
            self._device.main.copy(part, done.launched.ids[:total])
            self.parts.append(part)
