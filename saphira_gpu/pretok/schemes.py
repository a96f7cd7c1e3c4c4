"""Which compiled scheme a split pattern is: by pattern, engine, behaviour and inversion."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from saphira_gpu._resources import resource

ENGINES = ("hf", "tiktoken")

# Rules whose pattern matches every character, so that no text lies between matches: then Isolated
# and Removed + invert, under which every match is a piece, give the same pieces.
_NO_GAPS = {"gpt2", "cl100k", "o200k"}

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
    """The name of the scheme with this pattern, or one that is provably the same; None: there is
    none."""
    spellings = [pattern]
    for one, other in _SAME:
        spellings += [text.replace(one, other) for text in spellings if one in text]
        spellings += [text.replace(other, one) for text in spellings if other in text]
    for scheme in table()["schemes"]:
        if scheme["patterns"].get(engine) in spellings and _has(scheme, behavior, invert):
            return str(scheme["name"])
    return None


def _has(scheme: dict[str, Any], behavior: str, invert: bool) -> bool:
    """Whether a scheme gives the pieces of its pattern under a behaviour."""
    if (behavior, invert) == (scheme["behavior"], scheme["invert"]):
        return True
    every_match_a_piece = behavior == "Isolated" or (behavior == "Removed" and invert)
    return scheme["rules"] in _NO_GAPS and every_match_a_piece


def classes(row: str, cuts: dict[str, int]) -> bytes:
    """What each superatom does: 32 bytes. cuts: by the name of its class in a remap row."""
    data = table()
    names = list(data["classes"])
    return bytes(cuts.get(names[number], 0) for number in data["remap"][row])
