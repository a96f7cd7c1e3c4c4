"""Loaders: what they read, what they refuse by name, and how they fare with hostile files."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import oracles
import pytest
import tokenizers
from oracles import gpt2_ranks, hf_byte_level, hf_gpt2, merges_of

import saphira_gpu
from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError, loaders
from saphira_gpu.loaders import _bytelevel, embedded, tiktoken, tokenizer_json
from saphira_gpu.spec import AddedToken

Json = dict[str, Any]
TEXTS = ["", "Hello world", "the theatre's then", "  a  12 34é\n\n", "日本 ☃ <|endoftext|> ok"]


def small_json() -> Json:
    """A tokenizer.json with 266 tokens, of GPT-2's kind."""
    ranks = {token: id for token, id in gpt2_ranks().items() if id < 266}
    tokens = {_bytelevel.to_text(token): id for token, id in ranks.items()}
    document: Json = json.loads(hf_byte_level(tokens, merges_of(ranks)).to_str())
    document["added_tokens"] = [added("<end>", 266)]
    return document


def added(content: str, number: int, **flags: bool) -> Json:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": number, "content": content} | {name: flags.get(name, False) for name in names}


def parse(document: Json) -> saphira_gpu.spec.Spec:
    return tokenizer_json.parse(json.dumps(document).encode(), "t.json")


def same_ids(document: Json, texts: list[str]) -> None:
    """Our ids are the reference's, in both of its modes."""
    reference = tokenizers.Tokenizer.from_str(json.dumps(document))
    ours = Tokenizer.from_spec(parse(document))
    for mode, plain in (("parse", False), ("hf_plain", True)):
        reference.encode_special_tokens = plain
        for text in texts:
            expected = reference.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, special=mode).tolist() == expected, (mode, text)


# ---- embedded ----


def test_embedded_names_are_one_vocabulary() -> None:
    gpt2, r50k = loaders.load("gpt2"), loaders.load("r50k_base")
    assert gpt2.fingerprint == r50k.fingerprint
    assert gpt2.name == "gpt2" and gpt2.eos == "<|endoftext|>"
    assert gpt2.added == (AddedToken("<|endoftext|>", 50256),)
    assert len(gpt2.bpe.tokens) == 50256 and gpt2.bpe.tokens[:3] == (b"!", b'"', b"#")
    assert embedded.NAMES == ("gpt2", "r50k_base")


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


def test_other_kinds_of_file(tmp_path: Path) -> None:
    for name in ("merges.txt", "tokenizer.model"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(UnsupportedError, match=r"'\.(txt|model)' are not supported"):
            loaders.load(tmp_path / name)
    (tmp_path / "vocab.json").write_text('{"a": 1}')
    with pytest.raises((TokenizerFileError, UnsupportedError), match="a = 1 is an unknown key"):
        loaders.load(tmp_path / "vocab.json")


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenizerFileError, match=r"no tokenizer\.json and no \*\.tiktoken"):
        loaders.load(tmp_path)
    (tmp_path / "r50k_base.tiktoken").write_bytes(rank_file())
    assert loaders.load(tmp_path).bpe.merges is None
    (tmp_path / "b.tiktoken").write_bytes(rank_file())
    with pytest.raises(TokenizerFileError, match=r"2 \*\.tiktoken files"):
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


# ---- rank files ----


def rank_file(n: int = 300) -> bytes:
    lines = [
        b"%s %d\n" % (base64.b64encode(token), rank)
        for token, rank in gpt2_ranks().items()
        if rank < n
    ]
    return b"".join(lines)


def test_rank_file_by_name(tmp_path: Path) -> None:
    for name in ("gpt2", "r50k_base", "p50k_base"):
        path = tmp_path / f"{name}.tiktoken"
        path.write_bytes(rank_file())
        spec = loaders.load(path)
        assert spec.pretok.scheme == "gpt2" and spec.bpe.whole_piece_first
        assert spec.added == (AddedToken("<|endoftext|>", 50256),)
        assert spec.eos == "<|endoftext|>"
        assert len(spec.bpe.tokens) == 300


