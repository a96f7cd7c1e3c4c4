"""Batch (rows of text in) and Tokens (rows of ids out): numpy views, Arrow's layout, no copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, overload

import numpy as np
import pyarrow as pa

from saphira_gpu._arrays import I64, U8, Bools, Ids, Offsets
from saphira_gpu.errors import InputError

INT32_MAX = 2**31 - 1

# Types that have 64-bit offsets, by their number in Arrow.
LARGE = frozenset(kind.id for kind in (pa.large_string(), pa.large_binary()))
_INT32: np.dtype[Any] = np.dtype(np.int32)
_INT64: np.dtype[Any] = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of text: row i is data[offsets[i] : offsets[i + 1]].

    data: uint8. offsets: int32 or int64 [n_rows + 1], ascending. validity: Arrow's bitmap (uint8),
    row i at bit validity_offset + i, or None where every row is valid.
    """

    data: U8
    offsets: Offsets
    validity: U8 | None = None
    validity_offset: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_bytes(self) -> int:
        return int(self.offsets[-1]) - int(self.offsets[0])

    @property
    def valid(self) -> Bools | None:
        """bool[n_rows], or None where every row is valid."""
        if self.validity is None:
            return None
        first = self.validity_offset // 8
        last = (self.validity_offset + self.n_rows + 7) // 8
        bits = np.unpackbits(self.validity[first:last], bitorder="little")
        skip = self.validity_offset - 8 * first
        return bits[skip : skip + self.n_rows].view(np.bool_)

    def row(self, i: int) -> bytes:
        """The bytes of a row."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()

    def with_nulls(self, null: Bools) -> Batch:
        """The same rows, those marked (bool[n_rows]) made null."""
        valid = ~null if self.valid is None else self.valid & ~null
        return Batch(self.data, self.offsets, bits(valid))

    def with_rows(self, new: dict[int, bytes]) -> Batch:
        """The same rows, some with other text. Copies."""
        lengths = np.diff(self.offsets).astype(np.int64)
        parts: list[Any] = []
        done = int(self.offsets[0])
        for i in sorted(new):
            parts += [self.data[done : int(self.offsets[i])], new[i]]
            done = int(self.offsets[i + 1])
            lengths[i] = len(new[i])
        parts.append(self.data[done : int(self.offsets[-1])])
        data = np.frombuffer(b"".join(parts), np.uint8)
        return Batch(data, cumulated(lengths), self.validity, self.validity_offset)

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """An array over the same memory: a kind of string or binary, whose offsets must hold
        these."""
        small = kind in (pa.string(), pa.binary())
        offsets = self.offsets.astype(np.int32 if small else np.int64, copy=False)
        return pa.Array.from_buffers(
            kind,
            self.n_rows,
            [bitmap(self.valid), pa.py_buffer(offsets), pa.py_buffer(self.data)],
        )

    @classmethod
    def from_text(cls, text: object) -> Batch:
        """One row. Raises InputError if it is neither str nor bytes-like."""
        raw = as_bytes(text)
        return cls(np.frombuffer(raw, np.uint8), np.array((0, len(raw)), np.int64))

    @classmethod
    def from_texts(cls, texts: Iterable[str | bytes | None]) -> Batch:
        """Rows from Python objects; None is a null row. Lone surrogates of a str become their
        3-byte form. Raises InputError for any other object, naming its row."""
        texts = list(texts)
        try:
            return cls.from_arrow(pa.array(texts, pa.large_binary()))
        except (UnicodeEncodeError, pa.ArrowException):
            pass  # a lone surrogate, a memoryview, or no text at all
        nulls = [i for i, text in enumerate(texts) if text is None]
        parts = [b"" if text is None else as_bytes(text, i) for i, text in enumerate(texts)]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        validity = None
        if nulls:
            valid = np.ones(len(parts), np.bool_)
            valid[nulls] = False
            validity = bits(valid)
        return cls(np.frombuffer(b"".join(parts), np.uint8), cumulated(lengths), validity)

    @classmethod
    def from_arrow(cls, array: pa.Array) -> Batch:
        """A view of a string, binary, large_string or large_binary array, at any slice offset.

        Raises InputError if its offsets lead outside its data.
        """
        validity, offsets_buffer, data_buffer = array.buffers()
        kind = _INT64 if array.type.id in LARGE else _INT32
        n = len(array)
        if n == 0 or offsets_buffer is None:
            return cls(np.zeros(0, np.uint8), np.zeros(n + 1, kind))
        start = array.offset * kind.itemsize
        offsets: Offsets = np.frombuffer(offsets_buffer, kind, n + 1, start)
        data = (
            np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        )
        inside = offsets[0] >= 0 and offsets[-1] <= len(data)
        if not inside or (offsets[1:] < offsets[:-1]).any():
            raise InputError(f"the offsets of this {array.type} array lead outside its data")
        if validity is None or array.null_count == 0:
            return cls(data, offsets)
        return cls(data, offsets, np.frombuffer(validity, np.uint8), array.offset)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Rows of ids: row i is ids[offsets[i] : offsets[i + 1]], or None where it is null.

    ids: uint32, or the dtype asked for. offsets: int64[n_rows + 1]. validity: bool[n_rows], or None
    where no row is null. spans: int64[len(ids), 2], start and end of each id in its row, where
    they were asked for. Rows are views, not copies.
    """

    ids: Ids
    offsets: I64
    validity: Bools | None = None
    spans: I64 | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Ids | None: ...
    @overload
    def __getitem__(self, index: slice) -> Tokens: ...
    def __getitem__(self, index: int | slice) -> Ids | Tokens | None:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("rows are sliced with step 1 only")
            stop = max(start, stop)
            validity = None if self.validity is None else self.validity[start:stop]
            return Tokens(self.ids, self.offsets[start : stop + 1], validity, self.spans)
        row = self._row(index)
        return None if row is None else self.ids[row]

    def _row(self, index: int) -> slice | None:
        i = range(len(self))[index]
        if self.validity is not None and not self.validity[i]:
            return None
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def row_spans(self, index: int) -> I64 | None:
        """int64[n, 2]: the spans of a row's ids, None where it is null.

        Raises ValueError if no offsets were asked for.
        """
        if self.spans is None:
            raise ValueError("these Tokens hold no offsets: encode with offsets='byte' or 'char'")
        row = self._row(index)
        return None if row is None else self.spans[row]

    def __iter__(self) -> Iterator[Ids | None]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Tokens({len(self)} rows, {self.n_ids} ids)"

    @property
    def n_ids(self) -> int:
        return int(self.offsets[-1]) - int(self.offsets[0])

    @property
    def counts(self) -> I64:
        """int64[n_rows]: ids per row, 0 where it is null."""
        return np.diff(self.offsets)

    def cast(self, dtype: np.dtype[Any]) -> Tokens:
        """The same rows, their ids of another integer type, which must hold them all."""
        if self.ids.dtype == dtype:
            return self
        same_size = self.ids.dtype.itemsize == dtype.itemsize
        ids = self.ids.view(dtype) if same_size else self.ids.astype(dtype)
        return Tokens(ids, self.offsets, self.validity, self.spans)

    def wrapped(self, before: Sequence[int], after: Sequence[int]) -> Tokens:
        """The same rows with ids before and after each one that is not null; their spans are
        (0, 0). offsets[0] must be 0; without ids, offsets alone are made. Copies."""
        valid = np.ones(len(self), np.bool_) if self.validity is None else self.validity
        n = len(before) + len(after)
        offsets = self.offsets + cumulated(n * valid.astype(np.int64))
        if self.n_ids != len(self.ids):
            return Tokens(self.ids, offsets, self.validity)
        first, last = offsets[:-1][valid], offsets[1:][valid]
        ids = np.empty(int(offsets[-1]), self.ids.dtype)
        own = np.ones(len(ids), np.bool_)
        for at, number in enumerate(before):
            own[first + at] = False
            ids[first + at] = number
        for at, number in enumerate(reversed(after), 1):
            own[last - at] = False
            ids[last - at] = number
        ids[own] = self.ids
        spans = None
        if self.spans is not None:
            spans = np.zeros((len(ids), 2), np.int64)
            spans[own] = self.spans
        return Tokens(ids, offsets, self.validity, spans)

    def to_list(self) -> list[list[int] | None]:
        """The rows as Python lists."""
        return [None if row is None else row.tolist() for row in self]

    def to_arrow(self, large: bool | None = None) -> pa.Array:
        """A ListArray over the same ids (LargeListArray if `large`, or if None and needed): of
        ids, or of structs of id, start and end where there are spans."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if large is None:
            large = self.n_ids > INT32_MAX
        offsets = self.offsets - first if first else self.offsets
        ids = self.ids[first:last]
        kind = list_type(ids.dtype, False, large).value_type
        values = pa.Array.from_buffers(kind, len(ids), [None, pa.py_buffer(ids)])
        lists = list_type(ids.dtype, self.spans is not None, large)
        if self.spans is not None:
            number = np.int64 if large else np.int32
            ends = self.spans[first:last].T.astype(number)
            parts = [values, *map(pa.array, ends)]
            values = pa.StructArray.from_arrays(parts, fields=list(lists.value_type))
        return pa.Array.from_buffers(
            lists,
            len(self),
            [bitmap(self.validity), pa.py_buffer(offsets if large else offsets.astype(np.int32))],
            children=[values],
        )


@cache
def list_type(dtype: np.dtype[Any], spans: bool, large: bool) -> pa.DataType:
    """The type of lists of ids of a dtype, or of structs of id, start and end."""
    item = pa.from_numpy_dtype(dtype)
    if spans:
        number = pa.int64() if large else pa.int32()
        item = pa.struct([("id", item), ("start", number), ("end", number)])
    return pa.large_list(item) if large else pa.list_(item)


def bits(flags: Bools) -> U8:
    """bool[n] as Arrow's bitmap."""
    return np.packbits(flags, bitorder="little")


def bitmap(validity: Bools | None) -> pa.Buffer | None:
    """Arrow's validity buffer of bool[n]."""
    return None if validity is None else pa.py_buffer(bits(validity))


def as_bytes(text: object, row: int | None = None) -> bytes:
    """The bytes of a str or bytes-like object. Raises InputError, naming its type, for others."""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes):
        return text
    if isinstance(text, bytearray | memoryview):
        return bytes(text)
    where = "" if row is None else f"row {row}: "
    raise InputError(f"{where}text is str or bytes, not {type(text).__name__}", row)


def cumulated(lengths: I64) -> I64:
    """int64[n + 1]: the sum of all lengths before each."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
