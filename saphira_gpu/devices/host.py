"""Kernels on the CPU, through the host executor of kernels/host/: an aid for tests and debugging.

Each CUDA thread is a fiber; blocks, warps and lanes run in an order that a Schedule fixes. The
check build reports what a GPU would leave to chance, by name.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from saphira_gpu.devices import (
    DeviceMemoryError,
    Dims,
    LaunchError,
    MemoryUse,
    _build,
    check_arguments,
    dims,
)
from saphira_gpu.devices import _host_abi as abi
from saphira_gpu.devices._host_memory import HostArray, Memory
from saphira_gpu.errors import DeviceError

Order = Literal["forward", "reverse", "random"]
_ORDERS: dict[str, int] = {"forward": 0, "reverse": 1, "random": 2}
# One launch at a time: the runtime's state is the process's.
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a launch runs; the same schedule gives the same run.

    order: of blocks, warps and lanes. seed: of the random order. resident: blocks at a time.
    preempt: accesses between two forced switches of warps, 0 for none; in the random order a mean.
    Only instrumented builds (check, count) see every access; else it counts atomics.
    """

    order: Order = "forward"
    seed: int = 0
    resident: int = 8
    preempt: int = 0

    def __str__(self) -> str:
        seed = f" seed={self.seed}" if self.order == "random" else ""
        preempt = f" preempt={self.preempt}" if self.preempt else ""
        return f"{self.order}{seed} resident={self.resident}{preempt}"


class KernelFault(DeviceError):
    """Something a kernel must not do, seen by the host executor.

    kind: its name, as README.md in kernels/host/ lists them. kernel; block, thread: (x, y, z).
    places: `file:line`, the innermost first; may be empty. detail: the rest in words.
    """

    def __init__(
        self,
        kind: str,
        kernel: str,
        detail: str,
        block: tuple[int, int, int] = (0, 0, 0),
        thread: tuple[int, int, int] = (0, 0, 0),
        places: Sequence[str] = (),
        run: str = "",
    ) -> None:
        at = f" at {places[0]}" if places else ""
        via = f" (called from {', '.join(places[1:])})" if len(places) > 1 else ""
        super().__init__(
            f"{kind} in kernel {kernel!r}{at}{via}, block {block}, thread {thread}: {detail} "
            f"[{run}]"
        )
        self.kind = kind
        self.kernel = kernel
        self.detail = detail
        self.block = block
        self.thread = thread
        self.places = tuple(places)


