"""The 32 superatoms: the joint refinement of every predicate a compiled scheme asks of a character.

Unicode versions are a pinned mixture, the profile. A superatom is one combination of the predicates
below that occurs, so all code points of a superatom answer every predicate alike. A new profile
that makes a new combination is reported, not mapped to something near it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tables.gen.ranges import CODE_POINTS, Ids, Set, of_points, of_ranges, ucd

ASCII_PUNCTUATION = of_ranges([(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)])


@dataclass(frozen=True)
class Profile:
    """Which Unicode version answers which question; `tables/schemes.toml` names the known ones."""

    name: str
    punct: str
    regex: str
    numeric: str
    scripts: str
    norm: str


def predicates(profile: Profile) -> dict[str, Set]:
    """The questions, by name. `\\p{..}`, `\\s` and `\\w` are the regex version's."""
    regex = ucd(profile.regex)
    return {
        "L": regex.category("L"),
        "N": regex.category("N"),
        "M": regex.category("M"),
        "P": regex.category("P"),
        "S": regex.category("S"),
        # upper half of the case rules ([\p{Lu}\p{Lt}]) and the lower ([\p{Ll}])
        "upper": regex.category("Lu") | regex.category("Lt"),
        "lower": regex.category("Ll"),
        "space": regex.binary("White_Space"),
        "crlf": of_points(0x0A, 0x0D),
        "blank": of_points(0x20),
        # \w with the two join controls, as the reference's Whitespace pretokenizer has it
        "word": regex.binary("Alphabetic")
        | regex.category("M")
        | regex.category("Nd")
        | regex.category("Pc")
        | of_points(0x200C, 0x200D),
        # is_punctuation of Punctuation and BertPreTokenizer
        "punct": ucd(profile.punct).category("P") | ASCII_PUNCTUATION,
        # char::is_numeric of Digits
        "numeric": ucd(profile.numeric).category("N"),
        "han": regex.script("Han"),
        # [一-龥぀-ゟ゠-ヿ] of the DeepSeek family
        "cjk": of_ranges([(0x4E00, 0x9FA5), (0x3040, 0x309F), (0x30A0, 0x30FF)]),
    }


# Superatom number = place in this list; (name, the predicates that hold), all others do not hold.
SUPERATOMS: tuple[tuple[str, str], ...] = (
    ("Other", ""),
    ("WsOther", "space"),
    ("Newline", "space crlf"),
    ("Space", "space blank"),
    ("Punct", "P punct"),
    ("SymPunct", "S punct"),
    ("NumWord", "N word numeric"),
    ("Upper", "L upper word"),
    ("Connector", "P word punct"),
    ("Lower", "L lower word"),
    ("Sym", "S"),
    ("LetterOther", "L word"),
    ("NumOther", "N numeric"),
    ("Mark", "M word"),
    ("PunctNew", "P"),
    ("JoinControl", "word"),
    ("SymWord", "S word"),
    ("SymHan", "S han"),
    ("HanLetter", "L word han"),
    ("HanNum", "N word numeric han"),
    ("OtherKana", "cjk"),
    ("KanaLetter", "L word cjk"),
    ("KanaMark", "M word cjk"),
    ("KanaSym", "S cjk"),
    ("KanaPunct", "P punct cjk"),
    ("HanURO", "L word han cjk"),
    ("MarkPunct", "M word punct"),
    ("NumericNew", "numeric"),
    ("HanPunct", "P han"),
    ("HanMark", "M word han"),
    # Two ASCII characters that rules look for, taken out of Punct.
    ("Apostrophe", "P punct 0x27"),
    ("Slash", "P punct 0x2F"),
)
NAMES = tuple(name for name, _ in SUPERATOMS)


class UnknownCombination(Exception):
    """A profile that the superatoms do not fit; the message names a code point or superatom."""


def superatoms(profile: Profile) -> Ids:
    """The superatom of every code point, shape (1114112,) uint8."""
    holds = predicates(profile)
    bits = {name: 1 << place for place, name in enumerate(holds)}
    key = np.zeros(CODE_POINTS, np.uint32)
    for name, members in holds.items():
        key[members] |= bits[name]

    ids = np.full(CODE_POINTS, 0xFF, np.uint8)
    for number, (_, conditions) in enumerate(SUPERATOMS):
        words = conditions.split()
        literal = [int(word, 16) for word in words if word.startswith("0x")]
        wanted = sum(bits[word] for word in words if not word.startswith("0x"))
        members = key == wanted
        if literal:
            members &= of_points(*literal)
        ids[members] = number
    if (ids == 0xFF).any():
        point = int(np.argmax(ids == 0xFF))
        found = [name for name, bit in bits.items() if key[point] & bit]
        raise UnknownCombination(f"U+{point:04X} of {profile.name}: no superatom is {found}")
    return ids
