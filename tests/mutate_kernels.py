"""Do the tests of a kernel bite? Changes it in one place at a time and runs its cases.

    python -m tests.mutate_kernels kernels/merge.cu --module tests.bpe_cases --cases joins,full

Mutants: a barrier or fence less, acquire and release made relaxed, comparisons and signs turned,
numbers off by one, masks a lane short. Each runs in a process of its own in the suite's sizes
(SIZES of the module): once in the fast build, which compiles soonest and finds most, then in the
check build in the suite's schedules. Survivors are listed with the line: each is either equivalent
or a gap in the cases.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from saphira_gpu.devices.host import HostDevice
from tests.on_executor import SCHEDULES

# What to look for, and what to put in its place.
RULES: tuple[tuple[str, str], ...] = (
    (r"__syncthreads\(\);", ";"),
    (r"__syncwarp\([^()]*\);", ";"),
    (r"__threadfence(?:_block)?\(\);", ";"),
    (r"\bld_acquire\b", "ld_relaxed"),
    (r"\bst_release\b", "st_relaxed"),
    (r" <= ", " < "),
    (r" < ", " <= "),
    (r" >= ", " > "),
    (r" > ", " >= "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \+= ", " = "),
    (r" >> ", " << "),
    (r" & ", " | "),
    (r"\bSA_FULL_WARP\b", "0x7FFFFFFFu"),
    (r"\b0xFFFFFFFFu\b", "0x7FFFFFFFu"),
    (r"(?<![\w.])([1-9]\d?|0)(?![\w.])", "+1"),
)

# Comments; launch bounds and shared arrays, whose sizes change no result.
_OUTSIDE = re.compile(
    r"//[^\n]*|/\*[\s\S]*?\*/|__launch_bounds__\([^()]*\)|__shared__[^;]*;", re.ASCII
)
# n and threads of the cases, where a module doesn't say.
SIZES = ((1, 32), (31, 64), (4000, 64), (4097, 64), (2500, 256), (3000, 1024))
# Processor seconds of a mutant's cases. What still runs then is found.
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before.strip()}  =>  {self.after.strip()}"


def mutants(text: str) -> Iterator[Mutant]:
    """Every single change of the rules, outside comments, directives and sizes."""
    lines = text.splitlines()
    code = _OUTSIDE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text).splitlines()
    for number, (line, seen) in enumerate(zip(lines, code, strict=True), 1):
        if seen.lstrip().startswith("#"):
            continue
        for pattern, new in RULES:
            for match in re.finditer(pattern, seen):
                put = str(int(match[1]) + 1) if new == "+1" else new
                after = line[: match.start()] + put + line[match.end() :]
                changed = [*lines[: number - 1], after, *lines[number:]]
                yield Mutant(number, line, after, "\n".join(changed) + "\n")


@dataclass(frozen=True, slots=True)
class Job:
    """file: what is changed. module: its cases; cases: their names."""

    file: Path
    module: str
    cases: tuple[str, ...]
    stall_rounds: int
    schedules: int

    def run(self) -> None:
        """The first wrong result or fault ends it."""
        module: Any = importlib.import_module(self.module)
        checked = [(True, schedule) for schedule in SCHEDULES[: self.schedules]]
        for check, schedule in ((False, SCHEDULES[0]), *checked):
            device = HostDevice(
                check=check, schedule=schedule, stall_rounds=self.stall_rounds, seconds=3
            )
            for n, threads in getattr(module, "SIZES", SIZES):
                for case in self.cases:
                    module.CASES[case](device, n, threads)

    def start(self, mutant: Mutant, folder: str) -> Any:
        """A fork of this process, which has run the cases before, runs them with the mutant; its
        exit code is 0 if it notices nothing. folder: an empty one for what it compiles."""
        mine = Path(folder) / "host"
        mine.mkdir()
        for path in (Path(os.environ["SAPHIRA_CACHE_DIR"]) / "host").iterdir():
            (mine / path.name).symlink_to(path)
        child = multiprocessing.get_context("fork").Process(
            target=self._child, args=(mutant.text, folder)
        )
        child.start()
        return child

    def _child(self, text: str, folder: str) -> None:
        os.environ["SAPHIRA_CACHE_DIR"] = folder
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        read = Path.read_text
        # Whoever reads the file sees the mutant; what is compiled is kept by content.
        Path.read_text = lambda path, *args, **more: (  # type: ignore[method-assign]
            text if path == self.file else read(path, *args, **more)
        )
        self.run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a kernel file or a header")
    parser.add_argument("--cases", help="names in CASES, with commas between; all without it")
    parser.add_argument("--module", default="tests.kernel_cases", help="where CASES is")
    parser.add_argument("--lines", default="1-", help="A-B: mutants of these lines alone")
    parser.add_argument("--every", type=int, default=1, help="a sample: one mutant of so many")
    parser.add_argument("--stall-rounds", type=int, default=20_000, help="of the host executor")
    parser.add_argument("--schedules", type=int, default=len(SCHEDULES), help="the first so many")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    file = options.file.resolve()
    known = importlib.import_module(options.module).CASES
    cases = tuple(options.cases.split(",") if options.cases else known)
    job = Job(file, options.module, cases, options.stall_rounds, options.schedules)
    first, _, last = options.lines.partition("-")
    lines = range(int(first), int(last or 1 << 30) + 1)
    found = [mutant for mutant in mutants(file.read_text()) if mutant.line in lines]
    found = found[:: options.every]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SAPHIRA_CACHE_DIR"] = cache
        try:
            job.run()
        except Exception as error:
            print(f"the kernel fails its cases without any change: {error}")
            return 1
        alive = 0
        running: dict[Any, tuple[Any, Mutant, tempfile.TemporaryDirectory[str]]] = {}
        for mutant in [*found, *[None] * options.jobs]:
            if mutant is None or len(running) == options.jobs:
                for ended in wait(list(running)):
                    child, tried, folder = running.pop(ended)
                    child.join()
                    folder.cleanup()
                    if child.exitcode == 0:
                        alive += 1
                        print(f"survives  {tried}", flush=True)
            if mutant is not None:
                folder = tempfile.TemporaryDirectory()
                child = job.start(mutant, folder.name)
                running[child.sentinel] = child, mutant, folder
    print(f"{len(found) - alive} of {len(found)} mutants of {file.name} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
