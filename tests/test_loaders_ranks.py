"""Loaders of rank files: .tiktoken, tiktoken.model, tekken.json; and vocab.json with merges.txt."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import oracles
import pytest
import tiktoken as openai
from tokenizer_files import (
    TEXTS,
    Json,
    added,
    parse,
    rank_file,
    same_ids,
    sequence,
    small_json,
    split,
    tekken,
    vocab_merges,
)

from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError, loaders
from saphira_gpu.loaders import Source, _bytelevel, tiktoken
from saphira_gpu.pretok import schemes
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec


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


@pytest.mark.parametrize(
    ("name", "scheme", "ids"),
    [
        ("p50k_edit", "gpt2", [50256, 50281, 50282, 50283]),
        ("cl100k_base", "cl100k", [100257, 100258, 100259, 100260, 100276]),
        ("o200k_base", "o200k", [199999, 200018]),
        ("o200k_harmony", "o200k", [199999, 200018, 199998, *range(200000, 201088)]),
    ],
)
def test_rank_files_with_more_special_tokens(
    tmp_path: Path, name: str, scheme: str, ids: list[int]
) -> None:
    path = tmp_path / f"{name}.tiktoken"
    path.write_bytes(rank_file())
    spec = loaders.load(path)
    assert (spec.pretok.scheme, [token.id for token in spec.added]) == (scheme, ids)
    assert loaders.load(path, scheme=scheme) == spec
    assert loaders.load(path, scheme="qwen2").added == ()


def test_tiktoken_model_takes_special_tokens_from_beside_it(tmp_path: Path) -> None:
    """Kimi's way."""
    path = tmp_path / "tiktoken.model"
    path.write_bytes(rank_file())
    with pytest.raises(TokenizerFileError, match="name one with scheme="):
        loaders.load(tmp_path)
    assert loaders.load(tmp_path, scheme="o200k").added == ()
    tokens = {
        "301": {"content": "[EOS]", "special": True},
        "305": {"content": "<x>", "lstrip": True},
    }
    tokens["306"] = {"content": "<y>", "special": False}
    config = {"added_tokens_decoder": tokens, "eos_token": "[EOS]", "bos_token": "[BOS]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    spec = loaders.load(path, scheme="o200k")
    assert spec.added == (
        AddedToken("[EOS]", 301),
        AddedToken("<x>", 305, lstrip=True),
        AddedToken("<y>", 306, special=False),
    )
    assert (spec.eos, spec.bos) == ("[EOS]", "[BOS]")
    tokenizer = Tokenizer.load(path, scheme="o200k")
    assert tokenizer.eos_id == 301 and tokenizer.encode("[EOS]", special="parse").tolist() == [301]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "added_tokens_decoder is \\[\\], not an object"),
        ({"x": {"content": "a"}}, r'\["x"\] is not an id'),
        ({"-1": {"content": "a"}}, r'\["-1"\] is not an id'),
        ({"9" * 5000: {"content": "a"}}, r"is not an id"),
        ({"9223372036854775808": {"content": "a"}}, r"is not an id"),
        ({"٣": {"content": "a"}}, r"is not an id"),
        ({"300": {"content": "a"}, "0300": {"content": "b"}}, r"is not an id"),
        ({"300": []}, r"is \[\], not an object"),
        ({"300": {}}, r"content is missing"),
        ({"300": {"content": "a", "special": 1}}, r"special is 1, not a boolean"),
        ({"300": {"content": "a"}, "301": {"content": "a"}}, r"repeats"),
        ({"300": {"content": "\ud800"}}, r"not valid text"),
        ({"5": {"content": "a"}}, r"the id 5 of a is the rank of a token"),
    ],
)
def test_malformed_special_tokens(tmp_path: Path, tokens: Any, message: str) -> None:
    (tmp_path / "tiktoken.model").write_bytes(rank_file())
    config = {"added_tokens_decoder": tokens}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(TokenizerFileError, match=message):
        loaders.load(tmp_path, scheme="gpt2")
    # A tokenizer.json lists its own tokens, and the reference asks no other file.
    (tmp_path / "tokenizer.json").write_text(json.dumps(small_json()))
    assert len(loaders.load(tmp_path).added) == 1


