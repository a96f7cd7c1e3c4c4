"""Output appears whole or not at all, whatever ends a run; memory does not grow with the input."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_cli import COMMAND, files_in, ids_of, run, write

from saphira_gpu.cli._writer import AtomicParquet, remove_stale
from saphira_gpu.errors import InputError

SCHEMA = pa.schema([("n", pa.int64())])
BATCH = pa.record_batch([pa.array([1, 2])], schema=SCHEMA)


def words(path: Path, megabytes: int, row_bytes: int = 5000) -> Path:
    """A file of one row group of made-up words, about as large in memory as on the disk."""
    letters = np.random.default_rng(7).integers(97, 123, 1 << 20, np.uint8)
    letters[::6] = 32
    one = letters.tobytes().decode()
    rows = [
        f"{n} {one[(at := n * 911 % 900_000) : at + row_bytes]}" for n in range(megabytes * 200)
    ]
    return write(path, rows, row_group_size=len(rows), use_dictionary=False, compression="none")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return words(tmp_path_factory.mktemp("large") / "large.parquet", 80)


def start(source: Path, out: Path, *options: str) -> "subprocess.Popen[bytes]":
    command = [*COMMAND, "tokenize", str(source), "--out", str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stop_midway(process: "subprocess.Popen[bytes]", out: Path, number: int) -> bytes:
    """Waits until the temporary file holds something, sends the signal, returns stderr."""
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 4 for path in out.glob(".*.tmp-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode != 0
    return stderr


def test_kill_leaves_nothing_that_looks_finished(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(large, out)
    stop_midway(process, out, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert files_in(out) == [f".large.parquet.tmp-{process.pid}"]
    with pytest.raises(Exception, match="Parquet magic bytes not found"):
        pq.read_table(out / f".large.parquet.tmp-{process.pid}")
    assert pq.ParquetDataset(out).files == []  # nor does a reader of the folder take it up
    run("tokenize", large, "--out", out)  # which needs no --overwrite, and cleans up
    assert files_in(out) == ["large.parquet"]
    assert len(ids_of(out / "large.parquet")) == pq.read_metadata(large).num_rows


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_leave_nothing(large: Path, tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    process = start(large, out)
    stderr = stop_midway(process, out, number)
    assert process.returncode == 128 + number
    assert stderr.decode() == f"saphira-gpu: stopped by {number.name}; 0 of 1 files are done\n"
    assert not out.exists()


def test_kill_while_overwriting_keeps_the_old_file(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    old = write(out / "large.parquet", ["old"]).read_bytes()
    stop_midway(start(large, out, "--overwrite"), out, signal.SIGKILL)
    assert (out / "large.parquet").read_bytes() == old


def peak_megabytes(source: Path, out: Path) -> float:
    """Peak resident memory of a child that tokenizes `source`."""
    process = start(source, out, "--quiet", "--threads", "1")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.communicate()
    assert process.returncode == 0
    return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def test_memory_is_flat(large: Path, tmp_path: Path) -> None:
    """One row group of 80 MB against one of 20 MB, in two sources of growth: text and ids."""
    small = peak_megabytes(words(tmp_path / "small.parquet", 20), tmp_path / "out")
    assert peak_megabytes(large, tmp_path / "out") < small + 25


def test_memory_is_flat_where_the_footer_misleads(tmp_path: Path) -> None:
    """A dictionary page holds a repeated text once: 120 MB of text in a file of a few hundred
    KB."""
    text = words(tmp_path / "one.parquet", 1, 100_000)
    one = pq.read_table(text)["text"][0].as_py()
    repeated = write(tmp_path / "repeated.parquet", [one] * 1200, row_group_size=1200)
    assert repeated.stat().st_size < 1_000_000
    small = peak_megabytes(words(tmp_path / "small.parquet", 20), tmp_path / "out")
    assert peak_megabytes(repeated, tmp_path / "out") < small + 25


def test_writer_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "a.parquet"
    with AtomicParquet(target, SCHEMA, False) as writer:
        writer.write(BATCH)
        assert files_in(tmp_path) == [f"new/folder/.a.parquet.tmp-{os.getpid()}"]
    assert files_in(tmp_path) == ["new/folder/a.parquet"]
    assert pq.read_table(target)["n"].to_pylist() == [1, 2]


def test_writer_cleans_up_after_an_exception(tmp_path: Path, capfd: Any) -> None:
    keep = write(tmp_path / "x" / "keep.parquet", ["x"])
    with pytest.raises(ZeroDivisionError), AtomicParquet(tmp_path / "x/y/a.parquet", SCHEMA, False):
        raise ZeroDivisionError
    assert files_in(tmp_path) == ["x/keep.parquet"] and not (keep.parent / "y").exists()
    assert capfd.readouterr().err == ""


def test_writer_never_replaces_what_came_in_the_meantime(tmp_path: Path) -> None:
    target = tmp_path / "a.parquet"
    with (
        pytest.raises(InputError, match="in the meantime"),
        AtomicParquet(target, SCHEMA, False) as writer,
    ):
        writer.write(BATCH)
        target.write_text("another run's")
    assert target.read_text() == "another run's"
    assert files_in(tmp_path) == ["a.parquet"]


def test_only_dead_runs_are_cleaned_up(tmp_path: Path) -> None:
    target = tmp_path / "a.parquet"
    for name in (
        ".a.parquet.tmp-1",
        ".a.parquet.tmp-99999999",
        ".b.parquet.tmp-1",
        ".a.parquet.tmp",
    ):
        (tmp_path / name).touch()
    with AtomicParquet(target, SCHEMA, False) as writer:
        remove_stale([target])
        assert files_in(tmp_path) == sorted(
            [".a.parquet.tmp", f".a.parquet.tmp-{os.getpid()}", ".b.parquet.tmp-1"]
        )
        writer.write(BATCH)
    assert files_in(tmp_path) == [".a.parquet.tmp", ".b.parquet.tmp-1", "a.parquet"]
