"""Configurations of pretokenizers, HF's answers, and what texts to ask about."""

from __future__ import annotations

import importlib.util
import json
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
from definitions import GENERATED, ranges_of
from tokenizers import pre_tokenizers

from saphira_gpu import PreTokenizer
from saphira_gpu.pretok.schemes import table
from saphira_gpu.pretok.steps import BEHAVIORS

Config = dict[str, Any]
# A piece: its text, then where it starts and ends.
Piece = tuple[str, int, int]

HAS_ONIGURUMA = importlib.util.find_spec("onigurumacffi") is not None

# ---- configurations ----


def split(
    pattern: str, behavior: str = "Isolated", invert: bool = False, kind: str = "Regex"
) -> Config:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*parts: Config) -> Config:
    return {"type": "Sequence", "pretokenizers": list(parts)}


def byte_level(prefix: bool = False, regex: bool = True) -> Config:
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": True,
        "use_regex": regex,
    }


def metaspace(scheme: str, cut: bool = True, replacement: str = "▁") -> Config:
    return {
        "type": "Metaspace",
        "replacement": replacement,
        "prepend_scheme": scheme,
        "split": cut,
    }


def digits(individual: bool) -> Config:
    return {"type": "Digits", "individual_digits": individual}


def punctuation(behavior: str) -> Config:
    return {"type": "Punctuation", "behavior": behavior}


WHITESPACE = {"type": "Whitespace"}
WHITESPACE_SPLIT = {"type": "WhitespaceSplit"}
BERT = {"type": "BertPreTokenizer"}
SCRIPTS = {"type": "UnicodeScripts"}

# Every type with every value of its options, by name; and pairs of stages that work on each other's
# pieces and texts.
CONFIGS: dict[str, Config] = {
    "whitespace": WHITESPACE,
    "whitespace_split": WHITESPACE_SPLIT,
    "bert": BERT,
    "scripts": SCRIPTS,
    **{f"punctuation-{b}": punctuation(b) for b in BEHAVIORS},
    "digits-contiguous": digits(False),
    "digits-individual": digits(True),
    "bytes": byte_level(),
    "bytes-prefix": byte_level(True),
    "bytes-whole": byte_level(False, False),
    "bytes-prefix-whole": byte_level(True, False),
    **{
        f"metaspace-{scheme}-{cut}": metaspace(scheme, cut)
        for scheme in ("always", "first", "never")
        for cut in (True, False)
    },
    "metaspace-a": metaspace("always", True, "a"),
    "metaspace-space": metaspace("always", True, " "),
    "delimiter": {"type": "CharDelimiterSplit", "delimiter": "a"},
    "delimiter-4-bytes": {"type": "CharDelimiterSplit", "delimiter": "\U00016fe2"},
    **{f"length-{n}": {"type": "FixedLength", "length": n} for n in (1, 2, 3, 70)},
    **{
        f"string-{b}{'-invert' if invert else ''}": split("'", b, invert, "String")
        for b in BEHAVIORS
        for invert in (False, True)
    },
    "string-overlaps": split("a a", "Isolated", False, "String"),
    "string-two": split("aa", "MergedWithNext", False, "String"),
    "string-long": split("\u4e00" * 3 + "a", "Removed", False, "String"),
    "whites": split(r"\s+", "Removed"),
    "white": split(r"\s", "MergedWithPrevious"),
    "letters": split(r"\p{L}+", "Contiguous"),
    "letter": split(r"\p{L}", "MergedWithNext"),
    "numbers": split(r"\p{N}+"),
    "number": split(r"\p{N}", "Isolated", True),
    "kana": split("[一-龥぀-ゟ゠-ヿ]+"),
    "bytes-digits": sequence(byte_level(), digits(False)),
    "bytes-punctuation": sequence(byte_level(False, False), punctuation("Isolated")),
    "bytes-bytes": sequence(byte_level(True), byte_level(True)),
    "bytes-length": sequence(byte_level(), {"type": "FixedLength", "length": 2}),
    "bytes-metaspace": sequence(byte_level(True, False), metaspace("first")),
    "metaspace-bytes": sequence(metaspace("always"), byte_level()),
    "metaspace-punctuation": sequence(metaspace("always", False), punctuation("Isolated")),
    "metaspace-delimiter": sequence(
        metaspace("first", False), {"type": "CharDelimiterSplit", "delimiter": "▁"}
    ),
    "scripts-metaspace": sequence(SCRIPTS, metaspace("first")),
    "length-bytes": sequence({"type": "FixedLength", "length": 3}, byte_level(True)),
    "digits-bytes": sequence(digits(True), byte_level(True)),
    "t5": sequence(WHITESPACE_SPLIT, metaspace("always")),
    "falcon": sequence(
        punctuation("Contiguous"), byte_level(), digits(False), split("[0-9][0-9][0-9]")
    ),
    "nested": sequence(sequence(WHITESPACE, sequence(digits(True))), punctuation("Removed")),
}


def scheme_config(scheme: dict[str, Any], engine: str) -> Config:
    """A Split for an engine's pattern of a compiled scheme, or the Sequence of its patterns."""
    own = scheme["patterns"][engine]
    parts = [
        split(pattern, scheme["behavior"], scheme["invert"])
        for pattern in (own if isinstance(own, list) else [own])
    ]
    return parts[0] if len(parts) == 1 else sequence(*parts)


def scheme_configs() -> dict[str, Config]:
    """What every compiled scheme with a pattern of HF's is there."""
    return {
        f"scheme-{scheme['name']}": scheme_config(scheme, "hf")
        for scheme in table()["schemes"]
        if "hf" in scheme["patterns"]
    }


