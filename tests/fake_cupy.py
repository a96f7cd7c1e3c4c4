"""A `cupy` module whose kernels run on the host executor, so that CupyDevice's own code runs.

Only what CupyDevice uses, and as strict as CuPy: arrays belong to it, streams have to be entered,
numbers keep their width.
"""

from __future__ import annotations

import hashlib
from types import ModuleType
from typing import Any

import numpy as np

from saphira_gpu.devices import _build
from saphira_gpu.devices.host import HostDevice


class Stream:
    """Counts how often it was entered and waited for."""

    def __init__(self, non_blocking: bool = False) -> None:
        assert non_blocking, "the null stream waits for every other one"
        self.depth = self.waits = 0

    def __enter__(self) -> Stream:
        self.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def synchronize(self) -> None:
        self.waits += 1


class GpuDevice:
    def __init__(self, ordinal: int) -> None:
        self.id = ordinal

    def __enter__(self) -> GpuDevice:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Array:
    """cupy.ndarray over a HostArray."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __getitem__(self, part: slice) -> Array:
        return Array(self.inner[part])

    def view(self, dtype: Any) -> Array:
        return Array(self.inner.view(dtype))

    def set(self, values: np.ndarray[Any, Any], stream: Stream) -> None:
        assert stream.depth and values.shape == self.inner.shape
        self.inner.values[...] = values
        self.inner.initialised.fill(1)


class RawKernel:
    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def __call__(self, grid: Any, block: Any, args: tuple[Any, ...], *, shared_mem: int) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes, "cudaErrorInvalidValue"
        self._kernel(grid, block, [self._plain(arg) for arg in args], shared_mem=shared_mem)

    @staticmethod
    def _plain(arg: Any) -> Any:
        if isinstance(arg, Array):
            return arg.inner
        if isinstance(arg, np.ndarray):  # by value, as CuPy passes structs, and them only
            assert arg.shape == (1,) and arg.dtype.kind == "V"
            return arg[0]
        assert not isinstance(arg, np.void), "TypeError: Unsupported type"
        return arg


def make(device: HostDevice) -> ModuleType:
    """The module, for sys.modules. `compiled`: the texts that RawModule was given."""
    compiled: list[str] = []

    class RawModule:
        def __init__(self, *, code: str, options: tuple[str, ...], backend: str) -> None:
            assert backend == "nvrtc" and "-std=c++17" in options
            assert "#include" not in code
            compiled.append(code)
            # Named by its content, so that it is compiled once.
            name = hashlib.sha256(code.encode()).hexdigest()[:16]
            self._file = _build.cache_folder() / f"cupy-{name}.cu"
            _build.write(self._file, code)

        def get_function(self, name: str) -> RawKernel:
            return RawKernel(device.kernel(self._file, name))

    class Runtime:
        CUDARuntimeError = RuntimeError

        def getDeviceCount(self) -> int:
            return 1

        def getDeviceProperties(self, _: int) -> dict[str, bytes]:
            return {"name": b"host executor"}

    class Nvrtc:
        def getVersion(self) -> tuple[int, int]:
            return 13, 0

    class Cuda:
        runtime = Runtime()
        nvrtc = Nvrtc()
        Device = GpuDevice

    def get(array: Array, stream: Stream) -> np.ndarray[Any, Any]:
        assert stream.depth
        return device.to_host(array.inner)

    module: Any = ModuleType("cupy")
    module.__version__ = "14.0"
    Cuda.Stream = Stream  # type: ignore[attr-defined]
    Array.get = get  # type: ignore[attr-defined]
    module.cuda = Cuda()
    module.RawModule = RawModule
    module.empty = lambda shape, dtype: Array(device.empty(shape, dtype))
    module.zeros = lambda shape, dtype: Array(device.zeros(shape, dtype))
    module.compiled = compiled
    result: ModuleType = module
    return result
