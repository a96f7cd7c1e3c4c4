"""Do the tests of a kernel bite? Changes it in one place at a time and runs its cases.

    python -m tests.mutate_kernels kernels/scan.cuh --cases exclusive_sums,grid_sum

Mutants: a barrier or fence less, acquire and release made relaxed, comparisons and signs turned,
numbers off by one, masks a lane short. Each runs in a process of its own, first in the check build,
then in the fast one, in several orders. Survivors are listed with the line: each is either
equivalent or a gap in the cases.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

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
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \+= ", " = "),
    (r" >> ", " << "),
    (r" & ", " | "),
    (r"\bSA_FULL_WARP\b", "0x7FFFFFFFu"),
    (r"\b0xFFFFFFFFu\b", "0x7FFFFFFFu"),
    (r"(?<![\w.])([1-9]\d?|0)(?![\w.])", "+1"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before.strip()}  =>  {self.after.strip()}"


def mutants(text: str) -> Iterator[Mutant]:
    """Every single change of the rules, outside comments and directives."""
    lines = text.splitlines()
    comment = False
    for number, line in enumerate(lines, 1):
        code = "" if comment else re.sub(r"//.*|/\*.*?(\*/|$)", lambda m: " " * len(m[0]), line)
        comment = (comment or "/*" in line) and "*/" not in line
        if code.lstrip().startswith("#"):
            continue
        for pattern, new in RULES:
            for match in re.finditer(pattern, code):
                put = str(int(match[1]) + 1) if new == "+1" else new
                after = line[: match.start()] + put + line[match.end() :]
                changed = [*lines[: number - 1], after, *lines[number:]]
                yield Mutant(number, line, after, "\n".join(changed) + "\n")


def run_cases(module: str, cases: list[str]) -> None:
    """All schedules; the first wrong result or fault ends it."""
    from saphira_gpu.devices.host import HostDevice, Schedule

    known = importlib.import_module(module).CASES
    for check in (True, False):
        for schedule in (
            Schedule("forward", resident=48),
            Schedule("reverse", resident=5),
            Schedule("random", seed=1, resident=48, preempt=30 if check else 0),
        ):
            device = HostDevice(check=check, schedule=schedule, stall_rounds=2000, seconds=10)
            for case in cases:
                for n, threads in (
                    (1, 32),
                    (31, 64),
                    (4000, 64),
                    (4097, 64),
                    (2500, 256),
                    (3000, 1024),
                ):
                    known[case](device, n, threads)


def survives(mutant: Mutant, file: Path, module: str, cases: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as name:
        # A tree of its own: the package's link to it is PYTHONPATH, the kernels are beside it.
        tree = Path(name)
        for folder in ("kernels", "tests"):
            shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("data"))
        (tree / "saphira_gpu").symlink_to(ROOT / "saphira_gpu")
        (tree / file.relative_to(ROOT)).write_text(mutant.text)
        code = (
            "from pathlib import Path; from saphira_gpu.devices import source, _build\n"
            f"source.kernels_folder = _build.kernels_folder = lambda: Path({name!r}) / 'kernels'\n"
            f"from tests.mutate_kernels import run_cases\nrun_cases({module!r}, {cases!r})\n"
        )
        command = [sys.executable, "-c", code]
        try:
            done = subprocess.run(command, cwd=tree, capture_output=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return False  # as good as a hang
        return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a kernel file or a header")
    parser.add_argument("--cases", required=True, help="names in CASES, with commas between")
    parser.add_argument("--module", default="tests.kernel_cases", help="where CASES is")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    file = options.file.resolve()
    cases = options.cases.split(",")
    text = file.read_text()
    original = Mutant(0, "", "", text)
    if not survives(original, file, options.module, cases):
        print("the kernel fails its cases without any change")
        return 1
    found = list(mutants(text))
    alive = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        lives = pool.map(lambda mutant: survives(mutant, file, options.module, cases), found)
        for mutant, survived in zip(found, lives, strict=True):
            if survived:
                alive += 1
                print(f"survives  {mutant}", flush=True)
    print(f"{len(found) - alive} of {len(found)} mutants of {file.name} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
