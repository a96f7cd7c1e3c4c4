"""Every pretokenizer against tokenizers' own: pre_tokenize_arrow and pre_tokenize_str, one thread.

    SAPHIRA_TEST_DATA=... python bench/pretokenizers.py
    python bench/pretokenizers.py FILE.parquet --configs CONFIGS.json --only ByteLevel,Whitespace

Both get the same rows, about --mb of them, in turn: ours, theirs, ours, theirs, --pairs times; a
ratio belongs to one pair. The pieces are compared first, and no figure is printed where one
differs. What theirs needs in place of the column (Python strings) is made beforehand. The last
column is ours on the whole corpus, whose pieces fit no cache. The rule: at least 50 times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import pyarrow as pa
from _columns import corpus_path, read_column, test_data, text_bytes
from tokenizers import pre_tokenizers

from saphira_gpu import PreTokenizer
from saphira_gpu.engines import cpu

LIMIT = 50.0


def main() -> int:
    args = _arguments()
    try:
        configs = _configs(args)
        corpora = {name: corpus_path(name) for name in args.corpora}
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    cpu.isa()
    if args.isa:
        cpu.select_isa(args.isa)
    results = []
    for corpus, path in corpora.items():
        whole = read_column(path, limit_bytes=int(args.whole_mb * 1e6))
        part = read_column(path, limit_bytes=int(args.mb * 1e6))
        for name, config in configs.items():
            print(f"\r{corpus}, {name}".ljust(70), end="", file=sys.stderr)
            found = _measure(config, part, whole, args.pairs)
            if isinstance(found, str):
                print(f"\n{corpus}, {name}: {found}", file=sys.stderr)
                return 1
            results.append({"corpus": corpus, "pretokenizer": name} | found)
    print("\r".ljust(70), file=sys.stderr)
    print(render(results))
    record = {
        "machine": _machine.describe(),
        "revision": _machine.revision(),
        "settings": {
            "isa": cpu.isa(),
            "pairs": args.pairs,
            "mb": args.mb,
            "whole_mb": args.whole_mb,
            "threads": 1,
            "limit": LIMIT,
        },
        "results": results,
    }
    if not args.no_record:
        print(f"record: {_machine.write_record('pretokenizers', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="*", default=["english", "multiscript"])
    parser.add_argument("--configs", type=Path, help="JSON: name → {config, engine}")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--isa", default="", help="instruction set; the best by default")
    parser.add_argument("--mb", type=float, default=0.5, help="text that both get")
    parser.add_argument("--whole-mb", type=float, default=32.0, help="text of the last column")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def _configs(args: argparse.Namespace) -> dict[str, Any]:
    """Configurations of HF's by name; those that run through a regex library here are left out."""
    path = args.configs
    if path is None:
        data = test_data()
        if data is None:
            raise FileNotFoundError("give --configs FILE or set SAPHIRA_TEST_DATA")
        path = data / "cases" / "pretokenizer_configs.json"
    cases = json.loads(path.read_text("utf-8"))["configs"]
    only = [name for name in args.only.split(",") if name]
    return {
        name: case["config"]
        for name, case in cases.items()
        if case["engine"] == "hf" and (not only or name in only) and _is_ours(case["config"])
    }


def _is_ours(config: dict[str, Any]) -> bool:
    steps = PreTokenizer.from_config(config).steps
    return not any(type(step).__name__ == "Regex" for step in steps)


def _measure(
    config: dict[str, Any], part: pa.Array, whole: pa.Array, pairs: int
) -> dict[str, Any] | str:
    """Speeds in MB/s and their ratio; or what differs."""
    ours = PreTokenizer.from_config(config)
    theirs = pre_tokenizers.Sequence([])
    theirs.__setstate__(json.dumps({"type": "Sequence", "pretokenizers": [config]}).encode())
    texts = part.to_pylist()
    difference = _difference(ours, theirs, part, texts)
    if difference:
        return difference
    size = text_bytes(part)
    rounds = []
    for _ in range(pairs):
        mine = _fastest(lambda: ours.pre_tokenize_arrow(part, threads=1), 0.03)
        start = time.perf_counter()
        for text in texts:
            theirs.pre_tokenize_str(text)
        rounds.append((mine, time.perf_counter() - start))
    all_of_it = _fastest(lambda: ours.pre_tokenize_arrow(whole, threads=1), 0.1)
    ratios = [b / a for a, b in rounds]
    return {
        "ours_mb_s": size / 1e6 / statistics.median(a for a, _ in rounds),
        "theirs_mb_s": size / 1e6 / statistics.median(b for _, b in rounds),
        "ratio": statistics.median(ratios),
        "lowest_ratio": min(ratios),
        "whole_mb_s": text_bytes(whole) / 1e6 / all_of_it,
        "bytes_per_piece": size / max(1, len(ours.pre_tokenize_arrow(part).values)),
    }


def _difference(ours: PreTokenizer, theirs: Any, part: pa.Array, texts: list[str]) -> str:
    rows = ours.pre_tokenize_arrow(part).to_pylist()
    for number, (text, spans) in enumerate(zip(texts, rows, strict=True)):
        at = [0]
        for char in text:
            at.append(at[-1] + len(char.encode()))
        wanted = [(at[a], at[b]) for _, (a, b) in theirs.pre_tokenize_str(text)]
        if [(span["start"], span["end"]) for span in spans] != wanted:
            return f"the pieces of row {number} differ"
    return ""


def _fastest(call: Callable[[], Any], seconds: float) -> float:
    """Median seconds of a call, of as many as fit in `seconds` (three at least)."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
        del result
    return statistics.median(times)


def render(results: list[dict[str, Any]]) -> str:
    """A Markdown table."""
    lines = [
        "| corpus | pretokenizer | bytes per piece | HF MB/s | ours MB/s | times (lowest) "
        "| corpus MB/s |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        mark = "" if r["ratio"] >= LIMIT else " below"
        lines.append(
            f"| {r['corpus']} | {r['pretokenizer']} | {r['bytes_per_piece']:.1f} "
            f"| {r['theirs_mb_s']:.1f} | {r['ours_mb_s']:.0f} "
            f"| {r['ratio']:.0f} ({r['lowest_ratio']:.0f}){mark} | {r['whole_mb_s']:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
