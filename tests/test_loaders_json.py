"""Loader of tokenizer.json: what it reads, what it refuses by name, how it fares with bad files."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import tracemalloc
from typing import Any

import oracles
import pytest
import tokenizers
from oracles import hf_gpt2
from tokenizer_files import TEXTS, Json, added, parse, same_ids, sequence, small_json, split

from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError, loaders
from saphira_gpu.loaders import _bytelevel, tokenizer_json
from saphira_gpu.pretok import schemes
from saphira_gpu.pretok.steps import AFTER, BEFORE, RUN, Bytemap, Classes, Prefix, Scheme
from saphira_gpu.spec import AddedToken, Decoder, Normalizer, PostProcessor, Pretok


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


QWEN2 = next(s["patterns"]["hf"] for s in schemes.table()["schemes"] if s["name"] == "qwen2")
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 2],
    "cls": ["<s>", 1],
    "trim_offsets": True,
    "add_prefix_space": False,
}


def template(*parts: str) -> Json:
    """TemplateProcessing: "A" and "B" are texts, "[7]" is a token of id 7."""
    names = [part for part in parts if part[0] == "["]
    single = [
        {"SpecialToken" if p in names else "Sequence": {"id": p, "type_id": 0}} for p in parts
    ]
    tokens = {p: {"id": p, "ids": json.loads(p), "tokens": [p]} for p in names}
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": tokens}


def without_byte(**options: Any) -> Any:
    """A change that takes the token of "!" away, and the first merges that name it, if any."""

    def change(document: Json) -> None:
        model = document["model"]
        del model["vocab"]["!"]
        model["vocab"] = {token: i for i, token in enumerate(model["vocab"])}
        document["added_tokens"] = [added("<end>", 265)]
        model.update(options)

    return change


def with_suffix(document: Json, merges: list[list[str]]) -> None:
    """CLIP's way: every byte also at the end of a word, and these merges."""
    symbols = list(_bytelevel.ALPHABET)
    tokens = [*symbols, *(symbol + "</w>" for symbol in symbols), "a<", "/w>"]
    tokens += [left + right for left, right in merges if left + right not in tokens]
    vocab = {token: number for number, token in enumerate(tokens)}
    document["model"].update(vocab=vocab, merges=merges, end_of_word_suffix="</w>")
    document["added_tokens"] = [added("<end>", len(tokens))]


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
        lambda d: d["pre_tokenizer"].update(add_prefix_space=True),
        lambda d: d["pre_tokenizer"].update(use_regex=False),
        lambda d: d.update(pre_tokenizer=sequence(d["pre_tokenizer"])),
        lambda d: d.update(
            pre_tokenizer=sequence(
                {"type": "Digits", "individual_digits": True}, d["pre_tokenizer"]
            )
        ),
        lambda d: d.update(
            pre_tokenizer=sequence(
                {"type": "Punctuation", "behavior": "Contiguous"},
                d["pre_tokenizer"],
                {"type": "Digits", "individual_digits": False},
            )
        ),
        lambda d: d.update(
            pre_tokenizer=sequence(
                split(QWEN2), d["pre_tokenizer"] | {"use_regex": False, "add_prefix_space": True}
            )
        ),
        lambda d: d.update(pre_tokenizer=sequence(split("h", "String"), d["pre_tokenizer"])),
        lambda d: d.update(normalizer={"type": "NFC"}),
        lambda d: d.update(
            normalizer={
                "type": "Sequence",
                "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}],
            }
        ),
        lambda d: d["model"].update(unk_token="!", fuse_unk=True),
        lambda d: d["model"].update(byte_fallback=True),
        lambda d: (
            d["model"]["vocab"].update({"": 266}),
            d.update(added_tokens=[added("<end>", 267)]),
        ),
        without_byte(),
        without_byte(fuse_unk=True),
        lambda d: with_suffix(d, [["a", "b"], ["t", "h"], ["t", "h</w>"], ["th", "e</w>"]]),
        lambda d: d.update(post_processor=ROBERTA),
        lambda d: d.update(decoder={"type": "Sequence", "decoders": [d["decoder"]]}),
        lambda d: d.update(
            post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}
        ),
        lambda d: d.update(decoder=None, post_processor=None),
        lambda d: d["added_tokens"].extend([added("<b>", 267, special=True), added("the", 268)]),
        lambda d: (
            d.update(normalizer={"type": "Lowercase"}),
            d["added_tokens"].extend([added("<B>", 267, normalized=True), added("THE", 268)]),
        ),
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
        (
            lambda d: d.update(normalizer={"type": "BertNormalizer"}),
            'normalizer.type = "BertNormalizer"',
        ),
        (lambda d: d.update(pre_tokenizer=None), "pre_tokenizer = null"),
        (lambda d: d.pop("pre_tokenizer"), "pre_tokenizer = null"),
        (
            lambda d: d.update(pre_tokenizer={"type": "Whitespace"}),
            'pre_tokenizer = {"type": "Whitespace"} is not supported: it has no ByteLevel',
        ),
        (
            lambda d: d.update(pre_tokenizer=sequence(d["pre_tokenizer"], d["pre_tokenizer"])),
            "pre_tokenizer = .* it has ByteLevel more than once",
        ),
        (lambda d: d.update(pre_tokenizer=sequence()), "pre_tokenizer = .* it has no ByteLevel"),
        (
            lambda d: d.update(pre_tokenizer=sequence(split("a|"), d["pre_tokenizer"])),
            r'pretokenizers\[0\].pattern.Regex = "a\|"',
        ),
        (lambda d: d["pre_tokenizer"].update(colour=1), "pre_tokenizer.colour = 1"),
        (
            lambda d: d.update(post_processor={"type": "Other"}),
            'post_processor.type = "Other"',
        ),
        (
            lambda d: d.update(
                post_processor={"type": "Sequence", "processors": [ROBERTA, template("[1]", "A")]}
            ),
            r"processors\[1\] = .* is a second template",
        ),
        (
            lambda d: d.update(post_processor=template("[1]", "B")),
            r'post_processor.single\[1\] = \{"Sequence": \{"id": "B"',
        ),
        (lambda d: d.update(post_processor=template("A", "A")), r"post_processor.single\[1\]"),
        (lambda d: d.update(post_processor=template("[1]")), "leaves the text out"),
        (lambda d: d.update(decoder={"type": "Metaspace"}), 'decoder.type = "Metaspace"'),
        (lambda d: d.update(decoder={"type": "Sequence", "decoders": []}), "decoder.decoders"),
        (lambda d: d["model"].update(type="WordPiece"), 'model.type = "WordPiece"'),
        (lambda d: d["model"].update(dropout=0.1), "model.dropout = 0.1"),
        (without_byte(unk_token="z"), 'model.unk_token = "z" .* no token for byte 0x21'),
        (without_byte(unk_token=""), 'model.unk_token = ""'),
        (without_byte(ignore_merges=True), "model.ignore_merges = true .* byte 0x21"),
        (without_byte(byte_fallback=True), "model.byte_fallback = true .*SentencePiece"),
        (
            lambda d: d["model"].update(end_of_word_suffix="</w>"),
            'end_of_word_suffix = "</w>" .* no token for byte 0x00',
        ),
        (
            lambda d: d["model"].update(end_of_word_suffix="</w>", ignore_merges=True),
            "model.ignore_merges = true is not supported with end_of_word_suffix",
        ),
        (lambda d: with_suffix(d, [["a</w>", "b"]]), r"merges\[\d+\] = .* has '</w>' in another"),
        (lambda d: with_suffix(d, [["a<", "/w>"]]), r"merges\[\d+\] = .* has '</w>' in another"),
        (lambda d: d["model"].update(continuing_subword_prefix="##"), 'subword_prefix = "##"'),
        (lambda d: d["model"].update(cache_capacity=9), "model.cache_capacity = 9"),
        (lambda d: d["model"]["vocab"].update({"☃": 266}), 'model.vocab = "☃" is not written'),
        (lambda d: d["model"].update(vocab={}), r"model.vocab has .* 0 of the 256 bytes"),
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
        (lambda d: d["model"].update(merges={}), r"model.merges is \{\}, not a list"),
        (lambda d: d["model"]["merges"].append("a"), r"model.merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append("a b c"), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(["a"]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(["a", 5]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append([["a"], "b"]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append(None), r"merges\[\d+\] is null, not a pair"),
        (lambda d: d["model"]["merges"].append("qqq z"), r'merges\[\d+\] names "qqq"'),
        (lambda d: d["model"]["merges"].append("q z"), r'merges\[\d+\] names "qz"'),
        (lambda d: d["model"]["merges"].append(["", "z"]), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d["model"]["merges"].append("z "), r"merges\[\d+\] is .*not a pair"),
        (lambda d: d.update(pre_tokenizer={"type": "Sequence"}), "pretokenizers is missing"),
        (lambda d: d.update(pre_tokenizer=sequence(5)), r"pretokenizers\[0\] is 5, not an"),
        (lambda d: d.update(normalizer=[]), r"normalizer is \[\], not an object"),
        (lambda d: d.update(post_processor=7), "post_processor is 7, not an object"),
        (lambda d: d.update(post_processor={"type": "Sequence"}), "processors is missing"),
        (
            lambda d: d.update(post_processor={**ROBERTA, "sep": ["</s>"]}),
            "post_processor.sep is not a token and its id",
        ),
        (
            lambda d: d.update(post_processor={**ROBERTA, "cls": ["<s>", 2**63]}),
            r"post_processor.cls\[1\] is 9223372036854775808, not an id",
        ),
        (
            lambda d: d.update(post_processor={**ROBERTA, "trim_offsets": 1}),
            "post_processor.trim_offsets is 1",
        ),
        (
            lambda d: d.update(post_processor=template("[7]", "A") | {"special_tokens": {}}),
            r"post_processor.single\[0\] names '\[7\]', which is not in special_tokens",
        ),
        (
            lambda d: d.update(post_processor=template("[-1]", "A")),
            r"special_tokens\['\[-1\]'\].ids is -1, not an id",
        ),
        (
            lambda d: d.update(post_processor=template("A") | {"single": [{}]}),
            r"single\[0\] is not one SpecialToken or one Sequence",
        ),
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
        (b'{"model": NaN}', "model is NaN"),
        (b'{"model": {"vocab": {"x": ' + b"9" * 10_000 + b"}}}", "not JSON"),
    ],
)
def test_not_a_document(data: bytes, message: str) -> None:
    with pytest.raises(TokenizerFileError, match=message):
        tokenizer_json.parse(data, "t.json")


