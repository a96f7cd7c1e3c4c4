"""Compiles every kernel file for every architecture with NVRTC, no GPU needed, and looks at what
ptxas says: `python -m saphira_gpu.devices.compile_gate [--json FILE] [kernel files]`.

Fails if a file doesn't compile or a kernel spills registers to memory. Without CuPy and NVRTC, or
without kernels, it says so, and exits with 2: nothing was checked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from saphira_gpu.devices.cupy import OPTIONS
from saphira_gpu.devices.source import flatten, kernels_folder
from saphira_gpu.errors import DeviceError

ARCHITECTURES = (80, 90, 100, 120)
NOT_CHECKED = 2

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for 'sm_(\d+)a?'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What ptxas says of one kernel for one architecture; all but registers in bytes."""

    file: str
    kernel: str
    arch: int
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int

    @property
    def spills(self) -> bool:
        return self.spill_stores + self.spill_loads > 0


def compile_file(file: str | Path, arch: int, nvrtc: Any) -> list[KernelReport]:
    """Compiles a kernel file. nvrtc: `cupy.cuda.nvrtc`. Raises DeviceError with its messages."""
    source = flatten(file)
    options = (*OPTIONS, f"--gpu-architecture=sm_{arch}", "--ptxas-options=-v")
    program = nvrtc.createProgram(source.text, source.path.name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip("\0 \n")
            raise DeviceError(f"{source.path.name}, sm_{arch}: {error}\n{log}") from None
        nvrtc.getCUBIN(program)
        return list(parse(source.path.name, nvrtc.getProgramLog(program)))
    finally:
        nvrtc.destroyProgram(program)


def parse(file: str, log: str) -> Iterator[KernelReport]:
    """Reads ptxas's log: a line that names the kernel, one on its stack, one on its registers."""
    entry: re.Match[str] | None = None
    stack = ("0", "0", "0")
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, stack = match, ("0", "0", "0")
        elif entry and (match := _SPILLS.search(line)):
            stack = (match[1], match[2], match[3])
        elif entry and (match := _USED.search(line)):
            shared = _SHARED.search(line)
            numbers = (match[1], shared[1] if shared else "0", *stack)
            yield KernelReport(file, entry[1], int(entry[2]), *map(int, numbers))
            entry = None


def kernel_files() -> list[Path]:
    return sorted(kernels_folder().glob("*.cu"))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each kernel and architecture; returns the exit status."""
    parser = argparse.ArgumentParser(prog="compile_gate", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="all of kernels/*.cu by default")
    parser.add_argument("--json", type=Path, help="writes the table there")
    options = parser.parse_args(argv)
    try:
        nvrtc = import_module("cupy").cuda.nvrtc
        version = nvrtc.getVersion()
    except Exception as error:
        print(f"compile gate: not checked, no CuPy with NVRTC ({' '.join(str(error).split())})")
        return NOT_CHECKED
    files = [path.resolve() for path in options.files] or kernel_files()
    if not files:
        print(f"compile gate: not checked, no kernel files in {kernels_folder()}")
        return NOT_CHECKED
    print(f"compile gate: NVRTC {version[0]}.{version[1]}, {len(files)} file(s)")
    rows: list[KernelReport] = []
    failed = False
    for file in files:
        for arch in ARCHITECTURES:
            try:
                rows += compile_file(file, arch, nvrtc)
            except DeviceError as error:
                print(error)
                failed = True
    for row in rows:
        words = f"  SPILLS {row.spill_stores}/{row.spill_loads}" if row.spills else ""
        print(
            f"{row.file:<24} {row.kernel:<32} sm_{row.arch:<4} {row.registers:>3} registers "
            f"{row.shared:>6} shared {row.stack:>4} stack{words}"
        )
    if options.json:
        table = {"nvrtc": list(version), "kernels": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(table, indent=1) + "\n")
    return int(failed or any(row.spills for row in rows))


if __name__ == "__main__":
    sys.exit(main())
