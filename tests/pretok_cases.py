"""Stages classify, remap, boundaries and pieces on any device against the core.

CASES are those of tests/mutate_kernels.py: n is about how many bytes of text there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from saphira_gpu.batch import Batch, cumulated
from saphira_gpu.devices import Device
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda import pretok
from saphira_gpu.engines.cuda.rows import counter_numbers, new_counters
from saphira_gpu.engines.cuda.tables import SCRIPTS, SUPERATOMS, AlphabetTables, SchemeTables

SCHEMES = tuple(
    cpu.ffi.string(cpu.lib.sa_scheme_name(i)).decode() for i in range(cpu.lib.sa_scheme_count())
)

# What each rule looks at, and its neighbours: characters of 1 to 4 bytes of every class, overlong
# forms, cut and lone bytes.
_KINDS: dict[str, tuple[int | str | bytes, ...]] = {
    "letters": (*b"aBlsS", "éǄǅ", "𝔄"),
    "caseless": ("中かスا", "ーʰ𠀀"),
    "marks": ("\u0301\u3099\u0bd7", b"\xf0\x90\x8f\xbd"),
    "numbers": (*b"017", "٣½Ⅷ〇", "𝟘〡"),
    "white": (*b"  \n\r\t", "\u00a0\u3000\u2028\u0085"),
    "signs": (*b"'./-<!$_", "€。😀"),
    "other": (*b"\0\x1b", "\u200d\u00ad\u0378\ue000"),
    "suffixes": (b"'s 'S 're 'VE 'll 'l 't'm ''s 'd", "'ſ"),
    "literals": (b"<|startoftext|> <|endoftext|> <|endoftext| <|startoftext|>'s <|e",),
    "invalid": (
        *(b"\x80 \xbf\xbf \xc3 \xe4\xb8 \xf0\x9f\x98 \xff \xf5 \xed\xa0\x80 \xc0\xa0".split()),
        *(b"\xc0\x8a \xe0\x80\xa7 \xf0\x80\x80\xa0 \xc1\x81 \xf4\x90\x80\x80".split()),
    ),
}


def _parts(given: int | str | bytes) -> list[bytes]:
    """One byte; the characters of a str, or with an apostrophe all of it; words of bytes."""
    if isinstance(given, int):
        return [bytes([given])]
    if isinstance(given, bytes):
        return given.split(b" ")
    return [given.encode()] if "'" in given else [char.encode() for char in given]


_PARTS = {
    kind: [part for given in parts for part in _parts(given)] for kind, parts in _KINDS.items()
}


def random_text(source: random.Random, n: int, dense: float = 0.3) -> bytes:
    """About n bytes: pieces of a few kinds at a time; now and then one part many times over."""
    out = bytearray()
    while len(out) < n:
        kinds = source.sample(sorted(_PARTS), source.randint(1, 3))
        parts = [part for kind in kinds for part in _PARTS[kind]]
        if source.random() < dense:
            parts = source.sample(parts, min(len(parts), source.randint(1, 3)))
        for _ in range(source.choice((1, 3, 10, 40, 200))):
            out += source.choice(parts)
        if source.random() < 0.2:
            out += source.choice(parts) * source.choice((5, 66, 150, 700))
    return bytes(out[:n])


def random_rows(source: random.Random, text: bytes, mean: float) -> Batch:
    """Rows of a text, cut anywhere, with some empty ones, and bytes in front of the first one."""
    cuts = [source.randrange(len(text) + 1) for _ in range(int(len(text) / mean))] if text else []
    cuts += [source.choice(cuts) for _ in range(len(cuts) // 8)]
    offsets = np.array([0, *sorted(cuts), len(text)], np.int64)
    return Batch(np.frombuffer(b"\xe4\xb8" + text + b"\xb8'", np.uint8), offsets + 2)


def upload(device: Device, batch: Batch, padding: int = 0) -> tuple[Any, int, Any]:
    """A batch's text on the device, its size, and its segments. padding: value of the bytes behind
    that should have no effect."""
    n, base = batch.n_bytes, int(batch.offsets[0])
    text = np.zeros(-(-n // 16) * 16 + 64, np.uint8)
    text[n : n + 16] = padding
    text[:n] = batch.data[base : base + n]
    flags = np.zeros(pretok.words_of(n) * 64, np.uint8)
    flags[batch.offsets.astype(np.int64) - base] = 1
    words = np.packbits(flags, bitorder="little").view(np.uint64)
    return device.to_device(text), n, device.to_device(words)


def same_bitmap(got: Any, expected: Any, n: int) -> None:
    """got has a word more than the core's where n is a multiple of 64."""
    np.testing.assert_array_equal(got[: len(expected)], expected)
    assert len(got) == pretok.words_of(n) and not got[len(expected) :].any()