# ---- HF ----


@lru_cache(256)
def _hf(config: str) -> Any:
    made = pre_tokenizers.Sequence([])
    made.__setstate__(b'{"type":"Sequence","pretokenizers":[%s]}' % config.encode())
    return made


def hf(config: Config) -> Any:
    """HF's pretokenizer of a configuration."""
    return _hf(json.dumps(config))


def expected(config: Config, texts: Sequence[str]) -> list[list[Piece]]:
    """HF's pieces, in characters."""
    theirs = hf(config)
    return [[(piece, *span) for piece, span in theirs.pre_tokenize_str(text)] for text in texts]


# ---- ours ----


def arrow_spans(column: Any) -> list[list[tuple[int, int]] | None]:
    """Rows of a column of lists of spans."""
    rows: list[list[tuple[int, int]] | None] = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        spans = list(zip(*(field.to_pylist() for field in chunk.values.flatten()), strict=True))
        ends = chunk.offsets.to_pylist()
        valid = chunk.is_valid().to_pylist()
        places = zip(ends[:-1], ends[1:], valid, strict=True)
        rows += [spans[start:end] if there else None for start, end, there in places]
    return rows


def compare(config: Config, texts: Sequence[str], *, pieces: bool = True) -> int:
    """Our pieces of all texts are HF's: the spans of one Arrow column, and (pieces) text and
    characters by `pre_tokenize_str`. Returns how many texts there were."""
    ours = PreTokenizer.from_config(config)
    column = pa.array(list(texts), pa.large_string())
    spans = ours.pre_tokenize_arrow(column, threads=1)
    if not _same_spans(hf(config), texts, column, spans):
        for text, found, wanted in zip(
            texts, arrow_spans(spans), expected(config, texts), strict=True
        ):
            at = oracles.byte_positions(text)
            assert found == [(at[start], at[end]) for _, start, end in wanted], (text, wanted)
        raise AssertionError("the spans differ in one comparison and are the same in the other")
    if pieces:
        for text, wanted in zip(texts, expected(config, texts), strict=True):
            assert [(p, *span) for p, span in ours.pre_tokenize_str(text)] == wanted, text
    return len(texts)


def _same_spans(theirs: Any, texts: Sequence[str], column: Any, found: Any) -> bool:
    """Whether HF's spans, in bytes, are those found. HF's objects don't outlive their text: keeping
    them costs more than making them."""
    counts, flat = array("q"), array("q")
    for text in texts:
        pieces = theirs.pre_tokenize_str(text)
        counts.append(len(pieces))
        for _, span in pieces:
            flat.extend(span)
    edges = np.frombuffer(column.buffers()[1], np.int64)[: len(texts) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[: edges[-1]]
    # Where each character starts, and of each row's first one its number.
    chars = np.append(np.flatnonzero(data & 0xC0 != 0x80), edges[-1])
    first = np.searchsorted(chars, edges[:-1])
    per_row = np.frombuffer(counts, np.int64)
    chars_of = np.frombuffer(flat, np.int64).reshape(-1, 2) + np.repeat(first, per_row)[:, None]
    wanted = chars[chars_of] - np.repeat(edges[:-1], per_row)[:, None]
    mine = np.stack([field.to_numpy() for field in found.flatten().flatten()], axis=1)
    lengths = np.diff(np.asarray(found.offsets))
    return np.array_equal(lengths, per_row) and np.array_equal(mine, wanted)


# ---- texts ----


@lru_cache(1)
def representatives() -> list[str]:
    """A character of every superatom: the first, which is ASCII where one can be."""
    tags = ranges_of(GENERATED / "superatoms.tsv", 4)
    first: dict[int, str] = {}
    for code, tag in enumerate(tags):
        first.setdefault(tag, chr(code))
    assert len(first) == 32
    first[0] = "\x01"  # U+0000 would do, but says less in a message
    return [first[tag] for tag in range(32)]


# Characters that the rules of a configuration look at, for random texts dense in them.
DENSE: dict[str, Sequence[str]] = {
    "metaspace": " \u2581a\u00e9\n",
    "delimiter": "ab \U00016fe2\u4e00",
    "string": "''a b\u4e00",
    "length": "ab\u00e9\u4e00\U0001f600",
    "scripts": "aB1 \u30fc\u3042\u4e00\u0430\u0301\u0378\u3000\U0001f600.",
    "bytes": " 'sdmtvlre1\u00b2a\u00e9\n\t\u4e00,",
    "digits": "0123\u00b2\u0663a ,\u2167",
    "falcon": "0123456789 a.,'s\u00b2\u00e9\u4e00",
    "scheme": [
        *"'sSdDlLvVeE\u017f \n\r\t/aBc1234\u0301\u4e00\u30a2!?.\u01c5\u02b0",
        *"\x01\u3007\u2e80\u3099\u30fb",
        "<|endoftext|>",
    ],
}


def dense_texts(name: str, count: int) -> list[str]:
    """Random texts for a configuration: over its own characters, over those of all rules, and over
    repeats of one character that are long enough to cross blocks."""
    own = DENSE.get(name.split("-")[0], oracles.RULES)
    texts = oracles.random_texts(f"{name} own", own, count // 2, 40)
    texts += oracles.random_texts(f"{name} all", oracles.RULES, count // 4, 40)
    runs = [char * length for char in own for length in (1, 2, 63, 64, 65)]
    return texts + oracles.random_texts(f"{name} runs", runs, count - len(texts), 6)


needs_oniguruma = pytest.mark.skipif(
    not HAS_ONIGURUMA, reason="the extra [regex] (onigurumacffi) is not installed"
)
