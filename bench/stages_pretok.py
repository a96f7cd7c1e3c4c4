"""Where a pretokenizer's time goes: GB/s of tags, boundaries and pieces, and how time grows.

    SAPHIRA_TEST_DATA=... python bench/stages_pretok.py
    python bench/stages_pretok.py english my.parquet --schemes gpt2,o200k --isa avx512 --limit-mb 8

One thread, on the core's own functions, outputs reused. `read` is the memory read that nothing can
beat: a search for a byte that is not there (memchr). `tags` writes a tag for every byte; a scheme's
boundaries need no tags in memory, so they can be faster; pieces are the spans of
`PreTokenizer.pre_tokenize_arrow`, 16 bytes each. The steps take turns, and the table has the least
processor time of each (the record has all). The second table has the time per byte as the text
grows, on text that makes a scheme look far ahead: it must not grow. (`bench/pretokenizers.py`
compares with Hugging Face's.)
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import pyarrow as pa
from _columns import CORPORA, corpus_path, data_view, offsets, read_column
from _summary import machine_line

# Runs whose ends decide where their pieces start, and text without ends at all.
HARD = {
    "spaces, newlines": " \n  \t\n \n",
    "capitals": "\u0301A" + "B" * 61,
    "digits": "1234567",
    "apostrophes": "'s'll''",
    "one letter": "a",
}
SIZES = (1 << 12, 1 << 15, 1 << 18, 1 << 21, 1 << 24)


class Bench:
    """Rows of text, and the steps over them as calls."""

    def __init__(self, column: pa.Array, schemes: list[str]) -> None:
        from saphira_gpu.batch import Batch
        from saphira_gpu.engines import cpu
        from saphira_gpu.pretok.program import Program
        from saphira_gpu.pretok.steps import Scheme

        self.cpu, self.ffi, self.lib = cpu, cpu.ffi, cpu.lib
        self.text = data_view(column)
        self.offsets = offsets(column).astype(np.int64)
        self.size = int(self.offsets[-1] - self.offsets[0])
        self.tags = np.zeros(self.size + 1, np.uint8)
        self.words = np.zeros(self.size // 64 + 1, np.uint64)
        self.batch = Batch(self.text, self.offsets)
        self.rows = cpu.Rows(self.batch)
        self.programs = {name: Program((Scheme(name),)) for name in schemes}
        self.memchr = ctypes.CDLL(None).memchr
        self.memchr.restype = ctypes.c_void_p
        self.memchr.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

    def read(self) -> None:
        self.memchr(int(self.text.ctypes.data) + int(self.offsets[0]), 0xFF, self.size)

    def classify(self) -> None:
        tags = self.ffi.from_buffer("uint8_t[]", self.tags)
        words = self.ffi.from_buffer("uint64_t[]", self.words)
        self.lib.sa_classify(0, self.rows.struct, tags, words)

    def boundaries(self, scheme: str) -> None:
        words = self.ffi.from_buffer("uint64_t[]", self.words)
        self.lib.sa_boundaries(self.cpu.scheme_number(scheme), self.rows.struct, words)

    def pieces(self, scheme: str) -> int:
        return self.programs[scheme].spans(self.batch, 1).n

    def steps(self) -> dict[str, Callable[[], Any]]:
        steps: dict[str, Callable[[], Any]] = {"read": self.read, "tags": self.classify}
        for scheme in self.programs:
            steps[f"{scheme} boundaries"] = lambda scheme=scheme: self.boundaries(scheme)
            steps[f"{scheme} pieces"] = lambda scheme=scheme: self.pieces(scheme)
        return steps


def main() -> int:
    args = _arguments()
    sys.path.append(str(_machine.ROOT))  # an uninstalled tree; an installed package comes first
    from saphira_gpu.engines import cpu
    from saphira_gpu.pretok.schemes import table

    known = [scheme["name"] for scheme in table()["schemes"]]
    schemes = args.schemes.split(",") if args.schemes else known
    isas = args.isa.split(",") if args.isa else cpu.isas()
    try:
        columns = {Path(name).stem: corpus_path(name) for name in args.corpora}
        if unknown := sorted(set(schemes) - set(known)):
            raise ValueError(f"no scheme {', '.join(unknown)}; there are {', '.join(known)}")
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    limit = int(args.limit_mb * 1e6)
    results: list[dict[str, Any]] = []
    for corpus, path in columns.items():
        bench = Bench(read_column(path, limit_bytes=limit), schemes)
        for isa in isas:
            cpu.select_isa(isa)
            ns = _turns(bench.steps(), args.repeats)
            pieces = {scheme: bench.pieces(scheme) for scheme in schemes}
            results.append(
                {"corpus": corpus, "isa": isa, "bytes": bench.size, "pieces": pieces, "ns": ns}
            )
    growth = []
    for isa in isas:
        cpu.select_isa(isa)
        growth += [{"isa": isa, **entry} for entry in _growth(schemes, args.grow_mb)]
    record = {
        "machine": _machine.describe(),
        "revision": _machine.revision(),
        "settings": {"repeats": args.repeats, "limit_mb": args.limit_mb, "threads": 1},
        "results": results,
        "growth": growth,
    }
    print(render(record))
    if not args.no_record:
        print(f"record: {_machine.write_record('stages_pretok', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("corpora", nargs="*", default=list(CORPORA), help="Parquet files or shared corpora")
    add("--schemes", help="comma-separated; default: all")
    add("--isa", help="comma-separated; default: all that this machine runs")
    add("--limit-mb", type=float, default=16.0)
    add("--grow-mb", type=float, default=16.0, help="the longest text of the second table")
    add("--repeats", type=int, default=7)
    add("--records", type=Path, default=_machine.RECORDS)
    add("--no-record", action="store_true")
    return parser.parse_args()


def _turns(steps: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[int]]:
    """Processor time (ns) of every repeat of every step, after one call that isn't counted."""
    ns: dict[str, list[int]] = {name: [] for name in steps}
    for turn in range(repeats + 1):
        for name, call in steps.items():
            start = time.thread_time_ns()
            call()
            if turn:
                ns[name].append(time.thread_time_ns() - start)
    return ns


