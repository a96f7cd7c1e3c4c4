"""A `cupy` module whose kernels run on the host executor, so that CupyDevice's own code runs.

Only what CupyDevice uses, and as strict as CuPy: arrays belong to it, streams have to be entered,
numbers keep their width, copies that don't block need pinned memory. Streams that are lazy do their
work only when somebody waits for it, so that a wait that is missing shows in the result.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import numpy as np

from saphira_gpu.devices import _build
from saphira_gpu.devices.host import HostDevice

# Which streams are lazy: none, the first one made (kernels), all others (copies), all.
Lazy = Literal["none", "first", "others", "all"]

_entered: list[Stream] = []


class Stream:
    """Work in order. waits: how often it was waited for. lazy: it is done when it is waited for."""

    def __init__(self, lazy: bool = False) -> None:
        self.lazy = lazy
        self.depth = self.waits = 0
        self._work: deque[Callable[[], None]] = deque()

    def __enter__(self) -> Stream:
        self.depth += 1
        _entered.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        assert _entered.pop() is self

    def put(self, work: Callable[[], None]) -> None:
        self._work.append(work)
        if not self.lazy:
            self.run(lambda: False)

    def run(self, enough: Callable[[], bool]) -> None:
        while self._work and not enough():
            self._work.popleft()()

    def synchronize(self) -> None:
        self.waits += 1
        self.run(lambda: False)

    def wait_event(self, event: Event) -> None:
        self.put(event.reach)


class Event:
    def __init__(self, disable_timing: bool) -> None:
        assert disable_timing
        self._stream: Stream | None = None
        self.done = False

    def record(self, stream: Stream) -> None:
        self._stream, self.done = stream, False
        stream.put(self._finish)

    def _finish(self) -> None:
        self.done = True

    def reach(self) -> None:
        assert self._stream is not None, "an event that nobody recorded"
        self._stream.run(lambda: self.done)
        assert self.done

    synchronize = reach


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

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, part: slice) -> Array:
        return Array(self.inner[part])

    def view(self, dtype: Any) -> Array:
        return Array(self.inner.view(dtype))

    def fill(self, value: Any) -> None:
        assert _entered, "fill on the null stream"
        _entered[-1].put(lambda: self.inner.fill(value))

    def set(self, values: np.ndarray[Any, Any], stream: Stream) -> None:
        assert stream.depth and values.shape == self.inner.shape and values.flags.c_contiguous
        source = values if _is_pinned(values) else values.copy()  # CUDA stages pageable memory
        target = self._alive(stream)

        def work() -> None:
            inner = target()
            inner.values[...] = source
            inner.initialised.fill(1)

        stream.put(work)

    def get(
        self,
        stream: Stream,
        out: np.ndarray[Any, Any] | None = None,
        blocking: bool = True,
    ) -> np.ndarray[Any, Any]:
        assert stream.depth and (blocking or (out is not None and _is_pinned(out)))
        result = np.empty(self.inner.shape, self.inner.dtype) if out is None else out
        source = self._alive(stream)
        stream.put(lambda: np.copyto(result, _host.to_host(source()), casting="no"))
        if blocking:
            stream.run(lambda: False)
        return result

    @property
    def data(self) -> Any:
        def copy_from_device_async(source: Any, size: int, stream: Stream) -> None:
            to, come = self._alive(stream), source.array._alive(stream)
            assert self.inner.nbytes == source.array.inner.nbytes == size and stream.depth

            def work() -> None:
                target, origin = to(), come()
                target.view(np.uint8).values[...] = origin.view(np.uint8).values
                target.initialised[...] = origin.initialised

            stream.put(work)

        return SimpleNamespace(array=self, copy_from_device_async=copy_from_device_async)

    def _alive(self, stream: Stream) -> Callable[[], Any]:
        """The HostArray when the work is done. Memory that was given back by then may be another
        array's, unless the work is in the order of the stream that arrays come from."""
        inner = self.inner
        if stream is _first:
            return lambda: inner
        memory, rest = weakref.ref(inner.memory), (inner.offset, inner.shape, inner.dtype)

        def find() -> Any:
            owner = memory()
            assert owner is not None, "memory was given back before a copy of it was done"
            return type(inner)(owner, *rest)

        return find

    def __dlpack__(self, **options: Any) -> Any:
        return self.inner.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.inner.values.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.inner.values.__array_interface__, "version": 3, "stream": 1}


