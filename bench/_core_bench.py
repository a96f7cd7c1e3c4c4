"""The core's own stages from Python: builds `bench_stages` with CMake and loads it with cffi."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _machine import OUT, ROOT

STAGES = ("read", "boundaries", "positions", "probe", "emit", "all", "cold")
LABELS = {
    "read": "memory read",
    "boundaries": "classify + boundaries",
    "positions": "+ positions",
    "probe": "+ hot probe",
    "emit": "+ emit of hits",
    "all": "+ misses = all, warm",
    "cold": "all, cold",
}
DECLARATIONS = """
typedef struct bench_counts {
  int64_t pieces, tokens, hot_misses, merges_warm, merges_cold, open_ns;
} bench_counts;
double bench_clock_ghz(void);
int32_t bench_isa(int32_t isa);
int32_t bench_cache_slots(int64_t cache_bytes, int64_t *hot, int64_t *behind);
int32_t bench_stages(const sa_plan *plan, const uint8_t *text, const int64_t *offsets,
                     int64_t n_rows, int64_t cache_bytes, int64_t repeats, uint32_t *ids,
                     int64_t *row_ids, int64_t *ns, bench_counts *counts);
double bench_small_ns(const sa_plan *plan, const uint8_t *text, int64_t n, int64_t calls,
                      int64_t rounds);
"""


class BuildFailed(Exception):
    """The library could not be built; the message has the end of the log."""


@dataclass(frozen=True)
class Stages:
    """ns: int64 (stages, repeats), a row per stage of STAGES; counts: of one pass over the text."""

    ns: np.ndarray
    counts: dict[str, int]


class CoreBench:
    """The library, built anew when its sources changed. BuildFailed, or ImportError without the
    core itself, which supplies the plans."""

    def __init__(self) -> None:
        import cffi

        sys.path.insert(0, str(ROOT / "cpu_core"))
        from build_core import HEADER, declarations

        self.ffi: Any = cffi.FFI()
        self.ffi.cdef(declarations(HEADER.read_text()) + DECLARATIONS)
        self.lib: Any = self.ffi.dlopen(str(_build()))

    def ghz(self) -> float:
        """Cycles a nanosecond of this core now, by a chain of additions."""
        return float(self.lib.bench_clock_ghz())

    def select(self, isa: str) -> None:
        """Switch to an instruction set by name. ValueError where it isn't available."""
        from saphira_gpu.engines import cpu

        names = [cpu.ffi.string(cpu.lib.sa_isa_name(i)).decode() for i in range(4)]
        if isa not in names or self.lib.bench_isa(names.index(isa)) != 0:
            raise ValueError(f"instruction set {isa!r} is not available here")

    def slots(self, cache_bytes: int) -> tuple[int, int]:
        """Slots of a cache of so many bytes: of the hot tables, of those behind them."""
        hot, behind = self.ffi.new("int64_t *"), self.ffi.new("int64_t *")
        if self.lib.bench_cache_slots(cache_bytes, hot, behind):
            raise MemoryError("the core ran out of memory")
        return int(hot[0]), int(behind[0])

    def plan(self, tokenizer: Any) -> tuple[Any, list[Any]]:
        """The `sa_plan` of a Tokenizer for this library, and what must stay alive with it."""
        from saphira_gpu.engines import cpu

        plan = tokenizer._engine.plan
        return plan.struct(self.ffi, cpu.scheme_number(plan.scheme))  # type: ignore[no-any-return]

    def stages(
        self, tokenizer: Any, text: np.ndarray, offsets: np.ndarray, cache_bytes: int, repeats: int
    ) -> Stages:
        """Time every stage. text: (bytes,) uint8; offsets: (rows + 1,) int64."""
        ffi, rows = self.ffi, len(offsets) - 1
        plan, alive = self.plan(tokenizer)
        ids = np.empty(int(offsets[-1] - offsets[0]) + 64, np.uint32)
        row_ids = np.empty(max(rows, 1), np.int64)
        ns = np.zeros((len(STAGES), repeats), np.int64)
        counts = ffi.new("bench_counts *")
        status = self.lib.bench_stages(
            plan,
            ffi.from_buffer("uint8_t[]", text),
            ffi.from_buffer("int64_t[]", offsets),
            rows,
            cache_bytes,
            repeats,
            ffi.from_buffer("uint32_t[]", ids),
            ffi.from_buffer("int64_t[]", row_ids),
            ffi.from_buffer("int64_t[]", ns.reshape(-1)),
            counts,
        )
        del alive
        if status:
            raise RuntimeError(f"bench_stages ended with status {status}")
        names = [name for name, _ in ffi.typeof("bench_counts").fields]
        return Stages(ns, {name: int(getattr(counts, name)) for name in names})

    def small_ns(self, tokenizer: Any, text: bytes, calls: int, rounds: int) -> float:
        """Nanoseconds of one C call that encodes one text: the least of some rounds."""
        plan, alive = self.plan(tokenizer)
        ns = float(self.lib.bench_small_ns(plan, text, len(text), calls, rounds))
        del alive
        if ns < 0:
            raise RuntimeError("bench_small_ns failed")
        return ns


def _build() -> Path:
    folder = OUT / "core"
    beside = Path(sys.executable).parent / "cmake"  # of a virtual environment that isn't active
    cmake = str(beside) if beside.exists() else shutil.which("cmake") or "cmake"
    configure = [cmake, "-S", str(ROOT / "cpu_core"), "-B", str(folder), "-DSAPHIRA_BENCH=ON"]
    build = [cmake, "--build", str(folder), "--target", "bench_stages"]
    for command in (configure, build):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            log = getattr(error, "stdout", "") or ""
            log += getattr(error, "stderr", "") or str(error)
            raise BuildFailed("\n".join(log.strip().splitlines()[-12:])) from None
    found = [p for p in folder.iterdir() if re.fullmatch(r"libbench_stages\.(so|dylib)", p.name)]
    if not found:
        raise BuildFailed(f"no libbench_stages in {folder}")
    return found[0]
