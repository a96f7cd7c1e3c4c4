"""The compiled core, from Python: its instruction set, its threads, its handles."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from saphira_gpu._arrays import I64, U8, U32, U64, Bools
from saphira_gpu.batch import Batch
from saphira_gpu.engines._memory import Output, Pool
from saphira_gpu.errors import BuildError, DeviceError, InputError, UnsupportedError
from saphira_gpu.plan import Plan

try:
    from saphira_gpu._core import ffi as _ffi
    from saphira_gpu._core import lib as _lib
except ImportError as error:
    raise BuildError(
        "the compiled core saphira_gpu._core is missing or doesn't load: build it with "
        f"`pip install -e .` in the source tree, or install the package ({error})"
    ) from error

ffi: Any = _ffi
lib: Any = _lib

# 2^19 slots for pieces of up to 15 bytes and 2^18 for longer ones, when they have grown to it.
DEFAULT_CACHE_BYTES = 96 << 20

Special = Literal["plain", "parse", "hf_plain", "error"]
SPECIAL: dict[str, int] = {
    "plain": lib.SA_SPECIAL_PLAIN,
    "parse": lib.SA_SPECIAL_PARSE,
    "hf_plain": lib.SA_SPECIAL_HF_PLAIN,
    "error": lib.SA_SPECIAL_ERROR,
}

_pool = Pool(ffi)


# ---- instruction set and threads ----


def isas() -> list[str]:
    """Names of the instruction sets that are built in and that this CPU runs."""
    return [name for i, name in enumerate(_isa_names()) if lib.sa_isa_available(i)]


def isa() -> str:
    """The instruction set in use. Raises DeviceError if SAPHIRA_ISA asks for one that isn't
    there."""
    _select_isa()
    return _isa_names()[int(lib.sa_isa_active())]


def select_isa(name: str) -> None:
    """Switches to an instruction set. Raises DeviceError, naming those there are, if it isn't
    there."""
    if name not in isas() or lib.sa_isa_select(_isa_names().index(name)) != lib.SA_OK:
        raise DeviceError(
            f"instruction set {name!r} is not available here (available: {', '.join(isas())})"
        )


@cache
def _isa_names() -> tuple[str, ...]:
    return tuple(ffi.string(lib.sa_isa_name(i)).decode() for i in range(lib.SA_ISA_COUNT))


@cache
def _select_isa() -> None:
    name = os.environ.get("SAPHIRA_ISA", "")
    if name:
        try:
            select_isa(name)
        except DeviceError as error:
            raise DeviceError(f"SAPHIRA_ISA={name}: {error}") from None


def thread_count(threads: int | None) -> int:
    """The threads to use: those asked for, else SAPHIRA_THREADS, else the cores this process may
    use.

    Raises ValueError for anything but a positive integer.
    """
    if threads is None:
        text = os.environ.get("SAPHIRA_THREADS", "")
        if not text:
            return _cores()
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"SAPHIRA_THREADS={text!r} is not a positive integer")
        threads = int(text)
    elif isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads={threads!r} is not a positive integer")
    return min(threads, 1 << 16)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def room(n: int) -> Output:
    """Memory for n uint32, of the pool that ids come from."""
    return _pool.take(n)


# ---- stages without a model ----


class Rows:
    """An `sa_rows` over a Batch, which it keeps alive."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        offsets = np.ascontiguousarray(batch.offsets)
        self._alive = [
            ffi.from_buffer("uint8_t[]", batch.data),
            ffi.from_buffer("uint8_t[]", offsets),
        ]
        self.struct = ffi.new("sa_rows *")
        self.struct.text = self._alive[0]
        self.struct.offsets = self._alive[1]
        self.struct.offset_bits = 8 * offsets.itemsize
        self.struct.n_rows = batch.n_rows
        if batch.validity is not None:
            self._alive.append(ffi.from_buffer("uint8_t[]", batch.validity))
            self.struct.validity = self._alive[2]
            self.struct.validity_offset = batch.validity_offset


def invalid_rows(batch: Batch) -> tuple[int, U8]:
    """How many rows are not UTF-8, and uint8[n_rows] with 1 for each of them."""
    _select_isa()
    marks = np.zeros(batch.n_rows, np.uint8)
    rows = Rows(batch)
    n = lib.sa_utf8_invalid(rows.struct, ffi.from_buffer("uint8_t[]", marks))
    return int(n), marks


