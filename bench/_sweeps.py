"""What `sweep.py` measures, a function a sweep. Each gives its points in order: a list of dicts.

mb_s is 10^6 bytes of UTF-8 text a second of `encode_arrow`, warm: the least time of some calls,
each result released before the next; cold_s is the first call of a new tokenizer object.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import pyarrow as pa
from _columns import corpus_path, data_view, offsets, read_column
from _core_bench import BuildFailed, CoreBench

CACHES = (0, *(1 << bits for bits in range(16, 31, 2)))  # bytes
KB, MB = 10**3, 10**6


def corpus(name: str, size: int) -> np.ndarray:
    """`size` bytes of a corpus as (size,) uint8, repeated where it is shorter, cut between
    characters, so up to three bytes less."""
    column = read_column(corpus_path(name), limit_bytes=size)
    at = offsets(column)
    text = data_view(column)[int(at[0]) : int(at[-1])]
    text = np.tile(text, -(-size // max(len(text), 1)))[: size + 1]
    end = min(size, len(text))
    while end and end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def rows_of(text: np.ndarray, size: int) -> pa.LargeStringArray:
    """Rows of `size` bytes, or up to three more, as characters stay whole."""
    at = np.arange(0, len(text) + size, size, dtype=np.int64)
    at[-1] = len(text)
    at = at[:-1] if len(at) > 1 and at[-2] == len(text) else at
    for _ in range(3):
        inside = (at < len(text)) & (text[np.minimum(at, len(text) - 1)] & 0xC0 == 0x80)
        at[inside] += 1
    at = np.unique(at)
    return pa.LargeStringArray.from_buffers(len(at) - 1, pa.py_buffer(at), pa.py_buffer(text))


def best(tokenizer: Any, column: Any, threads: int, seconds: float = 0.5) -> float:
    """The least time of at least three calls, more while they fit in `seconds`; seconds."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 1000):
        start = time.perf_counter()
        result = tokenizer.encode_arrow(column, threads=threads)
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def point(load: Any, column: Any, threads: int, cache: int | None = None) -> dict[str, Any]:
    """Cold and warm figures of one column. load: makes a tokenizer object."""
    tokenizer = load(cache)
    tokenizer.encode("once")  # the core's model and threads are there; the cache is all but empty
    size = int(offsets(column)[-1])
    start = time.perf_counter()
    result = tokenizer.encode_arrow(column, threads=threads)
    cold = time.perf_counter() - start
    tokens = len(result.values)
    del result
    warm = best(tokenizer, column, threads)
    return {
        "bytes": size,
        "rows": len(column),
        "tokens": tokens,
        "threads": threads,
        "cold_s": cold,
        "warm_s": warm,
        "cold_mb_s": size / 1e6 / cold,
        "mb_s": size / 1e6 / warm,
    }


def caches(load: Any, size: int, name: str = "english") -> list[dict[str, Any]]:
    """Speed over the bound of the cache, and how many slots it gives."""
    column = rows_of(corpus(name, size), 4 * KB)
    try:
        bench = CoreBench()
    except BuildFailed:
        bench = None  # then the slots stay unknown
    points = []
    for cache in CACHES:
        slots = bench.slots(cache) if bench else (None, None)
        entry = {"corpus": name, "cache_bytes": cache, "hot_slots": slots[0], "slots": slots[1]}
        points.append(entry | point(load, column, 1, cache))
    return points


def threads(load: Any, size: int, name: str = "english") -> list[dict[str, Any]]:
    """Speed over the number of threads, up to twice the cores, where no more is to be had."""
    column = rows_of(corpus(name, size), 4 * KB)
    cores = _machine.cores()
    counts = [*range(1, cores + 1)] if cores <= 8 else [1, 2, 4, *range(8, cores + 1, 4)]
    counts = sorted({*counts, cores, 2 * cores})
    return [{"corpus": name} | point(load, column, count) for count in counts]


