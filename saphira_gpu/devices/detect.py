"""Is there a GPU to encode on, and if not, what is the first thing that is missing?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from saphira_gpu.errors import DeviceError

Missing = Literal["cupy", "broken cupy", "driver", "device", "nvrtc"]


@dataclass(frozen=True, slots=True)
class CudaState:
    """missing: what keeps CUDA from being used, None if nothing does. words: the same for people,
    one line; with a device, what was found."""

    missing: Missing | None
    words: str


def cuda_state() -> CudaState:
    """Looks for CuPy, a driver, a device and NVRTC, in this order. Imports CuPy, if it's there."""
    try:
        cupy = import_module("cupy")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cupy":
            return CudaState("cupy", "no CuPy (extras cuda12, cuda13)")
        return CudaState("broken cupy", f"CuPy is broken ({error})")
    except Exception as error:  # a broken wheel fails in many ways: ImportError, OSError, its own
        return CudaState("broken cupy", f"CuPy is broken ({_one_line(error)})")
    found = f"CuPy {cupy.__version__}"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return _no_devices(found, error)
    except Exception as error:  # libcudart that can't be loaded
        return CudaState("driver", f"{found}, no CUDA runtime ({_one_line(error)})")
    if not count:
        return CudaState("device", f"{found}, no device")
    try:
        # Loaded on first use: without it CuPy says it is available, and fails at the first compile.
        major, minor = cupy.cuda.nvrtc.getVersion()
    except Exception as error:
        words = f"{found}, {count} device(s), no NVRTC ({_one_line(error)})"
        return CudaState("nvrtc", words)
    name = runtime.getDeviceProperties(0)["name"].decode()
    return CudaState(None, f"{found}, NVRTC {major}.{minor}, {count} device(s): {name}")


@cache
def for_auto() -> bool:
    """Whether device="auto" may use a GPU. Imports CuPy only where a driver's device is to be seen
    and CuPy is installed."""
    seen = any(Path(path).exists() for path in _NODES)
    return seen and find_spec("cupy") is not None and cuda_state().missing is None


def require_cuda() -> None:
    """Raises DeviceError, saying what is missing, unless a kernel can run here."""
    state = cuda_state()
    if state.missing:
        raise DeviceError(f"device='cuda': {state.words}; {_ADVICE[state.missing]}")


# What a driver shows of a GPU: on Linux, and on Windows' Linux.
_NODES = ("/dev/nvidiactl", "/dev/dxg")

_ADVICE: dict[Missing, str] = {
    "cupy": "pip install 'saphira_gpu[cuda13]', or cuda12 for an older driver",
    "broken cupy": "reinstall it to fit this Python and numpy: one cupy-cuda wheel, no second one",
    "driver": "install an NVIDIA driver for the CUDA version of the CuPy wheel, or a newer one",
    "device": "the driver shows no GPU to this process: see nvidia-smi and CUDA_VISIBLE_DEVICES",
    "nvrtc": "pip install nvidia-cuda-nvrtc (nvidia-cuda-nvrtc-cu12 for CUDA 12)",
}


def _no_devices(found: str, error: Any) -> CudaState:
    # cudaErrorInsufficientDriver 35, cudaErrorNoDevice 100
    if error.status == 100:
        return CudaState("device", f"{found}, no device")
    reason = "no driver, or one too old" if error.status == 35 else _one_line(error)
    return CudaState("driver", f"{found}, {reason}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
