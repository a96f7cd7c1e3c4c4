"""Planted bugs: each is reported by name, at the line where it is, whatever the order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from saphira_gpu.devices.host import HostDevice, KernelFault, Schedule
from tests.on_executor import need_compiler

need_compiler()

FILE = Path(__file__).parent / "kernels" / "bugs.cu"
THREADS, BLOCKS = 128, 4

# What the check build calls each bug, and a piece of the line at which it does.
BUGS: dict[str, tuple[str, str]] = {
    "read_past_end": ("out-of-bounds", "in[INDEX + 1]"),
    "write_past_end": ("out-of-bounds", "out[INDEX + (INDEX == n - 1)]"),
    "read_before_start": ("out-of-bounds", "*(in - 1)"),
    "shared_past_end": ("out-of-bounds", "p[threadIdx.x + 1]"),
    "shared_index": ("index", "s[threadIdx.x + 1] = "),
    "dynamic_past_end": ("out-of-bounds", "room[threadIdx.x] ="),
    "local_index": ("index", "a[in[threadIdx.x]]"),
    "misaligned_word": ("misaligned", "(threadIdx.x == 77)"),
    "misaligned_vector": ("misaligned", "*(const uint4 *)"),
    "uninitialised_shared": ("uninitialised", "s[threadIdx.x ^ 1]"),
    "uninitialised_global": ("uninitialised", "out[INDEX] += in"),
    "write_to_const": ("read-only", "((u32 *)in)[INDEX] = 0"),
    "pointer_to_local": ("foreign-stack", "*p + mine"),
    "shift_by_width": ("shift", "1u <<"),
    "divide_by_zero": ("divide-by-zero", "100 /"),
    "failed_assertion": ("trap", "assert("),
    "missing_barrier": ("race", "s[127 - threadIdx.x]|s[threadIdx.x] = in"),
    "missing_second_barrier": ("race", "sum += s|s[threadIdx.x] = in"),
    "missing_syncwarp": ("race", "s[threadIdx.x ^ 1]"),
    "syncwarp_too_narrow": ("race", "s[threadIdx.x ^ 16]"),
    "plain_counter": ("race", "words[0] += 1"),
    "counter_half_atomic": ("race", "words[0] = 1|atomicAdd"),
    "same_place_twice": ("race", "out[INDEX / 2]"),
    "bytes_of_a_word": ("race", "*p = in"),
    "missing_release": ("race", "out[me] = out[0]"),
    "missing_acquire": ("race", "out[me] = out[0]"),
    "plain_flag": ("race", "words[0] = 1|ld_acquire"),
    "fence_of_block_only": ("race", "out[blockIdx.x] = out[0]"),
    "release_before_barrier": ("race", "out[me * blockDim.x + i] = out[i]"),
    "lock_without_fence": ("race", "words[1] += 1"),
    "ldg_of_written": ("read-only-path", "__ldg"),
    "barrier_in_branch": ("divergent-barrier", "__syncthreads"),
    "barrier_against_vote": ("divergent-barrier", "__syncthreads"),
    "barrier_in_uneven_loop": ("divergent-barrier", "__syncthreads"),
    "mask_without_caller": ("mask-without-caller", "__shfl_sync(0x0000FFFFu"),
    "mask_too_wide": ("hang", "ld_acquire"),
    "masks_differ": ("mask-mismatch", "__reduce_add_sync"),
    "different_votes": ("divergent-collective", "__any_sync|__all_sync"),
    "loops_apart": ("divergent-collective", "__shfl_xor_sync"),
    "dead_lanes": ("dead-lane", "__shfl_down_sync"),
    "lane_outside_mask": ("outside-mask", "__shfl_sync"),
    "odd_width": ("shuffle", "__shfl_sync"),
    "waits_for_nobody": ("hang", "ld_acquire|__nanosleep"),
    "block_waits_for_nobody": ("hang", "ld_acquire|if (seen)|__syncthreads"),
    "endless_loop": ("time-limit", "for (u32 x"),
    "too_much_shared": ("shared-memory", ""),
    "null_pointer": ("out-of-bounds", "words[0] * 4"),
    "deep_recursion": ("foreign-stack|stack-overflow|out-of-bounds|wild-access", ""),
}
# A bug that needs an order of blocks in which a waiting one comes first.
ORDERED = {"order_of_blocks": ("hang", "ld_acquire")}

# Seen without checks as well, from what a GPU's rules alone forbid, or from the red zones.
FAST: dict[str, str] = {
    "write_past_end": "out-of-bounds",
    "divide_by_zero": "divide-by-zero",
    "failed_assertion": "trap",
    "barrier_in_branch": "divergent-barrier",
    "barrier_against_vote": "divergent-barrier",
    "barrier_in_uneven_loop": "divergent-barrier",
    "mask_without_caller": "mask-without-caller",
    "masks_differ": "mask-mismatch",
    "different_votes": "divergent-collective",
    "loops_apart": "divergent-collective",
    "dead_lanes": "dead-lane",
    "lane_outside_mask": "outside-mask",
    "odd_width": "shuffle",
    "order_of_blocks": "hang",
    "waits_for_nobody": "hang",
    "block_waits_for_nobody": "hang",
    "endless_loop": "time-limit",
    "too_much_shared": "shared-memory",
    "null_pointer": "wild-access",
}

ORDERS = (
    Schedule("forward"),
    Schedule("reverse", resident=48),
    Schedule("random", seed=3, resident=4),
    Schedule("random", seed=4, resident=48, preempt=20),
)


def run(bug: str, device: HostDevice) -> KernelFault:
    n = THREADS * BLOCKS
    args = (
        device.to_device(np.arange(n, dtype=np.uint32)),
        device.empty(n, np.uint32),
        np.uint32(n),
        device.zeros(64, np.uint32),
    )
    kernel = device.kernel(FILE, bug)
    shared = 4 * (THREADS - 1) if bug == "dynamic_past_end" else 0
    with pytest.raises(KernelFault) as caught:
        kernel((BLOCKS,), (THREADS,), args, shared_mem=shared)
    return caught.value


def line_of(fault: KernelFault) -> str:
    name, _, number = fault.places[0].rpartition(":")
    assert name.endswith("bugs.cu") or len(fault.places) > 1, fault
    inside = [place for place in fault.places if place.startswith("bugs.cu:")]
    number = inside[0].rpartition(":")[2] if inside else number
    return FILE.read_text().splitlines()[int(number) - 1]


@pytest.mark.parametrize("bug", [*BUGS, *ORDERED])
def test_check_build(bug: str) -> None:
    kinds, place = {**BUGS, **ORDERED}[bug]
    orders = ORDERS if bug in BUGS else (Schedule("reverse", resident=2),)
    for schedule in orders[:1] if kinds == "time-limit" else orders:
        fault = run(bug, HostDevice(check=True, schedule=schedule, stall_rounds=300, seconds=0.5))
        assert fault.kind in kinds.split("|"), fault
        if place:
            assert any(part in line_of(fault) for part in place.split("|")), fault


@pytest.mark.parametrize("bug", FAST)
def test_fast_build(bug: str) -> None:
    schedule = Schedule("reverse", resident=2)
    fault = run(bug, HostDevice(schedule=schedule, stall_rounds=300, seconds=0.5))
    assert fault.kind == FAST[bug], fault


def test_every_bug_is_tried() -> None:
    planted = set(re.findall(r"__global__ void (\w+)", FILE.read_text(), re.MULTILINE))
    assert planted == set(BUGS) | set(ORDERED)
    assert set(FAST) <= planted