def test_rank_file_must_have_a_scheme(tmp_path: Path) -> None:
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(rank_file())
    with pytest.raises(TokenizerFileError, match=r"does not say its scheme.*'mine'.*scheme="):
        loaders.load(path)
    spec = loaders.load(path, scheme="gpt2")
    assert spec.added == () and spec.eos is None
    with pytest.raises(UnsupportedError, match="scheme 'martian' is not supported"):
        loaders.load(path, scheme="martian")


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "o200k_harmony"])
def test_rank_file_of_a_scheme_not_supported(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.tiktoken"
    path.write_bytes(rank_file())
    with pytest.raises(UnsupportedError, match=r"scheme 'c?.*00k' is not supported"):
        loaders.load(path)


def test_scheme_only_for_rank_files(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(small_json()))
    for source in (path, "gpt2"):
        with pytest.raises(TokenizerFileError, match="scheme= is for rank files"):
            loaders.load(source, scheme="gpt2")


def test_rank_file_holes_and_line_ends() -> None:
    data = rank_file(260).replace(b"\n", b"\r\n") + b"\n" + base64.b64encode(b"zzz") + b" 270"
    spec = tiktoken.parse(data, "x", "x", "gpt2")
    assert len(spec.bpe.tokens) == 271
    assert spec.bpe.tokens[260:] == (None,) * 10 + (b"zzz",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"", "holds no ranks"),
        (lambda d: d[:1000], r"line \d+ is|no token for byte"),
        (lambda d: d + b"YQ==", "line 301 is"),
        (lambda d: d + b"YQ== x\n", "line 301 is"),
        (lambda d: d + b"YQ== -1\n", "line 301 is"),
        (lambda d: d + b"YQ== 1 2\n", "line 301 is"),
        (lambda d: d + b"*** 300\n", "line 301 is"),
        (lambda d: d + b" 300\n", "line 301 is"),
        (lambda d: d + b"enp6 9223372036854775808\n", "line 301 is"),
        (lambda d: d + b"enp6 " + b"9" * 5000 + b"\n", "line 301 is"),
        (lambda d: d + "enp6 ٣\n".encode(), "line 301 is"),
        (lambda d: d + b"IQ== 300\n", r"line 301 repeats the token b'!'"),
        (lambda d: d + b"enp6 299\n", "rank 299 is given to two tokens"),
        (lambda d: b"\n".join(d.split(b"\n")[1:]), "no token for byte 0x21"),
        (lambda d: d + b"enp6 50256\n", r"id 50256 of <\|endoftext\|> is the rank"),
    ],
)
def test_malformed_rank_files(change: Any, message: str) -> None:
    with pytest.raises(TokenizerFileError, match=message):
        tiktoken.parse(change(rank_file()), "r50k_base", "r50k_base.tiktoken")


# ---- tokenizer.json ----


