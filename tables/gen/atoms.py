"""The twelve atoms: first definition that holds wins. Every superatom lies inside one atom."""

from __future__ import annotations

import numpy as np

from tables.gen.ranges import CODE_POINTS, Ids, of_points, ucd
from tables.gen.superatoms import NAMES as SUPERATOM_NAMES
from tables.gen.superatoms import Profile, UnknownCombination, predicates

NAMES = (
    "Letter",
    "NumWord",
    "NumOther",
    "Newline",
    "Space",
    "WsOther",
    "Mark",
    "Connector",
    "Punct",
    "Apostrophe",
    "SymOther",
    "NumericOther",
)


def atoms(profile: Profile) -> Ids:
    """The atom of every code point, shape (1114112,) uint8."""
    regex = ucd(profile.regex)
    holds = predicates(profile)
    definitions = {
        "Apostrophe": of_points(0x27),
        "Newline": holds["crlf"],
        "Space": holds["blank"],
        "WsOther": holds["space"],
        "NumOther": regex.category("No"),
        "NumWord": regex.category("Nd") | regex.category("Nl"),
        "Letter": holds["L"],
        "Connector": holds["word"] & holds["punct"],
        "Mark": holds["word"],
        "Punct": holds["punct"],
        "NumericOther": holds["numeric"] & ~holds["N"],
        "SymOther": np.ones(CODE_POINTS, bool),
    }
    ids = np.zeros(CODE_POINTS, np.uint8)
    for name, members in reversed(definitions.items()):
        ids[members] = NAMES.index(name)
    return ids


def atom_of_superatom(superatom: Ids, atom: Ids) -> list[int]:
    """The atom that each superatom lies in; UnknownCombination if one straddles two.

    A superatom that the profile leaves empty may lie anywhere: it is counted as SymOther.
    """
    found = []
    for number, name in enumerate(SUPERATOM_NAMES):
        inside = np.unique(atom[superatom == number])
        if len(inside) > 1:
            raise UnknownCombination(f"superatom {name} straddles {[NAMES[i] for i in inside]}")
        found.append(int(inside[0]) if len(inside) else NAMES.index("SymOther"))
    return found
