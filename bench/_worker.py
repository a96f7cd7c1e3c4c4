"""One contender on one column in this process: `python _worker.py '<job as JSON>'`.

Prints a JSON line per step (loaded, cold, warm), so that a parent that gives up on a slow step
still has the earlier ones. Runs with numpy, pyarrow and the contender's own package only, because
tokenizers 1.0 lives in a virtual environment of its own.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(job: dict[str, Any]) -> None:
    """Measure; the keys of `job` are those that _run.worker writes."""
    if job["pin"] and hasattr(os, "sched_setaffinity"):
        # before anything is imported: some libraries read it once, and some obey nothing else
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[-job["threads"] :])
    here = Path(__file__).resolve().parent
    sys.path.append(str(here.parent))  # an uninstalled tree; an installed package comes first

    import _columns
    import _machine
    import _peers

    column = _load_column(_columns, job["column"])
    size, rows = _columns.text_bytes(column), len(column)
    kind, path = _peers.resolve(job["contender"])
    contender = kind(_peers.Files.from_json(job["files"]), path, job["threads"])
    before = _machine.rss_bytes()
    _machine.reset_peak_rss()  # reading the file is not the contender's

    start = time.perf_counter()
    contender.load()
    load_s = time.perf_counter() - start
    if path == "parquet" and job["column"].get("limit_bytes") is None:
        contender.parquet = Path(job["column"]["parquet"])  # type: ignore[attr-defined]
    start = time.perf_counter()
    given = contender.convert(column)
    convert_s = time.perf_counter() - start
    _emit(
        "loaded",
        load_s=load_s,
        convert_s=convert_s,
        rows=rows,
        bytes=size,
        input_sha256=_columns.fingerprint(column),
        affinity=_machine.cores(),
        versions=_machine.versions(),
        details=contender.details(),
    )

    gc.collect()
    gc.disable()  # peers that make millions of objects would pay for collections that aren't theirs
    result, wall, cpu = _timed(contender, given)
    peak = _machine.peak_rss_bytes()
    ids, lengths = contender.ids(result)
    digest = _digest(ids, lengths)
    _emit(
        "cold",
        wall_s=wall,
        cpu_s=cpu,
        tokens=int(ids.size),
        ids_sha256=digest,
        peak_rss=peak,
        rss_before=before,
    )
    if job.get("dump"):
        import numpy as np

        np.savez(job["dump"], ids=ids, lengths=lengths)
    del ids, lengths

    # Fresh first: nothing that a call of this kind could use again has been released yet.
    for kind in job["warm"]:
        held = [result]
        walls: list[float] = []
        cpus: list[float] = []
        reset = _machine.reset_peak_rss()
        while len(walls) < job["warm_calls"] and (not walls or sum(walls) < job["warm_seconds"]):
            if kind == "recycled":
                held.clear()
                result = None  # a result nobody holds any more, as in a loop over batches
            result, wall, cpu = _timed(contender, given)
            walls.append(wall)
            cpus.append(cpu)
            held.append(result)
        if walls:
            peak = _machine.peak_rss_bytes()
            if _digest(*contender.ids(result)) != digest:
                raise SystemExit(f"{job['contender']}: a later call gave other ids than the first")
            _emit(f"warm_{kind}", wall_s=walls, cpu_s=cpus, peak_rss=peak if reset else None)
        del held


def _load_column(columns: Any, spec: dict[str, Any]) -> Any:
    if "hard_row" in spec:
        english = spec.get("english")
        return columns.hard_row(spec["hard_row"], spec["size"], Path(english) if english else None)
    return columns.read_column(Path(spec["parquet"]), spec["name"], spec.get("limit_bytes"))


def _timed(contender: Any, given: Any) -> tuple[Any, float, float]:
    """(result, wall seconds, processor seconds of all threads)."""
    cpu = time.process_time()
    start = time.perf_counter()
    result = contender.encode(given)
    wall = time.perf_counter() - start
    return result, wall, time.process_time() - cpu


def _digest(ids: Any, lengths: Any) -> str:
    """sha256 of the concatenated uint32 ids, then the uint64 row lengths, little-endian."""
    digest = hashlib.sha256(ids.astype("<u4", copy=False).tobytes())
    digest.update(lengths.astype("<u8", copy=False).tobytes())
    return digest.hexdigest()


def _emit(step: str, **values: object) -> None:
    print(json.dumps({"step": step, **values}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