class RawKernel:
    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def __call__(self, grid: Any, block: Any, args: tuple[Any, ...], *, shared_mem: int) -> None:
        assert shared_mem <= self.max_dynamic_shared_size_bytes, "cudaErrorInvalidValue"
        plain = [self._plain(arg) for arg in args]
        options = self._kernel._options(self._kernel._device, grid, block, shared_mem)
        assert options is not None  # a launch that can't be is refused at once
        _entered[-1].put(lambda: self._kernel(grid, block, plain, shared_mem=shared_mem))

    @staticmethod
    def _plain(arg: Any) -> Any:
        if isinstance(arg, Array):
            return arg.inner
        if isinstance(arg, np.ndarray):  # by value, as CuPy passes structs, and them only
            assert arg.shape == (1,) and arg.dtype.kind == "V"
            return arg[0]
        assert not isinstance(arg, np.void), "TypeError: Unsupported type"
        return arg


_pins: list[Any] = []
_pools: list[Any] = []
_host: HostDevice = HostDevice()
_first: Stream | None = None


def _is_pinned(values: np.ndarray[Any, Any]) -> bool:
    at = values.ctypes.data
    found = [pin() for pin in _pins]
    return values.nbytes == 0 or any(
        pin is not None and pin.ctypes.data <= at < pin.ctypes.data + pin.nbytes for pin in found
    )


def make(device: HostDevice, lazy: Lazy = "none") -> ModuleType:
    """The module, for sys.modules. `compiled`: the texts that RawModule was given."""
    global _host, _first
    _host, _first = device, None
    _pins.clear()
    compiled: list[str] = []

    def new_stream(non_blocking: bool = False) -> Stream:
        global _first
        assert non_blocking, "the null stream waits for every other one"
        is_first = _first is None
        stream = Stream(lazy == "all" or lazy == ("first" if is_first else "others"))
        if is_first:
            _first = stream
        return stream

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

        def memGetInfo(self) -> tuple[int, int]:
            return 1 << 30, 1 << 31

    class Nvrtc:
        def getVersion(self) -> tuple[int, int]:
            return 13, 0

    class Pool:
        limit = 0

        def malloc(self, size: int) -> None:
            raise AssertionError("arrays are made by empty and zeros")

        def set_limit(self, size: int) -> None:
            self.limit = size
            device.limit_memory(size or None)

        def get_limit(self) -> int:
            return self.limit

        def used_bytes(self) -> int:
            return device.memory().used

        def free_bytes(self) -> int:
            return 0

    @contextmanager
    def using_allocator(malloc: Any) -> Iterator[None]:
        _pools.append(malloc.__self__)
        yield
        _pools.pop()

    def pinned(size: int) -> Any:
        memory = np.full(size, 0xA5, np.uint8)
        _pins.append(weakref.ref(memory))
        return memory

    def own(make_array: Any) -> Callable[[Any, Any], Array]:
        def made(shape: Any, dtype: Any) -> Array:
            assert _pools and _entered, "memory of the device's own pool, on its stream"
            return Array(make_array(shape, dtype))

        return made

    def ndarray(shape: Any, dtype: Any, memptr: Any) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return Array(memptr.memory[:size].view(dtype))

    module: Any = ModuleType("cupy")
    module.__version__ = "14.0"
    module.cuda = SimpleNamespace(
        runtime=Runtime(),
        nvrtc=Nvrtc(),
        Device=GpuDevice,
        Stream=new_stream,
        Event=Event,
        MemoryPool=Pool,
        using_allocator=using_allocator,
        alloc_pinned_memory=pinned,
        Memory=lambda size: device.lasting(size, np.uint8),
        MemoryPointer=lambda memory, offset: SimpleNamespace(memory=memory, offset=offset),
    )
    module.RawModule = RawModule
    module.ndarray = ndarray
    module.empty = own(device.empty)
    module.zeros = own(device.zeros)
    module.compiled = compiled
    result: ModuleType = module
    return result