def test_gpt2_file_equals_the_embedded() -> None:
    """The same tokens, by merges instead of ranks."""
    spec = tokenizer_json.parse(hf_gpt2().to_str().encode(), "t.json")
    ranks = loaders.load("gpt2")
    assert spec.bpe.tokens == (*ranks.bpe.tokens, b"<|endoftext|>")
    assert spec.bpe.merges is not None and len(spec.bpe.merges) == 50000
    assert spec.added == (AddedToken("<|endoftext|>", 50256, special=True, normalized=False),)
    assert not spec.bpe.whole_piece_first
    assert spec.fingerprint != ranks.fingerprint
    for text in TEXTS:
        ids = Tokenizer.from_spec(spec).encode(text, special="parse")
        assert ids.tolist() == hf_gpt2().encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["model"].pop("type"),
        lambda d: d["model"].update(dropout=0),
        lambda d: d["model"].update(dropout=0.0),
        lambda d: d["model"].update(continuing_subword_prefix="", end_of_word_suffix=""),
        lambda d: d["model"].update(unk_token=None, fuse_unk=False, byte_fallback=False),
        lambda d: d["model"].update(
            merges=[m if isinstance(m, str) else " ".join(m) for m in d["model"]["merges"]]
        ),
        lambda d: d["model"].update(
            merges=["#version: 0.2", *(" ".join(m) for m in d["model"]["merges"])]
        ),
        lambda d: d["model"]["merges"].append(d["model"]["merges"][0]),
        lambda d: d["model"].update(ignore_merges=True),
        lambda d: d["model"].update(ignore_merges=True, merges=[]),
        lambda d: d.pop("version"),
        lambda d: d.pop("added_tokens"),
        lambda d: d.update(added_tokens=[]),
        lambda d: d["pre_tokenizer"].pop("use_regex"),
        lambda d: d["pre_tokenizer"].update(trim_offsets=False),
        lambda d: d.update(
            post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}
        ),
        lambda d: d.update(decoder=None, post_processor=None),
        lambda d: d["added_tokens"].extend([added("<b>", 267, special=True), added("the", 268)]),
        lambda d: d["added_tokens"].append(added("he", d["model"]["vocab"]["he"])),
        lambda d: d["added_tokens"].extend([added("", 999), added("☃", 267)]),
        lambda d: d["added_tokens"].extend(
            [
                added("<b>", 267, lstrip=True),
                added("12", 268, rstrip=True, normalized=True),
                added("ok", 269, single_word=True),
            ]
        ),
        lambda d: d["model"]["vocab"].update({"<end>": 266}),
        lambda d: (
            d["model"]["vocab"].update({"☃": 266}),
            d.update(added_tokens=[added("☃", 266)]),
        ),
    ],
)
def test_accepted_variants_give_the_reference_ids(change: Any) -> None:
    document = small_json()
    change(document)
    texts = [*TEXTS, "<end>a <b>  <b> 12  x ok. took ☃☃", "he the  <end> 1212", "in an on er"]
    same_ids(document, texts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version="2.0"), 'version = "2.0"'),
        (lambda d: d.update(normalizer={"type": "NFC"}), r'normalizer = \{"type": "NFC"\}'),
        (lambda d: d.update(pre_tokenizer=None), "pre_tokenizer = null"),
        (lambda d: d.pop("pre_tokenizer"), "pre_tokenizer = null"),
        (
            lambda d: d.update(pre_tokenizer={"type": "Whitespace"}),
            'pre_tokenizer.type = "Whitespace"',
        ),
        (lambda d: d["pre_tokenizer"].update(type="Sequence"), 'pre_tokenizer.type = "Sequence"'),
        (lambda d: d["pre_tokenizer"].update(add_prefix_space=True), "add_prefix_space = true"),
        (lambda d: d["pre_tokenizer"].update(use_regex=False), "use_regex = false"),
        (lambda d: d["pre_tokenizer"].update(colour=1), "pre_tokenizer.colour = 1"),
        (lambda d: d.update(post_processor={"type": "TemplateProcessing"}), "post_processor.type"),
        (lambda d: d.update(decoder={"type": "Metaspace"}), 'decoder.type = "Metaspace"'),
        (lambda d: d["model"].update(type="WordPiece"), 'model.type = "WordPiece"'),
        (lambda d: d["model"].update(dropout=0.1), "model.dropout = 0.1"),
        (lambda d: d["model"].update(unk_token="!"), 'model.unk_token = "!"'),
        (lambda d: d["model"].update(unk_token=""), 'model.unk_token = ""'),
        (lambda d: d["model"].update(fuse_unk=True), "model.fuse_unk = true"),
        (lambda d: d["model"].update(byte_fallback=True), "model.byte_fallback = true"),
        (lambda d: d["model"].update(end_of_word_suffix="</w>"), 'end_of_word_suffix = "</w>"'),
        (lambda d: d["model"].update(continuing_subword_prefix="##"), 'subword_prefix = "##"'),
        (lambda d: d["model"].update(cache_capacity=9), "model.cache_capacity = 9"),
        (lambda d: d["model"]["vocab"].update({"☃": 266}), 'model.vocab = "☃" is not written'),
        (lambda d: d["model"].update(vocab={}), r"model.vocab has no token .* for byte 0x00"),
        (lambda d: d["model"]["vocab"].pop("!"), r'model.vocab has no token "!" for byte 0x21'),
        (lambda d: d["added_tokens"][0].update(colour="red"), r"added_tokens\[0\].colour"),
        (lambda d: d.update(templates=[]), "templates = .* is an unknown key"),
    ],
)
def test_refused_by_name(change: Any, message: str) -> None:
    document = small_json()
    change(document)
    with pytest.raises(UnsupportedError, match=message):
        parse(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("model"), "model is missing"),
        (lambda d: d.update(model=[]), r"model is \[\], not an object"),
        (lambda d: d.update(model=None), "model is null, not an object"),
        (lambda d: d["model"].pop("vocab"), "model.vocab is missing"),
        (lambda d: d["model"].pop("merges"), "model.merges is missing"),
        (lambda d: d["model"].update(type=3), "model.type is 3, not a string"),
        (lambda d: (d["model"].pop("merges"), d["model"].pop("type")), "model.type is missing"),
        (lambda d: d["model"].update(vocab=[]), "model.vocab is"),
        (lambda d: d["model"].update(dropout="much"), 'model.dropout is "much", not a number'),
        (lambda d: d["model"].update(dropout=True), "model.dropout is true"),
        (lambda d: d["model"].update(fuse_unk=0), "model.fuse_unk is 0, not a boolean"),
        (lambda d: d["model"].update(unk_token=0), "model.unk_token is 0, not a string"),
        (lambda d: d["model"]["vocab"].update({"x": -1}), r'vocab\["x"\] is -1, not an id'),
        (
            lambda d: d["model"]["vocab"].update({"x": 2**63}),
            r'vocab\["x"\] is 9223372036854775808',
        ),
        (lambda d: d["model"]["vocab"].update({"x": 1.0}), r'vocab\["x"\] is 1.0'),
        (lambda d: d["model"]["vocab"].update({"x": True}), r'vocab\["x"\] is true'),
        (lambda d: d["model"]["vocab"].update({"x": None}), r'vocab\["x"\] is null'),
        (
            lambda d: d["model"]["vocab"].update({"xyz": 0}),
            r'vocab\["xyz"\] repeats the id 0 of "!"',
        ),
        (lambda d: d["model"]["vocab"].update({"": 266}), r'vocab\[""\] is a token without text'),
        (lambda d: d["model"].update(merges={}), r"model.merges is \{\}, not a list"),
        (lambda d: d["model"]["merges"].append("a"), r"model.merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append("a b c"), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(["a"]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(["a", 5]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append([["a"], "b"]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(None), r"merges\[\d+\] is null, not a pair"),
        (lambda d: d["model"]["merges"].append("qqq z"), r'merges\[\d+\] names "qqq"'),
        (lambda d: d["model"]["merges"].append("q z"), r'merges\[\d+\] names "qz"'),
        (lambda d: d["pre_tokenizer"].pop("type"), "pre_tokenizer.type is missing"),
        (lambda d: d["pre_tokenizer"].pop("add_prefix_space"), "add_prefix_space is missing"),
        (lambda d: d["pre_tokenizer"].update(add_prefix_space=0), "add_prefix_space is 0"),
        (lambda d: d.update(pre_tokenizer="ByteLevel"), 'pre_tokenizer is "ByteLevel"'),
        (lambda d: d.update(decoder=7), "decoder is 7, not an object"),
        (lambda d: d.update(added_tokens={}), r"added_tokens is \{\}, not a list"),
        (lambda d: d.update(added_tokens=[7]), r"added_tokens\[0\] is 7, not an object"),
        (lambda d: d["added_tokens"][0].pop("content"), r"added_tokens\[0\].content is missing"),
        (lambda d: d["added_tokens"][0].pop("lstrip"), r"added_tokens\[0\].lstrip is missing"),
        (lambda d: d["added_tokens"][0].update(special=1), r"added_tokens\[0\].special is 1"),
        (lambda d: d["added_tokens"][0].update(content="\ud800"), "which is not valid text"),
        (lambda d: d["added_tokens"][0].update(id=2**63), "the reference gives it 266"),
        (lambda d: d["added_tokens"][0].update(id=0), "is 0, but the reference gives it 266"),
        (lambda d: d["added_tokens"].append(added("<b>", 266)), "is 266, but .* gives it 267"),
        (lambda d: d["added_tokens"].append(added("<end>", 267)), 'repeats "<end>"'),
    ],
)
def test_malformed(change: Any, message: str) -> None:
    document = small_json()
    change(document)
    data = json.dumps(document).encode()
    with pytest.raises(TokenizerFileError, match=message):
        tokenizer_json.parse(data, "t.json")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"[]", r"top level is \[\]"),
        (b"null", "top level is null"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"a":' * 1_000_000, "nested too deeply"),
        (b'{"model": {"vocab": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"model": ', "not JSON"),
        (b'{"model": {"type": "BPE"}, "pre_tokenizer": NaN}', "pre_tokenizer is NaN"),
        (b'{"model": {"vocab": {"x": ' + b"9" * 10_000 + b"}}}", "not JSON"),
    ],
)
def test_not_a_document(data: bytes, message: str) -> None:
    with pytest.raises(TokenizerFileError, match=message):
        tokenizer_json.parse(data, "t.json")


