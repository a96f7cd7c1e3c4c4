"""Where kernels run: `cupy` on a GPU, `host` on the CPU through the host executor, one protocol.

Launch code sees a `Device` and nothing else. Nothing here imports CuPy or starts a compiler before
a device is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from saphira_gpu.errors import DeviceError

Dims = tuple[int, ...]


class Kernel(Protocol):
    """A compiled kernel, called as CuPy's RawKernel.

    grid, block: one to three ints, blocks and threads. args: device arrays, numpy scalars, None for
    a null pointer. shared_mem: bytes of dynamic shared memory. Returns before the work is done.
    Raises LaunchError for a launch that doesn't fit the kernel or the machine.
    """

    def __call__(
        self, grid: Dims, block: Dims, args: Sequence[Any], *, shared_mem: int = 0
    ) -> None: ...


class Event(Protocol):
    """A moment in a stream's work."""

    def synchronize(self) -> None:
        """Waits until the work asked of the stream before it is done."""
        ...


class Stream(Protocol):
    """Work that is done in the order of the calls, beside that of other streams."""

    def copy(self, target: Any, source: Any) -> None:
        """Copies an array from host to device, device to host or within the device: as many bytes
        on both sides. Host memory comes from Device.pinned.

        Returns before it is done: until then neither side may be used for anything else.
        """
        ...

    def record(self) -> Event:
        """The moment after what was asked so far."""
        ...

    def wait(self, event: Event) -> None:
        """What is asked from now on starts after the event."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of a device's memory. used: by arrays that are alive. peak: the most of that so far.
    free: what may still be allocated; None where nothing says."""

    used: int
    peak: int
    free: int | None


class Device(Protocol):
    """Memory and kernels of one device. All of its own work, kernels and the methods here, is done
    in the order of the calls, on the stream `main`.

    Arrays are C-contiguous, and have shape, dtype, size, nbytes, slices along the first axis
    (views), view(dtype) and fill(value). `empty` promises nothing about its contents. `fill` runs
    on the stream that is current: call it within `current()`.
    """

    @property
    def main(self) -> Stream: ...

    def stream(self) -> Stream:
        """Another stream, for copies that run beside kernels."""
        ...

    def current(self) -> AbstractContextManager[object]:
        """Within it, `main` is the stream of what is called on arrays themselves."""
        ...

    def kernel(self, file: str, name: str) -> Kernel:
        """The kernel `name` of a file under kernels/ (or an absolute path)."""
        ...

    def empty(self, shape: int | Dims, dtype: Any) -> Any:
        """Raises DeviceMemoryError where there is no room, as `zeros` and `to_device` do."""
        ...

    def zeros(self, shape: int | Dims, dtype: Any) -> Any: ...

    def lasting(self, shape: int | Dims, dtype: Any) -> Any:
        """An array like that of `empty` for other libraries to keep: its memory belongs to no pool,
        and is given back only when all work on the device is done. It doesn't count against
        `limit_memory`."""
        ...

    def pinned(self, shape: int | Dims, dtype: Any) -> np.ndarray[Any, Any]:
        """Host memory that streams copy from and to."""
        ...

    def to_device(self, array: np.ndarray[Any, Any]) -> Any: ...

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy in host memory; waits for what was asked before."""
        ...

    def synchronize(self) -> None:
        """Waits for everything asked before, and raises what went wrong in it."""
        ...

    def limit_memory(self, limit: int | None) -> None:
        """Bounds the bytes of arrays that are alive; None: by what there is."""
        ...

    def memory(self) -> MemoryUse: ...


class DeviceMemoryError(DeviceError, MemoryError):
    """No room on the device for an array, within its limit."""


class RowTooLarge(DeviceMemoryError):
    """A row that finds no room on the device on its own. row: in its column."""

    def __init__(self, row: int, n_bytes: int, reason: str) -> None:
        super().__init__(
            f"row {row}, {n_bytes} bytes, finds no room on the device ({reason}); rows aren't cut: "
            "give it more device_memory, or device='cpu'"
        )
        self.row, self.n_bytes, self.reason = row, n_bytes, reason

    def named(self, row: int) -> RowTooLarge:
        """The same of the row's number in the whole column."""
        return RowTooLarge(row, self.n_bytes, self.reason)


class LaunchError(DeviceError):
    """A launch that cannot be: its shape, or an argument that isn't what the kernel takes."""


def check_arguments(kernel: str, args: Sequence[Any]) -> None:
    """Refuses Python numbers, which would travel as 8 bytes whatever the kernel takes, and arrays
    in host memory, which CuPy would pass by value.

    Raises LaunchError with the argument's number, from 0.
    """
    for i, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            raise LaunchError(
                f"argument {i} of kernel {kernel!r} is an array in host memory; see to_device"
            )
        if isinstance(arg, (bool, int, float)) and not isinstance(arg, np.generic):
            raise LaunchError(
                f"argument {i} of kernel {kernel!r} is a Python {type(arg).__name__}, which has no "
                "width of its own; pass a numpy scalar, np.uint32(…) for a u32"
            )


def dims(what: str, kernel: str, value: Dims) -> tuple[int, int, int]:
    """Three dimensions of a grid or block. Raises LaunchError unless each is a positive int."""
    if (
        not isinstance(value, tuple)
        or not 1 <= len(value) <= 3
        or not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in value)
        or min(value) < 1
    ):
        raise LaunchError(f"{what} {value!r} of kernel {kernel!r} is not one to three ints above 0")
    x, y, z = (*map(int, value), 1, 1)[:3]
    return x, y, z
