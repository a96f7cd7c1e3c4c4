"""Compare saphira_gpu with other tokenizers on the same Arrow text columns.

    SAPHIRA_TEST_DATA=... python bench/compare.py                        # everything, 7 pairs
    python bench/compare.py my.parquet --vocabs DIR --contenders gigatoken --limit-mb 8 --pairs 3

Every figure comes from a fresh process, ours and theirs in turn (ours, theirs, ours, theirs, ...).
Before any figure is printed the ids of all processes are compared; if they differ, the first row
that differs is shown and the exit status is 1. README.md describes what is timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _machine
import numpy as np
from _columns import CORPORA, corpus_path, test_data
from _peers import CONTENDERS, Files, gpt2_files, resolve
from _run import WorkerFailed, hf1_environment, progress, worker

Run = dict[str, Any]


def main() -> int:
    args = _arguments()
    try:
        corpora = {Path(name).stem: corpus_path(name) for name in args.corpora}
        vocabs = args.vocabs or (data / "vocabs" if (data := test_data()) else None)
        if vocabs is None:
            raise FileNotFoundError("the peers' files: set SAPHIRA_TEST_DATA or give --vocabs")
        files = gpt2_files(vocabs)
        for path in [*corpora.values(), files.json, files.ranks]:
            if not path.is_file():
                raise FileNotFoundError(f"no such file: {path}")
        peers = [name for name in args.contenders.split(",") if name]
        for name in [args.base, *peers]:
            resolve(name)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    wants_hf1 = any(name.startswith("tokenizers1") for name in [args.base, *peers])
    hf1 = hf1_environment(args.hf1_python) if wants_hf1 else None

    threads = sorted({_machine.cores() if t == "all" else int(t) for t in args.threads.split(",")})
    machine = _machine.describe()
    runs: list[Run] = []
    started = time.monotonic()
    try:
        for name, path in corpora.items():
            for count in threads:
                runs += _measure(args, files, hf1, name, path, count, peers)
                if not _same_ids(args, files, hf1, path, runs):
                    return 1
    except WorkerFailed as error:
        print(error, file=sys.stderr)
        return 1

    results = summarise(runs, args.base)
    record = {
        "tokenizer": files.name,
        "special": "parse",
        "machine": machine,
        "revision": _machine.revision(),
        "versions": _versions(runs),
        "settings": {
            "base": args.base,
            "contenders": peers,
            "pairs": args.pairs,
            "warm_calls": args.warm_calls,
            "warm_seconds": args.warm_seconds,
            "outputs": args.outputs,
            "limit_mb": args.limit_mb,
            "pinned": args.pin,
            "threads": threads,
        },
        "seconds": round(time.monotonic() - started, 1),
        "ids_equal": True,
        "results": results,
        "runs": runs,
    }
    print(render(record))
    if not args.no_record:
        print(f"record: {_machine.write_record('compare', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "corpora",
        nargs="*",
        default=list(CORPORA),
        help="Parquet files, or names of the shared corpora",
    )
    others = [name for name in CONTENDERS if name != "ours"]
    parser.add_argument(
        "--contenders", default=",".join(others), help="comma-separated; name or name:path"
    )
    parser.add_argument("--base", default="ours", help="the contender the others are paired with")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument(
        "--threads", default="1,all", help="comma-separated counts; all = usable cores"
    )
    parser.add_argument(
        "--warm-calls", type=int, default=5, help="calls after the first, per process"
    )
    parser.add_argument(
        "--warm-seconds",
        type=float,
        default=10.0,
        help="no further warm call after this many seconds",
    )
    parser.add_argument(
        "--outputs",
        choices=("release", "keep"),
        default="release",
        help="release each result before the next warm call, or keep all (fresh output memory)",
    )
    parser.add_argument("--limit-mb", type=float, help="only the first rows, up to this much text")
    parser.add_argument("--column", default="text")
    parser.add_argument(
        "--no-pin", dest="pin", action="store_false", help="leave the affinity alone"
    )
    parser.add_argument(
        "--vocabs", type=Path, help="folder with gpt2/tokenizer.json and r50k_base/"
    )
    parser.add_argument("--hf1-python", type=Path, help="interpreter that has tokenizers 1.0.0rc3")
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def _spec(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    limit = int(args.limit_mb * 1e6) if args.limit_mb else None
    return {"parquet": str(path), "name": args.column, "limit_bytes": limit}


def _measure(
    args: argparse.Namespace,
    files: Files,
    hf1: Path | None,
    corpus: str,
    path: Path,
    threads: int,
    peers: list[str],
) -> list[Run]:
    """All processes of one corpus and thread count, in the order in which they ran."""
    runs: list[Run] = []
    for peer in peers:
        for pair in range(args.pairs):
            for name in (args.base, peer):
                progress(f"{corpus}, {threads} threads, {name}, pair {pair + 1} of {args.pairs}")
                steps = worker(
                    name,
                    files,
                    _spec(args, path),
                    threads,
                    hf1_python=hf1,
                    warm_calls=args.warm_calls,
                    warm_seconds=args.warm_seconds,
                    keep=args.outputs == "keep",
                    pin=args.pin,
                )
                run = {
                    "corpus": corpus,
                    "threads": threads,
                    "contender": name,
                    "peer": peer,
                    "pair": pair,
                }
                runs.append(run | steps)
    progress("")
    return runs


def _same_ids(
    args: argparse.Namespace, files: Files, hf1: Path | None, path: Path, runs: list[Run]
) -> bool:
    """Compare the last corpus's inputs and ids; show the first differing row where they differ."""
    corpus, threads = runs[-1]["corpus"], runs[-1]["threads"]
    here = [run for run in runs if run["corpus"] == corpus]
    base = here[0]
    for run in here:
        if run["loaded"]["input_sha256"] != base["loaded"]["input_sha256"]:
            print(f"{corpus}: {run['contender']} was given another column", file=sys.stderr)
            return False
        if run["cold"]["ids_sha256"] == base["cold"]["ids_sha256"]:
            continue
        print(
            f"{corpus}: the ids of {base['contender']} and {run['contender']} differ",
            file=sys.stderr,
        )
        dumped = []
        with tempfile.TemporaryDirectory() as folder:
            for name in (base["contender"], run["contender"]):
                target = Path(folder) / f"{len(dumped)}.npz"
                worker(
                    name,
                    files,
                    _spec(args, path),
                    threads,
                    hf1_python=hf1,
                    warm_calls=0,
                    pin=args.pin,
                    dump=target,
                )
                with np.load(target) as saved:
                    dumped.append((saved["ids"], saved["lengths"]))
        print(first_difference(*dumped), file=sys.stderr)
        return False
    return True


