"""Short texts, which `encode` and `count` take a way of their own: what they do there is what they
do elsewhere, errors, threads and calls within calls included."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from typing import Any

import numpy as np
import pytest
from oracles import small_spec
from pretokenizers import needs_oniguruma, split
from test_tokenizer import TEXTS

from saphira_gpu import InputError, PreTokenizer, Tokenizer
from saphira_gpu.spec import Pretok


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.load("gpt2")


def test_short_texts_as_in_a_batch(tok: Tokenizer) -> None:
    texts = [*TEXTS, "a<|endoftext|>b", "\ud800x", "x" * 20000, "é" * 9000]
    for special in ("plain", "parse", "hf_plain"):
        batch = tok.encode_batch(texts, special=special)
        for text, ids in zip(texts, batch, strict=True):
            one = tok.encode(text, special=special)
            assert one.dtype == np.uint32 and one.tolist() == ids.tolist(), (special, text[:20])
    kept = tok.encode("kept")
    before = kept.tolist()
    tok.encode("something else altogether")
    assert kept.tolist() == before
    with pytest.raises(InputError, match="endoftext"):
        tok.encode("a<|endoftext|>b", special="error")
    with pytest.raises(ValueError, match="special"):
        tok.encode("a", special="nonesuch")  # type: ignore[arg-type]


def test_short_bytes_as_in_a_batch(tok: Tokenizer) -> None:
    texts = [b"", b"plain", b"a<|endoftext|>b", b"\xff\xc3", b"\xed\xa0\x80", b"x" * 20000]
    for special in ("plain", "parse", "hf_plain"):
        batch = tok.encode_batch(texts, special=special)
        for text, ids in zip(texts, batch, strict=True):
            for given in (text, bytearray(text), memoryview(text)):
                one = tok.encode(given, special=special)
                assert one.dtype == np.uint32 and one.tolist() == ids.tolist(), (special, text[:20])


@pytest.mark.parametrize("size", [0, 1, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 15])
def test_texts_around_the_longest_short_one(tok: Tokenizer, size: int) -> None:
    """A token a byte: the ids fill what is kept for them."""
    text = "\0\1" * (size // 2) + "\0" * (size % 2)
    expected = tok.encode_batch([text])[0]
    assert expected is not None and len(expected) == size
    assert tok.encode(text).tolist() == expected.tolist()
    assert tok.count(text) == size


def test_short_texts_that_grow() -> None:
    """More ids than bytes, and than a short text may have: a prefix for each stretch between added
    tokens."""
    spec = small_spec(added=[("+", "")])
    pretok = dataclasses.replace(spec.pretok, add_prefix_space=True)
    tok = Tokenizer.from_spec(dataclasses.replace(spec, pretok=pretok))
    for pairs in (0, 1, 100, 5000, 8000):
        ids = [*b" x+"] * pairs
        assert tok.encode("x+" * pairs, special="parse").tolist() == ids
        assert tok.count("x+" * pairs, special="parse") == len(ids)


def test_options_of_short_texts_are_checked_as_of_long_ones(tok: Tokenizer) -> None:
    """Equal to what is allowed, but not it."""
    wrong: list[dict[str, Any]] = [
        {"threads": True},
        {"threads": 1.0},
        {"threads": 0},
        {"template": 0},
        {"template": None},
        {"report": False},
        {"special": []},
        {"special": "nonesuch"},
        {"invalid": "null"},
        {"dtype": np.dtype("uint32")},
        {"dtype": "int64"},
        {"offsets": "word"},
    ]
    for options in wrong:
        with pytest.raises(ValueError) as short:
            tok.encode("a", **options)
        with pytest.raises(ValueError) as long:
            tok.encode("a" * 20000, **options)
        assert str(short.value) == str(long.value)
        if not options.keys() & {"dtype", "offsets"}:
            with pytest.raises(ValueError) as counted:
                tok.count("a", **options)
            assert str(counted.value) == str(short.value)
    for text in (None, 1, ["a"], {"a": 1}):
        for call in (tok.encode, tok.count):
            with pytest.raises(InputError, match="text is str or bytes, not"):
                call(text)  # type: ignore[operator]


@needs_oniguruma
def test_short_texts_that_a_regex_library_splits() -> None:
    steps = PreTokenizer.from_config(split("(?=q)|x")).steps
    tok = Tokenizer.from_spec(dataclasses.replace(small_spec(), pretok=Pretok(stages=steps)))
    for call in (tok.encode, tok.count):
        for text in (b"a\xff", "a\ud800"):
            with pytest.raises(InputError, match="row 0: not UTF-8 at byte 1"):
                call(text)
        with pytest.raises(InputError, match="matched the empty text"):
            call("aq")
    assert tok.encode("axb").tolist() == [*b"axb"] and tok.count(b"axb") == 3


def test_short_texts_from_many_threads(tok: Tokenizer) -> None:
    """More of them than there is kept memory for, and some longer than that."""
    texts = [f"text number {i} of many, don't mix them up" * (i % 7) for i in range(300)]
    texts[::50] = ["a longer text " * (1200 + i) for i in range(6)]
    expected = [ids.tolist() for ids in tok.encode_batch(texts)]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        for _ in range(5):
            assert [ids.tolist() for ids in pool.map(tok.encode, texts)] == expected
            assert [*pool.map(tok.count, texts)] == [len(ids) for ids in expected]


def test_encode_within_encode(tok: Tokenizer) -> None:
    """As a finalizer or a signal handler may."""

    class Nested(str):
        def encode(self, *args: Any, **more: Any) -> bytes:
            assert tok.encode(" other words").tolist() == [584, 2456]
            return super().encode(*args, **more)

    for _ in range(3):
        assert tok.encode(Nested("Hello world")).tolist() == [15496, 995]


def test_short_texts_after_errors(tok: Tokenizer) -> None:
    class Broken(str):
        def encode(self, *args: Any, **more: Any) -> bytes:
            raise RuntimeError("broken")

    for _ in range(20):  # more than there is kept memory for
        with pytest.raises(RuntimeError, match="broken"):
            tok.encode(Broken("text"))
        with pytest.raises(InputError, match=r"'<\|endoftext\|>' at byte 1"):
            tok.encode("a<|endoftext|>b", special="error")
        assert tok.encode("\ud800").tolist() == tok.encode(b"\xed\xa0\x80").tolist()
        assert tok.encode("Hello world").tolist() == [15496, 995]
