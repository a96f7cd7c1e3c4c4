"""Compare saphira_gpu with other tokenizers on the same Arrow text columns.

    SAPHIRA_TEST_DATA=... python bench/compare.py                        # gpt2, everything, 7 pairs
    python bench/compare.py my.parquet --vocabs DIR --contenders gigatoken --limit-mb 8 --pairs 3
    python bench/compare.py english --tokenizer cl100k_base,o200k_base --isa avx2 --threads 1
    python bench/compare.py --bars --budget-seconds 900                  # the table of bars

Every figure comes from a fresh process, ours and theirs in turn, in rounds over all comparisons.
Before a figure is printed the ids of its processes are compared; where they differ there is no
figure but the first row that differs, and the exit status is 1. README.md says what is timed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import _bars
import _machine
import _summary
from _columns import CORPORA, corpus_path, test_data
from _peers import CONTENDERS, TOKENIZERS, Files, lacking, resolve, tokenizer_files
from _rounds import Cell, Outcome, Setup, measure
from _run import WARM, hf1_environment

# MB/s of one thread, roughly, to say beforehand how long it will take
PACE = {"ours": 500.0, "gigatoken": 300.0, "tokenizers": 4.0, "tokenizers1": 30.0, "tiktoken": 8.0}
START = 1.0  # seconds to start a process, read the column and hash the ids


def main() -> int:
    args = _arguments()
    try:
        files = _files(args)
        peers = [name for name in args.contenders.split(",") if name]
        for name in [args.base, *peers]:
            resolve(name)
        threads = _threads(args.threads)
        cells = _cells(args, peers, threads)
        corpora = {corpus: None for cell in cells for corpus in [cell.corpus]}
        columns = {Path(name).stem: corpus_path(name) for name in args.corpora or corpora}
        for path in columns.values():
            if not path.is_file():
                raise FileNotFoundError(f"no such file: {path}")
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    setup = Setup(
        files=files,
        columns=columns,
        column=args.column,
        warm=WARM if args.outputs == "both" else (args.outputs,),
        warm_calls=args.warm_calls,
        warm_seconds=args.warm_seconds,
        pin=args.pin,
        timeout=args.timeout,
    )
    cells, missing = _runnable(cells, setup, args.hf1_python)
    _estimate(cells, setup, args.budget_seconds)
    machine = _machine.describe()  # before the work loads it
    if os.getloadavg()[0] > 0.5:
        print(
            f"the machine does other work (load {os.getloadavg()[0]:.1f}): figures by the wall "
            "clock will say more of that than of anything else",
            file=sys.stderr,
        )
    outcome = measure(setup, cells, args.budget_seconds)
    if not outcome.runs:
        for title, reason in outcome.failed.items():
            print(f"{title}: {reason}", file=sys.stderr)
        return 1
    record = _record(args, machine, outcome, cells, missing, threads)
    print(_summary.render(record))
    if args.bars:
        print("\n" + _bars.render(record["bars"]))
    if not args.no_record:
        kind = args.record_as or ("bars" if args.bars else "compare")
        print(f"record: {_machine.write_record(kind, record, args.records)}")
    return 1 if outcome.failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("corpora", nargs="*", help="Parquet files, or names of the shared corpora (default: all)")
    add("--bars", action="store_true", help="the comparisons that the bars speak of, and no others")
    add("--tokenizer", default="gpt2", help=f"comma-separated, of {', '.join(TOKENIZERS)}")
    others = [name for name in CONTENDERS if name != "ours"]
    add("--contenders", default=",".join(others), help="comma-separated; name or name:path")
    add("--base", default="ours", help="the contender the others are paired with")
    add("--isa", help="instruction set forced on ours (default: the best there is)")
    add("--pairs", type=int, default=7)
    add("--other-pairs", type=int, default=2, help="--bars: pairs against peers but gigatoken")
    add("--other-mb", type=float, default=4.0, help="--bars: text for these, in MB")
    add("--budget-seconds", type=float, help="no further round once this much time would be over")
    add("--threads", default="1,all", help="comma-separated counts; all = usable cores")
    add("--warm-calls", type=int, default=5, help="calls of either warm kind, per process")
    add("--warm-seconds", type=float, default=3.0, help="no further warm call after these seconds")
    add(
        "--outputs",
        choices=("both", "fresh", "recycled"),
        default="both",
        help="warm calls that keep every result (fresh memory each time), or release it first",
    )
    add("--limit-mb", type=float, help="only the first rows, up to this much text")
    add("--column", default="text")
    add("--no-pin", dest="pin", action="store_false", help="leave the affinity alone")
    add("--timeout", type=float, default=300.0, help="seconds a process may take")
    add("--vocabs", type=Path, help="folder with r50k_base/, gpt2/tokenizer.json and the like")
    add("--hf1-python", type=Path, help="interpreter that has tokenizers 1.0.0rc3")
    add("--records", type=Path, default=_machine.RECORDS)
    add("--record-as", metavar="KIND", help="name of the record (default: bars or compare)")
    add("--no-record", action="store_true")
    return parser.parse_args()


def _files(args: argparse.Namespace) -> dict[str, Files]:
    """The files of every tokenizer that is asked for."""
    vocabs = args.vocabs or (data / "vocabs" if (data := test_data()) else None)
    if vocabs is None:
        raise FileNotFoundError("the peers' files: set SAPHIRA_TEST_DATA or give --vocabs")
    names = list(TOKENIZERS) if args.bars else args.tokenizer.split(",")
    return {name: tokenizer_files(name, vocabs) for name in names}


def _threads(text: str) -> list[int]:
    """Thread counts in ascending order; more than there are cores is what the caller asked for."""
    return sorted({_machine.cores() if t == "all" else int(t) for t in text.split(",")})


def _cells(args: argparse.Namespace, peers: list[str], threads: list[int]) -> list[Cell]:
    if args.bars:
        found = _bars.cells(args.pairs, threads, args.limit_mb)
        others = [name for name in _bars.OTHERS if name in peers]
        mb = min(args.other_mb, args.limit_mb or args.other_mb)
        found += _bars.other_cells(others, args.other_pairs, threads, mb)
        return [c for c in found if not args.corpora or c.corpus in args.corpora]
    return [
        Cell(
            tokenizer,
            Path(corpus).stem,
            count,
            peer,
            base=args.base,
            isa=args.isa,
            pairs=args.pairs,
            limit_mb=args.limit_mb,
        )
        for tokenizer in args.tokenizer.split(",")
        for corpus in args.corpora or CORPORA
        for count in threads
        for peer in peers
    ]


def _runnable(
    cells: list[Cell], setup: Setup, hf1_python: Path | None
) -> tuple[list[Cell], dict[str, str]]:
    """The cells whose contenders can take part, and why the others can't, by contender."""
    missing: dict[str, str] = {}
    if any(c.peer.startswith("tokenizers1") or c.base.startswith("tokenizers1") for c in cells):
        try:
            setup.hf1 = hf1_environment(hf1_python)
        except (OSError, subprocess.CalledProcessError) as error:
            missing["tokenizers1"] = f"no environment of its own could be made: {error}"
    kept = []
    for cell in cells:
        for name in (cell.base, cell.peer):
            reason = lacking(name, setup.files[cell.tokenizer])
            if reason:
                missing[f"{name}, {cell.tokenizer}"] = reason
            if reason or name.partition(":")[0] in missing:
                break
        else:
            kept.append(cell)
    for name, reason in missing.items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    return kept, missing


