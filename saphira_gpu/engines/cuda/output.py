"""Ids that stay on a device: `encode_arrow(..., output="device")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saphira_gpu._arrays import Bools
from saphira_gpu.devices import Device
from saphira_gpu.devices._host_memory import HostArray


class DeviceArray:
    """A one-dimensional array on a device, for other libraries to take without a copy.

    It has shape, dtype, nbytes, `__dlpack__` and `__dlpack_device__`, and
    `__cuda_array_interface__` on a GPU (`__array_interface__` on the host executor). Its memory
    lives until the last of those that took it is gone. It is ready: nothing is being written.
    """

    def __init__(self, device: Device, raw: Any) -> None:
        self._device = device
        # The host executor's array in its numpy form, which has the interfaces that CuPy's has.
        self._taken = raw.values if isinstance(raw, HostArray) else raw
        self.raw = raw

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._taken.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = np.dtype(self._taken.dtype)
        return found

    @property
    def nbytes(self) -> int:
        return int(self._taken.nbytes)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"

    def __dlpack__(self, **options: Any) -> Any:
        return self._taken.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self._taken.__dlpack_device__()
        return int(kind), int(number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("__cuda_array_interface__")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("__array_interface__")

    def _interface(self, name: str) -> dict[str, Any]:
        if not hasattr(type(self._taken), name):
            raise AttributeError(f"an array on this device has no {name}")
        found: dict[str, Any] = getattr(self._taken, name)
        return found

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        return self._device.to_host(self.raw)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTokens:
    """Rows of ids on a device: row i is values[offsets[i] : offsets[i + 1]].

    values: DeviceArray of the dtype asked for. offsets: DeviceArray, int64[n_rows + 1]. validity:
    bool[n_rows] in host memory, or None where every row is valid; a null row has no ids.
    """

    values: DeviceArray
    offsets: DeviceArray
    validity: Bools | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1
