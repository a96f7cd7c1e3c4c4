"""Pretokenizer programs in plain Python: the definition of what the core's `sa_pretokenize` must
give.

A piece is text, and for each of its bytes the place (start, end) in the given text of the character
that the byte comes from. A step turns a piece into pieces; every piece is a text of its own, so
bytes that are not UTF-8 are looked at within their piece. The rules are those of Hugging Face
`tokenizers` 0.23.3; of the patterns of `Regex` steps, those that `reference_patterns` can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from saphira_gpu import reference, reference_patterns
from saphira_gpu._resources import resource
from saphira_gpu.errors import UnsupportedError
from saphira_gpu.pretok import schemes
from saphira_gpu.pretok.steps import (
    AFTER,
    BEFORE,
    DROP,
    DROP_REST,
    RUN,
    Bytemap,
    Classes,
    Digits3,
    Length,
    Literal,
    Prefix,
    Regex,
    Replace,
    Scheme,
    Scripts,
    Step,
)
from saphira_gpu.spec import Bpe, Pretok, Spec

Place = tuple[int, int]


class Piece(NamedTuple):
    """Text and the place of each of its bytes in the given text."""

    text: bytes
    places: Sequence[Place]

    @property
    def span(self) -> Place:
        """Where the piece comes from."""
        return self.places[0][0], self.places[-1][1]

    def cut(self, start: int, end: int) -> Piece:
        return Piece(self.text[start:end], self.places[start:end])


class Element(NamedTuple):
    """A stretch of a piece, and what it does (a sum of DROP, RUN, BEFORE, AFTER, DROP_REST)."""

    start: int
    end: int
    does: int


def pieces(steps: Sequence[Step], text: bytes) -> list[Piece]:
    """The pieces of a text, none of them empty. Raises UnsupportedError for a pattern or scheme
    that the reference doesn't know."""
    places = [
        (char.start, char.end)
        for char in reference.classify(text)
        for _ in range(char.start, char.end)
    ]
    found = [Piece(text, places)] if text else []
    for step in steps:
        if type(step) not in _STEPS:
            raise UnsupportedError(f"the reference has no step {step!r}")
        found = [part for piece in found for part in _STEPS[type(step)](step, piece) if part.text]
    return found


def _by_elements(piece: Piece, elements: Sequence[Element]) -> list[Piece]:
    """Cuts a piece between neighbours that say so, and drops what they say."""
    if not elements:
        return []
    cuts = [elements[0].start]
    for left, right in pairwise(elements):
        differ = left.does ^ right.does
        if differ & (DROP | RUN | DROP_REST) or right.does & BEFORE or left.does & AFTER:
            cuts.append(right.start)
    dropped = [range(e.start, e.end) for e in elements if e.does & DROP]
    spans = pairwise([*cuts, elements[-1].end])
    return [piece.cut(a, b) for a, b in spans if not any(a in stretch for stretch in dropped)]


def _by_matches(piece: Piece, matches: Sequence[Place], cuts: int) -> list[Piece]:
    """Cuts a piece by matches; what lies between them is an element too."""
    if cuts == DROP_REST:
        return [piece.cut(start, end) for start, end in matches]
    elements = []
    done = 0
    for start, end in [*matches, (len(piece.text), len(piece.text))]:
        if done < start:
            elements.append(Element(done, start, 0))
        if start < end:
            elements.append(Element(start, end, cuts))
        done = end
    return _by_elements(piece, elements)


def _classes(step: Classes, piece: Piece) -> list[Piece]:
    names = schemes.table()["superatoms"]
    does = schemes.classes(step.row, dict(step.cuts))
    return _by_elements(
        piece,
        [
            Element(char.start, char.end, does[names.index(char.tag)])
            for char in reference.classify(piece.text)
        ],
    )


def _literal(step: Literal, piece: Piece) -> list[Piece]:
    wanted = step.text.encode()
    matches = []
    at = piece.text.find(wanted)
    while at >= 0:
        matches.append((at, at + len(wanted)))
        at = piece.text.find(wanted, at + len(wanted))
    return _by_matches(piece, matches, step.cuts)


