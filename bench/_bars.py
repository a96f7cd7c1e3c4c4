"""The bars for the CPU path: which cells they speak of, and whether the figures meet them.

A bar is a least ratio of our speed over that of gigatoken's best native path: same column, same
run, same ids, median of interleaved pairs of fresh processes, `encode_arrow` end to end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import _machine
from _rounds import Cell
from _summary import KINDS, ratio_text

# Peers that the same table is measured against, without a bar.
OTHERS = ("tokenizers", "tokenizers1", "tiktoken")


@dataclass(frozen=True)
class Bar:
    """least: the least ratio by kind of figure. isa: None = the best that the machine has."""

    label: str
    tokenizers: tuple[str, ...]
    corpora: tuple[str, ...]
    isa: str | None
    least: dict[str, float]


def _least(cold: float, fresh: float, recycled: float) -> dict[str, float]:
    return {"cold": cold, "warm_fresh": fresh, "warm_recycled": recycled}


BARS = (
    Bar("GPT-2, English and code", ("gpt2",), ("english", "code"), None, _least(1.5, 1.25, 2.2)),
    Bar("GPT-2, multiscript", ("gpt2",), ("multiscript",), None, _least(1.5, 1.4, 2.2)),
    Bar(
        "cl100k and o200k",
        ("cl100k_base", "o200k_base"),
        ("english", "code", "multiscript"),
        None,
        _least(1.4, 1.2, 1.8),
    ),
    Bar("AVX2 forced, GPT-2, English", ("gpt2",), ("english",), "avx2", _least(1.0, 0.9, 1.3)),
    Bar("no bar: GPT-2, chat", ("gpt2",), ("chat_markdown",), None, {}),
)


def cells(pairs: int, threads: list[int], limit_mb: float | None) -> list[Cell]:
    """The cells of every bar, those of one thread first."""
    return [
        Cell(tokenizer, corpus, count, "gigatoken", isa=bar.isa, pairs=pairs, limit_mb=limit_mb)
        for count in threads
        for bar in BARS
        for tokenizer in bar.tokenizers
        for corpus in bar.corpora
    ]


def other_cells(
    peers: list[str], pairs: int, threads: list[int], limit_mb: float | None
) -> list[Cell]:
    """The same table against peers that are too slow for whole corpora many times over; the
    slowest, tokenizers 0.x, with the fewest threads only."""
    return [
        Cell(tokenizer, corpus, count, peer, pairs=pairs, limit_mb=limit_mb, warm_calls=2)
        for peer in peers
        for tokenizer in ("gpt2", "cl100k_base", "o200k_base")
        for corpus in ("english", "code", "multiscript")
        for count in (threads[:1] if peer == "tokenizers" else threads)
    ]


def judge(results: list[dict[str, Any]], threads: list[int]) -> list[dict[str, Any]]:
    """One entry for each bar, tokenizer, corpus and thread count: ratios and verdicts by kind.

    A verdict is "met", "missed", "not measured", or "" where there is no bar.
    """
    verdicts = []
    for count in threads:
        for bar in BARS:
            for tokenizer in bar.tokenizers:
                for corpus in bar.corpora:
                    key = (tokenizer, corpus, count, bar.isa, "gigatoken")
                    found = [r for r in results if _key(r) == key]
                    verdicts.append(_verdict(bar, key, found[0] if found else None))
    return verdicts


def _key(result: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(result[name] for name in ("tokenizer", "corpus", "threads", "isa", "peer"))


def _verdict(bar: Bar, key: tuple[Any, ...], result: dict[str, Any] | None) -> dict[str, Any]:
    tokenizer, corpus, threads, _, _ = key
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        least = bar.least.get(kind)
        ratio = result["ratio"].get(kind) if result else None
        verdict = "not measured"
        if ratio:
            verdict = "" if least is None else "met" if ratio["median"] >= least else "missed"
        kinds[kind] = {"ratio": ratio, "least": least, "verdict": verdict}
    return {
        "bar": bar.label,
        "tokenizer": tokenizer,
        "corpus": corpus,
        "threads": threads,
        "isa": result["ours"]["isa"] if result else bar.isa,
        "pairs": result["pairs"] if result else 0,
        "kinds": kinds,
    }


def render(verdicts: list[dict[str, Any]]) -> str:
    """The table of bars: ratio, spread, least ratio and verdict of every figure; then the count."""
    rows = []
    for entry in verdicts:
        row = [
            entry["bar"],
            entry["tokenizer"],
            entry["corpus"],
            str(entry["threads"]),
            entry["isa"] or "–",
            str(entry["pairs"]),
        ]
        for kind in KINDS:
            cell = entry["kinds"][kind]
            text = ratio_text(cell["ratio"])
            if cell["least"] is not None:
                text += f" ≥ {cell['least']:g}: {cell['verdict']}"
            row.append(text)
        rows.append(row)
    header = ["bar", "tokenizer", "corpus", "threads", "ours by", "pairs", *KINDS.values()]
    counts = count(verdicts)
    line = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    return _machine.table(header, rows) + f"\n\nbars: {line}"


def count(verdicts: list[dict[str, Any]]) -> dict[str, int]:
    """How many figures have each verdict."""
    counts = {"met": 0, "missed": 0, "not measured": 0}
    for entry in verdicts:
        for cell in entry["kinds"].values():
            if cell["least"] is not None:
                counts[cell["verdict"]] += 1
    return counts


def others(results: list[dict[str, Any]]) -> str:
    """The other peers' table: speeds and ratios of every comparison that isn't with gigatoken."""
    rows = []
    for entry in results:
        if entry["peer"].partition(":")[0] == "gigatoken":
            continue
        row = [entry["peer"], entry["tokenizer"], entry["corpus"], f"{entry['bytes'] / 1e6:.1f}"]
        row += [str(entry["threads"]), str(entry["pairs"])]
        for kind in (kind for kind in KINDS if kind in entry["ratio"]):
            speeds = [f"{entry[s]['mb_s'][kind]['median']:.1f}" for s in ("ours", "theirs")]
            row += [" / ".join(speeds), f"{entry['ratio'][kind]['median']:.1f}×"]
        rows.append(row)
    header = ["peer", "tokenizer", "corpus", "MB", "threads", "pairs"]
    for label in KINDS.values():
        header += [f"{label}, MB/s: ours / theirs", "ratio"]
    return _machine.table(header, [row for row in rows if len(row) == len(header)])
