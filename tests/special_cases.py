"""Stages rows and special on any device against the core: every bit, the list, hits, errors.

CASES are those of tests/mutate_kernels.py: n is about how many bytes of text there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from saphira_gpu._arrays import U64
from saphira_gpu.batch import Batch, bits
from saphira_gpu.devices import Device
from saphira_gpu.engines.cpu import Engine, Hit
from saphira_gpu.engines.cuda import rows as stage_rows
from saphira_gpu.engines.cuda import special as stage_special
from saphira_gpu.plan import build
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

NO_ID = 0xFFFFFFFF
MODES = ("plain", "parse", "hf_plain", "error")
Added = tuple[tuple[str, str], ...]


@cache
def engine_of(added: Added) -> Engine:
    """Bytes and added tokens: (content, flags), as small_spec of tests/oracles.py takes them."""
    tokens = tuple(bytes([byte]) for byte in range(256))
    made = tuple(
        AddedToken(content, 256 + i, *(flag in flags for flag in "snlrw"))
        for i, (content, flags) in enumerate(added)
    )
    return Engine(build(Spec(made, Pretok("gpt2"), Bpe(tokens, ()), name="small")))


def bitmap(positions: Sequence[int], n_bytes: int) -> U64:
    """uint64[n_bytes // 64 + 1]: bit i is byte i."""
    flags = np.zeros((n_bytes // 64 + 1) * 64, np.uint8)
    flags[np.asarray(positions, np.int64)] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _span(start: int, end: int) -> range:
    return range(start + 1, end)


def marks_of(engine: Engine | None, batch: Batch, special: str) -> dict[str, Any]:
    """What the stages must say; engine None: stage rows alone. Spans are the core's, one cut short
    where the next starts. Raises Hit under "error"."""
    base = int(batch.offsets[0])
    segments = [int(at) - base for at in batch.offsets]
    fixed: dict[int, int] = {}
    inside: list[int] = []
    valid = np.ones(batch.n_rows, np.bool_) if batch.valid is None else batch.valid
    for row in range(batch.n_rows):
        start, end = segments[row], segments[row + 1]
        if start == end:
            continue
        if not valid[row]:
            fixed[start] = NO_ID
            inside += _span(start, end)
            continue
        if engine is None:
            continue
        spans = engine.find_special(special, batch.row(row))
        if special == "error":
            for at, _, added in spans:
                if not engine.table("added_blank", np.uint8)[added]:
                    raise Hit(row, at, added)
        for k, (at, to, added) in enumerate(spans):
            to = min(to, spans[k + 1][0]) if k + 1 < len(spans) else to
            segments += [start + at, start + to]
            assert start + at not in fixed
            fixed[start + at] = int(engine.plan.added_ids[added])
            inside += _span(start + at, start + to)
    n = batch.n_bytes
    return {
        "segments": bitmap(segments, n),
        "fixed": bitmap(list(fixed), n),
        "inside": bitmap(inside, n),
        "list": sorted(fixed.items()),
    }


def upload(device: Device, batch: Batch) -> Any:
    """The text, and behind it 64 bytes that would be seen."""
    start = int(batch.offsets[0])
    text = np.full(batch.n_bytes + 64, ord("<"), np.uint8)
    text[: batch.n_bytes] = batch.data[start : start + batch.n_bytes]
    return device.to_device(text)


def run(
    device: Device,
    engine: Engine | None,
    batch: Batch,
    special: str,
    threads: int,
    blocks: int = 64,
) -> dict[str, Any]:
    """The stages on a device; also `hits` and `error`."""
    rows = stage_rows.DeviceRows.of(device, batch)
    counters = stage_rows.new_counters(device)
    room = stage_rows.null_room(rows, batch.n_bytes)
    tables = None if engine is None else stage_special.AddedTables.of(device, engine)
    room += 0 if tables is None else tables.room(batch.n_bytes)
    marks = stage_rows.new_marks(device, batch.n_bytes, room, counters)
    stage_rows.row_segments(device, rows, marks, threads)
    hits = None
    if tables is not None and tables.searched(special, True):
        hits = device.zeros(tables.n_added, np.uint64)
        stage_special.find(
            device, tables, upload(device, batch), batch.n_bytes, rows, marks, special, hits,
            threads=min(threads, 256), blocks=blocks,
        )  # fmt: skip
    counted = device.to_host(counters)
    n = int(counted[stage_rows.counter_numbers()["FIXED"]])
    at, number = device.to_host(marks.fixed_at[:n]), device.to_host(marks.fixed_id[:n])
    return {
        "segments": device.to_host(marks.segments),
        "fixed": device.to_host(marks.fixed),
        "inside": device.to_host(marks.inside),
        "list": sorted(zip(at.tolist(), number.tolist(), strict=True)),
        "hits": [] if hits is None else device.to_host(hits).tolist(),
        "error": stage_special.hit(counted, batch.offsets),
    }


def compare(
    device: Device,
    engine: Engine | None,
    batch: Batch,
    special: str,
    threads: int,
    blocks: int = 64,
) -> None:
    """Raises AssertionError where the device says anything else than the core."""
    got = run(device, engine, batch, special, threads, blocks)
    about = special, None if engine is None else engine.plan.added_flags, batch.row
    error = None
    try:
        expected = marks_of(engine, batch, special)
        if engine is not None and engine.table("added_all", np.uint32).size:
            counted = engine.encode(batch, special, 1, hits=True)
            assert got["hits"] == counted.hits.tolist(), about
    except Hit as hit:
        error = (hit.row, hit.byte, hit.added)
    noted = got["error"]
    assert (noted and (noted.row, noted.byte, noted.added)) == error, about
    if error is not None:
        return
    for name in ("segments", "fixed", "inside"):
        np.testing.assert_array_equal(got[name], expected[name], f"{name}: {about}")
    assert got["list"] == expected["list"], about


def batch_of(source: random.Random, text: bytes, mean: float, nulls: float, wide: bool) -> Batch:
    """Rows of about `mean` bytes, a slice of a longer column; some null with bytes under them."""
    offsets, at = [0], 0
    while at < len(text):
        length = 0 if source.random() < 0.2 else int(source.expovariate(1 / mean))
        at = min(len(text), at + length)
        offsets.append(at)
    skip = min(source.randint(0, 2), len(offsets) - 1)
    kept: Any = np.array(offsets[skip:], np.int64 if wide else np.int32)
    if not nulls:
        return Batch(np.frombuffer(text, np.uint8), kept)
    valid = np.array([source.random() >= nulls for _ in range(11 + len(kept) - 1)], np.bool_)
    return Batch(np.frombuffer(text, np.uint8), kept, bits(valid), 11)


GLUE = ("a", "b", "_", " ", "  ", "\n", "\u3000", "é", "x", "<", ">", "\u0301", "\u200d")
BROKEN = (b"\xe9", b"\xe4\xb8", b"\xc0\xa0", b"\x80", b"\xf0\x9f", b"\xe3\x80", b"\xff")
CONTENTS = ("<x>", "<x>y", "x>yz", "ab", "b", " ", "  ", "\n", "é", "\u3000", " a", "a ", "<|e|>")


def random_added(source: random.Random) -> Added:
    contents = source.sample(CONTENTS, source.randint(1, 6))
    return tuple(
        (content, "".join(flag for flag in "snlrw" if source.random() < 0.4))
        for content in contents
    )


def random_text(source: random.Random, added: Added, n: int) -> bytes:
    parts = [part.encode() for part in GLUE] + [content.encode() for content, _ in added] * 3
    if source.random() < 0.3:
        parts += BROKEN
    parts = source.sample(parts, source.randint(1, len(parts)))
    out = bytearray()
    while len(out) < n:
        out += source.choice(parts) * (source.randint(30, 90) if source.random() < 0.02 else 1)
    return bytes(out[:n])


def rows_alone(device: Device, n: int, threads: int) -> None:
    source = random.Random(f"rows {n} {threads}")
    for mean, nulls, wide in (
        (1.0, 0.3, False),
        (30.0, 0.3, True),
        (300.0, 0.6, False),
        (9.0, 0.0, True),
    ):
        batch = batch_of(source, b"a" * n, mean, nulls, wide)
        compare(device, None, batch, "plain", threads)


def tokens(mode: str, device: Device, n: int, threads: int) -> None:
    """A model's tokens in many rows, and in one."""
    source = random.Random(f"{mode} {n} {threads}")
    for mean in (12.0, 1e9):
        added = random_added(source)
        text = random_text(source, added, min(n, 1500) if mode == "error" else n)
        batch = batch_of(source, text, mean, 0.1, source.random() < 0.5)
        compare(device, engine_of(added), batch, mode, threads, source.choice((1, 3, 64)))


def edges(device: Device, n: int, threads: int) -> None:
    """What random texts seldom hold: rows that end in tokens, long white space, few candidates."""
    n = min(
        n, 800
    )  # a long walk that only reads looks like a hang to the executor's shortest limit
    gap = b"." * n
    added: Added = (("<x>", "r"), ("<x>y", "l"), (" ", ""), ("<x>", "w"), ("ab", "nlw"))
    texts = [
        b"<x>", b"y<x>", b"<x", b">", b"<x>" + b" " * n, b" " * n + b"<x>y" + b" " * n + b"\n",
        gap + b"<x>" + gap + b"ab" + gap, b"_ab", b"ab_", b"", b"ab", gap + b" ab<x>  ab",
        "\u3000".encode() * 40 + b"<x>y" + "\u3000".encode() * 40 + b"ab",
        b"<x>   <x>y", b"\xe3\x80ab\x80",
    ]  # fmt: skip
    for mode in ("parse", "plain"):
        compare(device, engine_of(added), Batch.from_texts(texts), mode, threads)


def far(device: Device, n: int, threads: int) -> None:
    """Around a step of the walk, 32 words, and of white space, 32 bytes; stray and long bytes."""
    texts = [b"." * (64 * words + n % 64) + b"<x>" for words in (30, 31, 32, 33, 63, 64, 65)]
    texts += [b"z" + b" " * k + b"<x>" + b" " * k + b"z" for k in (31, 32, 33)]
    texts += ["<x>\u3000".encode() + b"\x80", "\U0001d400ab \U0001f600ab".encode()]
    # A lead of the row before owns nothing in the next one.
    texts += [b"\xf0\x9f", b"\xa1\x80ab", b"\xf0\x9f", b"\x80\xa1ab", b"\xf0\x9f\x98", b"\xa1ab"]
    for added in (("<x>", "lr"), ("ab", "w")), (("<x>", "lr"), ("<x>z", "")):  # one first byte
        compare(device, engine_of(added), Batch.from_texts(texts), "parse", threads)


def errors(device: Device, n: int, threads: int) -> None:
    """The first token of the text, whichever warp finds one first."""
    added: Added = (("<x>", ""), ("  ", "lr"), ("ab", "n"), ("ba", ""))
    gap = b"." * min(n, 800)
    for texts in (
        [b"a", b"   ", gap + b"<x>", b"ab"],
        [b"ab" + b"<x>", b"<x>"],
        [b"", gap + b"xab<x>", b"<x>"] * 20,
        [gap, b"<x"],
        [b"a    b", b"      ", b"c"],  # white space that is two tokens, the first takes it all
    ):
        compare(device, engine_of(added), Batch.from_texts(texts), "error", threads)
        compare(device, engine_of(added), Batch.from_texts([None, *texts]), "error", threads)


def placed(device: Device, n: int, threads: int) -> None:
    """Tokens of one byte in a made text, the last one at its end."""
    source = random.Random(f"placed {n}")
    positions = sorted({*source.sample(range(n), -(-n // 9)), n - 1})
    at = np.array(positions, np.uint32)
    ids = np.arange(len(at), dtype=np.uint32) + 50
    counters = stage_rows.new_counters(device)
    marks = stage_rows.placed_pieces(device, at, ids, n, counters, threads)
    starts = np.concatenate((at, at + 1))
    np.testing.assert_array_equal(device.to_host(marks.segments), bitmap(list(starts), n))
    np.testing.assert_array_equal(device.to_host(marks.fixed), bitmap(positions, n))
    assert not device.to_host(marks.inside).any()
    assert device.to_host(counters)[stage_rows.counter_numbers()["FIXED"]] == len(at)
    np.testing.assert_array_equal(device.to_host(marks.fixed_at), at)
    np.testing.assert_array_equal(device.to_host(marks.fixed_id), ids)


def many(device: Device, n: int, threads: int) -> None:
    """More tokens than a block has threads, the last of them with another first byte."""
    added: Added = (*((f"<|{i}|>", "") for i in range(threads + 1)), ("x", "w"))
    source = random.Random(f"many {n}")
    parts = ("<|", "|>", "1", "x", " ", *(f"<|{i}|>" for i in range(threads - 9, threads + 5)))
    text = "".join(source.choices(parts, k=min(n, 300)))
    compare(device, engine_of(added), Batch.from_texts([text[:70], text[70:]]), "parse", threads)


CASES: dict[str, Callable[[Device, int, int], None]] = {
    "rows_alone": rows_alone,
    "placed": placed,
    **{f"tokens_{mode}": partial(tokens, mode) for mode in MODES},
    "many": many,
    "edges": edges,
    "far": far,
    "errors": errors,
}
# n and threads of the suite.
SIZES = ((1, 32), (63, 128), (64, 64), (1000, 256), (3001, 1024))
