"""The host executor on right kernels: the right result, and no report, whatever the order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from saphira_gpu.devices.host import HostDevice, KernelFault, Schedule
from tests.kernel_cases import CASES, KERNELS
from tests.on_executor import need_compiler

need_compiler()

SCHEDULES = (
    Schedule("forward"),
    Schedule("reverse", resident=48),
    Schedule("random", seed=7, resident=48),
    Schedule("random", seed=8, resident=3, preempt=50),
    Schedule("forward", resident=1),
)


@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_result(case: str, schedule: Schedule, check: bool) -> None:
    device = HostDevice(check=check, schedule=schedule)
    for n, threads in ((1, 32), (4097, 64), (4000, 64), (5003, 256)):
        CASES[case](device, n // 4 if case == "row_statistics" and n > 4 else n, threads)


@pytest.mark.parametrize("case", ["exclusive_sums", "word_starts"])
def test_largest_block(case: str) -> None:
    CASES[case](HostDevice(check=True, schedule=Schedule("random", resident=2)), 9001, 1024)


@pytest.mark.parametrize("case", ["exclusive_sums", "relay"])
def test_portable_fibers(case: str) -> None:
    CASES[case](HostDevice(check=True, ucontext=True), 700, 64)


@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
def test_waiting_for_work_is_no_hang(check: bool) -> None:
    device = HostDevice(check=check, stall_rounds=50)
    kernel = device.kernel(KERNELS / "warps.cu", "patience")
    flag = device.zeros(1, np.uint32)
    kernel((2,), (32,), (device.zeros(1, np.uint32), flag, np.uint32(1001)))
    assert device.to_host(flag)[0] == 1001 % 32


def test_same_schedule_same_run() -> None:
    def order(seed: int) -> bytes:
        device = HostDevice(schedule=Schedule("random", seed=seed, resident=5))
        out, count = device.empty(3000, np.uint32), device.zeros(1, np.uint32)
        args = (device.to_device(np.arange(3000, dtype=np.uint32)), np.uint32(3000), out, count)
        device.kernel(KERNELS / "warps.cu", "odd_numbers")((24,), (128,), args)
        return device.to_host(out[: int(device.to_host(count)[0])]).tobytes()

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_counters() -> None:
    """Reads of 4 bytes side by side: a warp touches four sectors of 32 bytes; 256 numbers of four
    bytes are read and written, three rounds of them."""
    device = HostDevice(count=True)
    numbers = device.to_device(np.arange(256, dtype=np.uint32))
    out = device.empty(256, np.uint32)
    device.kernel(KERNELS / "warps.cu", "reverse_warps")((2,), (128,), (numbers, out))
    counted = device.counters["reverse_warps"]
    assert counted["launches"] == 1
    assert counted["global_reads"] == counted["global_writes"] == 3 * 256
    assert counted["global_read_bytes"] == counted["global_write_bytes"] == 3 * 1024
    assert counted["read_sectors"] == counted["write_sectors"] == 3 * 8 * 4
    assert counted["shared_reads"] == counted["shared_writes"] == 3 * 256
    assert counted["collectives"] == 2 * 3 * 8
    assert counted["barriers"] == counted["global_atomics"] == 0
    # one round reads what came in, two what is written three times
    sectors = {numbers.pointer: (8 * 4, 8 * 4), out.pointer: (5 * 8 * 4, 8 * 4)}
    assert device.traffic["reverse_warps"] == sectors


def test_sectors_of_scattered_reads() -> None:
    """Rows of 45 numbers, one warp each: 180 bytes from a multiple of 180, in two reads."""
    device = HostDevice(count=True)
    CASES["row_statistics"](device, 3, 32)
    expected = 0
    for row in range(3):
        for first, last in ((0, 31), (32, 44)):
            expected += (row * 180 + last * 4) // 32 - (row * 180 + first * 4) // 32 + 1
    counted = device.counters["row_statistics"]
    assert counted["read_sectors"] == expected
    assert counted["write_sectors"] == 3
    assert counted["global_write_bytes"] == 3 * 16


def test_overlapping_arguments(tmp_path: Path) -> None:
    """Two views of one buffer: both may be touched, and nothing around them."""
    file = tmp_path / "add.cu"
    file.write_text(
        'extern "C" __global__ void add(const unsigned *in, unsigned *out) {\n'
        "  out[threadIdx.x] = in[threadIdx.x] + 1;\n"
        "}\n"
    )
    device = HostDevice(check=True)
    kernel = device.kernel(file, "add")
    whole = device.to_device(np.arange(96, dtype=np.uint32))
    kernel((1,), (32,), (whole[:32], whole[:32]))
    kernel((1,), (32,), (whole[:32], whole[64:]))
    expected = [*range(1, 33), *range(32, 64), *range(2, 34)]
    np.testing.assert_array_equal(device.to_host(whole), expected)
    with pytest.raises(KernelFault, match="out-of-bounds"):
        kernel((1,), (33,), (whole[:32], whole[64:]))


def test_messages_name_the_place() -> None:
    device = HostDevice(check=True, schedule=Schedule("reverse", resident=2))
    kernel = device.kernel(KERNELS / "scan.cu", "exclusive_sums")
    numbers, out = device.to_device(np.ones(100, np.uint32)), device.empty(100, np.uint64)
    state, ticket = device.zeros(3, np.uint64), device.zeros(1, np.uint32)
    with pytest.raises(KernelFault) as caught:
        kernel((4,), (32,), (numbers, out, np.uint64(128), state, ticket))
    fault = caught.value
    line = (KERNELS / "scan.cu").read_text().splitlines().index(
        "  u32 value = i < n ? in[i] : 0;"
    ) + 1  # fmt: skip
    assert (fault.kind, fault.kernel, fault.places) == (
        "out-of-bounds", "exclusive_sums", (f"scan.cu:{line}",),
    )  # fmt: skip
    assert re.search(r"block \(\d, 0, 0\), thread \(\d+, 0, 0\)", str(fault))
    assert "schedule reverse resident=2" in str(fault)
    assert "check build" in str(fault)
    assert "argument 0 + 508 bytes (it has 400)" in str(fault)


def test_a_fault_leaves_the_executor_usable() -> None:
    device = HostDevice(check=True)
    for _ in range(2):
        test_messages_name_the_place()
        CASES["exclusive_sums"](device, 500, 64)
