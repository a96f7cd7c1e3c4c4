"""Every way a tokenize job can be refused: its message, its exit code, and nothing written."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_cli import files_in, ids_of, run, write
from typer.testing import CliRunner

from saphira_gpu.cli import app


def refused(message: str, *arguments: object, code: int = 1) -> None:
    """The command must end with this exit code and, for 1, with one line that holds `message`."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if code == 1:
        lines = result.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("saphira-gpu: "), lines
    assert message in " ".join(result.stderr.split()), result.stderr
    assert result.stdout == ""


@pytest.fixture
def out(tmp_path: Path) -> Any:
    """An output folder that must not have been made by the end of the test."""
    folder = tmp_path / "out"
    yield folder
    assert not folder.exists()


def test_missing_column(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    expected = f"{source}: no column 'body'; there are text"
    refused(expected, "tokenize", source, "--out", out, "--column", "body")
    refused("no column 'lang'", "tokenize", source, "--out", out, "--keep", "lang")


def test_column_that_is_no_text(tmp_path: Path, out: Path) -> None:
    pq.write_table(pa.table({"text": [[1.5]], "id": [7]}), tmp_path / "a.parquet")
    for column, kind in (("id", "int64"), ("text", "list<element: double>")):
        expected = f"a.parquet: column '{column}' is {kind}, not text"
        refused(expected, "tokenize", tmp_path / "a.parquet", "--out", out, "--column", column)


def test_column_that_is_there_twice(tmp_path: Path, out: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    refused("more than one column 'text'", "tokenize", tmp_path / "a.parquet", "--out", out)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"this is not a data file at all, only text\n"])
def test_file_of_another_kind(tmp_path: Path, out: Path, suffix: str, content: bytes) -> None:
    source = tmp_path / f"a.{suffix}"
    source.write_bytes(content)
    kind = "Parquet" if suffix == "parquet" else "Arrow IPC"
    refused(f"{source}: cannot read it as {kind}", "tokenize", source, "--out", out)