def first_difference(
    ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]
) -> str:
    """Name the first row that differs. A side: ids (tokens,) uint32, lengths (rows,) uint64."""
    (a, a_len), (b, b_len) = ours, theirs
    if len(a_len) != len(b_len):
        return f"the numbers of rows differ: {len(a_len)} and {len(b_len)}"
    a_end, b_end = np.cumsum(a_len).astype(int), np.cumsum(b_len).astype(int)
    a_at = b_at = 0
    for row, (a_next, b_next) in enumerate(zip(a_end, b_end, strict=True)):
        left, right = a[a_at:a_next], b[b_at:b_next]
        if not np.array_equal(left, right):
            short = min(len(left), len(right))
            unequal = np.flatnonzero(left[:short] != right[:short])
            at = int(unequal[0]) if unequal.size else short
            return (
                f"first in row {row}, token {at}: {left[at : at + 5].tolist()} and "
                f"{right[at : at + 5].tolist()} ({len(left)} and {len(right)} tokens)"
            )
        a_at, b_at = a_next, b_next
    return "no row differs when run again: the ids of one side are not stable"


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def _times(run: Run) -> dict[str, float]:
    """Seconds of one process by kind of figure; cpu: processor time of all its threads."""
    cold, convert = run["cold"]["wall_s"], run["loaded"]["convert_s"]
    times = {"cold": cold, "cold_with_conversion": cold + convert}
    times["cold_cpu"] = run["cold"]["cpu_s"]
    if "warm" in run:
        warm = statistics.median(run["warm"]["wall_s"])
        times |= {"warm": warm, "warm_with_conversion": warm + convert}
        times["warm_cpu"] = statistics.median(run["warm"]["cpu_s"])
    return times


