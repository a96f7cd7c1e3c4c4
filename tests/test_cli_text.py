"""The small commands: encode, decode, inspect, stages, doctor; and the program itself."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_cli import SAMPLE, child, run, write
from test_cli_errors import refused
from typer.testing import CliRunner

import saphira_gpu
from saphira_gpu import reference
from saphira_gpu.cli import app, doctor
from saphira_gpu.cli.decode import parse_ids
from saphira_gpu.cli.inspect import visible
from saphira_gpu.cli.stages import first_difference, grid


@pytest.fixture(scope="module")
def tok() -> Any:
    return saphira_gpu.Tokenizer.load("gpt2")


def test_encode(tok: Any) -> None:
    assert run("encode", "Hello, world").stdout == "15496 11 995\n"
    assert (
        json.loads(run("encode", "--json", "naïve 日本").stdout)
        == tok.encode("naïve 日本").tolist()
    )
    assert run("encode", "").stdout == "\n"
    assert run("encode", "--json", "").stdout == "[]\n"


def test_encode_special() -> None:
    assert run("encode", "a<|endoftext|>b", "--special", "parse").stdout == "64 50256 65\n"
    assert "50256" not in run("encode", "a<|endoftext|>b").stdout
    refused("<|endoftext|>", "encode", "a<|endoftext|>b", "--special", "error")


def test_encode_takes_stdin_byte_for_byte(tok: Any) -> None:
    raw = b" two\r\nlines \xff\xfe\n"
    done = child("encode", "-", input=raw)
    assert list(map(int, done.stdout.split())) == tok.encode(raw).tolist()
    refused("not UTF-8", "encode", "--invalid", "error", os.fsdecode(b"\xff"))


@pytest.mark.parametrize("raw", [b"", b"plain", "naïve 日本\n".encode(), b"\xff\x00\xe6\x97 cut"])
def test_decode_gives_the_bytes_back(raw: bytes) -> None:
    ids = CliRunner().invoke(app, ["encode", "-"], input=raw).stdout
    assert CliRunner().invoke(app, ["decode", "-"], input=ids).stdout_bytes == raw
    as_array = CliRunner().invoke(app, ["encode", "--json", "-"], input=raw).stdout
    assert CliRunner().invoke(app, ["decode", as_array]).stdout_bytes == raw


def test_encode_and_decode_as_processes() -> None:
    raw = b"\xff\x00 na\xc3\xafve\r\n"
    assert child("decode", "-", input=child("encode", "-", input=raw).stdout).stdout == raw


def test_decode_of_arguments() -> None:
    assert run("decode", "15496", "11", "995").stdout == "Hello, world"
    assert run("decode", "64,50256, 65").stdout == "a<|endoftext|>b"
    assert run("decode", "64", "50256", "65", "--skip-special").stdout == "ab"
    assert parse_ids("[1, 2,3]\n 4") == [1, 2, 3, 4]


def test_decode_refuses() -> None:
    refused("50257 is not an id of this tokenizer", "decode", "1", "50257")
    refused("'x' is not an id", "decode", "1", "x")
    refused("'4294967296' is not an id", "decode", "4294967296")
    refused("'1.5' is not an id", "decode", "1.5")


def test_inspect(tok: Any, tmp_path: Path) -> None:
    run("tokenize", SAMPLE, "--out", tmp_path, "--keep", "lang", "--append-eos")
    rows = pq.read_metadata(SAMPLE).num_rows
    shown = run("inspect", tmp_path / "sample.parquet", "--rows", rows).stdout
    table = pq.read_table(tmp_path / "sample.parquet")
    assert f"rows         {rows} in 1 row groups" in shown
    assert f"tokens       {sum(n or 0 for n in table['num_tokens'].to_pylist()):,}" in shown
    assert f"fingerprint  {tok.fingerprint}" in shown
    assert "columns      input_ids: list<element: uint32>, num_tokens: int64, lang: string" in shown
    assert "日本" not in shown or "駅前のパン屋" in shown
    for text in ("駅前のパン屋", "Żółty rower", "<|endoftext|> in its text"):
        assert text in shown
    null = pq.read_table(SAMPLE)["text"].to_pylist().index(None)
    assert f"--- row {null}: null\n" in shown
    later = run("inspect", tmp_path / "sample.parquet", "--start", null, "--rows", "1").stdout
    assert later.count("--- row") == 1 and f"--- row {null}: null" in later


def test_inspect_cuts_long_documents(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ["word " * 10_000])
    run("tokenize", source, "--out", tmp_path / "out")
    shown = run("inspect", tmp_path / "out/a.parquet", "--chars", "20").stdout
    assert shown.endswith("word word word word ...\n")
    assert "--- row 0: 10,001 ids: 4775" in shown and "(9,989 more)" in shown


def test_inspect_refuses(tmp_path: Path) -> None:
    refused("no.parquet: No such file", "inspect", tmp_path / "no.parquet")
    refused("no column 'input_ids'; there are id, text, lang", "inspect", SAMPLE)
    (tmp_path / "x.parquet").write_bytes(b"no")
    refused("x.parquet: cannot read it as Parquet", "inspect", tmp_path / "x.parquet")
    foreign = tmp_path / "f.parquet"
    ids = pa.array([[15496, 11]], pa.list_(pa.uint32()))
    pq.write_table(pa.table({"input_ids": ids}), foreign)
    refused("does not say which tokenizer made it; give --tokenizer", "inspect", foreign)
    assert "\nHello,\n" in run("inspect", foreign, "--tokenizer", "gpt2").stdout
    pq.write_table(pa.table({"input_ids": ["x"]}), tmp_path / "s.parquet")
    refused("'input_ids' is string, not a list of integers", "inspect", tmp_path / "s.parquet")
    about = {b"saphira_gpu": b'{"tokenizer": "gpt2", "fingerprint": "0123"}'}
    pq.write_table(pa.table({"input_ids": ids}).replace_schema_metadata(about), foreign)
    refused("made with another tokenizer than 'gpt2'", "inspect", foreign)


def test_a_terminal_obeys_nothing_that_is_shown() -> None:
    assert (
        visible("a\x1b[31m\x07\x00é日\n\t\u202e\x9b")
        == r"a\x1b[31m\x07\x00é日" + "\n\t" + r"\u202e\x9b"
    )


def test_stages(tok: Any) -> None:
    shown = run("stages", "I'm naïve<|endoftext|> 日", "--special", "parse", "--reference").stdout
    lines = [line.split(maxsplit=1) for line in shown.splitlines() if line]
    assert lines[0] == ["special", "segment 0, bytes [0, 10): text"]
    first = dict(line for line in lines[:10] if len(line) == 2)
    assert first["characters"].split() == ["I", "'", "m", "␣", "n", "a", "ï", "v", "e"]
    assert first["classify"].split()[:4] == ["Upper", "Apostrophe", "Lower", "Space"]
    assert first["pieces"].split() == ["I", "'m", "␣naïve"]
    assert first["bytemap"].split() == ["I", "'m", "ĠnaÃ¯ve"]
    assert first["vocab"].split() == list(map(str, tok.encode("I'm naïve").tolist()))
    assert "segment 1, bytes [10, 23): added token <|endoftext|>" in shown
    assert lines[-1] == ["the", "reference agrees at every stage"]


@pytest.mark.parametrize("text", ["", " ", "x\n\n y\t", os.fsdecode(b"\xff\xe6\x97 \xc0\xa0")])
def test_stages_of_odd_texts(text: str) -> None:
    assert "reference agrees" in run("stages", text, "--reference").stdout


def test_first_difference_names_the_first_stage(tok: Any) -> None:
    text = "one two"
    ours = tok.stages(text).segments
    assert first_difference(ours, reference.stages(tok.spec, text)) is None
    other = first_difference(ours, reference.stages(tok.spec, "one twö"))
    assert other is not None and other.startswith("first difference: stage special, item 0: ")
    other = first_difference(ours, reference.stages(tok.spec, "one, tw"))
    assert other is not None and other.startswith("first difference: stage normalize, segment 0")
    spec, mixed = tok.spec, reference.stages(tok.spec, text)[0]
    for field, value, stage in (
        ("ids", [*mixed.ids[:-1], 0], "vocab, segment 0, item 1: 734 here, 0 in the reference"),
        ("tokens", [["one"], ["Ġ", "two"]], "bpe, segment 0, item 1"),
        ("pieces", [(0, 7)], "boundaries, segment 0, item 0: (0, 3) here, (0, 7) in the"),
        ("classes", "LLLSLNL", "remap, segment 0, item 5"),
    ):
        changed = {name: getattr(mixed, name) for name in mixed.__slots__} | {field: value}
        found = first_difference(ours, [reference.Stages(**changed)])
        assert found is not None and found.startswith(f"first difference: stage {stage}"), found
    assert spec is tok.spec


def test_stages_exits_1_where_the_reference_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = reference.stages
    monkeypatch.setattr(
        reference, "stages", lambda spec, data, mode: plain(spec, data + b"!", mode)
    )
    result = CliRunner().invoke(app, ["stages", "a", "--reference"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("first difference: stage special")


def test_grid_aligns_wide_characters_and_wraps() -> None:
    rows = [("text", ["日本", "a", "b"]), ("tag", ["x", "yy", "z"])]
    assert list(grid(rows, 80)) == ["text       日本  a   b", "tag        x     yy  z"]
    wrapped = ["text       日本", "tag        x", "", "text       a   b", "tag        yy  z"]
    assert list(grid(rows, 20)) == wrapped


def test_doctor() -> None:
    shown = dict(line.split(maxsplit=1) for line in run("doctor").stdout.splitlines())
    assert shown["saphira_gpu"] == saphira_gpu.__version__
    assert shown["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert shown["pyarrow"] == pa.__version__
    assert "scalar" in shown["instruction"]
    assert int(shown["threads"].split()[0]) >= 1
    assert "device=auto encodes on the CPU" in shown["CUDA"]


def test_doctor_names_the_forced_instruction_set() -> None:
    done = child("doctor", env={**os.environ, "SAPHIRA_ISA": "scalar", "SAPHIRA_THREADS": "3"})
    assert b"instruction set  scalar (SAPHIRA_ISA=scalar)" in done.stdout
    assert b"threads          3 (SAPHIRA_THREADS)" in done.stdout


def test_bad_environment_is_one_line() -> None:
    for name, value in (("SAPHIRA_THREADS", "many"), ("SAPHIRA_ISA", "mmx")):
        for command in (("encode", "x"), ("doctor",)):
            done = child(*command, env={**os.environ, name: value})
            assert done.returncode == 1, command
            assert len(done.stderr.splitlines()) == 1 and value.encode() in done.stderr


class FakeRuntime:
    """As much of cupy.cuda.runtime as the command looks at; what a machine without one can't
    show."""

    class CUDARuntimeError(RuntimeError):
        def __init__(self, status: int) -> None:
            super().__init__(f"cudaError {status}")
            self.status = status

    def __init__(self, count: int | Exception) -> None:
        self.count = count

    def getDeviceCount(self) -> int:
        if isinstance(self.count, Exception):
            raise self.count
        return self.count

    def getDeviceProperties(self, number: int) -> dict[str, Any]:
        return {"name": b"Test device"}


class FakeNvrtc:
    def __init__(self, there: bool) -> None:
        self.there = there

    def getVersion(self) -> tuple[int, int]:
        if not self.there:
            raise ImportError("libnvrtc.so.13: cannot open shared object file")
        return 13, 1


@pytest.mark.parametrize(
    ("count", "nvrtc", "words"),
    [
        (FakeRuntime.CUDARuntimeError(35), True, "CuPy 14.0, no driver, or one too old"),
        (FakeRuntime.CUDARuntimeError(100), True, "CuPy 14.0, no device"),
        (FakeRuntime.CUDARuntimeError(999), True, "CuPy 14.0, cudaError 999"),
        (ImportError("libcudart.so.13"), True, "CuPy 14.0, no CUDA runtime (libcudart.so.13)"),
        (0, True, "CuPy 14.0, no device"),
        (2, False, "CuPy 14.0, 2 device(s), no NVRTC (libnvrtc.so.13: cannot open shared"),
        (1, True, "CuPy 14.0, NVRTC 13.1, 1 device(s): Test device"),
    ],
)
def test_cuda_states(monkeypatch: pytest.MonkeyPatch, count: Any, nvrtc: bool, words: str) -> None:
    class Cuda:
        runtime = FakeRuntime(count)

    class Cupy:
        __version__ = "14.0"
        cuda = Cuda()

    Cuda.nvrtc = FakeNvrtc(nvrtc)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", Cupy())
    assert doctor.cuda_state().startswith(words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("raise ImportError('libcublas.so.12: no such file')", "CuPy is broken (libcublas.so.12"),
        ("import a_module_nobody_has", "CuPy is broken (No module named 'a_module_nobody_has'"),
    ],
)
def test_broken_cupy(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "cupy.py").write_text(content)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = child("doctor", env={**os.environ, "PYTHONPATH": path})
    assert words in done.stdout.decode()


def test_help_and_usage() -> None:
    for arguments in (["--help"], ["tokenize", "--help"], ["stages", "-h"]):
        assert run(*arguments).stdout
    refused("No such command 'tokenise'", "tokenise", code=2)
    done = child("tokenize", "--no-such-option")
    assert done.returncode == 2 and b"No such option" in done.stderr


def test_version() -> None:
    assert run("--version").stdout == f"saphira-gpu {saphira_gpu.__version__}\n"


def test_importing_the_command_line_does_not_import_cupy_or_fsspec() -> None:
    code = "import sys, saphira_gpu.cli; print({'cupy', 'fsspec', 'tokenizers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"set()\n"


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    run("tokenize", write(tmp_path / "a.parquet", ["x" * 1000] * 5000), "--out", tmp_path / "o")
    command = (
        f"{sys.executable} -m saphira_gpu inspect {tmp_path}/o/a.parquet --rows 5000 | head -1"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=60)
    assert done.stdout.startswith(b"rows") and b"Traceback" not in done.stderr


def test_a_warning_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **options: Any) -> Any:
        warnings.warn("stored truncation\nis not applied", UserWarning, stacklevel=2)
        return tok_gpt2

    tok_gpt2 = saphira_gpu.Tokenizer.load("gpt2")
    monkeypatch.setattr(saphira_gpu.Tokenizer, "load", load)
    result = run("encode", "x")
    assert result.stderr == "saphira-gpu: warning: stored truncation is not applied\n"