def row_sizes(load: Any, size: int, many: int) -> list[dict[str, Any]]:
    """Speed over the size of rows, from one byte to all text in one row, threads one and all."""
    text = corpus("english", size)
    sizes = [1, 4, 16, 64, 256, KB, 4 * KB, 16 * KB, 256 * KB, 4 * MB, 16 * MB]
    points = []
    for width in [*(w for w in sizes if w < size), size]:
        column = rows_of(text[: many * width], width)
        counts = sorted({1, _machine.cores()})
        points += [{"row_bytes": width} | point(load, column, count) for count in counts]
    return points


def text_sizes(load: Any, largest: int) -> list[dict[str, Any]]:
    """Time per byte over the size of the text, one column of 4 KB rows, one thread."""
    points = []
    size = KB
    while size <= largest:
        column = rows_of(corpus("english", size), 4 * KB)
        points.append(point(load, column, 1))
        size *= 4
    return points


def distinct(load: Any, size: int, most: int) -> list[dict[str, Any]]:
    """Speed over the number of distinct words: words of 2 to 12 random letters, drawn evenly."""
    rng = np.random.default_rng(20260101)
    points = []
    kinds = 100
    while kinds <= most:
        column = random_words(rng, size, kinds)
        points.append({"distinct": kinds} | point(load, column, 1))
        kinds *= 10
    return points


def random_words(rng: np.random.Generator, size: int, kinds: int) -> pa.LargeStringArray:
    """About `size` bytes of words out of `kinds` of them (fewer where two are alike), a space
    before each, in rows of 4 KB."""
    lengths = rng.integers(2, 13, kinds)
    ends = np.cumsum(lengths + 1)
    pool = rng.integers(ord("a"), ord("z") + 1, int(ends[-1]), dtype=np.uint8)
    starts = ends - lengths - 1
    pool[starts] = ord(" ")
    chosen = rng.integers(0, kinds, size // 8)
    width = (lengths + 1)[chosen]
    at = np.cumsum(width) - width
    index = np.repeat(starts[chosen] - at, width) + np.arange(int(width.sum()))
    return rows_of(pool[index], 4 * KB)


def small(load: Any) -> list[dict[str, Any]]:
    """Microseconds of calls with one short string, and with four; over_c_us: what those with one
    take beyond the same in C."""
    tokenizer, text = load(None), "The quick brown fox jumps."
    one, four, texts = pa.array([text]), pa.array([text] * 4), [text] * 4
    with_one: dict[str, Callable[[], object]] = {
        "Tokenizer.encode": lambda: tokenizer.encode(text),
        "Tokenizer.encode, a list": lambda: tokenizer.encode(text).tolist(),
        "Tokenizer.count": lambda: tokenizer.count(text),
        "Tokenizer.encode_batch": lambda: tokenizer.encode_batch([text]),
        "Tokenizer.encode_arrow": lambda: tokenizer.encode_arrow(one),
        "Tokenizer.encode_arrow, 1 thread": lambda: tokenizer.encode_arrow(one, threads=1),
    }
    with_four: dict[str, Callable[[], object]] = {
        "Tokenizer.encode_batch, 4 texts": lambda: tokenizer.encode_batch(texts),
        "Tokenizer.encode_arrow, 4 rows": lambda: tokenizer.encode_arrow(four),
    }
    points: list[dict[str, Any]] = []
    try:
        in_c = CoreBench().small_ns(tokenizer, text.encode(), 4000, 25) / 1e3
        points.append({"call": "C: sa_encode_text", "us": in_c})
    except BuildFailed as error:
        in_c = None
        points.append({"call": "C: sa_encode_text", "us": None, "why": str(error)})
    timed = with_one | with_four
    least = dict.fromkeys(timed, float("inf"))
    calls = 400
    for _ in range(10):  # in turn, so that what else the machine does meets them all
        for name, call in timed.items():
            call()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            least[name] = min(least[name], (time.perf_counter() - start) / calls * 1e6)
    for name, us in least.items():
        over = us - in_c if in_c is not None and name in with_one else None
        points.append({"call": name, "us": us, "over_c_us": over})
    return points


def parquet_known(name: str) -> bool:
    """Whether a corpus is there."""
    try:
        return Path(corpus_path(name)).is_file()
    except FileNotFoundError:
        return False
