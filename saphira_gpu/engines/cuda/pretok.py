"""Stages classify, remap, boundaries and pieces on a device, one function each.

text: uint8[n_bytes and at least 64 more, all zero], at a multiple of 16 bytes of the device's
memory. Bitmaps are uint64[n_bytes // 64 + 1], bit i is byte i. segments: the bit of every segment's
first byte and of byte n_bytes, from stages rows and special. Positions are uint32, so n_bytes is
below 2^32 - 64. threads: of a block, 32 to 256 in whole warps; results don't depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saphira_gpu.devices import Device
from saphira_gpu.engines.cuda.tables import AlphabetTables, SchemeTables

# Threads of a boundary block that have no block of their own: SA_WARM_UP + SA_NEXT.
_HALO = 3


def words_of(n_bytes: int) -> int:
    """uint64 of a bitmap."""
    return n_bytes // 64 + 1


def _blocks(n: int, threads: int) -> int:
    return (n + threads - 1) // threads


def classify(
    device: Device,
    alphabet: AlphabetTables,
    text: Any,
    n_bytes: int,
    segments: Any,
    *,
    threads: int = 256,
) -> tuple[Any, Any]:
    """Tags of an alphabet, uint8[n_bytes], 0xFF within a character; and the bitmap of character
    starts."""
    tags = device.empty(n_bytes, np.uint8)
    starts = device.empty(words_of(n_bytes), np.uint64)
    grid = (_blocks(words_of(n_bytes), threads),)
    args = (text, np.uint64(n_bytes), segments, *alphabet.arguments, tags, starts)
    device.kernel("classify.cu", "classify")(grid, (threads,), args)
    return tags, starts


def remap(device: Device, table: Any, tags: Any, n_bytes: int, *, threads: int = 256) -> Any:
    """Classes, uint8[n_bytes]: table[tag], 0xFF stays. table: uint8[32] on the device."""
    classes = device.empty(n_bytes, np.uint8)
    if n_bytes:
        grid = (_blocks(n_bytes, 16 * threads),)
        args = (table, tags, np.uint64(n_bytes), classes)
        device.kernel("classify.cu", "remap")(grid, (threads,), args)
    return classes


def boundaries(
    device: Device,
    scheme: SchemeTables,
    text: Any,
    n_bytes: int,
    segments: Any,
    counters: Any,
    *,
    inside: Any = None,
    classes: Any = None,
    threads: int = 256,
) -> Any:
    """The bitmap of piece starts.

    inside: bitmap of bytes where no piece starts whatever the rules say; they are seen as text
    all the same, so give their spans segments. classes: class bits (`remap` with `scheme.bits`
    of superatoms); without them they are made of the text on the way, with the same result.
    counters: see kernels/counters.h; zero before a batch.
    """
    words = words_of(n_bytes)
    tiles = _blocks(words, threads - _HALO)
    starts = device.empty(words, np.uint64)
    tile_in, out, again = (device.empty(tiles, np.uint64) for _ in range(3))
    open_at, first_stop = (device.empty(2 * tiles, np.uint32) for _ in range(2))
    kernel = device.kernel("boundaries.cu", scheme.kernel)
    for number in range(3 if tiles > 1 else 1):
        args = (
            text, np.uint64(n_bytes), segments, inside, classes, *scheme.alphabet.arguments,
            scheme.ascii_bits, scheme.bits, np.uint32(scheme.options), np.uint32(number),
            np.uint64(tiles), starts, tile_in, out, again, open_at, first_stop, counters,
        )  # fmt: skip
        kernel((1 if number == 2 else tiles,), (threads,), args)
    if scheme.kinds and tiles > 1:
        rest = (
            np.uint64(tiles), np.uint32(scheme.kinds), open_at, first_stop, inside, starts, counters
        )  # fmt: skip
        grid = (_blocks(tiles, threads),)
        device.kernel("boundaries.cu", "boundaries_beyond")(grid, (threads,), rest)
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """start: uint32[n_bytes + 1], of which counters[SA_COUNTER_PIECES] are the positions of pieces
    in order, and one more is n_bytes. ranks: uint32[n_bytes // 64 + 1], how many pieces start
    before each word of `starts` (kernels/pieces.cuh)."""

    start: Any
    ranks: Any


def pieces(
    device: Device,
    starts: Any,
    n_bytes: int,
    counters: Any,
    *,
    most: int | None = None,
    threads: int = 256,
) -> Pieces:
    """Positions of the pieces of a bitmap. most: bound on their number, n_bytes by default."""
    words = words_of(n_bytes)
    tiles = _blocks(words, threads)
    start = device.empty((n_bytes if most is None else most) + 1, np.uint32)
    ranks, states = device.empty(words, np.uint32), device.zeros(tiles, np.uint64)
    args = (starts, np.uint64(n_bytes), np.uint64(tiles), states, start, ranks, counters)
    device.kernel("pieces.cu", "pieces")((tiles,), (threads,), args)
    return Pieces(start, ranks)
