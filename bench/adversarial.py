"""Time per byte of hard single rows against normal text of the same size.

    SAPHIRA_TEST_DATA=... python bench/adversarial.py
    python bench/adversarial.py --english FILE.parquet --vocabs DIR --contenders "" --mb 10

The rule: no row costs more than 10 times as much per byte as normal text. Rows: one letter, random
letters, spaces, one CJK character, random CJK characters; normal text is English joined to one row.
Ours runs at --mb; peers may be quadratic, so they run at --peer-mb with a time limit, and ours once
more at that size, so that its ids can be compared with theirs before a figure is printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import _machine
from _columns import ROWS, corpus_path, test_data
from _peers import CONTENDERS, Files, resolve, tokenizer_files
from _run import WorkerFailed, hf1_environment, progress, worker

LIMIT = 10.0  # times normal text, per byte


def main() -> int:
    args = _arguments()
    try:
        vocabs = args.vocabs or (data / "vocabs" if (data := test_data()) else None)
        if vocabs is None:
            raise FileNotFoundError("the peers' files: set SAPHIRA_TEST_DATA or give --vocabs")
        files = tokenizer_files("gpt2", vocabs)
        english = args.english or corpus_path("english")
        peers = [name for name in args.contenders.split(",") if name]
        for name in peers:
            resolve(name)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    hf1 = None
    if any(name.startswith("tokenizers1") for name in peers):
        hf1 = hf1_environment(args.hf1_python)

    big, small = int(args.mb * 1e6), int(args.peer_mb * 1e6)
    plan = [("ours", big)]
    if peers:
        plan += [(name, small) for name in ("ours", *peers) if (name, small) not in plan]
    runs: list[dict[str, Any]] = []
    for repeat in range(args.repeats):
        for name, size in plan:
            for kind in ROWS:
                progress(f"{name}, {size / 1e6:g} MB, {kind}, {repeat + 1} of {args.repeats}")
                runs.append(_one(args, files, hf1, english, name, size, kind, repeat, runs))
    progress("")

    differing = _differing(runs)
    for line in differing:
        print(line, file=sys.stderr)
    if differing or any(r["contender"] == "ours" and "error" in r for r in runs):
        for run in runs:
            if run["contender"] == "ours" and "error" in run:
                print(run["error"], file=sys.stderr)
        return 1
    results = [_summary(runs, name, size, kind) for name, size in plan for kind in ROWS]
    record = {
        "tokenizer": files.name,
        "machine": _machine.describe(),
        "revision": _machine.revision(),
        "settings": {
            "mb": args.mb,
            "peer_mb": args.peer_mb,
            "repeats": args.repeats,
            "timeout_s": args.timeout,
            "threads": 1,
            "limit": LIMIT,
        },
        "results": results,
        "runs": runs,
    }
    print(render(results))
    if not args.no_record:
        print(f"record: {_machine.write_record('adversarial', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    others = [name for name in CONTENDERS if name != "ours"]
    parser.add_argument("--contenders", default=",".join(others), help='peers; "" for none')
    parser.add_argument("--mb", type=float, default=10.0, help="size of our rows")
    parser.add_argument("--peer-mb", type=float, default=1.0, help="size of the peers' rows")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds a peer's process may take"
    )
    parser.add_argument("--repeats", type=int, default=3, help="processes per row")
    parser.add_argument("--english", type=Path, help="Parquet file with normal text")
    parser.add_argument("--vocabs", type=Path)
    parser.add_argument("--hf1-python", type=Path)
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def _one(
    args: argparse.Namespace,
    files: Files,
    hf1: Path | None,
    english: Path,
    name: str,
    size: int,
    kind: str,
    repeat: int,
    earlier: list[dict[str, Any]],
) -> dict[str, Any]:
    """One process; {"error"} when it failed or had no time, and then it isn't tried again."""
    run: dict[str, Any] = {"contender": name, "size": size, "kind": kind, "repeat": repeat}
    for before in earlier:
        same = (before["contender"], before["size"], before["kind"]) == (name, size, kind)
        if same and "error" in before:
            return run | {"error": before["error"]}
    try:
        steps = worker(
            name,
            files,
            {"hard_row": kind, "size": size, "english": str(english)},
            1,
            hf1_python=hf1,
            warm=("recycled",),
            warm_calls=3,
            warm_seconds=2.0,
            timeout=None if name == "ours" else args.timeout,
        )
    except WorkerFailed as error:
        return run | {"error": str(error)}
    if "cold" not in steps:
        return run | {"error": f"over {args.timeout:g} s"}
    return run | steps


