"""Compiles rewritten kernels and the host executor's runtime with g++, once for each content."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from saphira_gpu.devices._rewrite import rewrite
from saphira_gpu.devices.source import flatten, kernels_folder
from saphira_gpu.errors import DeviceError

# Kernels reinterpret memory and wrap integers freely; so does nvcc's C++.
_COMMON = (
    "-std=c++17",
    "-fPIC",
    "-g1",
    "-gdwarf-4",
    "-w",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
)
_LOOSE = ("-fno-strict-aliasing", "-fwrapv", "-U_FORTIFY_SOURCE")
_FAST = ("-O2",)
# Every access is one call with its own size: no vectors, no merged or split accesses, no memset.
_CHECK = (
    "-O1",
    "-DSA_HOST_CHECK",
    "-fsanitize=thread,shift-exponent,bounds,alignment,integer-divide-by-zero",
    "-fno-sanitize-recover=all",
    *("--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0"),
    *("-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-store-merging", "-fno-tree-sra"),
    "-fno-tree-loop-distribute-patterns",
)
_RUNTIME = ("-std=c++17", "-O2", "-fPIC", "-fno-stack-protector", "-U_FORTIFY_SOURCE")


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled kernel file. library: its path. kernels: names. runtime: the executor's path."""

    library: Path
    kernels: tuple[str, ...]
    runtime: Path


def compiler() -> str:
    """The path of g++ (or what SAPHIRA_CXX names).

    Raises DeviceError if there is none, or if it is clang under that name.
    """
    return _compiler(os.environ.get("SAPHIRA_CXX") or "g++")


@cache
def _compiler(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise DeviceError(
            f"the host executor needs g++ to compile kernels, and {name!r} isn't here"
        )
    macros = subprocess.run(
        [path, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True, check=False
    ).stdout
    if "__GNUC__" not in macros or "__clang__" in macros or "__linux__" not in macros:
        raise DeviceError(f"the host executor needs GNU g++ on Linux, and {path} is something else")
    return path


def cache_folder() -> Path:
    """Where compiled modules lie: SAPHIRA_CACHE_DIR, or saphira_gpu in the user's cache."""
    named = os.environ.get("SAPHIRA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME")
    base = Path(named) if named else Path(home) if home else Path.home() / ".cache"
    folder = base / ("host" if named else "saphira_gpu/host")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def runtime(ucontext: bool = False) -> Path:
    """The executor's runtime as a shared library. ucontext: with the portable fiber switch."""
    folder = kernels_folder() / "host"
    flags = (*_RUNTIME, *(("-DHX_UCONTEXT",) if ucontext else ()))
    units = sorted(folder.glob("*.cpp"))
    key = _key(*flags, *(path.read_bytes() for path in (*units, *sorted(folder.glob("*.h")))))
    target = cache_folder() / f"runtime-{key}.so"
    with _alone(target) as missing:
        if not missing:
            return target
        # As one unit: half the time, and the checks are inlined into the instrumentation's calls.
        unit = target.with_suffix(".cpp")
        write(unit, "".join(f'#include "{path}"\n' for path in units))
        _run([*flags, "-shared", str(unit), "-o", "{out}", "-ldl", "-lrt"], target, "runtime")
    return target


def build(file: str | Path, instrumented: bool, ucontext: bool = False) -> Module:
    """The module of a kernel file.

    Raises DeviceError for what source.flatten and _rewrite.rewrite refuse, and with g++'s messages
    if it doesn't compile.
    """
    source = flatten(file)
    text, kernels = rewrite(source.text)
    engine = runtime(ucontext)
    names = kernels_folder() / "host" / "cuda_names.h"
    flags = (*_COMMON, *_LOOSE, *(_CHECK if instrumented else _FAST))
    key = _key(engine.name, *flags, names.read_bytes(), text)
    target = engine.parent / f"{source.path.stem}-{key}.so"
    with _alone(target) as missing:
        if not missing:
            return Module(target, kernels, engine)
        unit = target.with_suffix(".cpp")
        write(unit, text)
        # Without libtsan: the runtime has the functions that the instrumentation calls.
        _run(
            [*flags, "-include", str(names), "-c", str(unit), "-o", "{out}"],
            target.with_suffix(".o"),
            source.path.name,
        )
        _run(
            [
                "-shared",
                str(target.with_suffix(".o")),
                str(engine),
                "-Wl,-rpath,$ORIGIN",
                "-o",
                "{out}",
            ],
            target,
            source.path.name,
        )
        target.with_suffix(".o").unlink(missing_ok=True)
    return Module(target, kernels, engine)


def _key(*parts: str | bytes) -> str:
    total = hashlib.sha256(compiler().encode())
    total.update(_version(compiler()).encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:20]


@cache
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout


@contextmanager
def _alone(target: Path) -> Iterator[bool]:
    """Is the target missing? If so, other processes wait here until it was made."""
    if target.exists():
        yield False
        return
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not target.exists()


def write(path: Path, text: str) -> None:
    """Whole or not at all: another process may compile the same thing."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    Path(file.name).replace(path)


def _run(arguments: list[str], target: Path, what: str) -> None:
    handle, name = tempfile.mkstemp(suffix=target.suffix, dir=target.parent)
    os.close(handle)
    command = [compiler(), *(name if word == "{out}" else word for word in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=target.parent)
    if done.returncode:
        Path(name).unlink(missing_ok=True)
        raise DeviceError(f"{what} does not compile for the host executor:\n{done.stderr.strip()}")
    Path(name).replace(target)


def lines_of(library: Path, offset: int) -> list[str]:
    """`file:line` of a code address, the innermost first, then the calls it was inlined into.

    Empty if addr2line isn't there or knows nothing.
    """
    tool = shutil.which("addr2line")
    if tool is None or not offset:
        return []
    done = subprocess.run(
        [tool, "-e", str(library), "-i", hex(offset - 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    places = []
    for line in done.stdout.splitlines():
        path, _, number = line.partition(" ")[0].rpartition(":")
        name = path.removeprefix(f"{library.parent}/")
        if number.isdigit() and int(number) and not name.endswith("cuda_names.h"):
            places.append(f"{name}:{number}")
    return places
