"""Offsets: spans of ids in bytes and characters, against Hugging Face's."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
import tokenizers
from oracles import byte_positions, fuzz, small_spec
from tokenizers import processors

from saphira_gpu import InputError, Tokenizer, reference
from saphira_gpu.spec import Normalizer, PostProcessor, Pretok, Spec

Spans = list[tuple[int, int]]


def ours(tok: Tokenizer, text: str | bytes, unit: Any = "char", special: Any = "parse") -> Spans:
    ids, spans = tok.encode(text, special=special, offsets=unit)
    assert spans.dtype == np.int64 and spans.shape == (len(ids), 2)
    assert ids.tolist() == tok.encode(text, special=special).tolist()
    return [(start, end) for start, end in spans.tolist()]


def in_bytes(text: str, spans: Spans) -> Spans:
    at = byte_positions(text)
    return [(at[start], at[end]) for start, end in spans]


def check(tok: Tokenizer, hf: tokenizers.Tokenizer, texts: list[str]) -> int:
    """Compares ids and spans of texts, in a batch, in both units. Returns how many ids."""
    want = hf.encode_batch(texts, add_special_tokens=False)
    chars = tok.encode_batch(texts, special="parse", offsets="char")
    raw = tok.encode_batch(texts, special="parse", offsets="byte")
    for i, (text, encoding) in enumerate(zip(texts, want, strict=True)):
        ids, spans, bytes_ = chars[i], chars.row_spans(i), raw.row_spans(i)
        assert ids is not None and spans is not None and bytes_ is not None
        assert ids.tolist() == encoding.ids, repr(text)
        assert list(map(tuple, spans.tolist())) == encoding.offsets, repr(text)
        assert list(map(tuple, bytes_.tolist())) == in_bytes(text, encoding.offsets), repr(text)
    return int(chars.offsets[-1])


# ---- GPT-2, embedded ----


@fuzz(oracles.texts, size=4)
def test_spans_are_the_references(text: str) -> None:
    check(_gpt2(), oracles.hf_gpt2(), [text])


def test_random_texts(gpt2: Tokenizer) -> None:
    alphabet = [*oracles.RULES, " world", "hello", oracles.END_OF_TEXT, "👍🏽", "日本"]
    texts = oracles.random_texts("offsets", alphabet, 10 * oracles.FUZZ_SIZE, 40)
    texts += oracles.random_unicode("offsets", 10 * oracles.FUZZ_SIZE, 30)
    assert check(gpt2, oracles.hf_gpt2(), texts) > 0


def test_spans_add_up_to_the_text(gpt2: Tokenizer) -> None:
    text = "Hello wörld, 12 ☃ 🙂" + oracles.END_OF_TEXT + " naïve"
    for special in ("plain", "parse"):
        spans = ours(gpt2, text, "byte", special)
        assert spans[0][0] == 0 and spans[-1][1] == len(text.encode())
        assert all(start < end for start, end in spans)
    assert ours(gpt2, "☃", "char") == [(0, 1)] * 2 and ours(gpt2, "☃", "byte") == [(0, 3)] * 2
    assert ours(gpt2, "") == []


def test_bytes_that_are_no_utf8(gpt2: Tokenizer) -> None:
    # 61 | ff | e2 82 (cut short) | 62 | e2 82 ac
    text = b"a\xff\xe2\x82b\xe2\x82\xac"
    ids = gpt2.encode(text).tolist()
    parts = [gpt2.id_to_bytes(i) or b"" for i in ids]
    chars = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 8)]
    at = 0
    for part, byte_span, char_span in zip(
        parts, ours(gpt2, text, "byte"), ours(gpt2, text, "char"), strict=True
    ):
        covered = [i for i, (a, b) in enumerate(chars) if a < at + len(part) and b > at]
        assert char_span == (covered[0], covered[-1] + 1)
        assert byte_span == (chars[covered[0]][0], chars[covered[-1]][1])
        at += len(part)


@fuzz(oracles.any_bytes)
def test_any_bytes_have_spans_of_whole_characters(data: bytes) -> None:
    tok = _gpt2()
    chars = reference.classify(data)
    edges = [char.start for char in chars] + [len(data)]
    spans = ours(tok, data, "byte", "plain")
    assert all(start in edges and end in edges for start, end in spans)
    at = 0
    for number, (start, end) in zip(tok.encode(data).tolist(), spans, strict=True):
        part = tok.id_to_bytes(number)
        assert part is not None and start <= at and at + len(part) <= end
        assert data[at : at + len(part)] == part
        at += len(part)
    assert [(edges[a], edges[b]) for a, b in ours(tok, data, "char", "plain")] == spans


# ---- added tokens, trimming, normalizers, prefixes: small tokenizers ----

CONTENTS = ["<a>", "<a>b", "<b>", "é", "  ", "x y", "ab", "\u00c5", "Ġq", " z"]
MERGES = [(b" ", b"a"), (b"a", b"b"), (b" a", b"b"), (b"<", b"a"), (b"\xc3", b"\xa9"), (b" ", b" ")]
PARTS = [
    *CONTENTS,
    *" \t\n\u00a0\u3000aAbcéq<>",
    "e\u0301",
    "\u212b",
    "각",
    "\u1112\u1161\u11ab",
    "a  ",
]


def made_up(seed: str, normalizers: tuple[Normalizer, ...] = ()) -> Spec:
    source = oracles.rng(seed)
    contents = source.sample(CONTENTS, source.randint(0, 4))
    flags = ["".join(flag for flag in "snlrw" if source.random() < 0.4) for _ in contents]
    spec = small_spec(MERGES, list(zip(contents, flags, strict=True)))
    return _replaced(spec, normalizers=normalizers)


def _replaced(spec: Spec, **fields: Any) -> Spec:
    import dataclasses

    return dataclasses.replace(spec, **fields)


def test_added_tokens_with_every_flag() -> None:
    compared = 0
    for number in range(40):
        spec = made_up(f"flags {number}")
        texts = oracles.random_texts(f"added {number}", PARTS, oracles.FUZZ_SIZE // 2, 14)
        compared += check(Tokenizer.from_spec(spec), oracles.hf_of(spec), texts)
    assert compared > 1000


def test_a_match_that_was_taken_whole_is_none() -> None:
    """rstrip took the white space that is the next match, and lstrip can't go back."""
    spec = small_spec(MERGES, [("<a>", "slr"), ("  ", "lr")])
    text = "x<a>  \u00a0a  \t<a>"
    tok, hf = Tokenizer.from_spec(spec), oracles.hf_of(spec)
    assert check(tok, hf, [text, "<a>  ", "  <a>  <a>"]) > 0
    number = tok.token_id("<a>")
    assert tok.encode("<a>  ", special="parse").tolist() == [number]
    assert reference.encode(spec, "<a>  ", "parse") == [number]


