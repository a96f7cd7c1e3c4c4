"""Loaders: what a source is, where its parts come from."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path

import pytest
from tokenizer_files import rank_file, small_json, tekken, vocab_merges

from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError, loaders
from saphira_gpu.loaders import embedded
from saphira_gpu.spec import AddedToken

# ---- embedded ----


def test_embedded_names_are_one_vocabulary() -> None:
    gpt2, r50k = loaders.load("gpt2"), loaders.load("r50k_base")
    assert gpt2.fingerprint == r50k.fingerprint
    assert gpt2.name == "gpt2" and gpt2.eos == "<|endoftext|>"
    assert gpt2.added == (AddedToken("<|endoftext|>", 50256),)
    assert len(gpt2.bpe.tokens) == 50256 and gpt2.bpe.tokens[:3] == (b"!", b'"', b"#")
    names = ("gpt2", "r50k_base", "cl100k_base", "o200k_base", "o200k_harmony")
    assert names == embedded.NAMES


def test_the_large_embedded_names() -> None:
    cl100k, o200k, harmony = map(loaders.load, ("cl100k_base", "o200k_base", "o200k_harmony"))
    assert (len(cl100k.bpe.tokens), cl100k.pretok.scheme) == (100256, "cl100k")
    assert cl100k.added[-1] == AddedToken("<|endofprompt|>", 100276)
    assert [token.id for token in cl100k.added] == [100257, 100258, 100259, 100260, 100276]
    assert (len(o200k.bpe.tokens), o200k.pretok.scheme) == (199998, "o200k")
    assert [token.id for token in o200k.added] == [199999, 200018]
    assert harmony.bpe == o200k.bpe and len(harmony.added) == 1091
    ids = {token.content: token.id for token in harmony.added}
    assert (ids["<|return|>"], ids["<|call|>"], ids["<|message|>"]) == (200002, 200012, 200008)
    assert ids["<|endofprompt|>"] == ids["<|reserved_200018|>"] == 200018
    assert cl100k.eos == o200k.eos == harmony.eos == "<|endoftext|>"
    prints = {spec.fingerprint for spec in (cl100k, o200k, harmony)}
    assert len(prints) == 3


def test_embedded_data_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "r50k_base.bin"
    good = embedded.resource("tables/vocabs/r50k_base.bin").read_bytes()
    monkeypatch.setattr(embedded, "resource", lambda _: bad)
    for data in (None, b"", good[:-1], good[:5000] + b"\x00" + good[5001:]):
        if data is not None:
            bad.write_bytes(data)
        with pytest.raises(TokenizerFileError):
            embedded.spec.__wrapped__("gpt2")


# ---- what a source is ----


def test_path_beats_embedded_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.dumps(small_json())
    monkeypatch.chdir(tmp_path)
    assert len(loaders.load("gpt2").bpe.tokens) == 50256
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "tokenizer.json").write_text(document)
    assert len(loaders.load("gpt2").bpe.tokens) == 266


def test_a_path_object_is_never_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TokenizerFileError, match="no file or folder"):
        loaders.load(Path("gpt2"))


def test_unknown_source() -> None:
    with pytest.raises(TokenizerFileError, match=r"'gpt-7' is no file.*gpt2, r50k_base"):
        loaders.load("gpt-7")
    with pytest.raises(TokenizerFileError, match=r"'data/tokenizer\.json' is no file"):
        loaders.load("data/tokenizer.json")
    with pytest.raises(TokenizerFileError, match="5000 characters, too many for a path: 'xxx"):
        loaders.load("x" * 5000)
    with pytest.raises(TokenizerFileError, match="an empty string"):  # no name for this folder
        loaders.load("")


def test_other_kinds_of_file(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"x")
    with pytest.raises(UnsupportedError, match=r"'\.txt' are not supported"):
        loaders.load(tmp_path / "vocab.txt")
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00")
    for source in (tmp_path, tmp_path / "tokenizer.model"):
        with pytest.raises(UnsupportedError, match="SentencePiece model"):
            loaders.load(source)
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(UnsupportedError, match="a = 1 is an unknown key"):
        loaders.load(tmp_path / "other.json")
    (tmp_path / "vocab.json").write_text('{"a": 1}')
    with pytest.raises(TokenizerFileError, match=r"merges\.txt: can't be read"):
        loaders.load(tmp_path / "vocab.json")


def test_a_file_too_large_to_be_a_tokenizer(tmp_path: Path) -> None:
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(TokenizerFileError, match="has 8589934592 bytes; a tokenizer has"):
        loaders.load(tmp_path)


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenizerFileError, match=r"none of tokenizer\.json, tekken\.json"):
        loaders.load(tmp_path)
    vocab, merges = vocab_merges()
    (tmp_path / "vocab.json").write_bytes(vocab)
    (tmp_path / "merges.txt").write_bytes(merges)
    assert loaders.load(tmp_path).bpe.merges is not None
    (tmp_path / "r50k_base.tiktoken").write_bytes(rank_file())
    assert loaders.load(tmp_path).bpe.merges is None
    (tmp_path / "b.tiktoken").write_bytes(rank_file())
    with pytest.raises(TokenizerFileError, match=r"2 \*\.tiktoken files: name one"):
        loaders.load(tmp_path)
    (tmp_path / "tiktoken.model").write_bytes(rank_file(270))
    assert len(loaders.load(tmp_path, scheme="llama3").bpe.tokens) == 270
    (tmp_path / "tekken_1.json").write_text(json.dumps(tekken()))
    assert len(loaders.load(tmp_path).added) == 20
    (tmp_path / "tekken_2.json").write_text(json.dumps(tekken()))
    with pytest.raises(TokenizerFileError, match=r"2 tekken\*\.json files: name one"):
        loaders.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    assert loaders.load(tmp_path).bpe.merges is not None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(TokenizerFileError, match="can't be read"):
        loaders.load(path)


# ---- tokenizer_config.json ----


@pytest.mark.parametrize(
    ("config", "eos"),
    [
        ('{"eos_token": "<end>"}', "<end>"),
        ('{"eos_token": {"content": "<end>"}}', "<end>"),
        ('{"eos_token": null}', None),
        ("{}", None),
    ],
)
def test_eos_from_beside_the_file(tmp_path: Path, config: str, eos: str | None) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    assert loaders.load(tmp_path).eos is None
    (tmp_path / "tokenizer_config.json").write_text(config)
    for source in (tmp_path, tmp_path / "tokenizer.json"):
        tokenizer = Tokenizer.load(source)
        assert tokenizer.eos == eos
        assert tokenizer.eos_id == (None if eos is None else 266)


def test_eos_that_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<missing>"}')
    with pytest.raises(TokenizerFileError, match="'<missing>' is no token"):
        _ = Tokenizer.load(tmp_path).eos_id


@pytest.mark.parametrize(
    "config",
    ["[]", "{", '{"eos_token": 5}', '{"eos_token": {}}', '{"bos_token": []}', "[" * 100_000],
)
def test_malformed_config(tmp_path: Path, config: str) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    (tmp_path / "tokenizer_config.json").write_text(config)
    with pytest.raises(TokenizerFileError, match=r"tokenizer_config\.json"):
        loaders.load(tmp_path)


# ---- Hub ----


def test_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    config = '{"eos_token": "<end>", "bos_token": {"content": "<s>"}}'
    (tmp_path / "tokenizer_config.json").write_text(config)

    def download(repo: str, name: str, revision: str | None = None) -> str:
        asked.append((repo, name, revision))
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    tokenizer = Tokenizer.load("org/name", revision="v2")
    assert tokenizer.spec.bos == "<s>"
    assert asked == [
        ("org/name", "tokenizer.json", "v2"),
        ("org/name", "tokenizer_config.json", "v2"),
    ]
    assert tokenizer.name == "org/name" and tokenizer.eos == "<end>"
    assert pickle.loads(pickle.dumps(tokenizer)).fingerprint == tokenizer.fingerprint
    assert len(asked) == 2


def test_hub_without_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub.errors import LocalEntryNotFoundError

    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))

    def download(repo: str, name: str, revision: str | None = None) -> str:
        if name != "tokenizer.json":
            raise LocalEntryNotFoundError("offline and not in the cache")
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert loaders.load("org/name").eos is None


def test_hub_repositories_without_a_tokenizer_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub.errors import LocalEntryNotFoundError

    def download(repo: str, name: str, revision: str | None = None) -> str:
        if not (tmp_path / name).is_file():
            raise LocalEntryNotFoundError(f"no {name}")
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(TokenizerFileError, match=r"tokenizer\.json can't be had .* no tokenizer"):
        loaders.load("org/name")
    (tmp_path / "tokenizer.model").write_bytes(rank_file(290))
    assert len(loaders.load("org/name", scheme="o200k").bpe.tokens) == 290
    vocab, merges = vocab_merges()
    (tmp_path / "vocab.json").write_bytes(vocab)
    with pytest.raises(TokenizerFileError, match=r"merges\.txt can't be had"):
        loaders.load("org/name")
    (tmp_path / "merges.txt").write_bytes(merges)
    assert loaders.load("org/name").eos == "<|endoftext|>"
    (tmp_path / "tiktoken.model").write_bytes(rank_file(280))
    assert len(loaders.load("org/name", scheme="o200k").bpe.tokens) == 280
    (tmp_path / "tekken.json").write_text(json.dumps(tekken()))
    assert loaders.load("org/name").bos == "<s>"


def test_hub_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        TokenizerFileError, match=r"org/name at revision v9: tokenizer\.json can't be had"
    ):
        loaders.load("org/name", revision="v9")


def test_hub_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'saphira_gpu\[hub\]'"):
        loaders.load("org/name")
