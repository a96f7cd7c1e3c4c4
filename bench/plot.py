"""Plots of the newest records: bench/records/*.json → bench/records/*.svg.

    python bench/plot.py
    python bench/plot.py --records DIR

A plot is named after its record. The same record gives the same file, byte for byte.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import matplotlib
from _core_bench import LABELS, STAGES
from _records import newest
from _summary import KINDS
from stages import cycles_per_piece

matplotlib.use("svg")
from matplotlib import pyplot as plt

Figures = dict[str, Any]  # name → matplotlib figure
MARKS = ("o", "s", "^", "D", "v")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    args = parser.parse_args()
    # no date and no random ids in the files; text stays text
    matplotlib.rcParams.update({"svg.hashsalt": "saphira_gpu", "svg.fonttype": "none"})
    plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3, "font.size": 9})
    drawn = 0
    for kind, (path, record) in newest(args.records).items():
        if kind not in PLOTS:
            continue
        for name, figure in PLOTS[kind](record).items():
            target = path.with_name(f"{path.stem}_{name}.svg")
            figure.text(0.99, 1.0, _source(record), ha="right", va="bottom", size=6, color="grey")
            figure.savefig(target, bbox_inches="tight", metadata={"Date": None, "Creator": None})
            plt.close(figure)
            print(target)
            drawn += 1
    if not drawn:
        print(f"no record to plot in {args.records}", file=sys.stderr)
    return 0 if drawn else 1


def _source(record: dict[str, Any]) -> str:
    machine = record["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, {record['date']}"


def _bars(record: dict[str, Any]) -> Figures:
    """Ratios to gigatoken with their spread, and the bars as lines across."""
    verdicts = [v for v in record["bars"] if v["pairs"]]
    figure, axes = plt.subplots(
        1, len(KINDS), figsize=(11, 0.28 * len(verdicts) + 1.2), sharey=True, squeeze=False
    )
    for axis, (kind, label) in zip(axes[0], KINDS.items(), strict=True):
        for y, verdict in enumerate(verdicts):
            cell = verdict["kinds"][kind]
            if cell["ratio"] is None:
                continue
            ratio, least = cell["ratio"], cell["least"]
            colour = {"met": "tab:green", "missed": "tab:red"}.get(cell["verdict"], "tab:grey")
            axis.plot([ratio["min"], ratio["max"]], [y, y], color=colour, alpha=0.5)
            axis.plot(ratio["median"], y, "o", color=colour)
            if least is not None:
                axis.plot([least, least], [y - 0.35, y + 0.35], color="black")
        axis.axvline(1.0, color="grey", linewidth=0.8, linestyle=":")
        axis.set(title=label, xlabel="ours / gigatoken", xlim=(0, None))
    labels = [f"{v['tokenizer']}, {v['corpus']}, {v['threads']} thr., {v['isa']}" for v in verdicts]
    axes[0][0].set_yticks(range(len(labels)), labels)
    axes[0][0].invert_yaxis()
    return {"ratios": figure}


def _stages(record: dict[str, Any]) -> Figures:
    """Cycles per piece, a bar for each corpus and instruction set: a warm pass, stages stacked,
    and a cold pass beside it."""
    figures = {}
    for tokenizer in dict.fromkeys(r["tokenizer"] for r in record["results"]):
        results = [r for r in record["results"] if r["tokenizer"] == tokenizer]
        figure, (warm, cold) = plt.subplots(
            1,
            2,
            figsize=(10, 0.35 * len(results) + 1.6),
            sharey=True,
            width_ratios=(3, 1),
            layout="constrained",
        )
        for y, result in enumerate(results):
            left = 0.0
            for k, stage in enumerate(STAGES[1:-1]):
                right = max(left, cycles_per_piece(result, stage))
                label = LABELS[stage] if y == 0 else None
                warm.barh(y, right - left, left=left, color=f"C{k}", label=label)
                left = right
            cold.barh(y, cycles_per_piece(result, "cold"), color="tab:grey")
        names = [f"{r['corpus']}, {r['isa']}" for r in results]
        warm.set_yticks(range(len(names)), names)
        warm.invert_yaxis()
        warm.set(xlabel="cycles per piece", title=f"{tokenizer}, one thread: warm, by stage")
        cold.set(xlabel="cycles per piece", title="cold")
        figure.legend(loc="outside lower center", ncols=5, fontsize=7)
        figures[tokenizer] = figure
    return figures


def _lines(
    points: list[dict[str, Any]], x: str, title: str, xlabel: str, group: str | None = None
) -> Any:
    """Warm and cold MB/s over x; a pair of lines for each value of `group`."""
    figure, axis = plt.subplots(figsize=(6, 3.5))
    groups = dict.fromkeys(p[group] if group else "" for p in points)
    for k, value in enumerate(groups):
        mine = [p for p in points if not group or p[group] == value]
        name = "" if not group else f", {value}" + (" threads" if group == "threads" else "")
        for key, label, style in (("mb_s", "warm", "-"), ("cold_mb_s", "cold", "--")):
            xs = [max(p[x] or 0, 1) for p in mine]
            ys = [p[key] for p in mine]
            axis.plot(xs, ys, style, marker=MARKS[k % 5], color=f"C{k}", label=label + name)
    axis.set(title=title, xlabel=xlabel, ylabel="MB/s of text", ylim=(0, None))
    if x != "threads":
        axis.set_xscale("log")
    axis.legend(fontsize=7)
    return figure


def _sweep(record: dict[str, Any]) -> Figures:
    """A figure for each sweep."""
    results, figures = record["results"], {}
    name = record["settings"]["tokenizer"]
    if "caches" in results:
        points = results["caches"]
        known = all(p["slots"] is not None for p in points)
        x, label = ("slots", "slots") if known else ("cache_bytes", "cache_bytes")
        figures["caches"] = _lines(points, x, f"{name}: size of the cache", label, "corpus")
    axes = {
        "threads": ("threads", "threads", "threads", None),
        "rows": ("row_bytes", "size of rows", "bytes of a row", "threads"),
        "texts": ("bytes", "size of the text", "bytes of text", None),
        "distinct": ("distinct", "random words", "distinct words", None),
    }
    for sweep, (x, title, label, group) in axes.items():
        if sweep in results:
            figures[sweep] = _lines(results[sweep], x, f"{name}: {title}", label, group)
    return figures


PLOTS: dict[str, Callable[[dict[str, Any]], Figures]] = {
    "bars": _bars,
    "stages": _stages,
    "sweep": _sweep,
}


if __name__ == "__main__":
    sys.exit(main())
