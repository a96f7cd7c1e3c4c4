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
from test_cli import COMMAND, files_in, run, write

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
    return words(tmp_path_factory.mktemp("large") / "large.parquet", 40)


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
    rows = pq.read_metadata(large).num_rows
    assert pq.read_metadata(out / "large.parquet").num_rows == rows


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


# Peak of this process alone: what wait4 tells of a child includes its parent's before the exec.
PEAK = """
import sys
from pathlib import Path
from saphira_gpu.cli import app
app(sys.argv[1:], standalone_mode=False)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(status["VmHWM"].split()[0])
"""


def peak_megabytes(source: Path, out: Path) -> float:
    """Peak resident memory of a process that tokenizes `source`."""
    arguments = ["tokenize", str(source), "--out", str(out), "--quiet", "--threads", "1"]
    command = [sys.executable, "-c", PEAK, *arguments]
    return int(subprocess.run(command, capture_output=True, check=True).stdout) / 1e3


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")


@linux
def test_memory_is_flat(large: Path, tmp_path: Path) -> None:
    """A row group of 160 MB against one of 40 MB, as the first 40 MB fill caches and buffers.

    With the whole column chunk in memory the difference is 120 MB, with all ids it is more.
    """
    small = peak_megabytes(large, tmp_path / "out")
    bigger = words(tmp_path / "bigger.parquet", 160)
    assert peak_megabytes(bigger, tmp_path / "out") < small + 75


@linux
def test_memory_is_flat_where_the_footer_misleads(tmp_path: Path) -> None:
    """A dictionary page holds a repeated text once: 100 MB of text in a file of a few hundred
    KB."""
    text = words(tmp_path / "one.parquet", 1, 100_000)
    one = pq.read_table(text)["text"][0].as_py()
    repeated = write(tmp_path / "repeated.parquet", [one] * 1000, row_group_size=1000)
    assert repeated.stat().st_size < 1_000_000
    few = write(tmp_path / "few.parquet", [one] * 250, row_group_size=250)
    small = peak_megabytes(few, tmp_path / "out")
    assert peak_megabytes(repeated, tmp_path / "out") < small + 75


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


def test_a_full_disk_leaves_nothing(large: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for it: writing fails midway with an error."""
    out = tmp_path / "out"
    command = ["sh", "-c", 'ulimit -f 4000; exec "$@"', "sh", *COMMAND, "tokenize"]
    arguments = [str(large), "--out", str(out)]
    done = subprocess.run([*command, *arguments], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == f"saphira-gpu: {out / large.name}: File too large\n"
    assert not out.exists()


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"] * 1000, row_group_size=10)
    run("tokenize", source, "--out", tmp_path / "out")
    written = pq.ParquetFile(tmp_path / "out" / "a.parquet")
    assert (written.num_row_groups, written.metadata.num_rows) == (1, 1000)
