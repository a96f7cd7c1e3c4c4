"""Steps → a program of the core, and what it makes of rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from saphira_gpu._arrays import I64, Bools
from saphira_gpu.batch import Batch, bitmap
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cpu import ffi, lib
from saphira_gpu.errors import InputError
from saphira_gpu.pretok import regex, schemes
from saphira_gpu.pretok.steps import (
    Bytemap,
    Classes,
    Digits3,
    Length,
    Literal,
    Prefix,
    Regex,
    Replace,
    Scheme,
    Scripts,
    Step,
)

_PREFIX = {
    "always": lib.SA_PREFIX_ALWAYS,
    "first": lib.SA_PREFIX_FIRST,
    "never": lib.SA_PREFIX_NEVER,
}
SPAN = pa.struct([("start", pa.int64()), ("end", pa.int64())])
# Rows are given to more than one thread when each gets at least this much text.
_THREAD_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Pieces of rows, as bytes of their row; row i has those from offsets[i] to offsets[i + 1].

    starts, ends: int64. offsets: int64[n_rows + 1]. validity: bool[n_rows], or None.
    """

    starts: I64
    ends: I64
    offsets: I64
    validity: Bools | None

    @property
    def n(self) -> int:
        return int(self.offsets[-1])

    def to_arrow(self, large: bool) -> pa.Array:
        """list<struct<start: int64, end: int64>>, or large_list."""
        children = [
            pa.Array.from_buffers(pa.int64(), self.n, [None, pa.py_buffer(values)])
            for values in (self.starts, self.ends)
        ]
        spans = pa.StructArray.from_arrays(children, fields=list(SPAN))
        offsets = self.offsets if large else self.offsets.astype(np.int32)
        return pa.Array.from_buffers(
            pa.large_list(SPAN) if large else pa.list_(SPAN),
            len(self.offsets) - 1,
            [bitmap(self.validity), pa.py_buffer(offsets)],
            children=[spans],
        )


def stages_struct(steps: tuple[Step, ...]) -> tuple[Any, list[Any]]:
    """An `sa_stage[]`, and what must stay alive while it is used; the `regex.Matcher`s among that,
    for as long as what the core made of it."""
    alive: list[Any] = []
    stages = ffi.new("sa_stage[]", max(len(steps), 1))
    for stage, step in zip(stages, steps, strict=False):
        _fill(stage, step, alive)
    return stages, alive


def _fill(stage: Any, step: Step, alive: list[Any]) -> None:
    data = b""
    match step:
        case Classes(row, cuts):
            stage.kind, data = lib.SA_STAGE_CLASSES, schemes.classes(row, dict(cuts))
        case Literal(text, cut):
            stage.kind, stage.cuts, data = lib.SA_STAGE_LITERAL, cut, text.encode()
        case Digits3(cut):
            stage.kind, stage.cuts = lib.SA_STAGE_DIGITS3, cut
        case Regex(pattern, cut):
            matcher = regex.Matcher(pattern)
            alive.append(matcher)
            stage.kind, stage.cuts, stage.match = lib.SA_STAGE_MATCH, cut, matcher.callback
        case Scheme(name):
            stage.kind, stage.number = lib.SA_STAGE_SCHEME, cpu.scheme_number(name)
        case Scripts():
            stage.kind = lib.SA_STAGE_SCRIPTS
        case Length(number):
            stage.kind, stage.number = lib.SA_STAGE_LENGTH, number
        case Prefix(text):
            stage.kind, data = lib.SA_STAGE_PREFIX, text.encode()
        case Replace(text, prefix):
            stage.kind, stage.number = lib.SA_STAGE_REPLACE, _PREFIX[prefix]
            data = text.encode()
        case Bytemap():
            stage.kind = lib.SA_STAGE_BYTEMAP
    if data:
        alive.append(ffi.from_buffer("uint8_t[]", data))
        stage.bytes, stage.n_bytes = alive[-1], len(data)