def test_the_reference_reassigns_ids_as_this_loader_expects() -> None:
    """Why a file whose added ids have a gap is refused: the reference doesn't use them either."""
    document = small_json()
    document["added_tokens"][0]["id"] = 300
    reference = tokenizers.Tokenizer.from_str(json.dumps(document))
    assert reference.token_to_id("<end>") == 266
    with pytest.raises(TokenizerFileError, match="is 300, but the reference gives it 266"):
        parse(document)


def test_stored_truncation_and_padding_are_reported() -> None:
    document = small_json()
    document["truncation"] = {"max_length": 3}
    document["padding"] = {"length": 9}
    with pytest.warns(UserWarning) as caught:
        spec = parse(document)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        't.json: truncation = {"max_length": 3} is stored in the file and not applied',
        't.json: padding = {"length": 9} is stored in the file and not applied',
    ]
    assert len(Tokenizer.from_spec(spec).encode("a b c d e f")) > 3


@pytest.mark.filterwarnings("ignore:.*is stored in the file and not applied")
def test_mutated_files_load_or_are_refused() -> None:
    """Random damage to a file's structure: an error of this package, or a Spec that encodes."""
    rng = oracles.rng("mutated files")
    values: list[Any] = [
        None,
        True,
        0,
        -1,
        2**63,
        1.5,
        "",
        "a",
        "a b",
        [],
        ["a", "b"],
        {},
        {"type": "BPE"},
    ]
    clean = small_json()
    refused = 0
    for _ in range(oracles.FUZZ_SIZE):
        document = copy.deepcopy(clean)
        for _ in range(rng.randint(1, 3)):
            parent: Any = document
            while True:
                keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
                if not keys:
                    break
                key = rng.choice(keys)
                if isinstance(parent[key], dict | list) and rng.random() < 0.7:
                    parent = parent[key]
                    continue
                if rng.random() < 0.3:
                    del parent[key]
                else:
                    parent[key] = rng.choice(values)
                break
        try:
            spec = parse(document)
        except (TokenizerFileError, UnsupportedError):
            refused += 1
            continue
        assert (
            Tokenizer.from_spec(spec).decode_bytes(Tokenizer.from_spec(spec).encode("a b"))
            == b"a b"
        )
    assert 0 < refused < oracles.FUZZ_SIZE