@pytest.mark.parametrize("knows_prefix", [False, True])
def test_trimmed(knows_prefix: bool) -> None:
    for number in range(20):
        spec = made_up(f"trims {number}")
        hf = oracles.hf_of(spec)
        hf.post_processor = processors.ByteLevel(add_prefix_space=knows_prefix, trim_offsets=True)
        spec = _replaced(spec, post=PostProcessor(trims=(knows_prefix,)))
        texts = oracles.random_texts(f"trim {number}", PARTS, oracles.FUZZ_SIZE // 2, 14)
        check(Tokenizer.from_spec(spec), hf, [*texts, " ", "  ", "   a", "a   ", "\u00a0 "])
    tok = Tokenizer.from_spec(_replaced(small_spec(MERGES), post=PostProcessor(trims=(False,))))
    assert ours(tok, "ab ab") == [(0, 2), (3, 5)]


NORMALIZERS: dict[str, tuple[tuple[Normalizer, ...], Any]] = {
    "nfc": ((Normalizer("nfc"),), tokenizers.normalizers.NFC()),
    "nfkd": ((Normalizer("nfkd"),), tokenizers.normalizers.NFKD()),
    "lowercase": ((Normalizer("lowercase"),), tokenizers.normalizers.Lowercase()),
    "strip": (
        (Normalizer("strip_left"), Normalizer("strip_right")),
        tokenizers.normalizers.Strip(),
    ),
    "prepend": ((Normalizer("prepend", content="»"),), tokenizers.normalizers.Prepend("»")),
    "replace": (
        (Normalizer("replace", "ab", "→"), Normalizer("nfc")),
        tokenizers.normalizers.Sequence(
            [tokenizers.normalizers.Replace("ab", "→"), tokenizers.normalizers.NFC()]
        ),
    ),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_through_a_normalizer(name: str) -> None:
    steps, normalizer = NORMALIZERS[name]
    for number in range(8):
        spec = made_up(f"normalized {number}", steps)
        if name == "strip":  # the reference panics where an added token's match is stripped
            spec = _replaced(spec, added=())
        hf = oracles.hf_of(spec)
        hf.normalizer = normalizer
        texts = oracles.random_texts(f"{name} {number}", PARTS, oracles.FUZZ_SIZE // 2, 14)
        # Added again: HF looks for the normalized form of what was added after the normalizer.
        for token in spec.added:
            add = hf.add_special_tokens if token.special else hf.add_tokens
            add([_hf_added(token)])
        check(Tokenizer.from_spec(spec), hf, texts)


def _hf_added(token: Any) -> tokenizers.AddedToken:
    return tokenizers.AddedToken(
        token.content,
        special=token.special,
        normalized=token.normalized,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        single_word=token.single_word,
    )


def test_a_composed_character_is_its_first() -> None:
    spec = _replaced(small_spec(MERGES), normalizers=(Normalizer("nfc"),))
    tok = Tokenizer.from_spec(spec)
    jamo = "\u1100\u1161\u11a8"
    assert ours(tok, jamo) == [(0, 1)] * 3 and ours(tok, jamo, "byte") == [(0, 3)] * 3


def test_prefix_space() -> None:
    for number in range(10):
        spec = made_up(f"prefix {number}")
        hf = oracles.hf_of(spec)
        hf.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
        spec = _replaced(spec, pretok=Pretok("gpt2", add_prefix_space=True))
        texts = oracles.random_texts(f"prefix {number}", PARTS, oracles.FUZZ_SIZE // 2, 14)
        check(Tokenizer.from_spec(spec), hf, texts)


# ---- columns ----


def test_columns(gpt2: Tokenizer) -> None:
    rows = ["a ☃ b", None, "", "x" + oracles.END_OF_TEXT]
    for kind, number in ((pa.string(), pa.int32()), (pa.large_string(), pa.int64())):
        column = gpt2.encode_arrow(pa.array(rows, kind), special="parse", offsets=True)
        item = pa.struct([("id", pa.uint32()), ("start", number), ("end", number)])
        assert column.type.value_type == item
        assert column.to_pylist() == [
            None
            if text is None
            else [
                {"id": number, "start": start, "end": end}
                for number, (start, end) in zip(
                    gpt2.encode(text, special="parse").tolist(), ours(gpt2, text), strict=True
                )
            ]
            for text in rows
        ]
        assert column.equals(
            gpt2.encode_arrow(pa.array(rows, kind), special="parse", offsets="char")
        )
        assert gpt2.decode_arrow(column).to_pylist() == rows


def test_shapes_of_columns(gpt2: Tokenizer) -> None:
    rows = ["a b", None, "☃", "a b", ""]
    plain = gpt2.encode_arrow(pa.array(rows), offsets="byte")
    chunked = gpt2.encode_arrow(pa.chunked_array([rows[:2], rows[2:]]), offsets="byte")
    assert chunked.num_chunks == 2 and chunked.to_pylist() == plain.to_pylist()
    words = gpt2.encode_arrow(pa.array(rows).dictionary_encode(), offsets="byte")
    assert words.to_pylist() == plain.to_pylist()
    sliced = gpt2.encode_arrow(pa.array(["zz", *rows])[1:], offsets="byte")
    assert sliced.to_pylist() == plain.to_pylist()
    assert gpt2.encode_arrow(pa.array([], pa.string()), offsets=True).to_pylist() == []
    empty = gpt2.encode_arrow(pa.chunked_array([], pa.string()), offsets=True, dtype="uint16")
    assert empty.type.value_type.field("id").type == pa.uint16()


def test_null_rows_with_bytes_under_them(gpt2: Tokenizer) -> None:
    text = pa.array(["é", "☃☃", "é b"])
    validity = pa.py_buffer(bytes([0b101]))
    holed = pa.Array.from_buffers(pa.string(), 3, [validity, *text.buffers()[1:]])
    for unit in ("byte", "char"):
        got = gpt2.encode_arrow(holed, offsets=unit).to_pylist()
        want = gpt2.encode_arrow(pa.array(["é", None, "é b"]), offsets=unit).to_pylist()
        assert got == want


def test_tokens_keep_their_spans(gpt2: Tokenizer) -> None:
    tokens = gpt2.encode_batch(["a b", None, "☃ c"], offsets="byte")
    assert tokens.row_spans(0).tolist() == [[0, 1], [1, 3]]  # type: ignore[union-attr]
    assert tokens.row_spans(1) is None
    tail = tokens[2:]
    assert tail.row_spans(0).tolist() == tokens.row_spans(2).tolist()  # type: ignore[union-attr]
    assert tail.to_arrow().to_pylist()[0][-1] == {"id": 269, "start": 3, "end": 5}
    with pytest.raises(ValueError, match="hold no offsets"):
        gpt2.encode_batch(["a"]).row_spans(0)


def test_errors(gpt2: Tokenizer) -> None:
    with pytest.raises(ValueError, match="offsets='utf16' is none of"):
        gpt2.encode("a", offsets="utf16")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="row 1"):
        gpt2.encode_batch(["a", oracles.END_OF_TEXT], special="error", offsets="char")


# ---- tokenizers that are not part of the project ----

NAMES = ["gpt2", "roberta_base", "qwen3", "llama3", "gpt_neox", "starcoder", "falcon"]
NAMES += ["clip", "whisper", "deepseek_v3"]


@pytest.mark.parametrize("name", NAMES)
def test_published_tokenizers(test_data: Path, name: str) -> None:
    path = test_data / "vocabs" / name / "tokenizer.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tok = Tokenizer.load(path)
    hf = tokenizers.Tokenizer.from_file(str(path))
    hf.no_truncation()
    hf.no_padding()
    added = [token.content for token in tok.spec.added][:30]
    alphabet = [*oracles.RULES, *PARTS, " world", "hello", "👍🏽", "日本", "12345", *added]
    texts = oracles.random_texts(f"offsets of {name}", alphabet, 4 * oracles.FUZZ_SIZE, 30)
    texts += oracles.random_unicode(f"offsets of {name}", 2 * oracles.FUZZ_SIZE, 20)
    assert check(tok, hf, texts) > 1000


# ---- helpers ----


def _gpt2() -> Tokenizer:
    if not _kept:
        _kept.append(Tokenizer.load("gpt2"))
    return _kept[0]


_kept: list[Tokenizer] = []
