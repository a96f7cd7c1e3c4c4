"""How speed changes with the cache, the threads, the rows, the text and its distinct pieces.

    SAPHIRA_TEST_DATA=... python bench/sweep.py
    python bench/sweep.py caches threads --tokenizer cl100k_base --mb 8

Sweeps: caches (bound of the cache → MB/s), threads, rows (1-byte rows to one row), texts (1 KB to
--largest-mb), distinct (distinct words of random text), small (one short string). Every point is a
tokenizer object of its own in this process: its first call, cold, then the least time of warm calls
on the same column. The bar for growth: time per byte stays flat.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import _sweeps
from _summary import machine_line

Points = list[dict[str, Any]]


def main() -> int:
    args = _arguments()
    sys.path.append(str(_machine.ROOT))  # an uninstalled tree; an installed package comes first
    import saphira_gpu

    if not _sweeps.parquet_known("english"):
        print("set SAPHIRA_TEST_DATA to a folder with corpora/english.parquet", file=sys.stderr)
        return 2

    def load(cache_bytes: int | None) -> Any:
        return saphira_gpu.Tokenizer.load(args.tokenizer, cache_bytes=cache_bytes)

    size, largest = int(args.mb * 1e6), int(args.largest_mb * 1e6)
    plan: dict[str, Callable[[], Points]] = {
        "small": lambda: _sweeps.small(load),
        "caches": lambda: [
            entry
            for corpus in ("english", "multiscript")
            for entry in _sweeps.caches(load, size // 2, corpus)
        ],
        "threads": lambda: _sweeps.threads(load, size),
        "rows": lambda: _sweeps.row_sizes(load, size, int(args.million_rows * 1e6)),
        "texts": lambda: _sweeps.text_sizes(load, largest),
        "distinct": lambda: _sweeps.distinct(load, size // 4, args.most_distinct),
    }
    unknown = [name for name in args.sweeps if name not in plan]
    if unknown:
        print(f"no sweep {unknown[0]!r}; there are {', '.join(plan)}", file=sys.stderr)
        return 2
    machine = _machine.describe()
    results: dict[str, Points] = {}
    seconds: dict[str, float] = {}
    left_out: list[str] = []
    for name in args.sweeps or plan:
        if args.budget_seconds and sum(seconds.values()) > args.budget_seconds:
            left_out.append(name)
            continue
        started = time.monotonic()
        print(f"sweep {name}", file=sys.stderr, flush=True)
        results[name] = plan[name]()
        seconds[name] = round(time.monotonic() - started, 1)
    record = {
        "machine": machine,
        "revision": _machine.revision(),
        "settings": {
            "tokenizer": args.tokenizer,
            "mb": args.mb,
            "largest_mb": args.largest_mb,
            "million_rows": args.million_rows,
            "most_distinct": args.most_distinct,
        },
        "seconds": seconds,
        "left_out": left_out,
        "results": results,
    }
    print(render(record))
    if not args.no_record:
        print(f"record: {_machine.write_record('sweep', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("sweeps", nargs="*", help="caches, threads, rows, texts, distinct, small (default: all)")
    add("--tokenizer", default="gpt2")
    add("--mb", type=float, default=64.0, help="text of a point, at most")
    add("--largest-mb", type=float, default=262.144, help="the largest text of `texts`")
    add("--million-rows", type=float, default=10.0, help="rows of a point of `rows`, at most")
    add("--most-distinct", type=int, default=1_000_000)
    add("--budget-seconds", type=float, help="no further sweep once this much time is over")
    add("--records", type=Path, default=_machine.RECORDS)
    add("--no-record", action="store_true")
    return parser.parse_args()


COLUMNS: dict[str, tuple[str, ...]] = {
    "caches": ("corpus", "cache_bytes", "hot_slots", "slots", "cold_mb_s", "mb_s"),
    "threads": ("corpus", "threads", "bytes", "cold_mb_s", "mb_s"),
    "rows": ("row_bytes", "threads", "rows", "bytes", "cold_mb_s", "mb_s"),
    "texts": ("bytes", "rows", "cold_mb_s", "mb_s"),
    "distinct": ("distinct", "bytes", "tokens", "cold_mb_s", "mb_s"),
    "small": ("call", "us", "over_c_us"),
}


def table(name: str, points: Points) -> str:
    """The points of one sweep as a Markdown table."""
    rows = [[_text(p.get(column)) for column in COLUMNS[name]] for p in points]
    header = [
        column.replace("_mb_s", " MB/s").replace("mb_s", "warm MB/s") for column in COLUMNS[name]
    ]
    return _machine.table([h.replace("_", " ") for h in header], rows)


def render(record: dict[str, Any]) -> str:
    """The record as text: a table per sweep."""
    lines = [f"{machine_line(record['machine'])}; {record['settings']['tokenizer']}"]
    for name, points in record["results"].items():
        lines += ["", f"{name} ({record['seconds'][name]:.0f} s)", table(name, points)]
    lines += [f"left out for time: {name}" for name in record["left_out"]]
    return "\n".join(lines)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
