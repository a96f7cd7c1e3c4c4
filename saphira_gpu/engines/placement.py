"""Which engine encodes a batch: the CPU's, or one of a device, made when it's first asked for."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from saphira_gpu.devices import Device, detect
from saphira_gpu.engines import cpu

if TYPE_CHECKING:
    from saphira_gpu.engines.cuda.engine import Engine, Stages

# Under device="auto" less text than this goes to the CPU: it's done before a GPU has begun.
AUTO_BYTES = 1 << 20


class Engines:
    """The engines of one tokenizer. A forked child makes its own: a GPU isn't inherited."""

    def __init__(self, base: cpu.Engine) -> None:
        self.base = base
        self._lock = threading.Lock()
        self._engines: dict[str | int, Engine] = {}
        _all.add(self)

    def get(self, device: Any, n_bytes: int) -> Engine | None:
        """The engine for so much text, None for the CPU's.

        Raises DeviceError where there is no such device, UnsupportedError for a tokenizer that
        doesn't run there (unless device is "auto").
        """
        if device == "auto":
            if n_bytes < AUTO_BYTES or not self._auto():
                return None
            device = "cuda"
        key = device if isinstance(device, str) else id(device)  # which its engine keeps alive
        with self._lock:
            if key not in self._engines:
                self._engines[key] = self._make(device)
            return self._engines[key]

    def forget(self) -> None:
        """In a forked child."""
        self._lock = threading.Lock()
        self._engines = {}

    def _auto(self) -> bool:
        if not detect.for_auto():
            return False
        from saphira_gpu.engines.cuda.engine import refused

        return refused(self.base.plan) is None

    def _make(self, device: Any) -> Engine:
        from saphira_gpu.engines.cuda.engine import Engine

        name = device if isinstance(device, str) else type(device).__name__
        return Engine(self.base, opened(device), name, kernels)


def kernels(device: Device, base: cpu.Engine, total: int) -> Stages:
    """The stages of a model as kernels. total: bytes of device memory that there may be."""
    from saphira_gpu.engines.cuda.pipeline import KernelStages

    return KernelStages(device, base, total)


def opened(device: Any) -> Device:
    """The Device of a name; a Device is itself."""
    if device == "cuda":
        from saphira_gpu.devices.cupy import CupyDevice

        return CupyDevice()
    if device == "host":
        from saphira_gpu.devices.host import HostDevice

        return HostDevice()
    made: Device = device
    return made


_all: weakref.WeakSet[Engines] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for engines in tuple(_all):
        engines.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
