"""What a pretokenizer is made of: steps, in no file format. The core runs them as a program."""

from __future__ import annotations

from dataclasses import dataclass

# What a match, or a character of a class, does (SA_CUT_* of saphira.h).
DROP, RUN, BEFORE, AFTER, DROP_REST = 1, 2, 4, 8, 16

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


@dataclass(frozen=True, slots=True)
class Classes:
    """Cuts by the class of characters. cuts: for each class of the remap row that does something,
    what. Each character is a match of its own."""

    row: str
    cuts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """Cuts by occurrences of a text, leftmost first, none inside another."""

    text: str
    cuts: int


@dataclass(frozen=True, slots=True)
class Digits3:
    """Cuts by matches of [0-9][0-9][0-9]."""

    cuts: int


@dataclass(frozen=True, slots=True)
class Regex:
    """Cuts by matches of a pattern, as Oniguruma finds them."""

    pattern: str
    cuts: int


@dataclass(frozen=True, slots=True)
class Scheme:
    """The pieces of a compiled scheme."""

    name: str


@dataclass(frozen=True, slots=True)
class Scripts:
    """Cuts where the script changes; drops what comes before the first script."""


@dataclass(frozen=True, slots=True)
class Length:
    """Pieces of some number of characters."""

    number: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """New text: `text` in front of every piece that does not start with it."""

    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """New text: `text` for every U+0020, then in front of pieces as `prefix` says ("always",
    "first", "never")."""

    text: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Bytemap:
    """New text: the byte-alphabet symbol of every byte."""


Step = Classes | Literal | Digits3 | Regex | Scheme | Scripts | Length | Prefix | Replace | Bytemap


def cuts_of_class(behavior: str) -> int:
    """What each matching character does under a behaviour of HF's find(predicate).

    Every character is a match of its own, so MergedWithPrevious, where a match joins what comes
    before unless that is a match, cuts behind each match; MergedWithNext, in front of each.
    """
    return {
        "Removed": DROP,
        "Isolated": BEFORE | AFTER,
        "Contiguous": RUN,
        "MergedWithPrevious": AFTER,
        "MergedWithNext": BEFORE,
    }[behavior]


def cuts_of_match(behavior: str, invert: bool) -> int:
    """What each match does under a behaviour of HF's Split; invert swaps matches and what lies
    between them (so a match that "joins the previous piece" is then a gap that does)."""
    if invert:
        swapped = {"MergedWithPrevious": BEFORE, "MergedWithNext": AFTER, "Removed": DROP_REST}
        if behavior in swapped:
            return swapped[behavior]
    return cuts_of_class(behavior)


def spans_only(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps with the same spans, where the text of the pieces is not asked for: what new text the
    last steps make moves no span, so Metaspace cuts the given text at U+0020 as at its symbol (a
    byte 20 is a character of its own in any text)."""
    kept = list(steps)
    while kept and isinstance(kept[-1], Bytemap | Replace | Prefix):
        kept.pop()
    if (
        len(kept) >= 2
        and isinstance(kept[-2], Replace)
        and kept[-1] == Literal(kept[-2].text, BEFORE)
    ):
        kept[-2] = Literal(" ", BEFORE)
    return tuple(kept)