def summarise(runs: list[Run], base: str) -> list[dict[str, Any]]:
    """One entry per corpus, thread count and contender: medians with min and max.

    mb_s is 10^6 bytes of UTF-8 text a second. `ratio` is the base's speed over this contender's,
    pair by pair: above 1 the base is faster.
    """
    results = []
    keys = dict.fromkeys((r["corpus"], r["threads"], r["contender"]) for r in runs)
    for corpus, threads, name in keys:
        mine = [
            r
            for r in runs
            if (r["corpus"], r["threads"], r["contender"]) == (corpus, threads, name)
        ]
        size, tokens = mine[0]["loaded"]["bytes"], mine[0]["cold"]["tokens"]
        entry: dict[str, Any] = {
            "corpus": corpus,
            "threads": threads,
            "contender": name,
            "path": resolve(name)[1],
            "rows": mine[0]["loaded"]["rows"],
            "bytes": size,
            "tokens": tokens,
            "ids_sha256": mine[0]["cold"]["ids_sha256"],
            "processes": len(mine),
            "load_s": _spread([r["loaded"]["load_s"] for r in mine]),
            "convert_s": _spread([r["loaded"]["convert_s"] for r in mine]),
            "peak_rss_mb": _spread([r["cold"]["peak_rss"] / 1e6 for r in mine]),
            "mb_s": {},
            "tokens_s": {},
            "ratio": {},
        }
        if all(r["cold"]["rss_before"] is not None for r in mine):
            entry["own_rss_mb"] = _spread(
                [(r["cold"]["peak_rss"] - r["cold"]["rss_before"]) / 1e6 for r in mine]
            )
        for kind in _times(mine[0]):
            seconds = [_times(r)[kind] for r in mine]
            entry["mb_s"][kind] = _spread([size / 1e6 / s for s in seconds])
            entry["tokens_s"][kind] = _spread([tokens / s for s in seconds])
            if name != base:
                entry["ratio"][kind] = _spread(_ratios(runs, mine, base, kind))
        results.append(entry)
    return results


def _ratios(runs: list[Run], mine: list[Run], base: str, kind: str) -> list[float]:
    ratios = []
    for run in mine:
        key = (run["corpus"], run["threads"], run["peer"], run["pair"], base)
        partner = next(
            r
            for r in runs
            if (r["corpus"], r["threads"], r["peer"], r["pair"], r["contender"]) == key
        )
        ratios.append(_times(run)[kind] / _times(partner)[kind])
    return ratios


def _versions(runs: list[Run]) -> dict[str, dict[str, str]]:
    """Package versions as each contender's own process saw them."""
    return {run["contender"]: run["loaded"]["versions"] for run in runs}


def render(record: dict[str, Any]) -> str:
    """The record as text: the machine, then a table per corpus."""
    machine, settings = record["machine"], record["settings"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, "
        f"Python {machine['python']}, governor {machine['governor'] or 'unknown'}"
        + (", virtual machine" if machine["virtual_machine"] else ""),
        f"{record['tokenizer']}, special tokens parsed, {settings['pairs']} pairs, ids equal in "
        "every process; MB/s of UTF-8 text, medians; "
        f"ratio = {settings['base']} over the other, median (min–max)",
    ]
    for corpus in dict.fromkeys(r["corpus"] for r in record["results"]):
        entries = [r for r in record["results"] if r["corpus"] == corpus]
        first = entries[0]
        lines += [
            "",
            f"{corpus}: {first['bytes'] / 1e6:.1f} MB, {first['rows']:,} rows, "
            f"{first['tokens']:,} tokens",
        ]
        header = [
            "contender", "threads", "cold", "ratio cold", "warm", "ratio warm", "Mtok/s warm",
            "cold+conv", "warm+conv", "load ms", "conv ms", "peak RSS MB (own)",
        ]  # fmt: skip
        lines.append(_machine.table(header, [_row(entry) for entry in entries]))
    return "\n".join(lines)


def _row(entry: dict[str, Any]) -> list[str]:
    def speed(kind: str) -> str:
        return f"{entry['mb_s'][kind]['median']:.1f}" if kind in entry["mb_s"] else "–"

    def ratio(kind: str) -> str:
        if kind not in entry["ratio"]:
            return "–"
        r = entry["ratio"][kind]
        return f"{r['median']:.2f} ({r['min']:.2f}–{r['max']:.2f})"

    own = entry.get("own_rss_mb")
    warm_tokens = entry["tokens_s"].get("warm")
    return [
        entry["contender"]
        if ":" in entry["contender"]
        else f"{entry['contender']}:{entry['path']}",
        str(entry["threads"]),
        speed("cold"),
        ratio("cold"),
        speed("warm"),
        ratio("warm"),
        f"{warm_tokens['median'] / 1e6:.2f}" if warm_tokens else "–",
        speed("cold_with_conversion"),
        speed("warm_with_conversion"),
        f"{entry['load_s']['median'] * 1e3:.0f}",
        f"{entry['convert_s']['median'] * 1e3:.1f}",
        f"{entry['peak_rss_mb']['median']:.0f}" + (f" ({own['median']:.0f})" if own else ""),
    ]


if __name__ == "__main__":
    sys.exit(main())
