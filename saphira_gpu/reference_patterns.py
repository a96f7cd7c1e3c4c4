r"""Compiled schemes in plain Python: each is its published pattern, run by Python's `re`.

`re` knows no Unicode properties, and not of this version, so text and pattern are both rewritten
over a small alphabet: an ASCII character stands for itself, U+017F (which `(?i:s)` matches) too,
and every other character for its superatom. A class like `[^\s\p{L}]` becomes the set of symbols in
it. What has no symbol of its own, as a byte that is part of no character, is one of its superatom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from saphira_gpu import reference
from saphira_gpu.errors import UnsupportedError
from saphira_gpu.pretok import schemes

_LETTER = {"Upper", "Lower", "LetterOther", "HanLetter", "HanURO", "KanaLetter"}
_CASELESS = _LETTER - {"Upper", "Lower"}
# Superatoms with a property. Lu and Lt, Lm and Lo are told apart by none, nor by any pattern.
_PROPERTIES = {
    "L": _LETTER,
    "Lu": {"Upper"},
    "Lt": {"Upper"},
    "Ll": {"Lower"},
    "Lm": _CASELESS,
    "Lo": _CASELESS,
    "M": {"Mark", "MarkPunct", "HanMark", "KanaMark"},
    "N": {"NumWord", "NumOther", "HanNum"},
    "P": {"Punct", "Connector", "PunctNew", "KanaPunct", "HanPunct", "Apostrophe", "Slash"},
    "S": {"SymPunct", "Sym", "SymWord", "SymHan", "KanaSym"},
    "Han": {"SymHan", "HanLetter", "HanNum", "HanURO", "HanPunct", "HanMark"},
}
# Schemes that are Digits(individual) and then another scheme.
_AFTER_DIGITS = {"starcoder": "gpt2"}
_ESCAPES = {"r": "\r", "n": "\n", "t": "\t"}
_FIRST = 0xE000  # private use: the symbol of superatom i is U+E000 + i

Symbols = frozenset[str]


def names() -> list[str]:
    """The schemes there are."""
    return [str(scheme["name"]) for scheme in schemes.table()["schemes"]]


def pieces(name: str, segment: bytes, chars: Sequence[reference.Char]) -> list[tuple[int, int]]:
    """The pieces (start, end) of a segment under a scheme, in bytes. What its pattern does not
    match is a piece too; a scheme of several patterns splits by each the pieces of the one before.
    """
    pattern_of = _AFTER_DIGITS.get(name, name)
    scheme = next(scheme for scheme in schemes.table()["schemes"] if scheme["name"] == pattern_of)
    engine = max(scheme["patterns"])  # tiktoken's, if it has one
    own = scheme["patterns"][engine]
    parts = _digits_alone(chars) if name in _AFTER_DIGITS else [list(chars)]
    for pattern in own if isinstance(own, list) else [own]:
        parts = [part for whole in parts for part in _split(pattern, engine, segment, whole)]
    return [(part[0].start, part[-1].end) for part in parts]


def _digits_alone(chars: Sequence[reference.Char]) -> list[list[reference.Char]]:
    """Runs of characters; each number, as Digits has them, by itself."""
    table = schemes.table()
    tags = zip(table["superatoms"], table["remap"]["digits"], strict=True)
    numbers = {tag for tag, number in tags if number == list(table["classes"]).index("N")}
    edges = {0, len(chars)}
    for i, char in enumerate(chars):
        edges |= {i, i + 1} if char.tag in numbers else set()
    return [list(chars[first:last]) for first, last in pairwise(sorted(edges))]


def _split(
    pattern: str, engine: str, segment: bytes, chars: list[reference.Char]
) -> list[list[reference.Char]]:
    """What a pattern matches of some characters of a segment, and what lies between."""
    at = {char.start: i for i, char in enumerate(chars)}
    edges = {0, len(chars)}
    for start, end in matches(pattern, engine, segment, chars):
        edges |= {at[start], at.get(end, len(chars))}
    return [chars[first:last] for first, last in pairwise(sorted(edges))]


def matches(
    pattern: str, engine: str, segment: bytes, chars: Sequence[reference.Char]
) -> list[tuple[int, int]]:
    """What a pattern of an engine ("hf", "tiktoken") matches, in bytes of the segment, leftmost
    first and none inside another. Raises UnsupportedError for a pattern that needs more than the
    known ones."""
    text = "".join(_symbol(segment, char) for char in chars)
    edges = [char.start for char in chars] + [char.end for char in chars[-1:]]
    found = _compiled(pattern, engine).finditer(text)
    return [(edges[match.start()], edges[match.end()]) for match in found]


def classes(name: str, chars: Sequence[reference.Char]) -> str:
    """The class of each character in a scheme's remap row, a letter each."""
    table = schemes.table()
    row = next(scheme["remap"] for scheme in table["schemes"] if scheme["name"] == name)
    letters = dict(zip(table["superatoms"], table["remap"][row], strict=True))
    return "".join("OLNRSW'UDXMPHC/w"[letters[char.tag]] for char in chars)


