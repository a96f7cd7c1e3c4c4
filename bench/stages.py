"""Where the time goes: cycles per piece and GB/s of the encoder's stages, cumulative, one thread.

    SAPHIRA_TEST_DATA=... python bench/stages.py
    python bench/stages.py english my.parquet --tokenizer gpt2 --isa avx512,avx2 --limit-mb 8

Each stage is timed with those before it, on the core's own functions and warm tables; stages take
turns, --repeats times, and the table has the least processor time of each (the record has all).
Cycles are nanoseconds times the clock rate, which a chain of one-cycle additions measures right
before. `all` is the encoder itself: what it takes beyond the stage before is the pieces that the
hot tables lack. `cold` makes a context of its own: allocation, growth, merging and all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import _machine
import numpy as np
from _columns import CORPORA, corpus_path, data_view, offsets, read_column
from _core_bench import LABELS, STAGES, BuildFailed, CoreBench
from _summary import machine_line


def main() -> int:
    args = _arguments()
    sys.path.append(str(_machine.ROOT))  # an uninstalled tree; an installed package comes first
    import saphira_gpu
    from saphira_gpu.engines import cpu

    try:
        columns = {Path(name).stem: corpus_path(name) for name in args.corpora}
        bench = CoreBench()
        isas = args.isa.split(",") if args.isa else cpu.isas()
        for isa in isas:
            bench.select(isa)
    except (FileNotFoundError, ValueError, BuildFailed) as error:
        print(error, file=sys.stderr)
        return 2
    limit = int(args.limit_mb * 1e6)
    results: list[dict[str, Any]] = []
    left_out: list[str] = []
    started = time.monotonic()
    for name in args.tokenizer.split(","):
        tokenizer = saphira_gpu.Tokenizer.load(name)
        for corpus, path in columns.items():
            if args.budget_seconds and time.monotonic() - started > args.budget_seconds:
                left_out.append(f"{name}, {corpus}")
                continue
            column = read_column(path, limit_bytes=limit)
            text, at = data_view(column), offsets(column).astype(np.int64)
            for isa in isas:
                bench.select(isa)
                ghz = bench.ghz()
                found = bench.stages(tokenizer, text, at, args.cache_mb << 20, args.repeats)
                sides = {"tokenizer": name, "corpus": corpus, "isa": isa, "ghz": ghz}
                results.append(sides | _entry(found.ns, found.counts, int(at[-1] - at[0])))
    record = {
        "machine": _machine.describe(),
        "revision": _machine.revision(),
        "settings": {
            "repeats": args.repeats,
            "limit_mb": args.limit_mb,
            "cache_mb": args.cache_mb,
            "threads": 1,
            "figure": "least processor time of the repeats",
        },
        "left_out": left_out,
        "results": results,
    }
    print(render(record))
    if not args.no_record:
        print(f"record: {_machine.write_record('stages', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("corpora", nargs="*", default=list(CORPORA), help="Parquet files or shared corpora")
    add("--tokenizer", default="gpt2,cl100k_base,o200k_base", help="comma-separated")
    add("--isa", help="comma-separated; default: all that this machine runs")
    add("--limit-mb", type=float, default=32.0)
    add("--repeats", type=int, default=7)
    add("--budget-seconds", type=float, help="no further text once this much time is over")
    add("--cache-mb", type=int, default=64)
    add("--records", type=Path, default=_machine.RECORDS)
    add("--no-record", action="store_true")
    return parser.parse_args()


def _entry(ns: np.ndarray, counts: dict[str, int], size: int) -> dict[str, Any]:
    """ns of every stage and repeat, and the least of them as GB/s of text."""
    stages = {}
    for i, stage in enumerate(STAGES):
        least = int(ns[i].min())
        stages[stage] = {"ns": ns[i].tolist(), "least_ns": least, "gb_s": size / max(least, 1)}
    return {"bytes": size, "counts": counts, "stages": stages}


def cycles_per_piece(result: dict[str, Any], stage: str) -> float:
    """Cycles per piece up to and with a stage."""
    ns: float = result["stages"][stage]["least_ns"]
    return ns * float(result["ghz"]) / max(1, int(result["counts"]["pieces"]))


def miss_cycles(result: dict[str, Any]) -> dict[str, float]:
    """What the pieces cost that the hot tables lack: cycles of each, and of each merged when cold.

    The second leaves out what the warm pass takes and what making the context takes; the growth of
    its tables is part of it.
    """
    per = {stage: cycles_per_piece(result, stage) for stage in ("emit", "all", "cold")}
    counts = result["counts"]
    opening = counts["open_ns"] * float(result["ghz"])
    cold = (per["cold"] - per["all"]) * counts["pieces"] - opening
    return {
        "open": opening,
        "warm": (per["all"] - per["emit"]) * counts["pieces"] / max(1, counts["hot_misses"]),
        "merge": cold / max(1, counts["merges_cold"]),
    }


def table(results: list[dict[str, Any]]) -> str:
    """Results of one tokenizer and corpus, an instruction set each, as a Markdown table."""
    header = ["stage, cumulative"]
    for result in results:
        header += [f"{result['isa']}: cycles/piece", "its own", "GB/s"]
    rows = []
    for i, stage in enumerate(STAGES):
        row = [LABELS[stage]]
        for result in results:
            cycles = cycles_per_piece(result, stage)
            before = cycles_per_piece(result, STAGES[i - 1]) if i > 1 else 0.0
            own = cycles - before
            row += [f"{cycles:.2f}", f"{own:+.2f}" if i > 1 else "–"]
            row.append(f"{result['stages'][stage]['gb_s']:.2f}")
        rows.append(row)
    return _machine.table(header, rows)


def render(record: dict[str, Any]) -> str:
    """The record as text: a table for each tokenizer and corpus."""
    lines = [machine_line(record["machine"])]
    for key in dict.fromkeys((r["tokenizer"], r["corpus"]) for r in record["results"]):
        group = [r for r in record["results"] if (r["tokenizer"], r["corpus"]) == key]
        counts = group[0]["counts"]
        lines += [
            "",
            f"{', '.join(key)}: {group[0]['bytes'] / 1e6:.1f} MB, {counts['pieces']:,} pieces of "
            f"{group[0]['bytes'] / max(1, counts['pieces']):.2f} bytes, "
            f"{counts['hot_misses'] / max(1, counts['pieces']):.2%} not in the hot tables, "
            f"{counts['merges_warm']:,} merged in a warm pass, {counts['merges_cold']:,} cold; "
            + ", ".join(f"{r['isa']} at {r['ghz']:.2f} GHz" for r in group),
            table(group),
        ]
        for result in group:
            cost = miss_cycles(result)
            lines.append(
                f"{result['isa']}: a piece not in the hot tables costs {cost['warm']:.0f} cycles, "
                f"a merged one of a cold pass {cost['merge']:.0f}; "
                f"a context costs {cost['open'] / 1e6:.2f} million"
            )
    lines += [f"left out for time: {what}" for what in record["left_out"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