def _growth(schemes: list[str], most_mb: float) -> list[dict[str, Any]]:
    """Time per byte of the boundaries of one row of hard text, by its size: the least of three."""
    found = []
    for kind, unit in HARD.items():
        for size in SIZES:
            if size > max(SIZES[0], most_mb * 1e6):
                break
            raw = (unit * (size // len(unit.encode()) + 1)).encode()[:size]
            bench = Bench(pa.array([raw.decode("utf-8", "ignore")], pa.large_string()), [])
            times = {}
            for scheme in schemes:
                calls = max(1, (1 << 18) // size)
                step = {"b": lambda b=bench, s=scheme, n=calls: [b.boundaries(s) for _ in range(n)]}
                times[scheme] = min(_turns(step, 3)["b"]) / calls / bench.size
            found.append({"text": kind, "bytes": bench.size, "ns_per_byte": times})
    return found


def render(record: dict[str, Any]) -> str:
    """The record as text: GB/s by corpus and step, an instruction set a column; then growth."""
    lines = [machine_line(record["machine"])]
    for corpus in dict.fromkeys(result["corpus"] for result in record["results"]):
        group = [result for result in record["results"] if result["corpus"] == corpus]
        lines += ["", f"{corpus}, {group[0]['bytes'] / 1e6:.1f} MB, GB/s", ""]
        rows = [
            [step, *(f"{result['bytes'] / min(result['ns'][step]):.2f}" for result in group)]
            for step in group[0]["ns"]
        ]
        lines.append(_machine.table(["step", *(result["isa"] for result in group)], rows))
    for isa in dict.fromkeys(entry["isa"] for entry in record["growth"]):
        group = [entry for entry in record["growth"] if entry["isa"] == isa]
        sizes = sorted({entry["bytes"] for entry in group if entry["text"] == "one letter"})
        lines += ["", f"{isa}, boundaries of one row, ns a byte (the slowest scheme)", ""]
        rows = []
        for kind in HARD:
            entries = [entry for entry in group if entry["text"] == kind]
            slow = [max(e["ns_per_byte"].items(), key=lambda item: item[1]) for e in entries]
            rows.append([kind, *(f"{ns:.3f} {name}" for name, ns in slow)])
        lines.append(_machine.table(["text", *(f"{n:,} bytes" for n in sizes)], rows))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
