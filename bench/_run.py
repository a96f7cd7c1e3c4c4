"""Start a worker in a fresh process and read its steps; make the environment of tokenizers 1.0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from _machine import BENCH, OUT
from _peers import Files

WARM = ("fresh", "recycled")  # what becomes of a warm call's result: kept, or released
HF1 = "tokenizers==1.0.0rc3"


class WorkerFailed(Exception):
    """The process of a contender ended in an error; the message has its last line."""


def worker(
    contender: str,
    files: Files,
    column: dict[str, Any],
    threads: int,
    *,
    hf1_python: Path | None = None,
    warm_calls: int = 5,
    warm_seconds: float = 10.0,
    warm: tuple[str, ...] = WARM,
    isa: str | None = None,
    pin: bool = True,
    dump: Path | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """{step: values} of one fresh process; after a timeout the steps so far and `timed_out`.

    isa: the instruction set forced on ours. WorkerFailed where the process ends in an error.
    """
    python = sys.executable
    if contender.partition(":")[0] == "tokenizers1":
        if hf1_python is None:
            raise ValueError("tokenizers 1.0 needs its own interpreter")
        python = str(hf1_python)
    job = {
        "contender": contender,
        "files": files.to_json(),
        "column": column,
        "threads": threads,
        "warm_calls": warm_calls,
        "warm_seconds": warm_seconds,
        "warm": warm,
        "pin": pin,
        "dump": str(dump) if dump else None,
    }
    command = [python, str(BENCH / "_worker.py"), json.dumps(job)]
    late = False
    environment = os.environ | ({"SAPHIRA_ISA": isa} if isa else {})
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                late = True
    except OSError as error:
        raise WorkerFailed(f"{contender} could not be started: {error}") from None
    if process.returncode != 0 and not late:
        lines = err.strip().splitlines() or ["it said nothing"]
        print("\n".join(lines[-8:]), file=sys.stderr)  # paths and all; a record gets the last line
        raise WorkerFailed(f"{contender} ended with {process.returncode}: {lines[-1]}")
    steps: dict[str, Any] = {"timed_out": late}
    for line in out.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        steps[values.pop("step")] = values
    return steps


def hf1_environment(given: Path | None) -> Path:
    """The interpreter that has tokenizers 1.0: the given one, else a venv in bench/out."""
    if given is not None:
        return given.absolute()
    python = OUT / "hf1" / "bin" / "python"
    if not python.exists():
        print(f"making a virtual environment for {HF1} in {OUT / 'hf1'}", file=sys.stderr)
        venv.create(OUT / "hf1", with_pip=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", HF1, "pyarrow", "numpy"], check=True
        )
    return python


def progress(text: str) -> None:
    """One line on a terminal, overwritten by the next; "" clears it. Nothing elsewhere."""
    if sys.stderr.isatty():
        print("\r" + text.ljust(78) + ("" if text else "\r"), end="", file=sys.stderr, flush=True)
