"""The options that the encoding methods share, checked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from saphira_gpu.engines import cpu
from saphira_gpu.errors import InputError
from saphira_gpu.report import Report

Invalid = Literal["contract", "replace", "error", "null"]
Unit = Literal["byte", "char"]
Dtype = Literal["auto", "uint16", "uint32", "int32"]

_SPECIAL = tuple(cpu.SPECIAL)
_INVALID = ("contract", "replace", "error", "null")
_INVALID_SINGLE = _INVALID[:-1]
_DEVICES = ("auto", "cpu", "cuda", "host")
_OUTPUTS = ("arrow", "device")
VERIFY = 0.01
_DTYPES = ("auto", "uint16", "uint32", "int32")


@dataclass(frozen=True, slots=True)
class Options:
    """What one call asks for. count: no ids, only how many. dtype: of the ids. offsets: the
    unit of the spans that are wanted, or None. placement: None for the CPU."""

    special: str
    invalid: str
    threads: int
    report: Report | None
    count: bool
    dtype: np.dtype[Any]
    offsets: Unit | None
    template: bool
    placement: Placement | None = None


def options(
    n_ids: int,
    special: str,
    invalid: str,
    threads: int | None,
    report: Report | None,
    template: bool,
    *,
    dtype: str = "uint32",
    offsets: object = None,
    single: bool = False,
    count: bool = False,
    placement: Placement | None = None,
) -> Options:
    """Options, checked. n_ids: the ids that dtype must hold. single: one text, not a column.

    Raises ValueError for a value that means nothing, InputError for a dtype that is too narrow.
    """
    if report is not None and not isinstance(report, Report):
        raise ValueError(f"report={report!r} is not a saphira_gpu.Report")
    if not isinstance(template, bool):
        raise ValueError(f"template={template!r} is neither True nor False")
    return Options(
        special=one_of("special", special, _SPECIAL),
        invalid=one_of("invalid", invalid, _INVALID_SINGLE if single else _INVALID),
        threads=cpu.thread_count(threads),
        report=report,
        count=count,
        dtype=id_dtype(dtype, n_ids),
        offsets=_unit(offsets),
        template=template,
        placement=placement,
    )


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """The value. Raises ValueError where it is none of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a call encodes. device: "auto", "cuda", "host" or a Device of the caller's. verify:
    share of rows that the CPU encodes too. device_memory: bytes. output: "arrow" or "device"."""

    device: Any
    verify: float
    device_memory: int | None
    output: str


def placement(
    device: Any,
    verify: float | None = None,
    device_memory: int | None = None,
    output: str = "arrow",
) -> Placement | None:
    """Where to encode, checked; None for the CPU.

    Raises ValueError for a value that means nothing, DeviceError where device="cuda" has no GPU to
    use.
    """
    one_of("output", output, _OUTPUTS)
    number = isinstance(verify, int | float) and not isinstance(verify, bool)
    if verify is not None and not (number and 0 <= verify <= 1):
        raise ValueError(f"verify={verify!r} is not a share from 0 to 1")
    whole = isinstance(device_memory, int) and not isinstance(device_memory, bool)
    if device_memory is not None and not (whole and device_memory > 0):
        raise ValueError(f"device_memory={device_memory!r} is not a number of bytes")
    if not hasattr(device, "kernel"):
        one_of("device", device, _DEVICES)
    if device == "cuda":
        from saphira_gpu.devices.detect import require_cuda

        require_cuda()
    if device == "cpu":
        if output == "device":
            raise ValueError("output='device' is for device='cuda' or 'host', not 'cpu'")
        return None
    share = VERIFY if verify is None else float(verify)
    return Placement(device, share, device_memory, output)


def id_dtype(name: str, n_ids: int) -> np.dtype[Any]:
    """The type of ids: "auto" is the narrower of uint16 and uint32 that holds every id of the
    tokenizer, added tokens included.

    Raises InputError where the type named doesn't hold the largest id.
    """
    return _id_dtype(one_of("dtype", name, _DTYPES), n_ids)


@lru_cache
def _id_dtype(name: str, n_ids: int) -> np.dtype[Any]:
    if name == "auto":
        name = "uint16" if n_ids <= 1 << 16 else "uint32"
    dtype = np.dtype(name)
    largest = int(np.iinfo(dtype).max)
    if n_ids - 1 > largest:
        raise InputError(
            f"dtype={name!r} holds ids up to {largest}, and this tokenizer's go up to {n_ids - 1}"
        )
    return dtype


def _unit(offsets: object) -> Unit | None:
    if offsets is None or offsets is False:
        return None
    if offsets is True or offsets == "char":
        return "char"
    if offsets == "byte":
        return "byte"
    raise ValueError(f"offsets={offsets!r} is none of byte, char, True, False")
