"""Normalization forms and lower case: from the pinned .tsv files to lookup tables.

Decompositions are written out in full (a decomposition holds no character that decomposes further)
and in canonical order. Hangul syllables decompose and compose by arithmetic and have flags only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tables.gen import emit
from tables.gen.ranges import CODE_POINTS, Ids, read_pinned

LEAF = emit.LEAF
NORMALIZATION = "normalization-9.0.0.tsv"
LOWERCASE = "lowercase-17.0.0.tsv"

HANGUL = range(0xAC00, 0xD7A4)
HANGUL_VOWELS = range(0x1161, 0x1176)
HANGUL_TRAILS = range(0x11A8, 0x11C3)

# Bits of a character's flags, as SA_NORM_* of the generated header.
FLAGS = {
    "NFC": "the character alone changes under NFC",
    "NFD": "under NFD",
    "NFKC": "under NFKC",
    "NFKD": "under NFKD",
    "BACK": "it composes with a character before it",
    "MARK": "its combining class is not 0",
    "INNER": "in one form or another, what it becomes can interact with what stands before it",
    "LOWER": "it has a lower case of its own",
}
BIT = {name: 1 << place for place, name in enumerate(FLAGS)}

Points = tuple[int, ...]


@dataclass(frozen=True)
class Data:
    """ccc, canonical, compat: by code point, where not 0 or not the character itself.

    canonical and compat are full decompositions; pairs: (first, second) → what they compose to.
    """

    ccc: dict[int, int]
    canonical: dict[int, Points]
    compat: dict[int, Points]
    pairs: dict[tuple[int, int], int]
    lower: dict[int, Points]


def load() -> Data:
    ccc: dict[int, int] = {}
    once: dict[int, Points] = {}
    compat_only: set[int] = set()
    pairs: dict[tuple[int, int], int] = {}
    for line in _lines(NORMALIZATION):
        point_text, ccc_text, tag, mapping, composes = line.split("\t")
        point = int(point_text, 16)
        if ccc_text != "0":
            ccc[point] = int(ccc_text)
        if mapping:
            once[point] = _points(mapping)
            if tag:
                compat_only.add(point)
            elif composes == "1":
                first, second = once[point]
                pairs[first, second] = point
    lower = {}
    for line in _lines(LOWERCASE):
        point_text, mapping = line.split("\t")
        lower[int(point_text, 16)] = _points(mapping)

    def expand(point: int, compat: bool) -> Points:
        if point in HANGUL:  # in no decomposition but its own
            return (point,)
        if point not in once or (point in compat_only and not compat):
            return (point,)
        return tuple(inner for part in once[point] for inner in expand(part, compat))

    canonical = {point: _ordered(expand(point, False), ccc) for point in once}
    compat = {point: _ordered(expand(point, True), ccc) for point in once}
    canonical = {point: full for point, full in canonical.items() if full != (point,)}
    return Data(ccc, canonical, compat, pairs, lower)


def _lines(name: str) -> list[str]:
    return [line for line in read_pinned(name).splitlines() if not line.startswith("#")]


def _points(text: str) -> Points:
    return tuple(int(part, 16) for part in text.split())


def _ordered(points: Points, ccc: dict[int, int]) -> Points:
    """The same points. Raises ValueError where marks are not sorted by their class."""
    for a, b in pairwise(points):
        if ccc.get(a, 0) > ccc.get(b, 0) > 0:
            raise ValueError(f"U+{a:04X} U+{b:04X} is not in canonical order")
    return points


def flags(data: Data) -> Ids:
    """The flags of every code point, shape (1114112,) uint8."""
    back = {second for _, second in data.pairs} | {*HANGUL_VOWELS, *HANGUL_TRAILS}
    composites = set(data.pairs.values())
    inner = back | set(data.ccc)
    out = np.zeros(CODE_POINTS, np.uint8)
    out[list(back)] |= BIT["BACK"]
    out[list(data.ccc)] |= BIT["MARK"]
    out[list(inner)] |= BIT["INNER"]
    out[list(data.lower)] |= BIT["LOWER"]
    out[HANGUL.start : HANGUL.stop] |= BIT["NFD"] | BIT["NFKD"]
    for point, compat in data.compat.items():
        canonical = data.canonical.get(point, (point,))
        changes = BIT["NFKD"]
        if canonical != (point,):
            changes |= BIT["NFD"]
            if point not in composites:
                changes |= BIT["NFC"]
        if point not in composites or compat != canonical:
            changes |= BIT["NFKC"]
        if canonical[0] in inner or compat[0] in inner:
            changes |= BIT["INNER"]
        out[point] |= changes
    # The core passes over these by their lead bytes, without a look at the table.
    if (out[:0x80] & ~np.uint8(BIT["LOWER"])).any() or (
        out[:0x300] & (BIT["NFC"] | BIT["BACK"] | BIT["MARK"] | BIT["INNER"])
    ).any():
        raise ValueError("ASCII text changes under a form, or text below U+0300 under NFC")
    return out


def header_body(data: Data) -> list[str]:
    """The parts of normalization.h."""
    records: dict[tuple[int, Points, Points], int] = {(0, (), ()): 0}
    number = np.zeros(CODE_POINTS, np.uint32)
    for point in sorted({*data.ccc, *data.compat}):
        key = (
            data.ccc.get(point, 0),
            data.canonical.get(point, ()),
            data.compat.get(point, ()),
        )
        number[point] = records.setdefault(key, len(records))
    pool, places = _pool({part for _, *parts in records for part in parts})

    deltas: dict[int, int] = {0: 0}
    lower = np.zeros(CODE_POINTS, np.uint32)
    longer = {point: full for point, full in data.lower.items() if len(full) > 1}
    for point, full in data.lower.items():
        lower[point] = deltas.setdefault(full[0] - point, len(deltas))
    if len(longer) != 1 or any(len(full) != 2 for full in longer.values()):
        raise ValueError(f"lower case of more than one character: {longer}")
    ((long_point, long_full),) = longer.items()

    first = sorted(data.pairs)
    return [
        "#include <stdint.h>\n",
        "/* flags of a character */",
        *(f"#define SA_NORM_{name} {BIT[name]} /* {doc} */" for name, doc in FLAGS.items()),
        "",
        *_trie("uint8_t", "sa_norm_flags", flags(data).astype(np.uint32), "flags"),
        "/* combining class and full decompositions: places and lengths in sa_norm_pool */",
        "typedef struct sa_norm_record {",
        "  uint16_t canonical, compat;",
        "  uint8_t n_canonical, n_compat; /* 0: the character itself */",
        "  uint8_t ccc;",
        "} sa_norm_record;",
        "",
        emit.array(
            "sa_norm_record",
            "sa_norm_records",
            [
                f"{{{places[canonical]},{places[compat]},{len(canonical)},{len(compat)},{ccc}}}"
                for ccc, canonical, compat in records
            ],
            "record 0: class 0, no decomposition",
        ),
        *_trie("uint16_t", "sa_norm_record", number, "record"),
        emit.array("uint32_t", "sa_norm_pool", pool, "decompositions, overlapping"),
        f"#define SA_NORM_PAIRS {len(first)}",
        emit.array(
            "uint64_t",
            "sa_norm_pair",
            [f"0x{a << 32 | b:X}u" for a, b in first],
            "first << 32 | second of each pair that composes, ascending",
        ),
        emit.array(
            "uint32_t", "sa_norm_composite", [data.pairs[key] for key in first], "what each makes"
        ),
        f"#define SA_LOWER_LONG 0x{long_point:X} /* lower case of two characters: */",
        f"#define SA_LOWER_LONG_FIRST 0x{long_full[0]:X}",
        f"#define SA_LOWER_LONG_SECOND 0x{long_full[1]:X}",
        "",
        *_trie("uint8_t", "sa_lower", lower, "number of the distance to its lower case"),
        emit.array("int32_t", "sa_lower_delta", list(deltas), "distances; 0: none"),
    ]


def _pool(parts: set[Points]) -> tuple[list[int], dict[Points, int]]:
    """All of `parts` in one list, longest first so that shorter ones are found in it."""
    pool: list[int] = []
    places: dict[Points, int] = {}
    seen: dict[Points, int] = {}
    for part in sorted(parts, key=lambda p: (-len(p), p)):
        if part not in seen:
            start = len(pool)
            pool += part
            for a in range(len(part)):
                for b in range(a + 1, len(part) + 1):
                    seen.setdefault(part[a:b], start + a)
        places[part] = seen.get(part, 0)
    return pool, places


def _trie(ctype: str, name: str, values: NDArray[np.uint32], what: str) -> list[str]:
    """Two levels; leaf 0 is all 0, so a 0 in the index says so of 64 code points."""
    leaves: dict[bytes, int] = {np.zeros(LEAF, np.uint32).tobytes(): 0}
    index = [leaves.setdefault(page.tobytes(), len(leaves)) for page in values.reshape(-1, LEAF)]
    flat = np.frombuffer(b"".join(leaves), np.uint32)
    itype = "uint8_t" if len(leaves) <= 256 else "uint16_t"
    return [
        emit.array(itype, f"{name}_index", index, f"{what}: leaf of c at [c >> 6]; 0: all 0"),
        emit.array(ctype, f"{name}_leaf", flat.tolist(), f"{what} at [leaf * 64 + (c & 63)]"),
    ]
