"""The byte alphabet of ByteLevel: one visible character for each byte, by the three-run rule.

The bytes 21..7E, A1..AC and AE..FF stand for themselves; the other 68, in ascending order, are
U+0100, U+0101 and so on.
"""

RUNS = ((0x21, 0x7E), (0xA1, 0xAC), (0xAE, 0xFF))
CODE_POINTS = 0x100 + 68


def symbols() -> list[int]:
    """The code point of each of the 256 bytes."""
    points = []
    spare = 0x100
    for byte in range(256):
        if any(first <= byte <= last for first, last in RUNS):
            points.append(byte)
        else:
            points.append(spare)
            spare += 1
    return points


def bytes_of_symbols() -> list[int]:
    """The byte of each code point below CODE_POINTS, -1 where it is no symbol."""
    points = symbols()
    return [points.index(point) if point in points else -1 for point in range(CODE_POINTS)]
