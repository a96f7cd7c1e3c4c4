"""The compiled schemes against tiktoken's own splits: short strings, random ones, every character.

(Against HF they are in test_pretokenizer_exact.py, among all pretokenizers.)
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
import tiktoken
from pretokenizers import DENSE, dense_texts, representatives, scheme_config

from saphira_gpu import PreTokenizer
from saphira_gpu.pretok.schemes import table

SCHEMES = {s["name"]: s for s in table()["schemes"] if "tiktoken" in s["patterns"]}
CONTEXTS = "a1 \n.'\u0301"  # letter, digit, space, newline, punctuation, apostrophe, mark
# Texts at a time: each makes tokens of a vocabulary that lives as long.
BATCH = 5_000


def pieces_of(scheme: str, texts: Sequence[str]) -> list[list[bytes]]:
    """Our pieces of each text."""
    ours = PreTokenizer.from_config(scheme_config(SCHEMES[scheme], "tiktoken"), "tiktoken")
    spans = ours.pre_tokenize_arrow(pa.array(list(texts), pa.large_string()), threads=1)
    flat = spans.flatten()
    starts, ends = (np.asarray(flat.field(name)).tolist() for name in ("start", "end"))
    edges = np.asarray(spans.offsets).tolist()
    encoded = [text.encode() for text in texts]
    return [
        [raw[a:b] for a, b in zip(starts[i:j], ends[i:j], strict=True)]
        for raw, i, j in zip(encoded, edges[:-1], edges[1:], strict=True)
    ]


def compare(scheme: str, texts: Sequence[str]) -> int:
    """tiktoken gives our pieces. What it splits off is a token by itself if the vocabulary has it,
    so that its tokens are our pieces where it has those, and also what up to three neighbours make
    together: a longer piece of tiktoken's would be that token. Returns how many texts there were.
    """
    for first in range(0, len(texts), BATCH):
        part = texts[first : first + BATCH]
        ours = pieces_of(scheme, part)
        tokens = {bytes([byte]): byte for byte in range(256)}
        for pieces in ours:
            for piece in pieces:
                tokens.setdefault(piece, len(tokens))
        for pieces in ours:
            for count in (2, 3):
                for i in range(len(pieces) - count + 1):
                    tokens.setdefault(b"".join(pieces[i : i + count]), len(tokens))
        encoding = tiktoken.Encoding(
            scheme,
            pat_str=SCHEMES[scheme]["patterns"]["tiktoken"],
            mergeable_ranks=tokens,
            special_tokens={},
        )
        for text, pieces in zip(part, ours, strict=True):
            found = encoding._core_bpe.encode_ordinary(text)
            assert found == [tokens[piece] for piece in pieces], (text, pieces)
    return len(texts)


def compare_in_contexts(scheme: str, chars: Sequence[str]) -> int:
    """tiktoken gives our pieces of each character c alone, and of ca, ac, aca with a one of
    CONTEXTS. Whatever it splits off such a text is one of these texts or an a, and so a token: the
    lengths of its tokens are those of its pieces. Returns how many texts there were."""
    texts = list(chars)
    for a in CONTEXTS:
        texts += [text for c in chars for text in (c + a, a + c, f"{a}{c}{a}")]
    ours = PreTokenizer.from_config(scheme_config(SCHEMES[scheme], "tiktoken"), "tiktoken")
    column = pa.array(texts, pa.large_string())
    spans = ours.pre_tokenize_arrow(column, threads=1)
    tokens = [*(bytes([byte]) for byte in range(256)), *map(str.encode, [*CONTEXTS, *texts])]
    ranks = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
    encoding = tiktoken.Encoding(
        scheme,
        pat_str=SCHEMES[scheme]["patterns"]["tiktoken"],
        mergeable_ranks=ranks,
        special_tokens={},
    )
    counts, ids = array("q"), array("I")
    for text in texts:
        found = encoding._core_bpe.encode_ordinary(text)
        counts.append(len(found))
        ids.extend(found)
    lengths = np.fromiter(map(len, ranks), np.int64)[np.frombuffer(ids, np.uint32)]
    ends = np.cumsum(lengths)
    rows = np.repeat(np.frombuffer(column.buffers()[1], np.int64)[: len(texts)], counts)
    assert np.diff(np.asarray(spans.offsets)).tolist() == counts.tolist()
    starts, stops = (field.to_numpy() + rows for field in spans.flatten().flatten())
    assert np.array_equal(stops, ends)
    assert np.array_equal(starts, ends - lengths)
    return len(texts)


def from_config_of(scheme: str) -> Any:
    """`PreTokenizer.from_config`, but always with a scheme's own pattern."""
    config = scheme_config(SCHEMES[scheme], "tiktoken")
    return lambda *_: PreTokenizer(config, "tiktoken")


def test_a_wrong_split_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: where tiktoken splits by another pattern, it fails."""
    other = {"tekken": "o200k", "o200k": "tekken", "gpt2": "cl100k", "qwen2": "llama3"}
    text = {"tekken": "123", "o200k": "123", "gpt2": "a.b", "qwen2": "12"}
    for scheme, patterned in other.items():
        ours = pieces_of(scheme, [text[scheme]])
        with monkeypatch.context() as patch:
            patch.setitem(SCHEMES, scheme, SCHEMES[patterned])
            patch.setitem(globals(), "pieces_of", lambda *_, ours=ours: ours)
            with pytest.raises(AssertionError):
                compare(scheme, [text[scheme]])
    for scheme, patterned in other.items():
        with monkeypatch.context() as patch:
            patch.setattr(PreTokenizer, "from_config", from_config_of(patterned))
            with pytest.raises(AssertionError):
                compare_in_contexts(scheme, [chr(c) for c in range(128)])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_short_strings(scheme: str) -> None:
    """All strings of up to three characters, one of each superatom."""
    texts = [
        "".join(chars)
        for length in range(4)
        for chars in itertools.product(representatives(), repeat=length)
    ]
    assert compare(scheme, texts) == 1 + 32 + 32**2 + 32**3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_strings(scheme: str, isa: str) -> None:
    compare(scheme, dense_texts("scheme", 2 * oracles.FUZZ_SIZE))


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_strings_long(scheme: str) -> None:
    """A hundred thousand, and texts over all of Unicode."""
    compare(scheme, dense_texts("scheme", 100_000))
    compare(scheme, oracles.random_texts(f"{scheme} short", DENSE["scheme"], 100_000, 8))
    compare(scheme, oracles.random_unicode(scheme, 5_000, 60))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_characters(scheme: str) -> None:
    """Those of up to two bytes, alone and in CONTEXTS."""
    assert compare_in_contexts(scheme, [chr(c) for c in range(0x800)]) == 22 * 0x800


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_character(scheme: str) -> None:
    count = 0
    for first in range(0, 0x110000, 0x800):
        chars = [chr(c) for c in range(first, first + 0x800) if not 0xD800 <= c < 0xE000]
        count += compare_in_contexts(scheme, chars)
    assert count == 22 * (0x110000 - 0x800)
