"""Peak memory as the input grows: the command, encode_arrow by batches, encode_arrow on one column.

    SAPHIRA_TEST_DATA=... python bench/memory.py
    python bench/memory.py --source FILE.parquet --sizes 32,128

The input is a Parquet file whose text is repeated to each size. The command and the loop over
batches should need the same memory at every size. A whole column needs its input and its ids; what
is left after those (tables, cache, scratch) should stay the same.

This process keeps to the standard library: a child's ru_maxrss never reads below its parent's size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import _machine

MIB = 2**20


def main() -> int:
    args = _arguments()
    source = args.source
    if source is None:
        data = os.environ.get("SAPHIRA_TEST_DATA")
        if data is None:
            print("give --source FILE or set SAPHIRA_TEST_DATA", file=sys.stderr)
            return 2
        source = Path(data) / "corpora" / "english.parquet"
    sizes = [int(size) for size in args.sizes.split(",")]
    work = _machine.OUT / "memory"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    results: list[dict[str, Any]] = []
    try:
        for size in sizes:
            path = work / f"in_{size}.parquet"
            make = {"mode": "make", "source": str(source), "path": str(path), "mb": size}
            _child(make | {"one_group": args.one_group})
            results.append(_command(path, size, work / "out", args.threads))
            for mode in ("batches", "whole"):
                job = {"mode": mode, "path": str(path), "threads": args.threads}
                results.append({"what": f"encode_arrow, {mode}", "mb": size} | _child(job))
            path.unlink()
    except subprocess.CalledProcessError as error:
        print(f"{error}\n{(error.stderr or '')[-2000:]}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    record = {
        "machine": _machine.describe(),
        "revision": _machine.revision(),
        "settings": {
            "sizes_mb": sizes,
            "threads": args.threads,
            "source": source.stem,
            "one_group": args.one_group,
        },
        "results": results,
    }
    print(render(results))
    if not args.no_record:
        print(f"record: {_machine.write_record('memory', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, help="Parquet file whose column `text` is repeated")
    parser.add_argument("--sizes", default="32,128,512", help="MB of text, comma-separated")
    parser.add_argument("--threads", type=int, default=_machine.cores())
    parser.add_argument(
        "--one-group", action="store_true", help="one row group per file instead of 2,048 rows each"
    )
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def _environment() -> dict[str, str]:
    """The tree is importable without being installed; an installed package comes first."""
    paths = [os.environ.get("PYTHONPATH", ""), str(_machine.ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _command(path: Path, size: int, out: Path, threads: int) -> dict[str, Any]:
    """Run `saphira-gpu tokenize` and take its peak from wait4 (KiB on Linux)."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "saphira_gpu", "tokenize", str(path)]
    command += ["--out", str(out), "--threads", str(threads), "--device", "cpu"]
    log = path.with_suffix(".log")
    with log.open("wb") as sink:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=sink, stderr=sink, env=_environment())
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(
            process.returncode, "saphira-gpu tokenize", stderr=log.read_text(errors="replace")
        )
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"what": "saphira-gpu tokenize", "mb": size, "peak_rss": peak, "wall_s": wall}


def _child(job: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    return json.loads(done.stdout) if done.stdout.strip() else {}


def child(job: dict[str, Any]) -> None:
    """The work that needs pyarrow, in a process of its own; prints a JSON object."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(job["path"])
    if job["mode"] == "make":
        table = pq.read_table(job["source"], columns=["text"]).combine_chunks()
        text = sum(len(row) for row in table["text"].cast(pa.binary()).to_pylist() if row)
        left, pieces = int(job["mb"] * 1e6), []
        while left > 0:
            rows = min(table.num_rows, max(1, table.num_rows * left // max(text, 1)))
            pieces.append(table.slice(0, rows))
            left -= text
        whole = pa.concat_tables(pieces)
        pq.write_table(whole, path, row_group_size=whole.num_rows if job["one_group"] else 2048)
        return

    import saphira_gpu

    tokenizer = saphira_gpu.Tokenizer.load("gpt2")
    tokenizer.encode("warm up")
    tokens = text = out = 0
    given = None
    if job["mode"] == "whole":
        column = pq.read_table(path, columns=["text"])["text"]
        given = pa.concat_arrays([c.cast(pa.large_string()) for c in column.chunks])
        del column
        pa.default_memory_pool().release_unused()
        text = given.nbytes
    before = _machine.rss_bytes() or 0
    _machine.reset_peak_rss()
    if given is not None:
        result = tokenizer.encode_arrow(given, threads=job["threads"], special="parse")
        out, tokens = result.nbytes, len(result.flatten())
    else:
        # read through a small buffer: by default the reader holds whole column chunks
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=MIB)
        for batch in file.iter_batches(2048, columns=["text"]):
            ids = tokenizer.encode_arrow(batch.column(0), threads=job["threads"], special="parse")
            text += batch.column(0).nbytes
            tokens += len(ids.flatten())
    peak = _machine.peak_rss_bytes()
    values = {"peak_rss": peak, "before": before, "input": text, "output": out, "tokens": tokens}
    if given is not None:
        values["rest"] = peak - before - out
    print(json.dumps(values))


def render(results: list[dict[str, Any]]) -> str:
    """One line per kind of run and size, MiB."""
    rows = []
    for what in dict.fromkeys(r["what"] for r in results):
        group = [r for r in results if r["what"] == what]
        key = "rest" if "rest" in group[0] else "peak_rss"
        for r in group:
            rest = f"{r['rest'] / MIB:.0f}" if "rest" in r else "–"
            change = (r[key] - group[0][key]) / MIB
            rows.append([what, str(r["mb"]), f"{r['peak_rss'] / MIB:.0f}", rest, f"{change:+.0f}"])
    header = ["run", "text MB", "peak MiB", "beyond input and ids MiB", "against the smallest MiB"]
    return _machine.table(header, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        sys.exit(main())
