"""Kernels on an NVIDIA GPU, through CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from saphira_gpu.devices import Dims, LaunchError, check_arguments, dims
from saphira_gpu.devices.detect import require_cuda
from saphira_gpu.devices.source import flatten

# What the compile gate passes too.
OPTIONS = ("-std=c++17",)
# More dynamic shared memory than this a kernel must be allowed first.
_PLAIN_SHARED = 48 * 1024


class CupyDevice:
    """A Device on a GPU: number `ordinal`, and one stream of its own, on which everything runs.

    Raises DeviceError, saying what is missing, where there is no GPU to use.
    """

    def __init__(self, ordinal: int = 0) -> None:
        require_cuda()
        self._cupy: Any = import_module("cupy")
        self._device = self._cupy.cuda.Device(ordinal)
        with self._device:
            self.stream = self._cupy.cuda.Stream(non_blocking=True)
        self._modules: dict[Path, Any] = {}

    def kernel(self, file: str | Path, name: str) -> CupyKernel:
        source = flatten(file)
        with self._device:
            module = self._modules.get(source.path)
            if module is None:
                # One text without includes: CuPy caches by the text, so a changed header counts.
                module = self._cupy.RawModule(code=source.text, options=OPTIONS, backend="nvrtc")
                self._modules[source.path] = module
            return CupyKernel(self, module.get_function(name), name)

    def empty(self, shape: int | Dims, dtype: Any) -> Any:
        with self._device, self.stream:
            return self._cupy.empty(shape, dtype)

    def zeros(self, shape: int | Dims, dtype: Any) -> Any:
        with self._device, self.stream:
            return self._cupy.zeros(shape, dtype)

    def to_device(self, array: np.ndarray[Any, Any]) -> Any:
        with self._device, self.stream:
            result = self._cupy.empty(array.shape, array.dtype)
            result.set(np.ascontiguousarray(array), stream=self.stream)
            return result

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        with self._device, self.stream:
            result: np.ndarray[Any, Any] = array.get(stream=self.stream)
            self.stream.synchronize()
            return result

    def synchronize(self) -> None:
        self.stream.synchronize()


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
        with self._device._device, self._device.stream:
            if shared_mem > _PLAIN_SHARED:
                self._function.max_dynamic_shared_size_bytes = shared_mem
            # CuPy takes a struct by value as an array of one.
            values = tuple(np.array([a]) if isinstance(a, np.void) else a for a in args)
            self._function(*shape, values, shared_mem=shared_mem)
