"""Which compiled scheme a split pattern is: by pattern, engine, behaviour and inversion."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from saphira_gpu._resources import resource

ENGINES = ("hf", "tiktoken")

# Spellings of the contractions that match the same texts: the first letters differ, so the order of
# the alternatives decides nothing.
_SAME = (
    ("'(?:[sdmt]|ll|ve|re)", "'s|'t|'re|'ve|'m|'ll|'d"),
    ("'(?i:[sdmt]|ll|ve|re)", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"),
)


@cache
def table() -> dict[str, Any]:
    """`tables/generated/schemes.json`."""
    found: dict[str, Any] = json.loads(resource("tables/generated/schemes.json").read_text("utf-8"))
    return found


def find(pattern: str, engine: str, behavior: str, invert: bool) -> str | None:
    """The name of the scheme with this pattern, or one that is provably the same, under a behaviour
    that makes a piece of every match; None: there is none. What lies between matches is a piece of
    the scheme too (see `has_gaps`)."""
    if behavior != "Isolated" and (behavior, invert) != ("Removed", True):
        return None
    spellings = [pattern]
    for one, other in _SAME:
        spellings += [text.replace(one, other) for text in spellings if one in text]
        spellings += [text.replace(other, one) for text in spellings if other in text]
    for scheme in table()["schemes"]:
        if scheme["patterns"].get(engine) in spellings:
            return str(scheme["name"])
    return None


def find_sequence(patterns: list[str], engine: str) -> tuple[str, int] | None:
    """The scheme that is several Isolated Splits in a row, where the patterns start with its own,
    and how many they are."""
    for scheme in table()["schemes"]:
        own = scheme["patterns"].get(engine)
        if isinstance(own, list) and patterns[: len(own)] == own:
            return str(scheme["name"]), len(own)
    return None


def has_gaps(name: str) -> bool:
    """Whether a scheme's pattern does not match white space; else it matches all there is."""
    return any(scheme["name"] == name and scheme["invert"] for scheme in table()["schemes"])


def classes(row: str, cuts: dict[str, int]) -> bytes:
    """What each superatom does: 32 bytes. cuts: by the name of its class in a remap row."""
    data = table()
    names = list(data["classes"])
    return bytes(cuts.get(names[number], 0) for number in data["remap"][row])