@dataclass(slots=True)
class HostDevice:
    """A Device on the CPU. Needs g++ (on Linux) the first time that it sees a kernel.

    check: memory, initialisation, races. count: sectors per warp access too. counters: by kernel,
    summed over launches; see hx_counters in kernels/host/abi.h. traffic: with count, by kernel and
    address of an argument's array, its sectors per warp access and, of each launch, the different
    ones among them. seconds: limit of one launch, in processor time.
    stall_rounds: how long threads may spin while nothing else happens. stack_bytes: per thread.
    ucontext: the portable fiber switch.

    Its kernels raise KernelFault from the launch itself.
    """

    check: bool = False
    schedule: Schedule = Schedule()
    count: bool = False
    seconds: float = 120.0
    stall_rounds: int = 20_000
    stack_bytes: int = 65_536
    ucontext: bool = False
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    traffic: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    _memories: weakref.WeakSet[Memory] = field(default_factory=weakref.WeakSet)
    _modules: dict[tuple[str, bool, bool], _build.Module] = field(default_factory=dict)
    _lasting: weakref.WeakSet[Memory] = field(default_factory=weakref.WeakSet)
    _limit: int | None = None
    _peak: int = 0

    @property
    def main(self) -> HostStream:
        return HostStream(self)

    def stream(self) -> HostStream:
        return HostStream(self)

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def kernel(self, file: str | Path, name: str) -> HostKernel:
        key = str(file), self.check or self.count, self.ucontext
        module = self._modules.get(key)
        if module is None:
            module = self._modules[key] = _build.build(file, key[1], key[2])
        if name not in module.kernels:
            raise DeviceError(
                f"no kernel {name!r} in {file}; there are {', '.join(module.kernels)}"
            )
        return HostKernel(self, module, name)

    def empty(self, shape: int | Dims, dtype: Any) -> HostArray:
        return self._allocate(shape, dtype, False)

    def zeros(self, shape: int | Dims, dtype: Any) -> HostArray:
        return self._allocate(shape, dtype, True)

    def lasting(self, shape: int | Dims, dtype: Any) -> HostArray:
        result = HostArray.allocate(shape, np.dtype(dtype), False)
        self._lasting.add(result.memory)
        return result

    def pinned(self, shape: int | Dims, dtype: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype)

    def to_device(self, array: np.ndarray[Any, Any]) -> HostArray:
        result = self._allocate(array.shape, array.dtype, True)
        result.values[...] = array
        return result

    def to_host(self, array: HostArray) -> np.ndarray[Any, Any]:
        """A copy. In the check build, raises KernelFault if part of it was never written."""
        if self.check and not array.initialised.all():
            first = int(np.argmin(array.initialised)) // array.dtype.itemsize
            raise KernelFault("uninitialised", "to_host", f"element {first} was never written")
        return array.values.copy()

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when it is done."""

    def limit_memory(self, limit: int | None) -> None:
        self._limit = limit

    def memory(self) -> MemoryUse:
        used = self._used()
        return MemoryUse(used, self._peak, None if self._limit is None else self._limit - used)

    def _used(self) -> int:
        return sum(memory.size for memory in list(self._memories))

    def _allocate(self, shape: int | Dims, dtype: Any, zero: bool) -> HostArray:
        kind = np.dtype(dtype)
        need = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        used = self._used()
        if self._limit is not None and used + need > self._limit:
            raise DeviceMemoryError(
                f"no room on the device: {need} bytes more than {used}, of {self._limit}"
            )
        self._peak = max(self._peak, used + need)
        result = HostArray.allocate(shape, kind, zero)
        self._memories.add(result.memory)
        return result


class HostStream:
    """See saphira_gpu.devices.Stream: here everything is done when a call returns."""

    def __init__(self, device: HostDevice) -> None:
        self._device = device

    def copy(self, target: Any, source: Any) -> None:
        if target.nbytes != source.nbytes:
            raise ValueError(f"a copy of {source.nbytes} bytes into {target.nbytes}")
        if isinstance(source, HostArray):
            if isinstance(target, HostArray):
                target.view(np.uint8).values[...] = source.view(np.uint8).values
                target.initialised[...] = source.initialised
            else:
                target.view(np.uint8)[...] = self._device.to_host(source.view(np.uint8))
        else:
            target.values[...] = source
            target.initialised.fill(1)

    def record(self) -> HostEvent:
        return HostEvent()

    def wait(self, event: Any) -> None:
        """Nothing to wait for."""


class HostEvent:
    """See saphira_gpu.devices.Event."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


