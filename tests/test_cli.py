"""The command line's main job: files in, files of ids out."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from oracles import hf_gpt2
from typer.testing import CliRunner

import saphira_gpu
from saphira_gpu.cli import app

SAMPLE = Path(__file__).parent / "data" / "sample.parquet"
COMMAND = [sys.executable, "-m", "saphira_gpu"]


@pytest.fixture(scope="module")
def tok() -> Any:
    return saphira_gpu.Tokenizer.load("gpt2")


def run(*arguments: object) -> Any:
    """A command that must succeed, run in this process."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def child(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)


def write(path: Path, texts: list[Any], kind: pa.DataType | None = None, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": pa.array(texts, kind or pa.string())}), path, **options)
    return path


def ids_of(path: Path) -> list[list[int] | None]:
    rows: list[list[int] | None] = pq.read_table(path)["input_ids"].to_pylist()
    return rows


def files_in(folder: Path) -> list[str]:
    """Every file below, hidden ones too."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_sample_row_by_row(tok: Any, tmp_path: Path) -> None:
    run("tokenize", SAMPLE, "--out", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "sample.parquet")
    texts = pq.read_table(SAMPLE)["text"].to_pylist()
    assert len(texts) > 40 and None in texts and "" in texts
    expected = [None if text is None else tok.encode(text).tolist() for text in texts]
    assert table["input_ids"].to_pylist() == expected
    assert table["num_tokens"].to_pylist() == [None if r is None else len(r) for r in expected]
    decoded = [None if row is None else tok.decode(row) for row in expected]
    assert decoded == texts


def test_schema_and_origin(tok: Any, tmp_path: Path) -> None:
    run("tokenize", SAMPLE, "--out", tmp_path)
    file = pq.ParquetFile(tmp_path / "sample.parquet")
    schema = file.schema_arrow
    assert schema.names == ["input_ids", "num_tokens"]
    assert schema.field("input_ids").type == pa.list_(pa.uint32())
    assert schema.field("num_tokens").type == pa.int64()
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    about = json.loads(schema.metadata[b"saphira_gpu"])
    assert about == {
        "tokenizer": "gpt2",
        "fingerprint": tok.fingerprint,
        "version": saphira_gpu.__version__,
        "column": "text",
        "special": "plain",
        "invalid": "contract",
        "bos_id": None,
        "eos_id": None,
    }


def test_sample_is_what_its_script_makes(tmp_path: Path) -> None:
    script = SAMPLE.with_name("make_sample.py")
    code = f"import runpy; print(runpy.run_path({str(script)!r})['table']().to_pydict())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert made.stdout.decode().strip() == str(pq.read_table(SAMPLE).to_pydict())


def test_summary(tmp_path: Path) -> None:
    texts = ["one <|endoftext|> two", "three", None, ""]
    lines = run("tokenize", write(tmp_path / "a.parquet", texts), "--out", tmp_path / "o").stdout
    words = dict(line.split(maxsplit=1) for line in lines.splitlines() if line[0] != " ")
    assert (words["files"], words["rows"], words["text"]) == ("1", "4", "26 bytes")
    assert int(words["tokens"]) == sum(len(row or []) for row in ids_of(tmp_path / "o/a.parquet"))
    assert "<|endoftext|> 1 x, left as text" in lines
    assert "MB/s of text" in lines and "tokens/s" in lines and words["time"].endswith("s")


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    result = run("tokenize", SAMPLE, "--out", tmp_path, "--quiet")
    assert result.output == ""


def test_special(tok: Any, tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["a<|endoftext|>b"])
    assert ids_of(_tokenized(source, tmp_path / "plain")) == [
        tok.encode("a<|endoftext|>b").tolist()
    ]
    parsed = _tokenized(source, tmp_path / "parse", "--special", "parse")
    assert ids_of(parsed) == [[64, 50256, 65]]


def _tokenized(source: Path, out: Path, *options: str) -> Path:
    run("tokenize", source, "--out", out, *options)
    return out / source.with_suffix(".parquet").name


def test_keep_copies_columns(tmp_path: Path) -> None:
    table = pq.read_table(SAMPLE).append_column("nested", pa.array([{"a": [1, None]}] * _rows()))
    source = tmp_path / "in.parquet"
    pq.write_table(table, source)
    out = _tokenized(
        source,
        tmp_path / "o",
        "--keep",
        "lang",
        "--keep",
        "nested",
        "--keep",
        "id",
        "--keep",
        "text",
    )
    got = pq.read_table(out)
    assert got.column_names == ["input_ids", "num_tokens", "lang", "nested", "id", "text"]
    for name in ("lang", "nested", "id", "text"):
        assert got[name].equals(table[name]), name


def _rows() -> int:
    return int(pq.read_metadata(SAMPLE).num_rows)


def test_append_eos(tok: Any, tmp_path: Path) -> None:
    texts = ["hello world", None, "", "日本", None, "x"]
    source = write(tmp_path / "a.parquet", texts)
    expected = [None if text is None else [*tok.encode(text).tolist(), 50256] for text in texts]
    out = _tokenized(source, tmp_path / "own", "--append-eos")
    assert ids_of(out) == expected
    counts = pq.read_table(out)["num_tokens"].to_pylist()
    assert counts == [None if row is None else len(row) for row in expected]
    other = _tokenized(source, tmp_path / "given", "--append-eos", "--eos-token", "!")
    assert ids_of(other) == [None if row is None else [*row[:-1], 0] for row in expected]


def test_prepend_bos(tok: Any, tmp_path: Path) -> None:
    texts = ["hello world", None, "", "日本", None, "x"]
    source = write(tmp_path / "a.parquet", texts)
    own = [None if text is None else tok.encode(text).tolist() for text in texts]
    one = _tokenized(source, tmp_path / "one", "--prepend-bos", "--bos-token", "!")
    assert ids_of(one) == [None if row is None else [0, *row] for row in own]
    both = _tokenized(
        source, tmp_path / "both", "--prepend-bos", "--bos-token", '"', "--append-eos"
    )
    expected = [None if row is None else [1, *row, 50256] for row in own]
    assert ids_of(both) == expected
    counts = pq.read_table(both)["num_tokens"].to_pylist()
    assert counts == [None if row is None else len(row) for row in expected]
    refused = CliRunner().invoke(
        app, ["tokenize", str(source), "--out", str(tmp_path / "no"), "--prepend-bos"]
    )
    assert refused.exit_code == 1 and not (tmp_path / "no").exists()
    assert "names no begin-of-text token" in refused.stderr and "--bos-token" in refused.stderr
    alone = CliRunner().invoke(
        app, ["tokenize", str(source), "--out", str(tmp_path / "no"), "--bos-token", "!"]
    )
    assert alone.exit_code == 2 and "needs --prepend-bos" in alone.stderr


def test_eos_of_a_file_is_in_the_config_beside_it(tmp_path: Path) -> None:
    """tokenizer.json names no end-of-text token; without its config --append-eos is refused."""
    file = tmp_path / "model" / "tokenizer.json"
    file.parent.mkdir()
    hf_gpt2().save(str(file))
    source = write(tmp_path / "a.parquet", ["a"])
    arguments = ["tokenize", str(source), "--out", str(tmp_path / "o"), "--append-eos", "-t"]
    result = CliRunner().invoke(app, [*arguments, str(file)])
    assert result.exit_code == 1 and not (tmp_path / "o").exists()
    assert "names no end-of-text token (tokenizer_config.json); give --eos-token" in result.stderr
    run(*arguments, file, "--eos-token", "<|endoftext|>")
    assert ids_of(tmp_path / "o/a.parquet") == [[64, 50256]]
    (file.parent / "tokenizer_config.json").write_text('{"eos_token": "!"}')
    for given in (file, file.parent):
        run(*arguments, given, "--overwrite")
        assert ids_of(tmp_path / "o/a.parquet") == [[64, 0]]
    assert "\na!\n" in run("inspect", tmp_path / "o/a.parquet").stdout


def test_only_nulls_and_no_rows(tmp_path: Path) -> None:
    assert (
        ids_of(_tokenized(write(tmp_path / "n.parquet", [None, None]), tmp_path / "o"))
        == [None] * 2
    )
    out = _tokenized(write(tmp_path / "e.parquet", []), tmp_path / "o", "--append-eos")
    assert pq.read_table(out).num_rows == 0
    assert pq.read_schema(out).names == ["input_ids", "num_tokens"]


@pytest.mark.parametrize(
    "kind",
    [
        "string",
        "large_string",
        "string_view",
        "binary",
        "large_binary",
        "binary_view",
        "dictionary",
    ],
)
def test_text_types(tok: Any, tmp_path: Path, kind: str) -> None:
    value = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    texts = ["naïve", None, "", "naïve", "a longer text than a view holds inline"]
    column = pa.array(texts).cast(pa.binary() if "binary" in kind else pa.string()).cast(value)
    expected = [None if text is None else tok.encode(text).tolist() for text in texts]
    pq.write_table(pa.table({"text": column}), tmp_path / "p.parquet")
    assert ids_of(_tokenized(tmp_path / "p.parquet", tmp_path / "o")) == expected
    with pa.ipc.new_file(tmp_path / "i.arrow", pa.schema([("text", value)])) as writer:
        writer.write_batch(pa.record_batch({"text": column}))
    assert ids_of(_tokenized(tmp_path / "i.arrow", tmp_path / "o")) == expected


def test_null_type(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.nulls(3)}), tmp_path / "a.parquet")
    assert ids_of(_tokenized(tmp_path / "a.parquet", tmp_path / "o", "--append-eos")) == [None] * 3


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_ipc_text_that_is_not_utf8(tok: Any, tmp_path: Path, kind: pa.DataType) -> None:
    column = pa.array([b"b\xffd"]).view(pa.string())
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), column)
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("text", kind)])) as writer:
        writer.write_batch(pa.record_batch({"text": column}))
    rows = ids_of(_tokenized(tmp_path / "a.arrow", tmp_path / "o"))
    assert [tok.decode_bytes(row) for row in rows] == [b"b\xffd"] * len(column)


def test_invalid_rows(tmp_path: Path, tok: Any) -> None:
    column = pa.array([b"fine", b"b\xffd", b"\xe6\x97"]).view(pa.string())
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    by_contract = ids_of(_tokenized(tmp_path / "a.parquet", tmp_path / "c"))
    assert [tok.decode_bytes(row) for row in by_contract] == [b"fine", b"b\xffd", b"\xe6\x97"]
    nulled = ids_of(_tokenized(tmp_path / "a.parquet", tmp_path / "n", "--invalid", "null"))
    assert nulled[1:] == [None, None] and nulled[0] is not None
    replaced = ids_of(_tokenized(tmp_path / "a.parquet", tmp_path / "r", "--invalid", "replace"))
    assert [tok.decode(row) for row in replaced] == ["fine", "b\ufffdd", "\ufffd"]
    result = run("tokenize", tmp_path / "a.parquet", "--out", tmp_path / "s")
    assert "2 rows, encoded by the byte contract" in result.stdout


@pytest.mark.parametrize("writer", ["file", "stream", "feather"])
def test_arrow_ipc(tok: Any, tmp_path: Path, writer: str) -> None:
    texts = [f"row {number}" for number in range(100)]
    table = pa.table({"text": texts, "n": range(100)})
    source = tmp_path / ("data.feather" if writer == "feather" else "data.arrow")
    if writer == "feather":
        pyarrow.feather.write_feather(table, source, compression="zstd")
    else:
        new = pa.ipc.new_file if writer == "file" else pa.ipc.new_stream
        with new(source, table.schema) as sink:
            sink.write_table(table, max_chunksize=30)
    out = _tokenized(source, tmp_path / "out", "--keep", "n")
    assert ids_of(out) == [tok.encode(text).tolist() for text in texts]
    assert pq.read_table(out)["n"].to_pylist() == list(range(100))


def tree(root: Path) -> Path:
    """A folder as data sets lie about, with what must be passed over."""
    write(root / "a.parquet", ["a"])
    write(root / "deep" / "er" / "b.parquet", ["b", "b"])
    write(root / "_temporary" / "c.parquet", ["c"])
    write(root / ".d.parquet", ["d"])
    write(root / ".e.parquet.tmp-123", ["e"])
    (root / "README.md").write_text("notes")
    return root


def test_folder_keeps_relative_paths(tmp_path: Path) -> None:
    root, out = tree(tmp_path / "in"), tmp_path / "out"
    run("tokenize", root, "--out", out)
    assert files_in(out) == ["a.parquet", "deep/er/b.parquet"]
    assert len(ids_of(out / "deep/er/b.parquet")) == 2


def test_output_inside_the_input_folder(tmp_path: Path) -> None:
    root = tree(tmp_path / "in")
    for _ in range(2):
        run("tokenize", root, "--out", root / "ids", "--overwrite")
        assert files_in(root / "ids") == ["a.parquet", "deep/er/b.parquet"]


def test_globs(tmp_path: Path) -> None:
    root = tree(tmp_path / "in")
    write(root / "other" / "er" / "b.parquet", ["x"])
    run("tokenize", f"{root}/*/er/*.parquet", "--out", tmp_path / "one")
    assert files_in(tmp_path / "one") == ["deep/er/b.parquet", "other/er/b.parquet"]
    run("tokenize", f"{root}/**/b.parquet", "--out", tmp_path / "two")
    assert files_in(tmp_path / "two") == ["deep/er/b.parquet", "other/er/b.parquet"]
    run("tokenize", f"{root}/**/b.parquet", "--out", root / "ids")
    run("tokenize", f"{root}/**/b.parquet", "--out", root / "ids", "--overwrite")
    assert files_in(root / "ids") == ["deep/er/b.parquet", "other/er/b.parquet"]
    run("tokenize", f"{root}/[do]*", "--out", tmp_path / "folders")
    assert files_in(tmp_path / "folders") == ["deep/er/b.parquet", "other/er/b.parquet"]


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    source = write(tmp_path / "shard[1].parquet", ["x"])
    assert len(ids_of(_tokenized(source, tmp_path / "out"))) == 1


def test_file_url(tmp_path: Path) -> None:
    root = tree(tmp_path / "in")
    run("tokenize", f"file://{root}", "--out", tmp_path / "folder")
    assert files_in(tmp_path / "folder") == ["a.parquet", "deep/er/b.parquet"]
    run("tokenize", f"file://{root}/deep/**/*.parquet", "--out", tmp_path / "glob")
    assert files_in(tmp_path / "glob") == ["er/b.parquet"]
    run("tokenize", f"file://{root}/a.parquet", "--out", tmp_path / "file")
    assert files_in(tmp_path / "file") == ["a.parquet"]


def test_memory_url(tok: Any, tmp_path: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/books/one.parquet", write(tmp_path / "x.parquet", ["one"]).read_bytes())
    sink = pa.BufferOutputStream()
    table = pa.table({"text": ["two"]})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    store.pipe("/books/more/two.arrow", sink.getvalue().to_pybytes())
    try:
        run("tokenize", "memory://books", "--out", tmp_path / "out")
    finally:
        store.rm("/books", recursive=True)
    assert files_in(tmp_path / "out") == ["more/two.parquet", "one.parquet"]
    assert ids_of(tmp_path / "out/more/two.parquet") == [tok.encode("two").tolist()]


def test_overwrite_replaces(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["old"])
    out = _tokenized(source, tmp_path / "out")
    before = ids_of(out)
    write(source, ["new", "rows"])
    _tokenized(source, tmp_path / "out", "--overwrite")
    assert len(before) == 1 and len(ids_of(out)) == 2
    assert files_in(tmp_path / "out") == ["a.parquet"]


def test_many_row_groups_and_skewed_rows(tok: Any, tmp_path: Path) -> None:
    """Batches are cut by bytes: order and number of rows must survive every cut."""
    texts = [f"{n} " * (40_000 if n % 97 == 5 else n % 7) for n in range(700)]
    source = write(tmp_path / "a.parquet", texts, row_group_size=333)
    out = _tokenized(source, tmp_path / "out")
    assert ids_of(out) == [tok.encode(text).tolist() for text in texts]


def test_threads_give_the_same_file(tmp_path: Path) -> None:
    one = _tokenized(SAMPLE, tmp_path / "1", "--threads", "1")
    two = _tokenized(SAMPLE, tmp_path / "2", "--threads", "2")
    assert one.read_bytes() == two.read_bytes()


def test_child_process_is_silent_on_stderr_without_a_terminal(tmp_path: Path) -> None:
    done = child("tokenize", SAMPLE, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"files        1\n")


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    primary, secondary = pty.openpty()
    command = [*COMMAND, "tokenize", str(SAMPLE), "--out", str(tmp_path)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=secondary, env=environment
    ) as process:
        os.close(secondary)
        seen = b""
        try:
            while chunk := os.read(primary, 4096):
                seen += chunk
        except OSError:  # the other end closed
            pass
        assert process.wait(60) == 0
    os.close(primary)
    assert b"file 1/1" in seen and b"MB/s" in seen and b"tokens/s" in seen and b"left" in seen