def compare_classify(device: Device, batch: Batch, threads: int) -> None:
    text, n, segments = upload(device, batch, 0xBF)
    for alphabet in (SUPERATOMS, SCRIPTS):
        tables = AlphabetTables.of(device, alphabet)
        tags, starts = pretok.classify(device, tables, text, n, segments, threads=threads)
        expected, expected_starts = cpu.classify(batch, alphabet)
        np.testing.assert_array_equal(device.to_host(tags), expected)
        same_bitmap(device.to_host(starts), expected_starts, n)
        if alphabet == SCRIPTS:
            continue
        for row in np.random.default_rng(n).integers(0, 256, (2, 32), np.uint8):
            classes = pretok.remap(device, device.to_device(row), tags, n, threads=threads)
            mapped = np.where(expected == 0xFF, 0xFF, row[expected & 31])
            np.testing.assert_array_equal(device.to_host(classes), mapped)


def compare_boundaries(
    device: Device, scheme: str, batch: Batch, threads: int, *, staged: bool = False
) -> dict[str, int]:
    """The same from text and, if asked for, from classes. Returns the counters."""
    text, n, segments = upload(device, batch)
    expected = cpu.boundaries(scheme, batch)
    tables = SchemeTables.of(device, scheme)
    counters = new_counters(device)
    starts = pretok.boundaries(device, tables, text, n, segments, counters, threads=threads)
    same_bitmap(device.to_host(starts), expected, n)
    if staged:
        tags, _ = pretok.classify(device, tables.alphabet, text, n, segments, threads=threads)
        classes = pretok.remap(device, tables.bits, tags, n, threads=threads)
        found = pretok.boundaries(
            device, tables, text, n, segments, new_counters(device), classes=classes,
            threads=threads,
        )  # fmt: skip
        same_bitmap(device.to_host(found), expected, n)
    values = device.to_host(counters)
    return {name: int(values[i]) for name, i in counter_numbers().items() if name != "COUNTERS"}


def compare_inside(device: Device, scheme: str, batch: Batch, threads: int) -> None:
    """No piece starts where `inside` says so."""
    text, n, segments = upload(device, batch)
    inside = np.random.default_rng(n).integers(0, 1 << 63, pretok.words_of(n), np.uint64)
    starts = pretok.boundaries(
        device, SchemeTables.of(device, scheme), text, n, segments, new_counters(device),
        inside=device.to_device(inside), threads=threads,
    )  # fmt: skip
    expected = cpu.boundaries(scheme, batch)
    same_bitmap(device.to_host(starts), expected & ~inside[: len(expected)], n)


def compare_pieces(device: Device, words: Any, n: int, threads: int) -> None:
    """Positions, their number and ranks of any bitmap; bits from n on are not set."""
    flags = np.unpackbits(words.view(np.uint8), bitorder="little")
    expected = np.flatnonzero(flags)
    counters = new_counters(device)
    found = pretok.pieces(
        device, device.to_device(words), n, counters, most=len(expected), threads=threads
    )
    assert device.to_host(counters)[counter_numbers()["PIECES"]] == len(expected)
    np.testing.assert_array_equal(device.to_host(found.start), [*expected, n])
    before = np.cumsum(flags.reshape(-1, 64).sum(1)) - flags.reshape(-1, 64).sum(1)
    np.testing.assert_array_equal(device.to_host(found.ranks), before)


# ---- cases ----


def _flags(words: Any) -> Any:
    return np.unpackbits(words.view(np.uint8), bitorder="little")