def test_nesting_of_every_kind_is_bounded() -> None:
    deep: Any = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    for key, name in (
        ("pre_tokenizer", "pretokenizers"),
        ("post_processor", "processors"),
        ("decoder", "decoders"),
        ("normalizer", "normalizers"),
    ):
        document = small_json()
        value = {"type": "NFC"} if key == "normalizer" else deep
        for _ in range(200):
            value = {"type": "Sequence", name: [value]}
        document[key] = value
        with pytest.raises(UnsupportedError, match=key):
            parse(document)


def test_a_hundred_megabytes_of_nesting() -> None:
    """Refused in the time and memory that reading them takes."""
    data = b"[" * 100_000_000
    tracemalloc.start()
    with pytest.raises(TokenizerFileError, match="nested too deeply"):
        tokenizer_json.parse(data, "t.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250_000_000


def test_memory_is_bounded_by_the_largest_id() -> None:
    document = small_json()
    document["model"]["vocab"]["zz"] = (1 << 22) - 1
    document["added_tokens"] = []
    data = json.dumps(document).encode()
    tracemalloc.start()
    tokenizer_json.parse(data, "t.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000_000


# ---- what a Spec says ----


def test_pre_tokenizers_in_the_spec() -> None:
    document = small_json()
    byte_level = document["pre_tokenizer"]
    plain, bare = byte_level | {"use_regex": True}, byte_level | {"use_regex": False}
    spaced = bare | {"add_prefix_space": True}
    digits = {"type": "Digits", "individual_digits": False}
    cut = Classes("digits", (("N", RUN),))
    each = {"type": "Digits", "individual_digits": True}
    cases: list[tuple[Json, Pretok]] = [
        (plain, Pretok("gpt2")),
        (plain | {"add_prefix_space": True}, Pretok("gpt2", add_prefix_space=True)),
        (bare, Pretok()),
        (sequence(split(QWEN2), bare), Pretok("qwen2")),
        (sequence(sequence(split(QWEN2)), sequence(bare)), Pretok("qwen2")),
        (
            sequence(split(QWEN2), spaced),
            Pretok(stages=(Scheme("qwen2"), Prefix(" "))),
        ),
        (sequence(split(QWEN2), plain), Pretok(stages=(Scheme("qwen2"), Scheme("gpt2")))),
        (sequence(digits, plain), Pretok(stages=(cut, Scheme("gpt2")))),
        (sequence(each, plain), Pretok("starcoder")),
        (sequence(spaced, digits), Pretok(stages=(Bytemap(), cut), add_prefix_space=True)),
        (
            sequence(plain, digits, each),
            Pretok(
                stages=(
                    Scheme("gpt2"),
                    Bytemap(),
                    cut,
                    Classes("digits", (("N", BEFORE | AFTER),)),
                )
            ),
        ),
    ]
    for value, expected in cases:
        document["pre_tokenizer"] = value
        assert parse(document).pretok == expected
    with pytest.raises(ValueError, match="'gpt2' and stages"):
        Pretok("gpt2", stages=(cut,))


def test_the_rest_of_the_spec() -> None:
    document = small_json()
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    bert = {"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]}
    whole: Json = {"type": "Sequence", "processors": [byte_level, template("[5, 6]", "A", "[7]")]}
    cases: list[tuple[Json | None, PostProcessor]] = [
        (None, PostProcessor()),
        (byte_level, PostProcessor(trims=(True,))),
        (byte_level | {"trim_offsets": False}, PostProcessor()),
        (ROBERTA, PostProcessor((1,), (2,), (False,))),
        (bert, PostProcessor((3,), (4,))),
        (template("A"), PostProcessor()),
        (template("[1]", "[2]", "A"), PostProcessor((1, 2))),
        (whole, PostProcessor((5, 6), (7,), (True,))),
    ]
    for value, expected in cases:
        document["post_processor"] = value
        spec = parse(document)
        assert spec.post == expected and spec.normalizers == (Normalizer("nfc"),)
        assert spec.decoder == Decoder()
        # What comes after the model decides no id of text.
        assert spec.fingerprint == parse(document | {"post_processor": None}).fingerprint
    assert spec.fingerprint != parse(document | {"normalizer": None}).fingerprint


def test_ends_of_words_in_the_spec() -> None:
    document = small_json()
    with_suffix(document, [["t", "h"], ["th", "e</w>"]])
    spec = parse(document)
    bpe = spec.bpe
    assert bpe.end_of_word_suffix == "</w>" and spec.decoder == Decoder("</w>", "</w>")
    assert [(bpe.tokens[i], bpe.ends[i]) for i in (97, 97 + 256)] == [
        (_bytelevel.to_bytes(_bytelevel.ALPHABET[97]), False),
        (_bytelevel.to_bytes(_bytelevel.ALPHABET[97]), True),
    ]
    assert bpe.tokens[-2:] == (b"th", b"the") and bpe.ends[-2:] == (False, True)
    plain = dataclasses.replace(bpe, ends=(), end_of_word_suffix="")
    assert dataclasses.replace(spec, bpe=plain).fingerprint != spec.fingerprint


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
    """Random damage to a file's structure: an error of this package, or the reference's ids."""
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
                    parent[key] = copy.deepcopy(rng.choice(values))
                break
        try:
            spec = parse(document)
        except (TokenizerFileError, UnsupportedError):
            refused += 1
            continue
        tokenizer = Tokenizer.from_spec(spec)
        try:
            reference = tokenizers.Tokenizer.from_str(json.dumps(document))
        except Exception:  # it is stricter in places, as with keys that are missing
            continue
        ids = reference.encode("a b <end>", add_special_tokens=False).ids
        assert tokenizer.encode("a b <end>", special="parse").tolist() == ids, document
    assert 0 < refused < oracles.FUZZ_SIZE


def test_truncated_files_are_refused() -> None:
    data = json.dumps(small_json()).encode()
    for cut in random.Random(0).sample(range(len(data)), 100):
        with pytest.raises((TokenizerFileError, UnsupportedError)):
            tokenizer_json.parse(data[:cut], "t.json")