def test_damaged_footer(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"] * 1000)
    raw = bytearray(source.read_bytes())
    length = int.from_bytes(raw[-8:-4], "little")
    raw[-8 - length : -8 - length // 2] = b"\xff" * (length - length // 2)
    source.write_bytes(raw)
    refused(f"{source}: cannot read it as Parquet", "tokenize", source, "--out", out)


def test_truncated_file(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"] * 1000)
    source.write_bytes(source.read_bytes()[:-100])
    refused(f"{source}: cannot read it as Parquet", "tokenize", source, "--out", out)


def test_damaged_pages_leave_the_files_before(tmp_path: Path) -> None:
    good = write(tmp_path / "1.parquet", ["good"])
    bad = write(
        tmp_path / "2.parquet",
        [f"text number {n}" for n in range(20_000)],
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
        data_page_size=1 << 14,
    )
    raw = bytearray(bad.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    bad.write_bytes(raw)
    last = write(tmp_path / "3.parquet", ["never reached"])
    result = CliRunner().invoke(
        app, ["tokenize", *map(str, (good, bad, last)), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert f"{bad}: cannot read it as Parquet" in result.stderr
    assert files_in(tmp_path / "out") == ["1.parquet"]
    assert len(ids_of(tmp_path / "out/1.parquet")) == 1


def test_damaged_offsets_in_ipc(tmp_path: Path, out: Path) -> None:
    """Buffers of an IPC file are taken as they lie: offsets that point outside must not be
    followed."""
    offsets = pa.py_buffer(pa.array([0, 2**30, 4], pa.int32()).buffers()[1])
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    schema = pa.schema([("text", pa.string())])
    with pa.ipc.new_file(tmp_path / "a.arrow", schema) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))
    refused("cannot read it as Arrow IPC", "tokenize", tmp_path / "a.arrow", "--out", out)


def test_nothing_there(tmp_path: Path, out: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused("no such file or folder", "tokenize", tmp_path / "no.parquet", "--out", out)
    refused("no file matches", "tokenize", f"{tmp_path}/*.parquet", "--out", out)
    refused("an input is an empty string", "tokenize", "", "--out", out)
    refused("empty: no .parquet", "tokenize", tmp_path / "empty", "--out", out)
    refused("no such file or folder", "tokenize", "memory://nowhere/x.parquet", "--out", out)
    refused("no file matches", "tokenize", "memory://nowhere/*.parquet", "--out", out)
    refused("nonsense://x.parquet: ", "tokenize", "nonsense://x.parquet", "--out", out)


def test_other_formats_by_name(tmp_path: Path, out: Path) -> None:
    for name in ("a.csv", "a.jsonl.gz", "plain"):
        (tmp_path / name).write_text("text\nx\n")
    refused("a.csv: .csv files are not supported", "tokenize", tmp_path / "a.csv", "--out", out)
    refused(".gz files are not supported", "tokenize", tmp_path / "a.jsonl.gz", "--out", out)
    refused("plain: a file without a suffix", "tokenize", tmp_path / "plain", "--out", out)
    refused(".csv files are not supported", "tokenize", f"file://{tmp_path}/a.csv", "--out", out)


def test_one_bad_file_stops_before_any_work(tmp_path: Path, out: Path) -> None:
    good = write(tmp_path / "a.parquet", ["x"])
    (tmp_path / "b.parquet").write_bytes(b"nothing")
    refused("b.parquet: cannot", "tokenize", good, tmp_path / "b.parquet", "--out", out)


def test_existing_target(tmp_path: Path) -> None:
    sources = [write(tmp_path / name, ["x"]) for name in ("a.parquet", "b.parquet")]
    target = write(tmp_path / "out" / "b.parquet", ["kept"])
    before = target.read_bytes()
    refused(f"{target} exists; give --overwrite", "tokenize", *sources, "--out", tmp_path / "out")
    assert files_in(tmp_path / "out") == ["b.parquet"]
    assert target.read_bytes() == before


def test_two_inputs_one_target(tmp_path: Path, out: Path) -> None:
    one, two = (write(tmp_path / folder / "a.parquet", ["x"]) for folder in ("one", "two"))
    expected = f"{one} and {two} would both become {out / 'a.parquet'}"
    refused(expected, "tokenize", one, two, "--out", out)
    refused("would both become", "tokenize", one, one, "--out", out)


@pytest.mark.parametrize("link", [None, "symlink", "hardlink"])
def test_output_that_is_an_input(tmp_path: Path, link: str | None) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    out = source.parent
    if link is not None:
        out = tmp_path / "out"
        out.mkdir()
        if link == "symlink":
            (out / "a.parquet").symlink_to(source)
        else:
            (out / "a.parquet").hardlink_to(source)
    before = source.read_bytes()
    expected = f"{out / 'a.parquet'} is the input {source} itself"
    refused(expected, "tokenize", source, "--out", out, "--overwrite")
    refused("itself", "tokenize", f"file://{source}", "--out", out, "--overwrite")
    assert source.read_bytes() == before


def test_out_that_is_a_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    (tmp_path / "out").write_text("in the way")
    refused("out is a file, where a folder is to be", "tokenize", source, "--out", tmp_path / "out")
    (tmp_path / "dir" / "a.parquet").mkdir(parents=True)
    refused("a.parquet is a folder", "tokenize", source, "--out", tmp_path / "dir", "--overwrite")


def test_row_that_is_not_utf8(tmp_path: Path, out: Path) -> None:
    texts = [b"fine and quite a bit longer than the others"] * 300 + [b"\xff"]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    arguments = ("tokenize", tmp_path / "a.parquet", "--out", out, "--invalid", "error")
    refused("a.parquet: row 300", *arguments)


def test_row_with_an_added_token(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"] * 200 + ["<|endoftext|>"])
    arguments = ("tokenize", source, "--out", out, "--special", "error")
    refused("row 200", *arguments)
    refused("<|endoftext|>", *arguments)


def test_eos(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    arguments = ("tokenize", source, "--out", out, "--append-eos", "--eos-token")
    refused("'<|nope|>' is no token of this tokenizer", *arguments, "<|nope|>")
    refused("'' is no token", *arguments, "")
    refused("needs --append-eos", "tokenize", source, "--out", out, "--eos-token", "!", code=2)


def test_unknown_tokenizer(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    refused("no-such-model", "tokenize", source, "--out", out, "--tokenizer", "./no-such-model")


def test_no_cuda_here(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    refused("cuda", "tokenize", source, "--out", out, "--device", "cuda")


def test_usage(tmp_path: Path, out: Path) -> None:
    source = write(tmp_path / "a.parquet", ["x"])
    refused("Missing option '--out'", "tokenize", source, code=2)
    refused("Missing argument", "tokenize", "--out", out, code=2)
    refused("'maybe'", "tokenize", source, "--out", out, "--special", "maybe", code=2)
    refused("--threads", "tokenize", source, "--out", out, "--threads", "0", code=2)
    refused("not a local folder", "tokenize", source, "--out", "s3://bucket/x", code=2)
    refused("column of the output", "tokenize", source, "--out", out, "--keep", "input_ids", code=2)


def test_after_an_error_the_same_command_works(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["<|endoftext|>"])
    out = tmp_path / "out"
    refused("<|endoftext|>", "tokenize", source, "--out", out, "--special", "error")
    run("tokenize", source, "--out", out)
    assert files_in(out) == ["a.parquet"]