def test_truncated_files_are_refused() -> None:
    data = json.dumps(small_json()).encode()
    for cut in random.Random(0).sample(range(len(data)), 100):
        with pytest.raises((TokenizerFileError, UnsupportedError)):
            tokenizer_json.parse(data[:cut], "t.json")


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


@pytest.mark.parametrize("config", ["[]", "{", '{"eos_token": 5}', '{"eos_token": {}}'])
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
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')

    def download(repo: str, name: str, revision: str | None = None) -> str:
        asked.append((repo, name, revision))
        return str(tmp_path / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    tokenizer = Tokenizer.load("org/name", revision="v2")
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


# ---- the real files ----

SHARED = os.environ.get("SAPHIRA_TEST_DATA")


@pytest.mark.skipif(not SHARED, reason="SAPHIRA_TEST_DATA is not set")
def test_published_files() -> None:
    vocabs = Path(SHARED or "") / "vocabs"
    assert loaders.load(vocabs / "r50k_base").fingerprint == loaders.load("gpt2").fingerprint
    p50k = Tokenizer.load(vocabs / "p50k_base")
    assert p50k.vocab_size == 50281 and p50k.eos_id == 50256
    gpt2 = Tokenizer.load(vocabs / "gpt2")
    assert gpt2.vocab_size == 50257
    reference = tokenizers.Tokenizer.from_file(str(vocabs / "gpt2" / "tokenizer.json"))
    for text in TEXTS:
        expected = reference.encode(text, add_special_tokens=False).ids
        assert gpt2.encode(text, special="parse").tolist() == expected
    for name, key in (
        ("llama3", "pre_tokenizer"),
        ("roberta_base", "post_processor"),
        ("clip", "normalizer"),
        ("bert_base_cased", "normalizer"),
        ("cl100k_base", "cl100k"),
    ):
        try:
            loaders.load(vocabs / name)
        except UnsupportedError as error:
            assert key in str(error)
