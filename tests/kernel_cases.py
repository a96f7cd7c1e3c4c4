"""Small kernels with known results, for any device: the host executor's tests, and a GPU's.

Each case launches a kernel of tests/kernels on a device and compares with numpy. n is odd on
purpose: tiles end in the middle of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from saphira_gpu.devices import Device

KERNELS = Path(__file__).parent / "kernels"


def _file(name: str) -> str:
    return str(KERNELS / name)


def _numbers(n: int, seed: int = 1) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.random.default_rng(seed).integers(0, 1000, n, np.uint32)


def exclusive_sums(device: Device, n: int, threads: int) -> None:
    numbers = _numbers(n)
    tiles = -(-n // threads)
    out = device.empty(n, np.uint64)
    states, ticket = device.zeros(tiles, np.uint64), device.zeros(1, np.uint32)
    args = (device.to_device(numbers), out, np.uint64(n), states, ticket)
    device.kernel(_file("scan.cu"), "exclusive_sums")((tiles,), (threads,), args)
    expected = np.cumsum(numbers, dtype=np.uint64) - numbers
    np.testing.assert_array_equal(device.to_host(out), expected)


def grid_sum(device: Device, n: int, threads: int) -> None:
    numbers = _numbers(n)
    blocks = -(-n // threads)
    result = device.empty(1, np.uint64)
    partial, done = device.empty(blocks, np.uint64), device.zeros(1, np.uint32)
    args = (device.to_device(numbers), np.uint64(n), partial, done, result)
    device.kernel(_file("scan.cu"), "grid_sum")((blocks,), (threads,), args)
    assert device.to_host(result)[0] == numbers.sum(dtype=np.uint64)


def notes_of_others(device: Device, n: int, threads: int) -> None:
    tiles = -(-n // 20)
    states, ticket = device.zeros(tiles, np.uint64), device.zeros(1, np.uint32)
    out = device.empty(tiles, np.uint32)
    args = (states, ticket, device.empty(tiles, np.uint32), out)
    device.kernel(_file("scan.cu"), "notes_of_others")((tiles,), (max(threads, 64),), args)
    np.testing.assert_array_equal(device.to_host(out), 1000 + np.arange(tiles) * 5 // 7)


def word_starts(device: Device, n: int, threads: int) -> None:
    rng = np.random.default_rng(n)
    text = np.frombuffer(rng.choice(list(b"azAZ 1@[`{"), n).astype(np.uint8).tobytes(), np.uint8)
    letters = np.isin(text | 0x20, np.arange(ord("a"), ord("z") + 1))
    expected = np.flatnonzero(letters & ~np.concatenate([[False], letters[:-1]]))
    tiles = -(-n // (16 * threads))
    padded = np.full(-(-n // 16) * 16, ord("x"), np.uint8)  # no part of the text
    padded[:n] = text
    words, count = device.empty(n, np.uint32), device.empty(1, np.uint32)
    states, ticket = device.zeros(tiles, np.uint64), device.zeros(1, np.uint32)
    args = (device.to_device(padded), np.uint32(n), words, count, states, ticket)
    kernel = device.kernel(_file("compact.cu"), "word_starts")
    kernel((tiles,), (threads,), args, shared_mem=4 * 8 * threads)
    found = int(device.to_host(count)[0])
    np.testing.assert_array_equal(device.to_host(words[:found]), expected)


def _table(device: Device, kernel: str, n: int, threads: int) -> None:
    keys = np.random.default_rng(n).integers(1, max(n // 3, 2), n, np.uint64) << np.uint64(20)
    slots = 1 << int(n).bit_length()
    table, counts = device.zeros(slots, np.uint64), device.zeros(slots, np.uint32)
    args = (device.to_device(keys), np.uint32(n), table, counts, np.uint32(slots - 1))
    device.kernel(_file("table.cu"), kernel)((-(-n // threads),), (threads,), args)
    got_keys, got_counts = device.to_host(table), device.to_host(counts)
    used = got_keys != 0
    order = np.argsort(got_keys[used])
    expected, expected_counts = np.unique(keys, return_counts=True)
    np.testing.assert_array_equal(got_keys[used][order], expected)
    np.testing.assert_array_equal(got_counts[used][order], expected_counts)


def insert(device: Device, n: int, threads: int) -> None:
    _table(device, "insert", n, threads)


def insert_matched(device: Device, n: int, threads: int) -> None:
    _table(device, "insert_matched", n, threads)


def row_statistics(device: Device, n: int, threads: int) -> None:
    rows = _numbers(n * 45).reshape(n, 45)
    out = device.empty((n, 4), np.uint32)
    args = (device.to_device(rows), np.uint32(n), np.uint32(45), out)
    device.kernel(_file("warps.cu"), "row_statistics")((-(-32 * n // threads),), (threads,), args)
    sums = rows.sum(1), rows.min(1), rows.max(1), np.bitwise_or.reduce(rows, 1)
    np.testing.assert_array_equal(device.to_host(out), np.stack(sums, 1))


def reverse_warps(device: Device, n: int, threads: int) -> None:
    numbers = _numbers(-(-n // threads) * threads)
    out = device.empty(len(numbers), np.uint32)
    args = (device.to_device(numbers), out)
    device.kernel(_file("warps.cu"), "reverse_warps")((len(numbers) // threads,), (threads,), args)
    expected = numbers.reshape(-1, 32)[:, ::-1].ravel()
    np.testing.assert_array_equal(device.to_host(out), expected)


def half_warps(device: Device, n: int, threads: int) -> None:
    numbers = _numbers(threads)
    out = device.empty(threads, np.uint32)
    args = (device.to_device(numbers), out)
    device.kernel(_file("warps.cu"), "half_warps")((1,), (threads,), args)
    pairs = numbers.reshape(-1, 16, 2)
    sums = np.stack([pairs[:, :, 0].sum(1) * 2, pairs[:, :, 1].sum(1)], 1)
    expected = np.broadcast_to(sums[:, None, :], pairs.shape).ravel()
    np.testing.assert_array_equal(device.to_host(out), expected)


def odd_numbers(device: Device, n: int, threads: int) -> None:
    numbers = _numbers(n)
    out, count = device.empty(n, np.uint32), device.zeros(1, np.uint32)
    args = (device.to_device(numbers), np.uint32(n), out, count)
    device.kernel(_file("warps.cu"), "odd_numbers")((-(-n // threads),), (threads,), args)
    found = int(device.to_host(count)[0])
    expected = np.sort(numbers[numbers % 2 == 1])
    np.testing.assert_array_equal(np.sort(device.to_host(out[:found])), expected)


def relay(device: Device, n: int, threads: int) -> None:
    blocks = -(-n // threads)
    numbers = device.empty((blocks, threads), np.uint32)
    args = (device.zeros(1, np.uint32), device.zeros(blocks, np.uint32), numbers)
    device.kernel(_file("warps.cu"), "relay")((blocks,), (threads,), args)
    expected = np.arange(blocks)[:, None] + np.arange(threads)
    np.testing.assert_array_equal(device.to_host(numbers), expected)


def locked_count(device: Device, n: int, threads: int) -> None:
    lock, counter = device.zeros(1, np.uint32), device.zeros(1, np.uint32)
    device.kernel(_file("warps.cu"), "locked_count")((3,), (threads,), (lock, counter))
    assert device.to_host(counter)[0] == 3 * threads


def scaled(device: Device, n: int, threads: int) -> None:
    what = np.array((3, 40, 0.5), np.dtype("u4,u4,f4"))[()]
    values = np.arange(64, dtype=np.float32)
    out, echo = device.zeros(64, np.float32), device.empty(12, np.uint8)
    args = (what, device.to_device(values), out, echo)
    device.kernel(_file("warps.cu"), "scaled")((1,), (4, 4, 4), args)
    expected = np.zeros(64, np.float32)
    expected[:40] = values[3:43] / 2
    np.testing.assert_array_equal(device.to_host(out), expected)
    assert device.to_host(echo).tobytes() == what.tobytes()


CASES: dict[str, Callable[[Device, int, int], None]] = {
    case.__name__: case
    for case in (
        exclusive_sums, grid_sum, notes_of_others, word_starts, insert, insert_matched,
        row_statistics, reverse_warps, half_warps, odd_numbers, relay, locked_count, scaled,
    )
}  # fmt: skip