def _symbol(segment: bytes, char: reference.Char) -> str:
    raw = segment[char.start : char.end]
    if len(raw) == 1 and raw[0] < 0x80:
        return chr(raw[0])
    return "\u017f" if raw == "\u017f".encode() else _of_tag(char.tag)


def _of_tag(tag: str) -> str:
    return chr(_FIRST + schemes.table()["superatoms"].index(tag))


@lru_cache(1)
def _alphabet() -> dict[str, str]:
    """Symbol → superatom."""
    tags = reference.tag_table()
    own = {chr(value): tags[value] for value in (*range(0x80), 0x17F)}
    return own | {_of_tag(tag): tag for tag in schemes.table()["superatoms"]}


@lru_cache(64)
def _compiled(pattern: str, engine: str) -> re.Pattern[str]:
    return re.compile(_Rewrite(pattern, engine).text())


class _Rewrite:
    """One pattern over the alphabet of symbols."""

    def __init__(self, pattern: str, engine: str) -> None:
        self.pattern, self.engine, self.at = pattern, engine, 0

    def text(self) -> str:
        atoms: list[str] = []
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            rest = self.pattern[self.at :]
            group = re.match(r"\(\?(?:i?:|!)", rest)
            count = re.match(r"\{\d+(?:,\d*)?\}", rest)
            if char == "[":
                atoms.append(_any_of(self.set()))
            elif char == "\\":
                atoms.append(_any_of(self.escape()))
            elif group:
                atoms.append(group[0])
                self.at += len(group[0])
            elif count:
                self.at += len(count[0])
                atoms[-1] += count[0]
                if self.engine == "hf" and self.pattern[self.at : self.at + 1] == "+":
                    atoms[-1] = f"(?:{atoms[-1]})"  # there {1,3}+ is one or more of {1,3}
            elif char in ".^" or ord(char) >= 0x80:
                raise UnsupportedError(f"the reference does not read {char!r} in a pattern")
            else:
                special = char in "()|?*+"
                atoms.append(char if special else r"\Z" if char == "$" else re.escape(char))
                self.at += 1
        return "".join(atoms)

    def escape(self) -> Symbols:
        """The symbols of a backslash and what follows it."""
        char = self.pattern[self.at + 1]
        self.at += 2
        if char == "p":
            close = self.pattern.index("}", self.at)
            name, self.at = self.pattern[self.at + 1 : close], close + 1
            if name not in _PROPERTIES:
                raise UnsupportedError(f"the reference has no property {name!r}")
            return _with(_PROPERTIES[name].__contains__)
        if char in "sS":
            return _with(lambda tag: (tag in reference.SPACE_TAGS) == (char == "s"))
        if char.isalnum() and char not in _ESCAPES:
            raise UnsupportedError(f"the reference has no escape {char!r}")
        return frozenset(_ESCAPES.get(char, char))

    def set(self) -> Symbols:
        """The symbols of a class in brackets."""
        self.at += 1
        negated = self.pattern[self.at] == "^"
        self.at += negated
        found: Symbols = frozenset()
        both: Symbols = frozenset(_alphabet())
        far: list[range] = []  # beyond ASCII
        while self.pattern[self.at] != "]":
            if self.pattern.startswith("&&", self.at):
                both, found, self.at = both & found, frozenset(), self.at + 2
            elif self.pattern[self.at] == "[":
                found |= self.set()
            elif self.pattern[self.at] == "\\":
                found |= self.escape()
            else:
                first = last = self.pattern[self.at]
                self.at += 1
                if self.pattern[self.at] == "-" and self.pattern[self.at + 1] != "]":
                    last = self.pattern[self.at + 1]
                    self.at += 2
                values = range(ord(first), ord(last) + 1)
                found |= {chr(value) for value in values if value < 0x80}
                far += [values] if values.stop > 0x80 else []
        self.at += 1
        found = (found | _within(far)) & both
        return frozenset(_alphabet()) - found if negated else found


def _with(has: Callable[[str], bool]) -> Symbols:
    return frozenset(symbol for symbol, tag in _alphabet().items() if has(tag))


def _within(ranges: Sequence[range]) -> Symbols:
    """The symbols of superatoms that lie in some ranges of code points. Raises UnsupportedError for
    one that lies in them with a part only."""
    inside: set[str] = set()
    outside: set[str] = set()
    for value, tag in enumerate(reference.tag_table()[:0x110000]) if ranges else ():
        (inside if any(value in span for span in ranges) else outside).add(tag)
    if inside & outside:
        raise UnsupportedError(f"ranges that part the superatoms {sorted(inside & outside)}")
    return _with(inside.__contains__)


def _any_of(symbols: Symbols) -> str:
    if len(symbols) == 1:
        return re.escape(*symbols)
    return "[" + "".join(map(re.escape, sorted(symbols))) + "]" if symbols else "(?!)"
