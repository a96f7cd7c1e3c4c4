"""Script ids as the reference's UnicodeScripts sees them.

Id 0 is Any, the others are the scripts of the profile's version in alphabetical order. Hiragana,
Katakana and U+30FC (the prolonged sound mark, Common in Unicode) count as Han; the space and
everything unassigned count as Any.
"""

from __future__ import annotations

import numpy as np

from tables.gen.ranges import CODE_POINTS, Ids, ucd
from tables.gen.superatoms import Profile

_AS_HAN = ("Hiragana", "Katakana")


def names(profile: Profile) -> tuple[str, ...]:
    scripts = ucd(profile.scripts).values("Script")
    return ("Any", *(name for name in scripts if name not in (*_AS_HAN, "Unknown")))


def scripts(profile: Profile) -> Ids:
    """The script id of every code point, shape (1114112,) uint8."""
    data = ucd(profile.scripts)
    ids = np.zeros(CODE_POINTS, np.uint8)
    for number, name in enumerate(names(profile)):
        if number:
            ids[data.script(name)] = number
    han = names(profile).index("Han")
    for name in _AS_HAN:
        ids[data.script(name)] = han
    ids[0x30FC] = han
    ids[0x20] = 0
    ids[data.unassigned()] = 0
    return ids