def test_a_rank_without_bytes() -> None:
    """The last line of Whisper's file. Nothing reaches it; tiktoken takes it too."""
    spec = tiktoken.parse(rank_file() + b"= 300\n", "x", "x", "gpt2")
    assert spec.bpe.tokens[300:] == (None,)
    with pytest.raises(TokenizerFileError, match="repeats the token b''"):
        tiktoken.parse(rank_file() + b"= 300\n= 301\n", "x", "x", "gpt2")
    with pytest.raises(TokenizerFileError, match="rank 299 is given to two tokens"):
        tiktoken.parse(rank_file() + b"= 299\n", "x", "x", "gpt2")


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


def test_a_pattern_means_what_its_engine_makes_of_it() -> None:
    r"""`\p{N}{1,3}+` is one or more of {1,3} to HF, and possessive to tiktoken."""
    found = {scheme["name"]: scheme["patterns"] for scheme in schemes.table()["schemes"]}
    pattern = found["cl100k"]["tiktoken"]
    assert found["cl100k_hf"]["hf"] == pattern
    document = small_json()
    byte_level = document["pre_tokenizer"] | {"use_regex": False}
    document["pre_tokenizer"] = sequence(split(pattern), byte_level)
    spec = parse(document)
    assert spec.pretok == Pretok("cl100k_hf")
    merges = [[a, b] for a in "0123456789" for b in "0123456789"]
    vocab = document["model"]["vocab"]
    for pair in merges:
        vocab.setdefault("".join(pair), len(vocab))
    document["model"]["merges"] += merges
    document["added_tokens"] = []
    texts = ["1234567", "a1234 12\n", " 12345678901 ", "it'S 1\n2"]
    same_ids(document, texts)
    ranks = {_bytelevel.to_bytes(token): number for token, number in vocab.items()}
    theirs = openai.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    tokens = tuple(ranks)
    rank_spec = Spec((), Pretok("cl100k"), Bpe(tokens, None, whole_piece_first=True))
    ours = Tokenizer.from_spec(rank_spec)
    for text in texts:
        assert ours.encode(text).tolist() == theirs.encode_ordinary(text)
    both = [Tokenizer.from_spec(parse(document)).encode(texts[0]).tolist(), ours.encode(texts[0])]
    assert both[0] != list(both[1])


# ---- tekken.json ----


def test_tekken(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(tekken()))
    spec = loaders.load(path)
    assert spec.pretok.scheme == "tekken" and spec.bpe.merges is None
    assert len(spec.bpe.tokens) == 20 + 290 and spec.bpe.tokens[:20] == (None,) * 20
    assert spec.added[:3] == (AddedToken("<unk>", 0), AddedToken("<s>", 1), AddedToken("</s>", 2))
    assert spec.added[19] == AddedToken("[TOOL_CONTENT]", 19)
    assert (spec.eos, spec.bos) == ("</s>", "<s>")
    ranks = tiktoken.parse(rank_file(290), "x", "x", "tekken")
    for text in TEXTS:
        ids = Tokenizer.from_spec(ranks).encode(text) + 20
        assert Tokenizer.from_spec(spec).encode(text).tolist() == ids.tolist()


def test_tekken_special_tokens() -> None:
    document = tekken()
    document["config"] |= {"default_num_special_tokens": 22, "default_vocab_size": 312}
    spec = parsed(document)
    assert spec.added[20:] == (AddedToken("<SPECIAL_20>", 20), AddedToken("<SPECIAL_21>", 21))
    document["special_tokens"] = [
        {"rank": i, "token_str": f"<{i}>", "is_control": True} for i in (1, 0, 2)
    ]
    document["config"]["version"] = "v13"
    spec = parsed(document)
    assert spec.added[0] == AddedToken("<1>", 1) and spec.added[1] == AddedToken("<0>", 0)
    assert spec.added[3] == AddedToken("<SPECIAL_3>", 3) and len(spec.added) == 22
    assert spec.eos is None and spec.bos is None


