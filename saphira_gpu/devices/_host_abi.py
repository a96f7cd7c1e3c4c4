"""The structs of kernels/host/abi.h, in ctypes, field by field."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_char, c_char_p, c_double, c_int, c_uint32, c_uint64, c_void_p


class Param(ctypes.Structure):
    _fields_ = tuple(
        (name, c_int) for name in ("kind", "size", "pointee_kind", "pointee_size", "is_const")
    )


class Kernel(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("call", c_void_p),
        ("params", ctypes.POINTER(Param)),
        ("n_params", c_int),
        ("max_threads", c_int),
    )


class Region(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("base", c_uint64),
        ("size", c_uint64),
        ("init", c_void_p),
        ("granule", c_int),
        ("read_only", c_int),
        ("sectors", c_uint64),
        ("distinct", c_uint64),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("order", c_uint32),
        ("seed", c_uint64),
        ("resident", c_uint32),
        ("preempt", c_uint32),
        ("check", c_uint32),
        ("count", c_uint32),
        ("stall_cycles", c_uint32),
        ("stack_bytes", c_uint32),
        ("seconds", c_double),
    )


class Counters(ctypes.Structure):
    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            "global_reads", "global_writes", "global_read_bytes", "global_write_bytes",
            "read_sectors", "write_sectors", "shared_reads", "shared_writes",
            "global_atomics", "shared_atomics", "strong_loads", "strong_stores",
            "collectives", "barriers", "fences", "switches",
        )
    )  # fmt: skip

    def items(self) -> Iterator[tuple[str, int]]:
        for field in Counters._fields_:
            yield field[0], int(getattr(self, field[0]))


class Fault(ctypes.Structure):
    _fields_ = (
        ("name", c_char * 32),
        ("text", c_char * 480),
        ("file", c_char * 256),
        ("line", c_int),
        ("block", c_uint32 * 3),
        ("thread", c_uint32 * 3),
        ("pc", c_uint64),
        ("other_pc", c_uint64),
    )
