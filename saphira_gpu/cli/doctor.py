"""`saphira-gpu doctor`: versions, instruction set, threads and the state of CUDA, in words."""

import os
import platform
from importlib import import_module
from typing import Any

import typer


def doctor() -> None:
    """Say what is installed and what this machine can run."""
    import saphira_gpu

    lines = [
        ("saphira_gpu", saphira_gpu.__version__),
        ("python", f"{platform.python_version()} ({platform.machine()}, {platform.system()})"),
        *((name, version_of(name)) for name in ("numpy", "pyarrow", "cffi", "fsspec")),
        *_core_lines(),
        ("CUDA", cuda_state()),
    ]
    width = max(len(label) for label, _ in lines)
    typer.echo("\n".join(f"{label:<{width}}  {value}" for label, value in lines))


def version_of(package: str) -> str:
    """The version of an installed package, or words that it isn't there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _core_lines() -> list[tuple[str, str]]:
    from saphira_gpu.engines import cpu
    from saphira_gpu.errors import InputError

    forced = os.environ.get("SAPHIRA_ISA")
    why = f" (SAPHIRA_ISA={forced})" if forced else ""
    try:
        cores = cpu.thread_count(None)
    except ValueError as error:
        raise InputError(str(error)) from None
    threads = " (SAPHIRA_THREADS)" if os.environ.get("SAPHIRA_THREADS") else ""
    return [
        ("instruction set", f"{cpu.isa()}{why}; available: {', '.join(cpu.isas())}"),
        ("threads", f"{cores}{threads}"),
    ]


def cuda_state() -> str:
    """What keeps a CUDA device from being used, the first thing missing, in words."""
    here = "this version encodes on the CPU only"
    try:
        cupy = import_module("cupy")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cupy":
            return f"no CuPy (extras cuda12, cuda13); {here}"
        return f"CuPy is broken ({error}); {here}"
    except Exception as error:  # a broken wheel fails in many ways: ImportError, OSError, its own
        return f"CuPy is broken ({' '.join(str(error).split())}); {here}"
    return f"{_device_state(cupy)}; {here}"


def _device_state(cupy: Any) -> str:
    found = f"CuPy {cupy.__version__}"
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        # cudaErrorInsufficientDriver 35, cudaErrorNoDevice 100
        reason = {35: "no driver, or one too old", 100: "no device"}.get(error.status, str(error))
        return f"{found}, {reason}"
    except Exception as error:  # libcudart that can't be loaded
        return f"{found}, no CUDA runtime ({' '.join(str(error).split())})"
    if not count:
        return f"{found}, no device"
    try:
        major, minor = cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # the library is loaded on first use
        return f"{found}, {count} device(s), no NVRTC ({' '.join(str(error).split())})"
    name = runtime.getDeviceProperties(0)["name"].decode()
    return f"{found}, NVRTC {major}.{minor}, {count} device(s): {name}"