def parsed(document: Json) -> Any:
    return Source("json", "tekken", "tekken.json", json.dumps(document).encode()).spec()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(config=[]), r"config is \[\], not an object"),
        (lambda d: d.pop("vocab"), "vocab is missing"),
        (lambda d: d.update(vocab={}), r"vocab is \{\}, not a list"),
        (lambda d: d["config"].pop("default_vocab_size"), "config.default_vocab_size is missing"),
        (lambda d: d["config"].update(default_vocab_size=2**63), "default_vocab_size is 922"),
        (lambda d: d["config"].update(default_vocab_size=-1), "default_vocab_size is -1"),
        (lambda d: d["config"].update(default_vocab_size=100), "leaves 80 of 300 ranks"),
        (lambda d: d["config"].update(default_vocab_size=400), "leaves 380 of 300 ranks"),
        (lambda d: d["config"].update(default_num_special_tokens=2**40), "special_tokens is 1099"),
        (lambda d: d["config"].update(default_num_special_tokens=13), "is 13, and there are 20"),
        (lambda d: d["config"].update(version="7"), 'config.version is "7"'),
        (lambda d: d["config"].update(version="v11"), "special_tokens is missing .* v11"),
        (lambda d: d["config"].update(pattern=5), "config.pattern is 5, not a string"),
        (lambda d: d["vocab"].__setitem__(7, 5), r"vocab\[7\] is 5, not an object"),
        (lambda d: d["vocab"][7].update(rank=8), r"vocab\[7\].rank is 8"),
        (lambda d: d["vocab"][7].update(token_bytes="?"), r'vocab\[7\].token_bytes is "\?"'),
        (lambda d: d["vocab"][7].update(token_bytes=""), r'vocab\[7\].token_bytes is ""'),
        (lambda d: d["vocab"][7].update(token_bytes="AA=="), "byte 0x|repeats those of rank"),
        (lambda d: d["vocab"][7].update(token_bytes="YWE="), "no token for byte"),
        (lambda d: d.update(special_tokens={}), r"special_tokens is \{\}, not a list"),
        (lambda d: d.update(special_tokens=[{"rank": 99, "token_str": "a"}]), "rank below 20"),
        (lambda d: d.update(special_tokens=[{"rank": 0, "token_str": "\ud800"}]), "rank below"),
        (lambda d: d.update(special_tokens=[{"rank": 0, "token_str": "a"}] * 2), "rank below"),
        (
            lambda d: d.update(special_tokens=[{"rank": 5, "token_str": "<SPECIAL_1>"}]),
            "names <SPECIAL_1>",
        ),
    ],
)
def test_malformed_tekken(change: Any, message: str) -> None:
    document = tekken()
    change(document)
    with pytest.raises(TokenizerFileError, match=message):
        parsed(document)


def test_tekken_of_another_pattern() -> None:
    document = tekken()
    document["config"]["pattern"] = "a+"
    with pytest.raises(UnsupportedError, match=r'config.pattern = "a\+" is no compiled scheme'):
        parsed(document)


# ---- vocab.json and merges.txt ----