def _meetings(source: random.Random) -> Batch:
    """Every kind of character at a block's end before every kind at the next one's start; some
    start a row, and the one at the end may stand there many times; or over the block's end. White
    space over it that a newline in the next block stops, or none."""
    chars = [parts[0] for kind, parts in _PARTS.items() if kind not in ("suffixes", "literals")]
    chars += [b"\n", b" ", b"A", *(char.encode() for char in "漢é\u3000\u200d"), b"\xf0\x9f\x98"]
    pairs = [(left, right) for left in chars for right in chars]
    source.shuffle(pairs)
    text, right = bytearray(), b""
    for left, after in pairs:
        times = source.choice((1, 2, (64 - len(right)) // len(left)))
        text += (right + source.choice((b"x", b" ", b"!")) * 64)[: 64 - times * len(left)]
        text += left * times
        right = after
    starts = [at for at in range(64, len(text), 64) if source.random() < 0.2]
    text += right
    for left, right in pairs:
        if len(left) > 1:
            text += b"x" * ((-1 - len(left) - len(text)) % 64) + left * 2 + right
    for size in range(30, 100, 5):
        for end in (b"b", b"\n  b"):
            text += b"a\n" + b" " * size + end
    offsets = np.array([0, *starts, len(text)], np.int64)
    return Batch(np.frombuffer(bytes(text), np.uint8), offsets)


def _batch(n: int) -> Batch:
    source = random.Random(n)
    return random_rows(source, random_text(source, n), 1 + n / 6)


def _tile_threads(threads: int) -> int:
    """Small tiles, so that little text has many of them."""
    return 64 if threads == 64 else 32


def classes_case(device: Device, n: int, threads: int) -> None:
    compare_classify(device, _batch(n), min(threads, 256))


def boundaries_case(device: Device, n: int, threads: int, scheme: str) -> None:
    if n > 3000:
        for unit in LONG_RUNS:
            compare_boundaries(device, scheme, one_row(unit, n), _tile_threads(threads))
            compare_inside(device, scheme, one_row(unit, n), 32)
    compare_boundaries(device, scheme, _batch(n), _tile_threads(threads), staged=n % 2 == 1)
    if n < 1000:
        compare_inside(device, scheme, _batch(n + 70), 32)
    if n == 1001:
        compare_boundaries(device, scheme, _meetings(random.Random(scheme)), 32)


def edges_case(device: Device, n: int, threads: int) -> None:
    """Characters over a block's end, whole and cut by a row's start or the text's end."""
    if n != 1001:
        return
    threads = min(threads, 64)
    for char in ("é", "漢", "😀"):
        whole = char.encode()
        for at in (*range(60, 65), *range(124, 129)):
            text = b"a" * at + whole + b"b"
            batches = [Batch(np.frombuffer(text, np.uint8), np.array([0, cut, len(text)]))
                       for cut in range(at, at + len(whole) + 1)]  # fmt: skip
            batches += [one_row(text, size) for size in range(at + 1, at + len(whole) + 1)]
            for batch in batches:
                compare_classify(device, batch, threads)
                compare_boundaries(device, "o200k", batch, threads)


def warps_case(device: Device, n: int, threads: int) -> None:
    """What a warp tells the one before it: white space at its edges, stops some warps on."""
    if n < 4000:
        return
    source = random.Random(n)
    white = bytes(source.choices(b"a \n", k=40_000))
    ends = (b"x", b"\n", b"\r\n", b"x\n")
    runs = b"".join(
        b"\n" + b" " * source.choice((source.randrange(400), source.randrange(9000)))
        + source.choice(ends)
        for _ in range(40)
    )  # fmt: skip
    for size in (96, 256):
        for text in (white, runs):
            compare_boundaries(device, "o200k", one_row(text, len(text)), size)


def repairs_case(device: Device, n: int, threads: int) -> None:
    """Runs over more tiles than a warp or a thread block looks at in one step."""
    if n < 4000:
        return
    tile, above = 29 * 64, "Á中".encode() + b"A" * 67_000
    for unit, size in (
        (b"7", 75_000), (above + b"b", 72_001), (above + b".", 72_001), (above, 66_000),
        (b"a\n" + b" " * 67_000 + b"a", 72_000), (b"a\n" + b" " * 67_000 + b"\n", 72_000),
        (b"x" * (tile - 4) + b"\n" + b" " * tile + b"b", 3 * tile),
    ):  # fmt: skip
        found = compare_boundaries(device, "o200k", one_row(unit, size), 32)
        assert (found["TILES_SERIAL"] > 9) == (unit == b"7")
        assert (found["OPEN"] > 0) == (unit != b"7")
    # More tiles than threads between those that are done again.
    apart = b"7" * 3 * tile + b"a b" * 70 * (tile // 3) + b"7" * 4 * tile
    compare_boundaries(device, "o200k", one_row(apart, len(apart)), 32)
    # 96 threads: a tile is 0 modulo 3, so tile 1 alone disagrees at first, and then all behind it.
    found = compare_boundaries(device, "o200k", one_row(b"7", 4 * 93 * 64), 96)
    assert (found["TILES_AGAIN"], found["TILES_SERIAL"]) == (1, 3)


def beyond_case(device: Device, n: int, threads: int) -> None:
    """Runs that lead out of tiles, by the next stop: over more tiles than a warp looks at in some
    steps, from every lane, with `inside` and without. Made up, so that no text is needed."""
    if n != 1001:
        return
    rng = np.random.default_rng(n)
    size = min(threads, 128)
    for tiles, kinds, share in ((300, 2, 0.008), (300, 1, 0.002), (97, 2, 0.3), (2, 1, 0.0)):
        position = 1856 * np.arange(tiles)[:, None] + rng.integers(0, 1856, (tiles, 2))
        runs = rng.random((tiles, 2)) < 0.6
        stops = rng.integers(1, 3, (tiles, 2)) * (rng.random((tiles, 2)) < share)
        stops[-1] = 2
        starts, inside = rng.integers(0, 1 << 63, (2, 29 * tiles), np.uint64)
        starts &= inside >> np.uint64(1)
        numbers = np.zeros(counter_numbers()["COUNTERS"], np.uint64)
        numbers[counter_numbers()["OPEN"]] = 1
        open_at = np.where(runs, position, 0xFFFFFFFF).astype(np.uint32)
        lists = device.to_device(open_at), device.to_device(stops.astype(np.uint32))
        for mask in (inside, np.zeros_like(inside)):
            expected, hidden = _flags(starts), _flags(mask)
            for tile, kind in np.argwhere(runs[:-1, :kinds]):
                behind = stops[tile + 1 :, kind]
                if behind[behind > 0][0] == 2:
                    expected[position[tile, kind]] |= ~hidden[position[tile, kind]] & 1
            made = device.to_device(starts)
            args = (
                np.uint64(tiles), np.uint32(kinds), *lists,
                device.to_device(mask) if mask.any() else None, made, device.to_device(numbers),
            )  # fmt: skip
            kernel = device.kernel("boundaries.cu", "boundaries_beyond")
            kernel((-(-tiles // size),), (size,), args)
            np.testing.assert_array_equal(_flags(device.to_host(made)), expected)


def pieces_case(device: Device, n: int, threads: int) -> None:
    rng = np.random.default_rng(n)
    sizes = [(n, share) for share in (0.0, 0.2, 1.0)]
    if n > 4000:  # tiles of 256 words with more pieces than are staged at once
        threads, sizes = 256, [(n, 0.2), (40_000, 1.0), (20_003, 0.6), (8192, 0.5)]
    for n, share in sizes:
        flags = np.zeros(64 * pretok.words_of(n), np.uint8)
        flags[:n] = rng.random(n) < share
        words = np.packbits(flags, bitorder="little").view(np.uint64)
        compare_pieces(device, words, n, min(threads, 256))


def one_row(unit: bytes, n: int, end: bytes = b"") -> Batch:
    """A row of one text over and over, cut to n bytes, and its end."""
    data = (unit * (n // len(unit) + 1))[:n] + end
    return Batch(np.frombuffer(data, np.uint8), cumulated(np.array([len(data)], np.int64)))


LONG_RUNS = (
    b"7",
    b"\n" + b" " * 5000 + b"a",
    "\u00c1中".encode() + b"A" * 4500 + b"b",
    "٣".encode(),
)

CASES: dict[str, Callable[[Device, int, int], None]] = {
    "classes": classes_case,
    "pieces": pieces_case,
    "edges": edges_case,
    "warps": warps_case,
    "repairs": repairs_case,
    "beyond": beyond_case,
    **{f"boundaries_{name}": partial(boundaries_case, scheme=name) for name in SCHEMES},
}
# n and threads of the suite.
SIZES = ((0, 32), (1, 32), (63, 128), (64, 64), (1001, 256), (4097, 64))
