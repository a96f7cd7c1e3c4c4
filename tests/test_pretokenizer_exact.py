"""Every pretokenizer gives HF's pieces: case files, all short strings, random ones, every
character."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import oracles
import pyarrow as pa
import pytest
from pretokenizers import (
    CONFIGS,
    arrow_spans,
    compare,
    dense_texts,
    needs_oniguruma,
    representatives,
    scheme_configs,
    split,
)

from saphira_gpu import PreTokenizer

ALL = {**CONFIGS, **scheme_configs()}

# ---- the case files ----


@lru_cache(1)
def case_files(folder: Path) -> dict[str, tuple[Any, list[Any]]]:
    configs = json.loads((folder / "cases/pretokenizer_configs.json").read_text("utf-8"))["configs"]
    rows = defaultdict(list)
    for line in (folder / "cases/pretokenizer_cases.jsonl").read_text("utf-8").split("\n")[:-1]:
        row = json.loads(line)
        rows[row["pretokenizer"]].append(row)
    assert set(rows) == set(configs)
    return {name: (configs[name], rows[name]) for name in configs}


def test_case_files(test_data: Path, isa: str, record_property: Any) -> None:
    """Every row of every configuration, in one column and one by one."""
    total = 0
    for name, (case, rows) in case_files(test_data).items():
        ours = PreTokenizer.from_config(case["config"], case["engine"])
        column = pa.array([row["input"] for row in rows])
        spans = arrow_spans(ours.pre_tokenize_arrow(column))
        for row, found in zip(rows, spans, strict=True):
            wanted = [tuple(piece) for piece in row["expected"]]
            chars = ours.pre_tokenize_str(row["input"])
            in_bytes = ours.pre_tokenize_str(row["input"], offsets="byte")
            assert [(piece, *span) for piece, span in chars] == [p[:3] for p in wanted], name
            assert [(p, *span) for p, span in in_bytes] == [(p[0], *p[3:]) for p in wanted], name
            assert found == [p[3:] for p in wanted], name
        record_property(f"cases of {name}", len(rows))
        total += len(rows)
    assert total == 12100


def test_no_case_needs_the_regex_library(test_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onigurumacffi", None)
    from saphira_gpu.pretok import regex

    regex._compiled.cache_clear()
    for case, _ in case_files(test_data).values():
        PreTokenizer.from_config(case["config"], case["engine"])


# ---- against HF ----


# Of these all strings, in every run: each type once, and what cuts by more than one class.
MAIN = ["whitespace", "whitespace_split", "bert", "scripts", "bytes", "bytes-prefix", "length-2"]
MAIN += ["punctuation-Isolated", "punctuation-MergedWithNext", "digits-contiguous", "delimiter"]
MAIN += ["metaspace-always-True", "string-Isolated", "t5", "falcon", *scheme_configs()]


@pytest.mark.parametrize("name", ALL)
def test_short_strings(name: str) -> None:
    """All strings of up to three characters, one of each superatom; of some configurations, and of
    the pieces' text, a part."""
    texts = [
        "".join(chars)
        for length in range(4)
        for chars in itertools.product(representatives(), repeat=length)
    ]
    compare(ALL[name], texts if name in MAIN else texts[::11], pieces=False)
    compare(ALL[name], texts[::37])


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_short_strings_long(name: str) -> None:
    texts = ["".join(chars) for chars in itertools.product(representatives(), repeat=3)]
    compare(ALL[name], texts)


@pytest.mark.parametrize("name", ALL)
def test_random_strings(name: str, isa: str) -> None:
    compare(ALL[name], dense_texts(name, oracles.FUZZ_SIZE))


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_random_strings_long(name: str) -> None:
    """A hundred thousand per configuration, and texts over all of Unicode."""
    compare(ALL[name], dense_texts(name, 100_000), pieces=False)
    compare(ALL[name], oracles.random_unicode(name, 5_000, 60))


@pytest.mark.parametrize("name", ["whitespace", "bytes-prefix", "scripts", "falcon", "t5"])
def test_long_rows(name: str) -> None:
    """Rows of many chunks, and rows that share one."""
    texts = ["", oracles.random_unicode("long", 1, 3000)[0] * 30, "a", "x y'z1" * 20_000]
    texts += dense_texts(name, 200)
    compare(ALL[name], texts)


CONTEXTS = "a1 \n.'\u0301"


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_every_character(name: str) -> None:
    """Each code point c alone, and as ca, ac, aca with a one of CONTEXTS."""
    count = 0
    for first in range(0, 0x110000, 0x1000):
        chars = [chr(c) for c in range(first, first + 0x1000) if not 0xD800 <= c < 0xE000]
        texts = list(chars)
        for a in CONTEXTS:
            texts += [text for c in chars for text in (c + a, a + c, f"{a}{c}{a}")]
        count += compare(ALL[name], texts, pieces=False)
    assert count == 22 * (0x110000 - 0x800)


EVERY_CHARACTER = ["whitespace", "bert", "scripts", "digits-individual", "punctuation-Contiguous"]
EVERY_CHARACTER += ["bytes", "white", "letters", "kana", "metaspace-always-True", "length-2"]


@pytest.mark.parametrize("name", [*EVERY_CHARACTER, *scheme_configs()])
def test_every_character_between_others(name: str) -> None:
    """Each assigned code point, between letters, digits and white space, many to a text."""
    chars = [chr(c) for c in range(0x33480) if not 0xD800 <= c < 0xE000]
    texts = [
        a.join(chars[first : first + 48]) for a in ("a", "1 ") for first in range(0, len(chars), 48)
    ]
    compare(ALL[name], texts, pieces=False)


# ---- Oniguruma ----

REGEXES = {
    "clip": split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "Removed", True),
    "bloom": split(" ?[^(\\s|.,!?…。，、।۔،)]+"),
    "lookbehind": split(r"(?<=[a-z])(?=[A-Z])[A-Z]", "MergedWithNext"),
    "many": split(r"\p{N}{1,3}+", "Contiguous"),
    "words": split(r"\w+", "MergedWithPrevious", True),
    "line-ends": split(r"[^\n]+$", "Isolated"),
}


@needs_oniguruma
@pytest.mark.parametrize("name", REGEXES)
def test_patterns_without_a_scheme(name: str, isa: str) -> None:
    compare(REGEXES[name], dense_texts("scheme", 100))


@needs_oniguruma
def test_pattern_between_other_stages() -> None:
    """It sees the text that the stages before it made, piece by piece."""
    parts = [ALL["metaspace-always-False"], split("▁?[ab]+x|b$"), ALL["digits-individual"]]
    texts = [*dense_texts("metaspace", 200), "ab abx b1", "b b", "bab"]
    compare({"type": "Sequence", "pretokenizers": parts}, texts)