def test_vocab_and_merges_equal_the_tokenizer_json(tmp_path: Path) -> None:
    vocab, merges = vocab_merges()
    (tmp_path / "vocab.json").write_bytes(vocab)
    (tmp_path / "merges.txt").write_bytes(merges)
    spec = loaders.load(tmp_path / "merges.txt")
    assert spec == dataclasses.replace(loaders.load(tmp_path), name=spec.name)
    assert spec.added == (AddedToken("<|endoftext|>", 266),) and spec.eos == "<|endoftext|>"
    document = small_json()
    document["model"]["vocab"]["<|endoftext|>"] = 266
    document["added_tokens"] = [added("<|endoftext|>", 266, special=True)]
    expected = parse(document)
    assert (spec.bpe, spec.pretok, spec.added) == (expected.bpe, expected.pretok, expected.added)
    assert loaders.load(tmp_path, scheme="qwen2").pretok.scheme == "qwen2"
    with pytest.raises(UnsupportedError, match="scheme 'martian' is not supported"):
        loaders.load(tmp_path, scheme="martian")
    config = {"added_tokens_decoder": {"0": {"content": "!"}, "267": {"content": "<z>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert [token.id for token in loaders.load(tmp_path).added] == [0, 267]
    (tmp_path / "merges.txt").write_bytes(merges.replace(b"\n", b"\r\n"))
    assert loaders.load(tmp_path).bpe == spec.bpe


@pytest.mark.parametrize(
    ("vocab", "merges", "config", "message"),
    [
        (lambda v: v[:-5], None, None, "not JSON"),
        (lambda v: b"[]", None, None, r"top level is \[\]"),
        (lambda v: v.replace(b" 265", b" -1"), None, None, "is -1, not an id"),
        (lambda v: v.replace(b" 265", b" 264"), None, None, "repeats the id 264"),
        (None, lambda m: m + b"a\n", None, r"merges\[\d+\] is .*not a pair"),
        (None, lambda m: m + b"a b c\n", None, r"merges\[\d+\] is .*not a pair"),
        (None, lambda m: m + b"a \n", None, r"merges\[\d+\] is .*not a pair"),
        (None, lambda m: m + b"q z\n", None, r'merges\[\d+\] names "qz"'),
        (None, lambda m: m + b"\xff\n", None, r"merges\.txt: not UTF-8 at byte"),
        (None, None, {"5": {"content": "<x>"}}, "'<x>' is the added token 5, but vocab.json has"),
        (None, None, {"300": {"content": "!"}}, "'!' is the added token 300, but vocab.json has"),
    ],
)
def test_malformed_vocab_and_merges(vocab: Any, merges: Any, config: Any, message: str) -> None:
    data, lines = vocab_merges()
    beside = b"" if config is None else json.dumps({"added_tokens_decoder": config}).encode()
    source = Source(
        "vocab_merges",
        "vocab",
        "vocab.json",
        vocab(data) if vocab else data,
        beside,
        None,
        merges(lines) if merges else lines,
    )
    with pytest.raises(TokenizerFileError, match=message):
        source.spec()


def test_clip_needs_its_tokenizer_json() -> None:
    source = Source("vocab_merges", "vocab", "vocab.json", b'{"a": 0, "a</w>": 1}')
    with pytest.raises(UnsupportedError, match=r"CLIP's kind need its tokenizer\.json"):
        source.spec()


# ---- damage ----


def test_mutated_files_load_or_are_refused() -> None:
    """Random damage to the bytes of each format: an error of this package, or a Spec."""
    rng = oracles.rng("mutated rank files")
    vocab, merges = vocab_merges()
    clean = {
        "tiktoken": rank_file(),
        "json": json.dumps(tekken()).encode(),
        "vocab_merges": vocab,
    }
    refused = 0
    for i in range(oracles.FUZZ_SIZE):
        kind = rng.choice(list(clean))
        data, lines = bytearray(clean[kind]), bytearray(merges)
        for _ in range(rng.randint(1, 3)):
            target = lines if kind == "vocab_merges" and rng.random() < 0.5 else data
            at = rng.randrange(len(target))
            match rng.randrange(4):
                case 0:
                    del target[at : at + rng.randint(1, 200)]
                case 1:
                    target[at] = rng.randrange(256)
                case 2:
                    target[at:at] = rng.choice([b"9" * 30, b"\n", b" ", b'"', b"\xff", b"[" * 5000])
                case 3:
                    del target[at:]
            if not target:
                target += b"\n"
        source = Source(kind, "x", "x", bytes(data), b"", None, bytes(lines))  # type: ignore[arg-type]
        if kind == "tiktoken":
            source = dataclasses.replace(source, scheme="gpt2")
        try:
            spec = source.spec()
            tokenizer = Tokenizer.from_spec(spec)
        except (TokenizerFileError, UnsupportedError):
            refused += 1
            continue
        if len(spec.bpe.tokens) > 256 and i % 4 == 0:
            assert tokenizer.decode_bytes(tokenizer.encode("a b")) == b"a b"
    assert 0 < refused < oracles.FUZZ_SIZE
