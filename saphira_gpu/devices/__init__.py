"""Where kernels run: `cupy` on a GPU, `host` on the CPU through the host executor, one protocol.

Launch code sees a `Device` and nothing else. Nothing here imports CuPy or starts a compiler before
a device is made.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class Device(Protocol):
    """Memory and kernels of one device. All work of a device is done in the order of the calls.

    Arrays are C-contiguous, and have shape, dtype, size, nbytes, slices along the first axis
    (views), view(dtype) and fill(value). `empty` promises nothing about its contents.
    """

    def kernel(self, file: str, name: str) -> Kernel:
        """The kernel `name` of a file under kernels/ (or an absolute path)."""
        ...

    def empty(self, shape: int | Dims, dtype: Any) -> Any: ...

    def zeros(self, shape: int | Dims, dtype: Any) -> Any: ...

    def to_device(self, array: np.ndarray[Any, Any]) -> Any: ...

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy in host memory; waits for what was asked before."""
        ...

    def synchronize(self) -> None:
        """Waits for everything asked before, and raises what went wrong in it."""
        ...


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
