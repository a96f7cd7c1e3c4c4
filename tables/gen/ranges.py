"""Reads the pinned Unicode range data of `tables/unicode`; selects the code points of a property.

A set of code points is a boolean numpy array of shape (1114112,): element c says whether c is a
member. Sets combine with `|`, `&` and `~`.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
UNICODE_DIR = Path(__file__).resolve().parent.parent / "unicode"

Set: TypeAlias = NDArray[np.bool_]
Ids: TypeAlias = NDArray[np.uint8]
Ranges: TypeAlias = list[tuple[int, int]]

# Values of General_Category by the one-letter names that patterns use.
CATEGORIES = {
    "L": (
        "Uppercase_Letter",
        "Lowercase_Letter",
        "Titlecase_Letter",
        "Modifier_Letter",
        "Other_Letter",
    ),
    "M": ("Nonspacing_Mark", "Spacing_Mark", "Enclosing_Mark"),
    "N": ("Decimal_Number", "Letter_Number", "Other_Number"),
    "P": (
        "Connector_Punctuation",
        "Dash_Punctuation",
        "Open_Punctuation",
        "Close_Punctuation",
        "Initial_Punctuation",
        "Final_Punctuation",
        "Other_Punctuation",
    ),
    "S": ("Math_Symbol", "Currency_Symbol", "Modifier_Symbol", "Other_Symbol"),
    "Lu": ("Uppercase_Letter",),
    "Lt": ("Titlecase_Letter",),
    "Ll": ("Lowercase_Letter",),
    "Nd": ("Decimal_Number",),
    "Nl": ("Letter_Number",),
    "No": ("Other_Number",),
    "Pc": ("Connector_Punctuation",),
}


class PinError(Exception):
    """Range data that is missing or is not the pinned data; the message names the file."""


def read_pinned(name: str) -> str:
    """The text of a file of `tables/unicode`, after its sha256 is found equal to SHA256SUMS."""
    pinned = {
        file: digest
        for digest, file in (
            line.split() for line in (UNICODE_DIR / "SHA256SUMS").read_text("ascii").splitlines()
        )
    }
    if name not in pinned:
        raise PinError(f"tables/unicode/SHA256SUMS does not list {name}")
    path = UNICODE_DIR / name
    if not path.is_file():
        raise PinError(f"tables/unicode/{name} is missing")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != pinned[name]:
        raise PinError(f"tables/unicode/{name} is not the pinned data: its sha256 differs")
    return data.decode("ascii")


def of_ranges(ranges: Ranges) -> Set:
    """The set of the inclusive ranges (first, last)."""
    members = np.zeros(CODE_POINTS, bool)
    for first, last in ranges:
        members[first : last + 1] = True
    return members


def of_points(*points: int) -> Set:
    return of_ranges([(point, point) for point in points])


class Ucd:
    """One version of the Unicode character database, `tables/unicode/ucd-VERSION.tsv`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._ranges: dict[tuple[str, str], Ranges] = {}
        for line in read_pinned(f"ucd-{version}.tsv").splitlines():
            name, value, first, last = line.split("\t")
            self._ranges.setdefault((name, value), []).append((int(first), int(last)))

    def values(self, name: str) -> list[str]:
        """The values of a property that occur, sorted."""
        return sorted(value for key, value in self._ranges if key == name)

    def _property(self, name: str, value: str) -> Set:
        if (name, value) not in self._ranges:
            raise PinError(f"ucd-{self.version}.tsv has no {name}={value}")
        return of_ranges(self._ranges[name, value])

    def category(self, name: str) -> Set:
        """General_Category by its short name, a key of CATEGORIES."""
        members = np.zeros(CODE_POINTS, bool)
        for value in CATEGORIES[name]:
            members |= self._property("General_Category", value)
        return members

    def unassigned(self) -> Set:
        return self._property("General_Category", "Unassigned")

    def binary(self, name: str) -> Set:
        return self._property("Binary_Property", name)

    def script(self, name: str) -> Set:
        return self._property("Script", name)


@cache
def ucd(version: str) -> Ucd:
    return Ucd(version)


def runs(ids: Ids) -> list[tuple[int, int, int]]:
    """The maximal runs of equal ids: (first, last, id), ascending, covering every code point."""
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    ends = np.append(starts[1:], len(ids)) - 1
    return [(int(a), int(b), int(ids[a])) for a, b in zip(starts, ends, strict=True)]
