"""Kernels on an NVIDIA GPU, through CuPy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from saphira_gpu.devices import (
    DeviceMemoryError,
    Dims,
    LaunchError,
    MemoryUse,
    check_arguments,
    dims,
)
from saphira_gpu.devices.detect import require_cuda
from saphira_gpu.devices.source import flatten
from saphira_gpu.errors import DeviceError

# What the compile gate passes too.
OPTIONS = ("-std=c++17",)
# More dynamic shared memory than this a kernel must be allowed first.
_PLAIN_SHARED = 48 * 1024


class CupyDevice:
    """A Device on a GPU: number `ordinal`. It has a stream and a pool of memory of its own.

    Raises DeviceError, saying what is missing, where there is no GPU to use.
    """

    def __init__(self, ordinal: int = 0) -> None:
        require_cuda()
        self._cupy: Any = import_module("cupy")
        self._device = self._cupy.cuda.Device(ordinal)
        self._process = os.getpid()
        with self._device:
            self.main = CupyStream(self)
            self._pool = self._cupy.cuda.MemoryPool()
        self._peak = 0
        self._modules: dict[Path, Any] = {}
        self._kernels: dict[tuple[str, str], CupyKernel] = {}

    def stream(self) -> CupyStream:
        with self._device:
            return CupyStream(self)

    @contextmanager
    def current(self) -> Iterator[None]:
        self._same_process()
        with self._device, self.main.raw, self._cupy.cuda.using_allocator(self._pool.malloc):
            yield

    def kernel(self, file: str | Path, name: str) -> CupyKernel:
        key = str(file), name
        if key not in self._kernels:
            source = flatten(file)
            with self._device:
                module = self._modules.get(source.path)
                if module is None:
                    # One text, no includes: CuPy caches by the text, so a changed header counts.
                    module = self._cupy.RawModule(
                        code=source.text, options=OPTIONS, backend="nvrtc"
                    )
                    self._modules[source.path] = module
                self._kernels[key] = CupyKernel(self, module.get_function(name), name)
        return self._kernels[key]

    def empty(self, shape: int | Dims, dtype: Any) -> Any:
        return self._allocate(self._cupy.empty, shape, dtype)

    def zeros(self, shape: int | Dims, dtype: Any) -> Any:
        return self._allocate(self._cupy.zeros, shape, dtype)

    def lasting(self, shape: int | Dims, dtype: Any) -> Any:
        cuda, kind = self._cupy.cuda, np.dtype(dtype)
        n = int(np.prod(shape, dtype=np.int64))
        with self._room(), self._device:
            # Not from a pool: cudaFree waits for the device, whoever uses the memory there.
            memory = cuda.MemoryPointer(cuda.Memory(max(n * kind.itemsize, 1)), 0)
            return self._cupy.ndarray(shape, kind, memptr=memory)

    def pinned(self, shape: int | Dims, dtype: Any) -> np.ndarray[Any, Any]:
        kind = np.dtype(dtype)
        n = int(np.prod(shape, dtype=np.int64))
        with self._device:
            memory = self._cupy.cuda.alloc_pinned_memory(max(n * kind.itemsize, 1))
        return np.frombuffer(memory, kind, n).reshape(shape)

    def to_device(self, array: np.ndarray[Any, Any]) -> Any:
        result = self.empty(array.shape, array.dtype)
        with self.current():
            result.set(np.ascontiguousarray(array), stream=self.main.raw)
        return result

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        with self.current():
            result: np.ndarray[Any, Any] = array.get(stream=self.main.raw)
            self.main.raw.synchronize()
            return result

    def synchronize(self) -> None:
        self._same_process()
        self.main.raw.synchronize()

    def limit_memory(self, limit: int | None) -> None:
        with self._device:
            self._pool.set_limit(size=limit or 0)

    def memory(self) -> MemoryUse:
        with self._device:
            used, limit = self._pool.used_bytes(), self._pool.get_limit()
            free, _ = self._cupy.cuda.runtime.memGetInfo()
            free += self._pool.free_bytes()
        self._peak = max(self._peak, used)
        return MemoryUse(used, self._peak, min(free, limit - used) if limit else free)

    def _allocate(self, make: Any, shape: int | Dims, dtype: Any) -> Any:
        with self._room(), self.current():
            result = make(shape, dtype)
            self._peak = max(self._peak, self._pool.used_bytes())
            return result

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except MemoryError as error:
            raise DeviceMemoryError(f"no room on the device: {error}") from None

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise DeviceError(
                "device='cuda': a forked child can't use the GPU of its parent; start it by spawn "
                "or forkserver"
            )


class CupyStream:
    """See saphira_gpu.devices.Stream."""

    def __init__(self, device: CupyDevice) -> None:
        self._device = device
        # The null stream would wait for every other one, and they for it.
        self.raw = device._cupy.cuda.Stream(non_blocking=True)

    def copy(self, target: Any, source: Any) -> None:
        if target.nbytes != source.nbytes:
            raise ValueError(f"a copy of {source.nbytes} bytes into {target.nbytes}")
        if not source.nbytes:
            return
        with self._device._device, self.raw:
            if isinstance(source, np.ndarray):
                target.set(source, stream=self.raw)
            elif isinstance(target, np.ndarray):
                source.get(out=target, stream=self.raw, blocking=False)
            else:
                target.data.copy_from_device_async(source.data, source.nbytes, self.raw)

    def record(self) -> Any:
        with self._device._device:
            event = self._device._cupy.cuda.Event(disable_timing=True)
            event.record(self.raw)
            return event

    def wait(self, event: Any) -> None:
        with self._device._device:
            self.raw.wait_event(event)


class CupyKernel:
    """See saphira_gpu.devices.Kernel."""

    def __init__(self, device: CupyDevice, function: Any, name: str) -> None:
        self._device = device
        self._function = function
        self.name = name

    def __call__(
        self, grid: Dims, block: Dims, args: Sequence[Any], *, shared_mem: int = 0
    ) -> None:
        check_arguments(self.name, args)
        shape = dims("grid", self.name, grid), dims("block", self.name, block)
        threads = shape[1][0] * shape[1][1] * shape[1][2]
        if threads > 1024:
            raise LaunchError(f"block {block} of kernel {self.name!r} is over 1024 threads")
        with self._device.current():
            if shared_mem > _PLAIN_SHARED:
                self._function.max_dynamic_shared_size_bytes = shared_mem
            # CuPy takes a struct by value as an array of one.
            values = tuple(np.array([a]) if isinstance(a, np.void) else a for a in args)
            self._function(*shape, values, shared_mem=shared_mem)