class HostKernel:
    """See saphira_gpu.devices.Kernel."""

    def __init__(self, device: HostDevice, module: _build.Module, name: str) -> None:
        self._device = device
        self._module = module
        self.name = name
        self._runtime = ctypes.CDLL(str(module.runtime))
        self._library = ctypes.CDLL(str(module.library))
        self._kernel = abi.Kernel.in_dll(self._library, f"hx_kernel_{name}")

    def __call__(
        self, grid: Dims, block: Dims, args: Sequence[Any], *, shared_mem: int = 0
    ) -> None:
        self.launch(self._device, grid, block, args, shared_mem)

    def launch(
        self, device: HostDevice, grid: Dims, block: Dims, args: Sequence[Any], shared_mem: int
    ) -> None:
        """Runs the kernel to its end. Raises LaunchError, KernelFault."""
        options = self._options(device, grid, block, shared_mem)
        values, views = self._arguments(args)
        regions = self._regions(device, views)
        counters, fault = abi.Counters(), abi.Fault()
        pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        table = (abi.Region * max(len(regions), 1))(*regions)
        with _lock:
            self._runtime.hx_launch(
                ctypes.byref(self._kernel), ctypes.byref(options), pointers, table,
                ctypes.c_int(len(regions)), ctypes.byref(counters), ctypes.byref(fault),
            )  # fmt: skip
        sums = device.counters.setdefault(self.name, {"launches": 0})
        sums["launches"] += 1
        for key, value in counters.items():
            sums[key] = sums.get(key, 0) + value
        if device.count:
            met = device.traffic.setdefault(self.name, {})
            for region in table[: len(regions)]:
                sectors, distinct = met.get(region.base, (0, 0))
                met[region.base] = sectors + region.sectors, distinct + region.distinct
        run = f"{'check' if device.check else 'fast'} build, schedule {device.schedule}"
        if fault.name:
            raise self._fault(fault, run)
        for i, view in views:
            side = view.memory.damaged()
            if side:
                raise KernelFault("out-of-bounds", self.name, f"wrote {side} argument {i}", run=run)

    def _options(self, device: HostDevice, grid: Dims, block: Dims, shared_mem: int) -> abi.Options:
        g, b = dims("grid", self.name, grid), dims("block", self.name, block)
        if g[0] >= 1 << 31 or g[1] > 65535 or g[2] > 65535 or g[0] * g[1] * g[2] >= 1 << 32:
            raise LaunchError(f"grid {grid} of kernel {self.name!r} is too large")
        threads = b[0] * b[1] * b[2]
        if b[0] > 1024 or b[1] > 1024 or b[2] > 64 or threads > 1024:
            raise LaunchError(f"block {block} of kernel {self.name!r} is over 1024 threads")
        if 0 < self._kernel.max_threads < threads:
            raise LaunchError(
                f"block {block} of kernel {self.name!r} is over its __launch_bounds__, "
                f"{self._kernel.max_threads} threads"
            )
        if not 0 <= shared_mem <= 227 * 1024:
            raise LaunchError(f"shared_mem={shared_mem} of kernel {self.name!r}: 0 to 227 KB")
        if device.check and g[0] * g[1] * g[2] >= 1 << 21:
            raise LaunchError(f"grid {grid}: the check build numbers fewer than 2^21 blocks")
        s = device.schedule
        if s.order not in _ORDERS or s.resident < 1 or s.preempt < 0:
            raise ValueError(f"no such schedule: {s!r}")
        return abi.Options(
            grid=g, block=b, shared_bytes=shared_mem, order=_ORDERS[s.order],
            seed=s.seed, resident=s.resident, preempt=s.preempt, check=device.check,
            count=device.count, stall_cycles=device.stall_rounds,
            stack_bytes=device.stack_bytes, seconds=device.seconds,
        )  # fmt: skip

    def _arguments(self, args: Sequence[Any]) -> tuple[list[Any], list[tuple[int, HostArray]]]:
        """Each argument's bytes as the kernel takes them, and the arrays among them."""
        check_arguments(self.name, args)
        n = self._kernel.n_params
        if len(args) != n:
            raise LaunchError(f"kernel {self.name!r} takes {n} arguments, not {len(args)}")
        values: list[Any] = []
        views: list[tuple[int, HostArray]] = []
        for i, arg in enumerate(args):
            param = self._kernel.params[i]
            wrong = _mismatch(arg, param)
            if wrong:
                raise LaunchError(f"argument {i} of kernel {self.name!r}: {wrong}")
            if isinstance(arg, HostArray):
                views.append((i, arg))
                values.append(ctypes.c_uint64(arg.pointer))
            elif arg is None:
                values.append(ctypes.c_uint64(0))
            else:
                data = np.asarray(arg).tobytes()
                # Aligned for any type, as ctypes' buffers are not: a struct may hold vectors.
                values.append((ctypes.c_longdouble * (len(data) // 16 + 1))())
                ctypes.memmove(values[-1], data, len(data))
        return values, views

    def _regions(
        self, device: HostDevice, views: Sequence[tuple[int, HostArray]]
    ) -> list[abi.Region]:
        """The memory that the kernel may touch: its arguments, those that overlap as one.

        A struct may hold pointers, so with one every allocation of the device can be touched.
        """
        found: list[tuple[int, int, HostArray, bool, bytes]] = []
        for i, view in views:
            const = bool(self._kernel.params[i].is_const)
            start = view.pointer
            found.append((start, start + view.nbytes, view, const, b"argument %d" % i))
        params = self._kernel.params
        if any(params[i].kind == ord("s") for i in range(self._kernel.n_params)):
            for memory in [*device._memories, *device._lasting]:
                whole = HostArray(memory, 0, (memory.size,), np.dtype(np.uint8))
                found.append((whole.pointer, whole.pointer + whole.nbytes, whole, False, b"memory"))
        found.sort(key=lambda item: item[:2])
        merged: list[abi.Region] = []
        for start, end, view, const, name in found:
            if start == end:
                continue
            last = merged[-1] if merged else None
            if last is not None and start < last.base + last.size:
                last.size = max(last.base + last.size, end) - last.base
                last.read_only = last.read_only and const
                last.granule = min(last.granule, view.dtype.itemsize)
                last.name = last.name + b", " + name
                continue
            init = view.init_pointer if device.check else None
            merged.append(
                abi.Region(name=name, base=start, size=end - start, init=init,
                           granule=view.dtype.itemsize, read_only=const)
            )  # fmt: skip
        return merged

    def _fault(self, fault: abi.Fault, run: str) -> KernelFault:
        library = self._module.library
        places = _build.lines_of(library, fault.pc)
        if not places and fault.file:
            places = [f"{fault.file.decode()}:{fault.line}"]
        detail = fault.text.decode()
        other = _build.lines_of(library, fault.other_pc)
        if other:
            detail += f" at {other[0]}"
        return KernelFault(
            fault.name.decode(),
            self.name,
            detail,
            tuple(fault.block),
            tuple(fault.thread),
            places,
            run,
        )


def _mismatch(arg: Any, param: abi.Param) -> str | None:
    """What is wrong with an argument for this parameter."""
    kind = chr(param.kind)
    if kind == "p":
        if arg is None:
            return None
        if not isinstance(arg, HostArray):
            return f"takes a device array, not {type(arg).__name__}"
        given, size = _kind(arg.dtype), arg.dtype.itemsize
        pointee = chr(param.pointee_kind)
        # A pointer to bytes or to nothing in particular takes any memory; one to structs takes raw
        # bytes too.
        if pointee == "v" or (pointee in "iu" and param.pointee_size == 1):
            return None
        if pointee == "s" and (size == 1 or size == param.pointee_size):
            return None
        if size != param.pointee_size or (given == "f") != (pointee == "f"):
            return f"points to {_words(pointee, param.pointee_size)}, not to {arg.dtype}"
        return None
    if not isinstance(arg, np.generic):
        return f"takes {_words(kind, param.size)}, not {type(arg).__name__}"
    given, size = _kind(arg.dtype), arg.dtype.itemsize
    same = given == kind or (given in "iu" and kind in "iu")
    if size != param.size or not same:
        return f"takes {_words(kind, param.size)}, not {arg.dtype}"
    return None


def _kind(dtype: np.dtype[Any]) -> str:
    return {"V": "s"}.get(dtype.kind, dtype.kind)


def _words(kind: str, size: int) -> str:
    names = {"i": "int", "u": "uint", "f": "float", "b": "bool", "s": "a struct of "}
    return f"{names[kind]}{size} bytes" if kind == "s" else f"{names[kind]}{8 * size}"
