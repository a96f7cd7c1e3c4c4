"""Memory of the host device: red zones around it, garbage in it, a mark for each byte written."""

from __future__ import annotations

from typing import Any

import numpy as np

from saphira_gpu._arrays import U8

_ALIGN = 512  # as CuPy's allocator
_RED = 512
_GARBAGE = 0xA5


class Memory:
    """One allocation of `size` bytes. init: uint8[size], 1 for each byte that was written."""

    def __init__(self, size: int, zero: bool) -> None:
        self.size = size
        self._raw = np.full(size + 2 * _RED + _ALIGN, _GARBAGE, np.uint8)
        self._start = _RED + -(self._raw.ctypes.data + _RED) % _ALIGN
        self.init = np.full(size, zero, np.uint8)
        if zero:
            self.bytes[:] = 0

    @property
    def bytes(self) -> U8:
        return self._raw[self._start : self._start + self.size]

    @property
    def pointer(self) -> int:
        return int(self._raw.ctypes.data) + self._start

    def damaged(self) -> str | None:
        """Where somebody wrote outside: before or behind; None if nobody did."""
        if (self._raw[: self._start] != _GARBAGE).any():
            return "before"
        if (self._raw[self._start + self.size :] != _GARBAGE).any():
            return "behind"
        return None


class HostArray:
    """A C-contiguous array in a Memory, or a view of one. See saphira_gpu.devices.Device."""

    def __init__(
        self, memory: Memory, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.memory = memory
        self.offset = offset
        self.shape = shape
        self.dtype = dtype

    @staticmethod
    def allocate(shape: int | tuple[int, ...], dtype: np.dtype[Any], zero: bool) -> HostArray:
        full = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        size = dtype.itemsize
        for n in full:
            size *= int(n)
        return HostArray(Memory(size, zero), 0, full, dtype)

    @property
    def size(self) -> int:
        n = 1
        for length in self.shape:
            n *= int(length)
        return n

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def pointer(self) -> int:
        """The address of the first element."""
        return self.memory.pointer + self.offset

    @property
    def init_pointer(self) -> int:
        return int(self.memory.init.ctypes.data) + self.offset

    @property
    def initialised(self) -> U8:
        """uint8[nbytes]: 1 for each byte that was written."""
        return self.memory.init[self.offset : self.offset + self.nbytes]

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """The memory itself as numpy's; kernels write it, `fill` and HostDevice too."""
        flat = self.memory.bytes[self.offset : self.offset + self.nbytes]
        return flat.view(self.dtype).reshape(self.shape)

    def fill(self, value: Any) -> None:
        self.values.fill(value)
        self.initialised.fill(1)

    def view(self, dtype: Any) -> HostArray:
        """The same bytes as another type. Raises ValueError if they don't come out even."""
        shape = self.values.view(dtype).shape
        return HostArray(self.memory, self.offset, shape, np.dtype(dtype))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> HostArray:
        start, stop, step = part.indices(self.shape[0])
        if step != 1:
            raise IndexError("slices of a device array have step 1")
        length = max(stop - start, 0)
        row = self.nbytes // self.shape[0] if self.shape[0] else 0
        return HostArray(
            self.memory, self.offset + start * row, (length, *self.shape[1:]), self.dtype
        )

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        raise TypeError("a device array is fetched with Device.to_host, as CuPy's needs get()")