def _digits3(step: Digits3, piece: Piece) -> list[Piece]:
    matches = []
    at = 0
    while at + 3 <= len(piece.text):
        if piece.text[at : at + 3].isdigit():
            matches.append((at, at + 3))
            at += 2
        at += 1
    return _by_matches(piece, matches, step.cuts)


def _regex(step: Regex, piece: Piece) -> list[Piece]:
    chars = reference.classify(piece.text)
    matches = reference_patterns.matches(step.pattern, "hf", piece.text, chars)
    return _by_matches(piece, matches, step.cuts)


def _scheme(step: Scheme, piece: Piece) -> list[Piece]:
    spec = Spec((), Pretok(step.name), Bpe((), None))
    chars = reference.classify(piece.text)
    classes = reference.remap(spec, chars)
    spans = reference.boundaries(spec, piece.text, chars, classes)
    return [piece.cut(start, end) for start, end in spans]


def _scripts(step: Scripts, piece: Piece) -> list[Piece]:
    """A piece starts at each character whose script isn't that of the last character with one."""
    starts = []
    last = "Any"
    for char in reference.classify(piece.text):
        script = _script(piece.text, char)
        if script not in ("Any", last):
            starts.append(char.start)
            last = script
    return [piece.cut(start, end) for start, end in pairwise([*starts, len(piece.text)])]


def _script(text: bytes, char: reference.Char) -> str:
    """A failed lead has none; other bytes outside characters have that of their symbol."""
    table, lead = _script_table(), text[char.start]
    if char.end - char.start > 1:
        value = lead & (0xFF >> (char.end - char.start + 1))
        for byte in text[char.start + 1 : char.end]:
            value = value << 6 | byte & 0x3F
        return table[value]
    if lead < 0x80:
        return table[lead]
    width = 1 if lead < 0xC0 or lead > 0xF4 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    rest = text[char.end : char.start + width]
    if any(byte & 0xC0 != 0x80 for byte in rest):
        return "Any"
    return table[ord(reference.BYTE_SYMBOL[lead])]


@lru_cache(1)
def _script_table() -> list[str]:
    """The script of each value four bytes hold."""
    table = ["Any"] * 0x140000
    for line in resource("tables/generated/scripts.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            first, last, _, name = line.split()
            low, high = int(first, 16), int(last, 16) + 1
            table[low:high] = [name] * (high - low)
    return table


def _length(step: Length, piece: Piece) -> list[Piece]:
    starts = [char.start for char in reference.classify(piece.text)][:: step.number]
    return [piece.cut(start, end) for start, end in pairwise([*starts, len(piece.text)])]


def _prefixed(piece: Piece, prefix: bytes) -> Piece:
    """What stands in front comes from the first character."""
    if piece.text.startswith(prefix):
        return piece
    return Piece(prefix + piece.text, [piece.places[0]] * len(prefix) + list(piece.places))


def _prefix(step: Prefix, piece: Piece) -> list[Piece]:
    return [_prefixed(piece, step.text.encode())]


def _replace(step: Replace, piece: Piece) -> list[Piece]:
    new, text, places = step.text.encode(), b"", []
    for byte, place in zip(piece.text, piece.places, strict=True):
        part = new if byte == 0x20 else bytes([byte])
        text += part
        places += [place] * len(part)
    piece = Piece(text, places)
    if step.prefix == "always" or (step.prefix == "first" and piece.span[0] == 0):
        piece = _prefixed(piece, new)
    return [piece]


def _bytemap(step: Bytemap, piece: Piece) -> list[Piece]:
    text, places = b"", []
    for byte, place in zip(piece.text, piece.places, strict=True):
        symbol = reference.BYTE_SYMBOL[byte].encode()
        text += symbol
        places += [place] * len(symbol)
    return [Piece(text, places)]


_STEPS: dict[type, Callable[..., list[Piece]]] = {
    Classes: _classes,
    Literal: _literal,
    Digits3: _digits3,
    Regex: _regex,
    Scheme: _scheme,
    Scripts: _scripts,
    Length: _length,
    Prefix: _prefix,
    Replace: _replace,
    Bytemap: _bytemap,
}
