"""The options that the encoding methods share, checked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from saphira_gpu.engines import cpu
from saphira_gpu.errors import DeviceError, InputError
from saphira_gpu.report import Report

Invalid = Literal["contract", "replace", "error", "null"]
Unit = Literal["byte", "char"]
Dtype = Literal["auto", "uint16", "uint32", "int32"]

_INVALID = ("contract", "replace", "error", "null")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("auto", "uint16", "uint32", "int32")


@dataclass(frozen=True, slots=True)
class Options:
    """What one call asks for. count: no ids, only how many. dtype: of the ids. offsets: the
    unit of the spans that are wanted, or None."""

    special: str
    invalid: str
    threads: int
    report: Report | None
    count: bool
    dtype: np.dtype[Any]
    offsets: Unit | None
    template: bool


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
) -> Options:
    """Options, checked. n_ids: the ids that dtype must hold. single: one text, not a column.

    Raises ValueError for a value that means nothing, InputError for a dtype that is too narrow.
    """
    if report is not None and not isinstance(report, Report):
        raise ValueError(f"report={report!r} is not a saphira_gpu.Report")
    if not isinstance(template, bool):
        raise ValueError(f"template={template!r} is neither True nor False")
    return Options(
        special=one_of("special", special, tuple(cpu.SPECIAL)),
        invalid=one_of("invalid", invalid, _INVALID[:-1] if single else _INVALID),
        threads=cpu.thread_count(threads),
        report=report,
        count=count,
        dtype=id_dtype(dtype, n_ids),
        offsets=_unit(offsets),
        template=template,
    )


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """The value. Raises ValueError where it is none of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value


def on_device(device: str) -> None:
    """Raises DeviceError where the device isn't there."""
    if one_of("device", device, _DEVICES) == "cuda":
        from saphira_gpu.devices.detect import cuda_state

        raise DeviceError(
            "device='cuda': the CUDA path is not in this version; use 'auto' or 'cpu' "
            f"({cuda_state().words})"
        )


def id_dtype(name: str, n_ids: int) -> np.dtype[Any]:
    """The type of ids: "auto" is the narrower of uint16 and uint32 that holds every id of the
    tokenizer, added tokens included.

    Raises InputError where the type named doesn't hold the largest id.
    """
    one_of("dtype", name, _DTYPES)
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