def _estimate(cells: list[Cell], setup: Setup, budget: float | None) -> None:
    """Say roughly how long it will take; the first round gives a better figure."""
    total = 0.0
    for cell in cells:
        size = setup.columns[cell.corpus].stat().st_size * 3.3 / 1e6  # of compressed text
        size = min(size, cell.limit_mb or size)
        for name in (cell.base, cell.peer):
            call = size / PACE[name.partition(":")[0]] / cell.threads
            calls = cell.warm_calls or setup.warm_calls
            warm = min(calls * call, setup.warm_seconds + call)
            total += cell.pairs * (START + call + len(setup.warm) * warm)
    limit = f"; cut after whole rounds at {budget:.0f} s" if budget is not None else ""
    print(
        f"{len(cells)} comparisons, {sum(2 * c.pairs for c in cells)} processes, "
        f"about {total / 60:.1f} minutes on a quiet machine{limit}",
        file=sys.stderr,
    )


def _record(
    args: argparse.Namespace,
    machine: dict[str, object],
    outcome: Outcome,
    cells: list[Cell],
    missing: dict[str, str],
    threads: list[int],
) -> dict[str, Any]:
    results = _summary.summarise(outcome.runs, cells)
    record: dict[str, Any] = {
        "special": "parse",
        "machine": machine,
        "load_average_after": list(os.getloadavg()),
        "revision": _machine.revision(),
        "versions": {run["contender"]: run["loaded"]["versions"] for run in outcome.runs},
        "settings": {
            "base": args.base,
            "pairs": args.pairs,
            "other_pairs": args.other_pairs if args.bars else None,
            "warm_calls": args.warm_calls,
            "warm_seconds": args.warm_seconds,
            "outputs": args.outputs,
            "limit_mb": args.limit_mb,
            "pinned": args.pin,
            "threads": threads,
            "isa": args.isa,
            "budget_seconds": args.budget_seconds,
        },
        "seconds": outcome.seconds,
        "rounds": outcome.rounds,
        "failed": outcome.failed,
        "left_out": missing,
        "results": results,
    }
    if args.bars:
        record["bars"] = _bars.judge(results, threads)
        record["bars_count"] = _bars.count(record["bars"])
    return record | {"runs": outcome.runs}


if __name__ == "__main__":
    sys.exit(main())
