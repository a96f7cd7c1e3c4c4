"""Medians, spreads and ratios of the runs of `compare.py`, and their tables."""

from __future__ import annotations

import statistics
from typing import Any

import _machine
from _peers import resolve
from _rounds import Cell, Run, belongs

KINDS = {"cold": "cold", "warm_fresh": "warm, fresh", "warm_recycled": "warm, recycled"}


def spread(values: list[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def times(run: Run) -> dict[str, float]:
    """Seconds of one process by kind of figure. `_cpu`: processor time of all its threads.
    `_with_conversion`: and what the contender needs in place of the column."""
    found = {}
    for kind in KINDS:
        if kind not in run:
            continue
        wall, cpu = run[kind]["wall_s"], run[kind]["cpu_s"]
        seconds = statistics.median(wall) if isinstance(wall, list) else wall
        found[kind] = seconds
        found[f"{kind}_with_conversion"] = seconds + run["loaded"]["convert_s"]
        found[f"{kind}_cpu"] = statistics.median(cpu) if isinstance(cpu, list) else cpu
    return found


def summarise(runs: list[Run], cells: list[Cell]) -> list[dict[str, Any]]:
    """One entry for each cell that has runs: the base's and the peer's speeds and their ratio.

    mb_s is 10^6 bytes of UTF-8 text a second. `ratio` is the base's speed over the peer's, pair by
    pair: above 1 the base is faster. Every figure is a median with minimum and maximum.
    """
    results = []
    for cell in cells:
        mine = [run for run in runs if belongs(run, cell)]
        ours = [run for run in mine if run["contender"] == cell.base]
        theirs = [run for run in mine if run["contender"] == cell.peer]
        if not ours:
            continue
        entry: dict[str, Any] = cell.key() | {
            "pairs": len(ours),
            "rows": ours[0]["loaded"]["rows"],
            "bytes": ours[0]["loaded"]["bytes"],
            "tokens": ours[0]["cold"]["tokens"],
            "ids_sha256": ours[0]["cold"]["ids_sha256"],
            "ours": _side(ours),
            "theirs": _side(theirs),
            "ratio": {},
        }
        for kind in times(ours[0]):
            pairs = zip(ours, theirs, strict=True)
            entry["ratio"][kind] = spread([times(b)[kind] / times(a)[kind] for a, b in pairs])
        results.append(entry)
    return results


def _side(runs: list[Run]) -> dict[str, Any]:
    """One contender's figures of one cell."""
    size, tokens = runs[0]["loaded"]["bytes"], runs[0]["cold"]["tokens"]
    side: dict[str, Any] = {
        "contender": runs[0]["contender"],
        "path": resolve(runs[0]["contender"])[1],
        "isa": runs[0]["loaded"]["details"].get("isa"),
        "load_s": spread([r["loaded"]["load_s"] for r in runs]),
        "convert_s": spread([r["loaded"]["convert_s"] for r in runs]),
        "peak_rss_mb": spread([r["cold"]["peak_rss"] / 1e6 for r in runs]),
        "mb_s": {},
        "tokens_s": {},
    }
    if all(r["cold"]["rss_before"] is not None for r in runs):
        own = [(r["cold"]["peak_rss"] - r["cold"]["rss_before"]) / 1e6 for r in runs]
        side["own_rss_mb"] = spread(own)
    for kind in times(runs[0]):
        seconds = [times(r)[kind] for r in runs]
        side["mb_s"][kind] = spread([size / 1e6 / s for s in seconds])
        side["tokens_s"][kind] = spread([tokens / s for s in seconds])
    return side


def ratio_text(ratio: dict[str, float] | None) -> str:
    """`median (min–max)`."""
    if ratio is None:
        return "–"
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}–{ratio['max']:.2f})"


def machine_line(machine: dict[str, Any]) -> str:
    """The machine in one line."""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, "
        f"Python {machine['python']}, governor {machine['governor'] or 'unknown'}"
        + (", virtual machine" if machine["virtual_machine"] else "")
    )


def render(record: dict[str, Any]) -> str:
    """The record as text: the machine, then a table for each tokenizer and corpus."""
    lines = [
        machine_line(record["machine"]),
        "Special tokens parsed, ids equal in every process that has a figure; MB/s of UTF-8 text, "
        "medians; ratio = the first over the peer, pair by pair, median (min–max)",
    ]
    groups = dict.fromkeys((r["tokenizer"], r["corpus"], r["bytes"]) for r in record["results"])
    for tokenizer, corpus, size in groups:
        entries = [
            r
            for r in record["results"]
            if (r["tokenizer"], r["corpus"], r["bytes"]) == (tokenizer, corpus, size)
        ]
        first = entries[0]
        lines += [
            "",
            f"{tokenizer}, {corpus}: {size / 1e6:.1f} MB, {first['rows']:,} rows, "
            f"{first['tokens']:,} tokens",
            _table(entries),
        ]
    for title, reason in record.get("failed", {}).items():
        lines.append(f"no figure: {title}: {reason}")
    return "\n".join(lines)


def _table(entries: list[dict[str, Any]]) -> str:
    kinds = [kind for kind in KINDS if kind in entries[0]["ratio"]]
    header = ["peer", "threads", "isa", "pairs"]
    for kind in kinds:
        header += [f"{KINDS[kind]}: {entries[0]['base']}", "peer", "ratio"]
    header += ["peer's conv ms", "load ms", "own RSS MB"]
    rows = []
    for entry in entries:
        ours, theirs = entry["ours"], entry["theirs"]
        isa = ours["isa"] or "–"
        name = theirs["contender"]
        name = name if ":" in name else f"{name}:{theirs['path']}"
        row = [name, str(entry["threads"]), isa, str(entry["pairs"])]
        for kind in kinds:
            row += [f"{side['mb_s'][kind]['median']:.1f}" for side in (ours, theirs)]
            row.append(ratio_text(entry["ratio"][kind]))
        row.append(f"{theirs['convert_s']['median'] * 1e3:.1f}")
        for key, scale in (("load_s", 1e3), ("own_rss_mb", 1.0)):
            values = [
                f"{side[key]['median'] * scale:.0f}" if key in side else "–"
                for side in (ours, theirs)
            ]
            row.append(" / ".join(values))
        rows.append(row)
    return _machine.table(header, rows)
