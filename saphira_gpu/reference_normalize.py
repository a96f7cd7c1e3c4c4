"""Stage `normalize` of the reference: UAX 15 and the other steps over lists of characters.

Every step turns a text into changes: (character, change) pairs that are applied one after the
other, as Hugging Face's NormalizedString does it. change = 1: the character is added. 0: it takes
the place of one character. -k: it takes the place of one, and of the k after it. The character ""
stands for nothing, so ("", 0) removes one. An added character has the source span of the byte
before its place, any other that of the byte at its place.

Within a step, a byte that is in no valid UTF-8 character is a lone surrogate (Python's
surrogateescape): it is in no table, so it stays as it is and blocks what would join across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby, takewhile
from typing import NamedTuple

from saphira_gpu._resources import resource
from saphira_gpu.spec import Normalizer

Span = tuple[int, int]
Change = tuple[str, int]

WHITE = set("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000")
WHITE |= {chr(point) for point in range(0x2000, 0x200B)}


def align(
    steps: Sequence[Normalizer], segment: bytes, spans: Sequence[Span]
) -> tuple[bytes, Sequence[Span]]:
    """The normalized bytes and the source span of each; spans: those of the segment's bytes."""
    for step in steps:
        text = segment.decode("utf-8", "surrogateescape")
        segment, spans = _applied(_changes(step, text), text, spans)
    return segment, spans


def _applied(
    changes: Iterable[Change], text: str, spans: Sequence[Span]
) -> tuple[bytes, list[Span]]:
    raw = [char.encode("utf-8", "surrogateescape") for char in text]
    out, sources = [], []
    char = byte = 0  # the next one to be replaced
    for new, change in changes:
        made = new.encode("utf-8", "surrogateescape")
        if made:
            sources += [spans[byte - (change > 0)]] * len(made)
            out.append(made)
        for _ in range(1 - change):
            byte += len(raw[char])
            char += 1
    return b"".join(out), sources


def _changes(step: Normalizer, text: str) -> list[Change]:
    if step.kind in ("nfc", "nfd", "nfkc", "nfkd"):
        return _form(text, compat="k" in step.kind, composed=step.kind.endswith("c"))
    if step.kind == "lowercase":
        lower = _data().lower
        return [change for char in text for change in _instead(lower.get(char, char))]
    if step.kind == "replace":
        first, *rest = text.split(step.pattern)
        gone = _removed(step.pattern, step.content)
        return _same(first) + [change for part in rest for change in gone + _same(part)]
    if step.kind == "replace_spaces":
        return _spaces_replaced(text, step.content)
    if step.kind == "prepend":
        return [*_instead(step.content + text[0]), *_same(text[1:])] if text else []
    changes = _same(text)
    order = range(len(text)) if step.kind == "strip_left" else reversed(range(len(text)))
    for i in takewhile(lambda i: text[i] in WHITE, order):
        changes[i] = ("", 0)
    return changes


def _same(text: str) -> list[Change]:
    return [(char, 0) for char in text]


def _instead(made: str) -> list[Change]:
    """`made`, at least one character, in the place of one."""
    return [(char, int(i > 0)) for i, char in enumerate(made)]


def _removed(gone: str, content: str) -> list[Change]:
    return [("", 0)] * len(gone) + [(char, 1) for char in content]


def _spaces_replaced(text: str, content: str) -> list[Change]:
    changes: list[Change] = []
    for is_white, run in groupby(text, WHITE.__contains__):
        part = "".join(run)
        changes += _removed(part, content) if is_white else _same(part)
    return changes


# ---- the forms ----


class _Data(NamedTuple):
    ccc: dict[str, int]
    once: dict[str, tuple[bool, str]]  # is it for compatibility only, one step of decomposition
    pairs: dict[tuple[str, str], str]
    lower: dict[str, str]


@lru_cache(1)
def _data() -> _Data:
    data = _Data({}, {}, {}, {})
    for line in _lines("tables/unicode/normalization-9.0.0.tsv"):
        point, ccc, tag, mapping, composes = line.split("\t")
        if ccc != "0":
            data.ccc[_text(point)] = int(ccc)
        if mapping:
            data.once[_text(point)] = tag != "", _text(mapping)
        if composes == "1":
            first, second = map(_text, mapping.split())
            data.pairs[first, second] = _text(point)
    for line in _lines("tables/unicode/lowercase-17.0.0.tsv"):
        point, mapping = line.split("\t")
        data.lower[_text(point)] = _text(mapping)
    # Hangul: a leading consonant and a vowel make a syllable; it takes a trailing consonant.
    for lead in range(19):
        for vowel in range(21):
            first, second = chr(0x1100 + lead), chr(0x1161 + vowel)
            syllable = 0xAC00 + 28 * (21 * lead + vowel)
            for trail in range(28):
                if trail:
                    first, second = chr(syllable), chr(0x11A7 + trail)
                whole = chr(syllable + trail)
                data.pairs[first, second] = whole
                data.once[whole] = False, first + second
    return data


def _lines(name: str) -> list[str]:
    lines = resource(name).read_text("ascii").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _text(points: str) -> str:
    return "".join(chr(int(point, 16)) for point in points.split())


def _form(text: str, compat: bool, composed: bool) -> list[Change]:
    """UAX 15: decompose, order the marks, compose."""
    ccc = _data().ccc
    decomposed = [change for char in text for change in _instead(_decomposed(char, compat))]
    changes: list[Change] = []
    for is_mark, run in groupby(decomposed, lambda change: change[0] in ccc):
        # R3, canonical ordering; the sort is stable
        part = list(run)
        changes += sorted(part, key=lambda change: ccc[change[0]]) if is_mark else part
    return _composed(changes) if composed else changes


def _decomposed(char: str, compat: bool) -> str:
    only_compat, parts = _data().once.get(char, (True, ""))
    if not parts or (only_compat and not compat):
        return char
    return "".join(_decomposed(part, compat) for part in parts)


def _composed(changes: list[Change]) -> list[Change]:
    """D117: each character joins the last starter if it makes a composite with it and is not
    blocked: nothing between them is a starter or of at least its class."""
    ccc, pairs = _data().ccc, _data().pairs
    out: list[Change] = []
    starter: int | None = None  # in `out`
    for char, change in changes:
        rank = ccc.get(char, 0)
        if starter is not None:
            # Marks are in order, so the last one between them decides.
            adjacent = starter == len(out) - 1
            free = adjacent or ccc.get(out[-1][0], 0) < rank
            whole = pairs.get((out[starter][0], char)) if free else None
            if whole is not None:
                out[starter] = whole, out[starter][1] + change - 1
                continue
        out.append((char, change))
        if rank == 0:
            starter = len(out) - 1
    return out
