"""CUDA's functions on the host executor, each against its description in the CUDA C++ guide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

from saphira_gpu.devices.host import HostDevice
from tests.kernel_cases import KERNELS
from tests.on_executor import need_compiler

need_compiler()

FILE = KERNELS / "names.cu"
WORDS = 32
MASK, MASK64 = (1 << 32) - 1, (1 << 64) - 1
EDGES = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80, 0xFF00FF00, 0x01020304]


def values(n: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [*EDGES, *map(int, rng.integers(0, 1 << 32, n - len(EDGES)))]


def signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def first_set(x: int) -> int:
    return (x & -x).bit_length()


def reversed_bits(x: int, n: int) -> int:
    return int(f"{x:0{n}b}"[::-1], 2)


def byte_perm(x: int, y: int, s: int) -> int:
    pool = x.to_bytes(4, "little") + y.to_bytes(4, "little")
    result = []
    for i in range(4):
        nibble = s >> (4 * i) & 15
        byte = pool[nibble & 7]
        result.append((255 if byte & 128 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(result), "little")


def bytewise(x: int, y: int, test: Callable[[int, int], bool]) -> int:
    pairs = zip(x.to_bytes(4, "little"), y.to_bytes(4, "little"), strict=True)
    return int.from_bytes(bytes(255 if test(a, b) else 0 for a, b in pairs), "little")


def bit_functions(x: int, y: int, s: int) -> list[int]:
    wide = x << 32 | y  # high word x, low word y
    joined = y << 32 | x  # __funnelshift: (low, high, n)
    n, clamped = s & 31, min(s, 32)
    return [
        x.bit_count(),
        wide.bit_count(),
        first_set(x),
        first_set(wide),
        32 - x.bit_length(),
        64 - wide.bit_length(),
        reversed_bits(x, 32),
        reversed_bits(wide, 64) & MASK,
        reversed_bits(wide, 64) >> 32,
        byte_perm(x, y, s),
        (joined << n >> 32) & MASK,
        (joined >> n) & MASK,
        (joined << clamped >> 32) & MASK,
        (joined >> clamped) & MASK,
        x * y >> 32,
        (wide * wide >> 64) & MASK,
        bytewise(x, y, lambda a, b: a == b),
        bytewise(x, y, lambda a, b: a != b),
        bytewise(x, y, lambda a, b: a >= b),
        bytewise(x, y, lambda a, b: a > b),
        bytewise(x, y, lambda a, b: a <= b),
        bytewise(x, y, lambda a, b: a < b),
        min(x, y),
        max(signed(x), signed(y)) & MASK,
    ]


def up(a: Sequence[int], i: int, step: int, width: int) -> int:
    return a[i - step] if i % width >= step else a[i]


def down(a: Sequence[int], i: int, step: int, width: int) -> int:
    return a[i + step] if i % width + step < width else a[i]


def warp_functions(a: list[int], i: int) -> list[int]:
    votes = sum((x & 1) << k for k, x in enumerate(a))
    fifths = [x % 5 for x in a]
    # xor may look into the segments below, not into those above
    other = i ^ 9
    narrow_xor = a[other] if other <= (i | 7) else a[i]
    return [
        a[5],
        a[i // 8 * 8 + (i + 1) % 8],
        up(a, i, 3, 32),
        up(a, i, 3, 8),
        down(a, i, 3, 32),
        down(a, i, 3, 8),
        a[i ^ 5],
        narrow_xor,
        a[7],
        votes,
        1,
        int(len(set(a)) == 1),
        sum((f == fifths[i]) << k for k, f in enumerate(fifths)),
        0,
        MASK,
        1,
        sum(a) & MASK,
        min(a),
        min(map(signed, a)) & MASK,
        max(a),
        max(map(signed, a)) & MASK,
        reduce(lambda x, y: x & y, (x | 0xFF for x in a)),
        reduce(lambda x, y: x | y, a),
        reduce(lambda x, y: x ^ y, a),
        votes.bit_count(),
        int(votes == MASK),
        int(votes != 0),
        i,
        (1 << i) - 1,
    ]


def padded(rows: list[list[int]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array([[*row, *[0] * (WORDS - len(row))] for row in rows], np.uint32)


def compare(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Names the first column that differs: the order is that of the kernel's lines."""
    wrong = np.argwhere(got != expected)
    if len(wrong):
        thread, column = wrong[:, 1].argmin(), wrong[:, 1].min()
        thread = wrong[thread, 0]
        pytest.fail(
            f"result {column} of thread {thread}: "
            f"{got[thread, column]:#x}, not {expected[thread, column]:#x}"
        )


def test_bit_functions() -> None:
    x, y, s = values(96, 1), values(96, 2)[::-1], values(96, 3)
    s[20:60] = range(40)
    x[5] = y[5] = 0
    device = HostDevice(check=True)
    out = device.empty((96, WORDS), np.uint32)
    args = [device.to_device(np.array(column, np.uint32)) for column in (x, y, s)]
    device.kernel(FILE, "bit_functions")((1,), (96,), (*args, out))
    compare(device.to_host(out), padded([bit_functions(*row) for row in zip(x, y, s, strict=True)]))


@pytest.mark.parametrize("same", [False, True])
def test_warp_functions(same: bool) -> None:
    a = [7] * 32 if same else values(32, 4)
    device = HostDevice(check=True)
    out = device.empty((32, WORDS), np.uint32)
    args = device.to_device(np.array(a, np.uint32)), out
    device.kernel(FILE, "warp_functions")((1,), (32,), args)
    expected = [warp_functions(a, i) for i in range(32)]
    if same:
        for row in expected:
            row[13] = (MASK + 1) & MASK  # all lanes and the predicate, 1
    compare(device.to_host(out), padded(expected))


def atomics(x: int, v: int) -> list[int]:
    return [
        (v + x) & MASK,
        (v - x) & MASK,
        x,
        min(v, x),
        max(v, x),
        min(v, x, key=signed),
        max(v, x, key=signed),
        v & x,
        v | x,
        v ^ x,
        0 if v >= x else v + 1,
        x if v == 0 or v > x else v - 1,
    ]


def wide_atomics(x: int, v: int, first: int) -> list[int]:
    y, w, f = x << 32 | x, v << 32 | v, first << 32 | first
    return [
        (w + y) & MASK64,
        y,
        min(w, y),
        max(w, y),
        w & y,
        w | y,
        7 if w == y else w,
        y if w == f else w,
    ]


def test_atomic_functions() -> None:
    x, v = values(64, 5), values(64, 6)
    v[10:20] = x[10:20]
    device = HostDevice(check=True)
    start = np.repeat(np.array(v, np.uint32)[:, None], 12, 1)
    wide = np.array([[b << 32 | b] * 8 for b in v], np.uint64)
    cells, cells64 = device.to_device(start), device.to_device(wide)
    old, old64 = device.empty((64, 12), np.uint32), device.empty((64, 8), np.uint64)
    args = (device.to_device(np.array(x, np.uint32)), cells, old, cells64, old64)
    device.kernel(FILE, "atomic_functions")((1,), (64,), args)
    np.testing.assert_array_equal(device.to_host(old), start)
    np.testing.assert_array_equal(device.to_host(old64), wide)
    pairs = list(zip(x, v, strict=True))
    compare(device.to_host(cells), np.array([atomics(a, b) for a, b in pairs], np.uint32))
    rows = [wide_atomics(a, b, x[0]) for a, b in pairs]
    compare(device.to_host(cells64), np.array(rows, np.uint64))