class Program:
    """A compiled list of steps. May be used from several threads."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        stages, self._alive = stages_struct(steps)
        self._matchers = [kept for kept in self._alive if isinstance(kept, regex.Matcher)]
        program = lib.sa_program_new(stages, len(steps))
        if program == ffi.NULL:
            raise MemoryError("the core ran out of memory")
        self._program: Any = ffi.gc(program, lib.sa_program_free)

    @property
    def is_utf8_only(self) -> bool:
        """Whether a step can't read rows that are not UTF-8."""
        return bool(self._matchers)

    def spans(self, batch: Batch, threads: int) -> Spans:
        """The pieces of every row. A first pass finds and counts them, a second one writes them,
        each thread into its place."""
        cpu.isa()
        counts = np.zeros(batch.n_rows, np.int64)
        parts = _parts(batch, 1 if self._matchers else threads)

        def count(part: tuple[int, int]) -> Any:
            return self._count(cpu.Rows(_rows(batch, *part)), counts[slice(*part)])

        marks = _run(count, [(part,) for part in parts])
        offsets = np.zeros(batch.n_rows + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        total = int(offsets[-1])
        room = [cpu.room(2 * total) for _ in range(2)]
        starts, ends = (output.ids.view(np.int64) for output in room)

        def fill(part: tuple[int, int], found: Any) -> None:
            rows = cpu.Rows(_rows(batch, *part))
            here = slice(int(offsets[part[0]]), int(offsets[part[1]]))
            places = [_pointer(array) for array in (starts[here], ends[here])]
            per_row = _pointer(counts[slice(*part)])
            self._check(lib.sa_pretokenize(rows.struct, per_row, found, *places))

        _run(fill, list(zip(parts, marks, strict=True)))
        done = [output.finish(2 * total).view(np.int64) for output in room]
        return Spans(done[0], done[1], offsets, batch.valid)

    def _count(self, rows: cpu.Rows, counts: I64) -> Any:
        """The first pass: fills counts; the marks for the second one."""
        marks = ffi.new("sa_marks **")
        self._check(lib.sa_pretokenize_count(self._program, rows.struct, _pointer(counts), marks))
        return ffi.gc(marks[0], lib.sa_marks_free)

    def pieces(self, text: bytes) -> tuple[bytes, list[list[int]]]:
        """The text that the steps made of one, and for each piece its start and end in it, then in
        the text given."""
        cpu.isa()
        sizes = np.zeros(2, np.int64)
        arguments = self._program, ffi.from_buffer("uint8_t[]", text), len(text), _pointer(sizes)
        self._check(lib.sa_pretokenize_text(*arguments, ffi.NULL, ffi.NULL))
        made = np.zeros(max(1, int(sizes[0])), np.uint8)  # NULL would ask for the sizes
        spans = np.zeros((int(sizes[1]), 4), np.int64)
        places = ffi.from_buffer("uint8_t[]", made), _pointer(spans)
        self._check(lib.sa_pretokenize_text(*arguments, *places))
        return made[: int(sizes[0])].tobytes(), spans.tolist()

    def _check(self, status: int) -> None:
        for matcher in self._matchers:
            matcher.raise_error()
        if status == lib.SA_ERR_NOMEM:
            raise MemoryError("the core ran out of memory")
        if status != lib.SA_OK:
            raise InputError("a row could grow past 4 GiB in a pretokenizer that changes the text")


def _run(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """The results of a function, each call in a thread of its own if there are several."""
    if len(calls) == 1:
        return [function(*calls[0])]
    with ThreadPoolExecutor(len(calls)) as pool:
        return [done.result() for done in [pool.submit(function, *call) for call in calls]]


def _parts(batch: Batch, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows of about the same number of bytes, one a thread."""
    n = max(1, min(threads, batch.n_bytes // _THREAD_BYTES, batch.n_rows))
    first = int(batch.offsets[0])
    marks = [first + batch.n_bytes * i // n for i in range(1, n)]
    edges = [0, *np.searchsorted(batch.offsets[:-1], marks).tolist(), batch.n_rows]
    return list(pairwise(edges))


def _rows(batch: Batch, first: int, stop: int) -> Batch:
    return Batch(
        batch.data, batch.offsets[first : stop + 1], batch.validity, batch.validity_offset + first
    )


def _pointer(array: I64) -> Any:
    return ffi.from_buffer("int64_t[]", array)