def _differing(runs: list[dict[str, Any]]) -> list[str]:
    """A line for every row on which a contender's ids differ from ours."""
    lines = []
    first: dict[tuple[int, str], dict[str, Any]] = {}
    for run in runs:
        if "error" in run:
            continue
        base = first.setdefault((run["size"], run["kind"]), run)
        if run["cold"]["ids_sha256"] != base["cold"]["ids_sha256"]:
            lines.append(
                f"{run['kind']}, {run['size']} bytes: the ids of {base['contender']} "
                f"({base['cold']['tokens']} tokens) and {run['contender']} "
                f"({run['cold']['tokens']}) differ"
            )
    return list(dict.fromkeys(lines))


def _per_byte(
    runs: list[dict[str, Any]], name: str, size: int, kind: str, step: str
) -> list[float]:
    """Nanoseconds per byte, one per process that got as far as `step`."""
    key = {"cold": "cold", "warm": "warm_recycled"}[step]
    found = []
    for run in runs:
        if (run["contender"], run["size"], run["kind"]) == (name, size, kind) and key in run:
            wall = run[key]["wall_s"]
            seconds = statistics.median(wall) if isinstance(wall, list) else wall
            found.append(seconds * 1e9 / run["loaded"]["bytes"])
    return found


def _summary(runs: list[dict[str, Any]], name: str, size: int, kind: str) -> dict[str, Any]:
    """ns per byte and times normal text, each the median of the processes, cold and warm."""
    entry: dict[str, Any] = {"contender": name, "size": size, "kind": kind}
    for step in ("cold", "warm"):
        mine = _per_byte(runs, name, size, kind, step)
        normal = _per_byte(runs, name, size, "english", step)
        if mine:
            entry[f"{step}_ns_per_byte"] = statistics.median(mine)
            if normal:
                entry[f"{step}_times_normal"] = statistics.median(mine) / statistics.median(normal)
    errors = [
        run["error"]
        for run in runs
        if (run["contender"], run["size"], run["kind"]) == (name, size, kind) and "error" in run
    ]
    if errors:
        entry["error"] = errors[0]
    return entry


def render(results: list[dict[str, Any]]) -> str:
    """A table: one line per contender and row."""
    rows = []
    for entry in results:
        if "error" in entry:
            rest = [entry["error"].splitlines()[0][:40], "–", "–", "–"]
        else:
            rest = [
                f"{entry['cold_ns_per_byte']:.2f}",
                f"{entry['cold_times_normal']:.2f}" if "cold_times_normal" in entry else "–",
                f"{entry['warm_ns_per_byte']:.2f}" if "warm_ns_per_byte" in entry else "–",
                f"{entry['warm_times_normal']:.2f}" if "warm_times_normal" in entry else "–",
            ]
        rows.append([f"{entry['contender']}, {entry['size'] / 1e6:g} MB", entry["kind"], *rest])
    header = ["contender", "row", "cold ns/byte", "× normal", "warm ns/byte", "× normal"]
    lines = [_machine.table(header, rows)]
    for step in ("cold", "warm"):
        times = f"{step}_times_normal"
        over = [
            f"{e['contender']}, {e['size'] / 1e6:g} MB, {e['kind']}: {e[times]:.1f}"
            for e in results
            if e.get(times, 0) > LIMIT
        ]
        lines.append(f"{step}, over {LIMIT:g} times normal text: " + ("; ".join(over) or "none"))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
