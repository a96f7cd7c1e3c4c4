"""The command line with a tokenizer of every format and every embedded name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizer_files import rank_file, small_json, tekken, vocab_merges
from typer.testing import CliRunner

from saphira_gpu import Tokenizer, loaders
from saphira_gpu.cli import app
from saphira_gpu.loaders import embedded

TEXT = "It's  a test: 12345 caf\u00e9\r\n<end>"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def write_json(folder: Path) -> list[str]:
    (folder / "tokenizer.json").write_text(json.dumps(small_json()))
    return []


def write_tekken(folder: Path) -> list[str]:
    (folder / "tekken.json").write_text(json.dumps(tekken()))
    return []


def write_ranks(folder: Path) -> list[str]:
    (folder / "tiktoken.model").write_bytes(rank_file())
    return ["--scheme", "kimi"]


def write_vocab_merges(folder: Path) -> list[str]:
    vocab, merges = vocab_merges()
    (folder / "vocab.json").write_bytes(vocab)
    (folder / "merges.txt").write_bytes(merges)
    return []


WRITERS = [write_json, write_tekken, write_ranks, write_vocab_merges]


@pytest.mark.parametrize("make", WRITERS, ids=lambda make: str(make.__name__))
def test_every_format(make: Callable[[Path], list[str]], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    same(folder, make(folder), tmp_path)


@pytest.mark.parametrize("name", embedded.NAMES)
def test_every_embedded_name(name: str, tmp_path: Path) -> None:
    same(name, [], tmp_path)


def same(source: Any, options: list[str], tmp_path: Path) -> None:
    """Every command gives what the Tokenizer does."""
    scheme = options[1] if options else None
    tokenizer = Tokenizer.load(source, scheme=scheme)
    assert tokenizer.fingerprint == loaders.load(source, scheme=scheme).fingerprint
    given = ["-t", source, *options]
    ids = tokenizer.encode(TEXT).tolist()
    assert json.loads(run("encode", TEXT, "--json", *given)) == ids
    assert run("decode", *ids, *given).encode().replace(b"\r\n", b"\n") == (
        tokenizer.decode_bytes(ids).replace(b"\r\n", b"\n")
    )
    assert "the reference agrees at every stage" in run("stages", TEXT, "--reference", *given)
    pq.write_table(pa.table({"text": [TEXT, None]}), tmp_path / "in.parquet")
    run("tokenize", tmp_path / "in.parquet", "--out", tmp_path / "out", *given)
    table = pq.read_table(tmp_path / "out" / "in.parquet")
    assert table["input_ids"].to_pylist() == [ids, None]
    # The file says all that is needed to load the tokenizer again.
    assert "It's  a test" in run("inspect", tmp_path / "out" / "in.parquet")
