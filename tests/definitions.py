"""Plain definitions of superatoms, atoms and scripts, read off the Unicode range data.

They are decisions about one code point, written from what each reference documents; the generator
works by set algebra. They share the range data and nothing else. Also here: readers of the
generated files.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "tables" / "generated"
UNICODE = ROOT / "tables" / "unicode"
N = 0x110000

# Beyond these, code points are unassigned or private in every version (test_tables.py sees to it).
ASSIGNED = [*range(0x33480), *range(0xE0000, 0xE1000)]

# ---- what the files say ----


@lru_cache
def ucd(version: str) -> tuple[list[str], list[str], dict[str, bytearray]]:
    """(category, script, binary properties), each indexed by code point."""
    category, script = ["?"] * N, ["?"] * N
    binary: dict[str, bytearray] = {}
    for line in (UNICODE / f"ucd-{version}.0.0.tsv").read_text().splitlines():
        name, value, first, last = line.split("\t")
        a, b = int(first), int(last) + 1
        if name == "Binary_Property":
            binary.setdefault(value, bytearray(N))[a:b] = b"\1" * (b - a)
        else:
            target = category if name == "General_Category" else script
            target[a:b] = [value] * (b - a)
    assert "?" not in category
    return category, script, binary


def ranges_of(path: Path, columns: int) -> list[Any]:
    """ids by code point, of a file of lines: first, last (hex), id, name."""
    ids: list[Any] = [None] * N
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        assert len(fields) == columns
        first, last = int(fields[0], 16), int(fields[1], 16) + 1
        assert ids[first] is None and ids[last - 1] is None
        ids[first:last] = [int(fields[2])] * (last - first)
    assert None not in ids
    return ids


@lru_cache
def header(name: str) -> dict[str, list[Any]]:
    """The arrays of a generated header: C name to values (numbers, or strings for names)."""
    text = re.sub(r"/\*.*?\*/", "", (GENERATED / name).read_text(), flags=re.S)
    arrays: dict[str, list[Any]] = {}
    for array, body in re.findall(r"(\w+)(?:\[\w+\])+ = \{(.*?)\n\};", text, flags=re.S):
        words = re.findall(r'"\w+"|-?\d+', body)
        arrays[array] = [word.strip('"') if '"' in word else int(word) for word in words]
    return arrays


@lru_cache
def schemes() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GENERATED / "schemes.json").read_text("utf-8"))
    return loaded


@lru_cache
def generated(alphabet: str) -> list[int]:
    return ranges_of(GENERATED / f"{alphabet}s.tsv", 4)


def enum(prefix: str) -> list[str]:
    """The names of an enum of ids.h, without their prefix, in the order of their values."""
    text = (GENERATED / "ids.h").read_text()
    found = re.findall(rf"^  {prefix}_(\w+) = (\d+),", text, flags=re.M)
    assert [int(value) for _, value in found] == list(range(len(found)))
    return [name for name, _ in found]


# ---- what they should say ----


def where(version: str, kind: str) -> bytes:
    """1 for each code point whose General_Category ends in kind, such as `_Letter`."""
    return bytes(map(kind.__eq__, ("_" + name.rsplit("_", 1)[-1] for name in ucd(version)[0])))


CATEGORY, SCRIPT, BINARY = ucd("16")
LETTER, MARK, NUMBER = (where("16", kind) for kind in ("_Letter", "_Mark", "_Number"))
PUNCTUATION_8 = where("8", "_Punctuation")
NUMBER_17 = where("17", "_Number")
ALPHABETIC, WHITE_SPACE = BINARY["Alphabetic"], BINARY["White_Space"]


def is_kana(point: int) -> bool:
    return 0x3040 <= point <= 0x30FF


def is_ascii_punctuation(point: int) -> bool:
    return point < 0x80 and chr(point) in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def is_punctuation(point: int) -> bool:
    """Punctuation and BertPreTokenizer: Unicode 8.0, or one of the 32 of ASCII."""
    return bool(PUNCTUATION_8[point]) or is_ascii_punctuation(point)


def is_numeric(point: int) -> bool:
    """Digits: Unicode 17.0."""
    return bool(NUMBER_17[point])


def is_word(point: int) -> bool:
    """\\w of HF's Whitespace."""
    return (
        bool(ALPHABETIC[point] or MARK[point])
        or CATEGORY[point] in ("Decimal_Number", "Connector_Punctuation")
        or point in (0x200C, 0x200D)
    )


def is_han(point: int) -> bool:
    return SCRIPT[point] == "Han"


def superatom_of(point: int) -> str:
    category = CATEGORY[point]
    kind = category.rsplit("_", 1)[-1]
    if point in (0x20, 0x27, 0x2F, 0x0A, 0x0D):
        return {0x20: "Space", 0x27: "Apostrophe", 0x2F: "Slash"}.get(point, "Newline")
    if WHITE_SPACE[point]:
        return "WsOther"
    kana, han = is_kana(point), is_han(point)
    if kind == "Letter":
        if han:
            return "HanURO" if 0x4E00 <= point <= 0x9FA5 else "HanLetter"
        if kana:
            return "KanaLetter"
        cases = {
            "Uppercase_Letter": "Upper",
            "Titlecase_Letter": "Upper",
            "Lowercase_Letter": "Lower",
        }
        return cases.get(category, "LetterOther")
    if kind == "Mark":
        if han or kana:
            return "HanMark" if han else "KanaMark"
        return "MarkPunct" if is_punctuation(point) else "Mark"
    if kind == "Number":
        if han:
            return "HanNum"
        return "NumOther" if category == "Other_Number" else "NumWord"
    if kind == "Punctuation":
        if han or kana:
            return "HanPunct" if han else "KanaPunct"
        if category == "Connector_Punctuation":
            return "Connector"
        return "Punct" if is_punctuation(point) else "PunctNew"
    if kind == "Symbol":
        if han or kana:
            return "SymHan" if han else "KanaSym"
        if is_word(point):
            return "SymWord"
        return "SymPunct" if is_punctuation(point) else "Sym"
    if kana:
        return "OtherKana"
    if point in (0x200C, 0x200D):
        return "JoinControl"
    return "NumericNew" if is_numeric(point) else "Other"


def atom_of(point: int) -> str:
    category = CATEGORY[point]
    if point in (0x27, 0x0A, 0x0D, 0x20):
        return {0x27: "Apostrophe", 0x20: "Space"}.get(point, "Newline")
    if WHITE_SPACE[point]:
        return "WsOther"
    if NUMBER[point]:
        return "NumOther" if category == "Other_Number" else "NumWord"
    if LETTER[point]:
        return "Letter"
    if is_word(point):
        return "Connector" if is_punctuation(point) else "Mark"
    if is_punctuation(point):
        return "Punct"
    return "NumericOther" if is_numeric(point) else "SymOther"


def script_of(point: int) -> str:
    category, script, _ = ucd("9")
    if point == 0x20 or category[point] == "Unassigned" or script[point] == "Unknown":
        return "Any"
    if point == 0x30FC or script[point] in ("Hiragana", "Katakana"):
        return "Han"
    return script[point]
