"""`saphira-gpu doctor`: versions, instruction set, threads and the state of CUDA, in words."""

import os
import platform

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
    """What keeps a CUDA device from being used, or the device, in words."""
    from saphira_gpu.devices import detect

    state = detect.cuda_state()
    if state.missing:
        return f"{state.words}; device=auto encodes on the CPU"
    return f"{state.words}; device=auto encodes large columns there"
