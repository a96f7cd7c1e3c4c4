"""The byte alphabet of byte-level BPE files: one printable character for each of the 256 bytes.

Bytes that are printable in Latin-1 (three runs: 21..7E, A1..AC, AE..FF) stand for themselves; the
other 68 take U+0100, U+0101, … in ascending order.
"""

from __future__ import annotations

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


def alphabet() -> str:
    """256 characters; character i stands for byte i."""
    printable = set(_PRINTABLE)
    others = iter(range(0x100, 0x200))
    return "".join(chr(b if b in printable else next(others)) for b in range(256))


ALPHABET = alphabet()

# For str.translate: character of the alphabet -> Latin-1 character of the byte. The characters
# below U+0100 that are not in the alphabet must not pass for bytes, so they become one that Latin-1
# lacks.
_TO_LATIN1 = dict.fromkeys(range(256), 0xFFFF) | {ord(c): b for b, c in enumerate(ALPHABET)}


def to_bytes(token: str) -> bytes:
    """The bytes that a token stands for. Raises UnicodeEncodeError if it leaves the alphabet."""
    return token.translate(_TO_LATIN1).encode("latin-1")


def to_text(raw: bytes) -> str:
    """The token that stands for some bytes."""
    return "".join(map(ALPHABET.__getitem__, raw))