def classify(batch: Batch, alphabet: int = lib.SA_ALPHABET_SUPERATOMS) -> tuple[U8, U64]:
    """Tags of an alphabet (uint8 per byte, 0xFF within a character) and the bitmap of character
    starts."""
    _select_isa()
    tags = np.zeros(batch.n_bytes, np.uint8)
    starts = np.zeros(-(-batch.n_bytes // 64), np.uint64)
    rows = Rows(batch)
    _check(
        lib.sa_classify(
            alphabet,
            rows.struct,
            ffi.from_buffer("uint8_t[]", tags),
            ffi.from_buffer("uint64_t[]", starts),
        )
    )
    return tags, starts


def boundaries(scheme: str, batch: Batch) -> U64:
    """The bitmap of piece starts: bit i is byte i of the text; every row is a segment."""
    _select_isa()
    starts = np.zeros(-(-batch.n_bytes // 64), np.uint64)
    rows = Rows(batch)
    found = ffi.from_buffer("uint64_t[]", starts)
    _check(lib.sa_boundaries(scheme_number(scheme), rows.struct, found))
    return starts


def core_table(name: str, dtype: Any) -> np.ndarray[Any, Any]:
    """A generated table of the core, where it lies in memory. Raises KeyError if it has none."""
    size = ffi.new("int64_t *")
    return _table(lib.sa_table(name.encode(), size), size, name, dtype)


def _table(data: Any, size: Any, name: str, dtype: Any) -> np.ndarray[Any, Any]:
    if data == ffi.NULL:
        raise KeyError(name)
    return np.frombuffer(ffi.buffer(data, size[0]), dtype)


def scheme_number(name: str) -> int:
    """The core's number of a compiled scheme. Raises UnsupportedError, naming those there are."""
    names = [ffi.string(lib.sa_scheme_name(i)).decode() for i in range(lib.sa_scheme_count())]
    if name not in names:
        raise UnsupportedError(f"scheme {name!r} is not supported (supported: {', '.join(names)})")
    return names.index(name)


def _check(status: int) -> None:
    if status == lib.SA_ERR_NOMEM:
        raise MemoryError("the core ran out of memory")
    if status != lib.SA_OK:
        raise InputError(f"the core refuses its input (status {status})")


# ---- a tokenizer's handles ----


class Encoded(NamedTuple):
    """ids: uint32, None where they were only counted. offsets: int64[n_rows + 1]. hits: int64 for
    each added token, 0 where not wanted. The rest as in `sa_report`."""

    ids: U32 | None
    offsets: I64
    hits: I64
    bytes: int
    pieces: int
    merge_steps: int
    cache_misses: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """New text of rows. batch: null rows have no bytes. fixed_at: int64, the bytes that stand for
    added tokens, a segment each; fixed_ids: uint32, their ids. hits: as in Encoded."""

    batch: Batch
    fixed_at: I64
    fixed_ids: U32
    hits: I64


class Hit(Exception):
    """special="error": where the added token is. row: within the batch. byte: within the row."""

    def __init__(self, row: int, byte: int, added: int) -> None:
        super().__init__(row, byte, added)
        self.row, self.byte, self.added = row, byte, added


class _Desk:
    """Room for the ids of one short text, kept from call to call: making it anew would cost more
    than encoding."""

    __slots__ = ("ids", "view")

    BYTES = 1 << 14  # of the longest such text, in UTF-8

    def __init__(self) -> None:
        self.ids = ffi.new("uint32_t[]", self.BYTES)
        self.view: U32 = np.frombuffer(ffi.buffer(self.ids), np.uint32)


# Desks nobody uses at the moment. Needs no lock, as `Pool` doesn't; and a finalizer or a signal
# handler that encodes while this thread does takes another desk.
_desks: deque[_Desk] = deque(maxlen=16)


class Engine:
    """A model and an encoder. The model never changes, so a forked child goes on using it; the
    encoder has locks and caches, so a child makes its own and leaves the inherited one alone."""

    def __init__(self, plan: Plan, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        _select_isa()
        self.plan = plan
        self.cache_bytes = cache_bytes
        struct, alive = plan.struct(ffi, scheme_number(plan.scheme) if plan.scheme else -1)
        reason = ffi.new("char[]", 512)
        model = lib.sa_model_new(struct, reason, len(reason))
        # Regular expressions that the model calls.
        self._matchers = [kept for kept in alive if hasattr(kept, "raise_error")]
        if model == ffi.NULL:
            text = ffi.string(reason).decode("utf-8", "replace")
            raise UnsupportedError(f"the core can't take this tokenizer: {text}")
        self.model: Any = ffi.gc(model, lib.sa_model_free)
        self._encoder: Any = None
        self._lock = threading.Lock()
        _engines.add(self)

    @property
    def encoder(self) -> Any:
        """This process's encoder."""
        if self._encoder is None:
            with self._lock:
                if self._encoder is None:
                    encoder = lib.sa_encoder_new(self.model, self.cache_bytes)
                    if encoder == ffi.NULL:
                        raise MemoryError("the core ran out of memory")
                    self._encoder = _gc_encoder(encoder, self.model)
        return self._encoder

    @property
    def rewrites(self) -> bool:
        """Whether the model makes new text before it splits it: a normalizer, or a prefix."""
        return bool(lib.sa_model_rewrites(self.model))

    def forget_encoder(self) -> None:
        """In a forked child: drop the parent's encoder without touching it."""
        self._lock = threading.Lock()
        if self._encoder is not None:
            ffi.gc(self._encoder, None)
            self._encoder = None

    def encode(
        self, batch: Batch, special: str, threads: int, *, ids: bool = True, hits: bool = False
    ) -> Encoded:
        """Ids of every row; `ids` and `hits` say what is wanted. Raises Hit under
        special="error"."""
        rows = Rows(batch)
        offsets = np.zeros(batch.n_rows + 1, np.int64)
        counted = np.zeros(len(self.plan.added_ids), np.int64)
        threads = 1 if self._matchers else threads  # what they raise is kept for this thread
        capacity = batch.n_bytes
        options = ffi.new("sa_options *", (SPECIAL[special], threads, capacity))
        report = ffi.new("sa_report *")
        while True:
            output = _pool.take(capacity) if ids else None
            counted[:] = 0
            status = lib.sa_encode(
                self.encoder,
                rows.struct,
                options,
                ffi.NULL if output is None else ffi.from_buffer("uint32_t[]", output.ids),
                ffi.from_buffer("int64_t[]", offsets),
                ffi.from_buffer("int64_t[]", counted) if hits else ffi.NULL,
                report,
            )
            if status != lib.SA_ERR_CAPACITY:
                break
            # A model that makes text longer: now the count is known.
            options.capacity = capacity = int(report.tokens)
        if status == lib.SA_ERR_SPECIAL:
            raise Hit(int(report.error_row), int(report.error_byte), int(report.error_added))
        for matcher in self._matchers:
            matcher.raise_error()
        _check(status)
        return Encoded(
            None if output is None else output.finish(int(offsets[-1])),
            offsets,
            counted,
            report.bytes,
            report.pieces,
            report.merge_steps,
            report.cache_misses,
        )

    def prepare(self, batch: Batch, special: str, threads: int, *, hits: bool = False) -> Prepared:
        """The rows of a model that `rewrites`, as they are before the split. Raises Hit under
        special="error"."""
        rows = Rows(batch)
        counted = np.zeros(len(self.plan.added_ids), np.int64)
        options = ffi.new("sa_options *", {"special": SPECIAL[special], "threads": threads})
        report, made = ffi.new("sa_report *"), ffi.new("sa_prepared *")
        wanted = ffi.from_buffer("int64_t[]", counted) if hits else ffi.NULL
        status = lib.sa_prepare(self.model, rows.struct, options, made, wanted, report)
        if status == lib.SA_ERR_SPECIAL:
            raise Hit(int(report.error_row), int(report.error_byte), int(report.error_added))
        _check(status)

        def copied(data: Any, n: int, dtype: Any) -> np.ndarray[Any, Any]:
            size = n * np.dtype(dtype).itemsize
            return np.frombuffer(ffi.buffer(data, size), dtype).copy() if n else np.zeros(0, dtype)

        try:
            return Prepared(
                Batch(
                    copied(made.text, made.n, np.uint8),
                    copied(made.row_offsets, batch.n_rows + 1, np.int64),
                ),
                copied(made.fixed_at, made.n_fixed, np.int64),
                copied(made.fixed_ids, made.n_fixed, np.uint32),
                counted,
            )
        finally:
            lib.sa_prepared_release(made)

    def encode_short(self, text: object, special: object) -> U32 | None:
        """Ids of one short text; None where only `encode` knows what to do or say."""
        try:
            desk = _desks.pop()
        except IndexError:
            desk = _Desk()
        n = self._short(text, special, desk.ids)
        ids = None if n < 0 else desk.view[:n].copy()
        _desks.append(desk)
        return ids

    def count_short(self, text: object, special: object) -> int | None:
        """How many ids `encode_short` gives, or None as there."""
        n = self._short(text, special, ffi.NULL)
        return None if n < 0 else n

    def _short(self, text: object, special: object, ids: Any) -> int:
        """Writes the ids of one short text, unless `ids` is NULL, and returns how many there are;
        less than 0 where only `encode` knows what to do or say."""
        mode = SPECIAL.get(special) if isinstance(special, str) else None
        if mode is None or self._matchers:
            return -1
        if isinstance(text, str):
            if len(text) > _Desk.BYTES:
                return -1
            try:
                data = text.encode()
            except UnicodeEncodeError:  # a lone surrogate
                return -1
        elif isinstance(text, bytes):
            data = text
        else:
            return -1
        n = len(data)
        if n > _Desk.BYTES:
            return -1
        return int(lib.sa_encode_text(self.encoder, data, n, mode, ids, _Desk.BYTES))

    def find_special(
        self, special: str, text: bytes, search: int = lib.SA_PASS_BOTH
    ) -> list[tuple[int, int, int]]:
        """(start, end, index of the added token) of every match in a text, in bytes. search: which
        tokens it is searched for, SA_PASS_*."""
        capacity = 64
        source = ffi.from_buffer("uint8_t[]", text)
        while True:
            spans = np.zeros((capacity, 3), np.int64)
            found = ffi.from_buffer("int64_t[]", spans)
            mode = SPECIAL[special]
            n = lib.sa_special_find(self.model, search, mode, source, len(text), found, capacity)
            if n < 0:
                raise MemoryError("the core ran out of memory")
            if n <= capacity:
                return [(int(a), int(b), int(c)) for a, b, c in spans[:n]]
            capacity = int(n)

    def table(self, name: str, dtype: Any) -> np.ndarray[Any, Any]:
        """A table of the model (see `sa_model_table`), where it lies in memory; it lives as long as
        the engine. Raises KeyError if there is none of that name."""
        size = ffi.new("int64_t *")
        return _table(lib.sa_model_table(self.model, name.encode(), size), size, name, dtype)

    def bpe(self, piece: bytes) -> Sequence[int]:
        """The ids of one piece, without the cache."""
        ids = np.zeros(max(len(piece), 1), np.uint32)
        source = ffi.from_buffer("uint8_t[]", piece)
        target = ffi.from_buffer("uint32_t[]", ids)
        n = lib.sa_bpe(self.model, source, len(piece), target, ffi.NULL)
        if n < 0:
            raise MemoryError("the core ran out of memory")
        return [int(number) for number in ids[:n]]


class Table:
    """The bytes of every id, for stage decode. known: which numbers are ids. special: which ids are
    special tokens."""

    def __init__(self, tokens: Sequence[bytes], known: Bools, special: Bools) -> None:
        offsets = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)), out=offsets[1:])
        kinds = np.where(special, lib.SA_TOKEN_SPECIAL, lib.SA_TOKEN_TEXT).astype(np.uint8)
        kinds[~known] = lib.SA_TOKEN_NONE
        self._alive = [
            ffi.from_buffer("int64_t[]", offsets),
            ffi.from_buffer("uint8_t[]", b"".join(tokens)),
            ffi.from_buffer("uint8_t[]", kinds),
        ]
        self._struct = ffi.new("sa_tokens *", {"n": len(tokens)})
        self._struct.offsets, self._struct.bytes, self._struct.kinds = self._alive

    def decode(self, ids: U32, offsets: I64, skip_special: bool) -> tuple[U8, I64] | int:
        """The bytes of rows of ids, and int64[n_rows + 1], where those of each row start; or the
        position of the first number that is no id. offsets: int64[n_rows + 1] into ids, from 0."""
        source = ffi.from_buffer("uint32_t[]", np.ascontiguousarray(ids[: int(offsets[-1])]))
        rows = ffi.from_buffer("int64_t[]", np.ascontiguousarray(offsets))
        ends = np.zeros(len(offsets), np.int64)
        n_rows = len(offsets) - 1
        wrong = lib.sa_decode_lengths(
            self._struct, source, rows, n_rows, skip_special, ffi.from_buffer("int64_t[]", ends)
        )
        if wrong >= 0:
            return int(wrong)
        data = np.empty(int(ends[-1]), np.uint8)
        target = ffi.from_buffer("uint8_t[]", data)
        lib.sa_decode(self._struct, source, len(source), skip_special, target, len(data))
        return data, ends


def _gc_encoder(encoder: Any, model: Any) -> Any:
    """An owned encoder; the model must outlive it, so its destructor holds on to the model."""

    def free(pointer: Any, model: Any = model, release: Any = lib.sa_encoder_free) -> None:
        release(pointer)  # bound: at the interpreter's end the module's names are gone

    return ffi.gc(encoder, free)


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for engine in tuple(_engines):
        engine.forget_encoder()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
