"""Any Arrow producer's column → chunks of string or binary; rows of ids → a column of the same
shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saphira_gpu._arrays import I64
from saphira_gpu.batch import INT32_MAX, LARGE, Batch, Tokens, list_type
from saphira_gpu.errors import InputError

# What encodes a batch: (batch, row of the column for each row of the batch, weights) → Tokens.
# `weights` says how often each row counts in a report; None: once.
RowOf = Callable[[int], int]
EncodeBatch = Callable[[Batch, RowOf, "I64 | None"], Tokens]
# A chunk's rows of ids: as they are, or (of a dictionary) those of its values and which row has
# which.
Part = Tokens | tuple[Tokens, pa.Array]

# Types by their number in Arrow.
_VIEWS = frozenset(kind.id for kind in (pa.string_view(), pa.binary_view()))
_TEXT = LARGE | _VIEWS | {kind.id for kind in (pa.string(), pa.binary(), pa.null())}


@dataclass(frozen=True, slots=True)
class Column:
    """chunks: arrays of one type, all string or binary (any layout), dictionaries of those, or
    null. chunked: whether the producer had chunks, and so gets chunks back."""

    chunks: list[pa.Array]
    type: pa.DataType
    chunked: bool

    @property
    def large(self) -> bool:
        """Whether lists of ids for this column have 64-bit offsets in any case."""
        kind = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        return kind.id in LARGE


def read(column: Any) -> Column:
    """The column of an Arrow producer: an object with `__arrow_c_array__` or `__arrow_c_stream__`.

    A table, record batch or struct of one column is that column.
    Raises InputError, naming the type, for anything else.
    """
    array = only_column(imported(column))
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in chunks]
        kind = kind.storage_type
    if (kind.value_type if pa.types.is_dictionary(kind) else kind).id not in _TEXT:
        raise InputError(f"a column of type {array.type} is not text (string, binary or null)")
    return Column(chunks, kind, isinstance(array, pa.ChunkedArray))


def imported(column: Any) -> pa.Array | pa.ChunkedArray:
    """The array of an Arrow producer. Raises InputError, naming its type, if it is none."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, pa.Table):
        column = column.to_reader()
    if hasattr(column, "__arrow_c_array__"):
        return pa.array(column)
    if hasattr(column, "__arrow_c_stream__"):
        return pa.chunked_array(column)
    if hasattr(column, "__array__") and type(column).__module__.partition(".")[0] == "pandas":
        return pa.array(column, from_pandas=True)  # pandas 2's Series has no Arrow interface
    raise InputError(
        f"{type(column).__module__}.{type(column).__qualname__} is no Arrow column "
        "(it has neither __arrow_c_array__ nor __arrow_c_stream__); lists go to encode_batch"
    )


def only_column(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The array itself, or the one column of a table, record batch or struct.

    Raises InputError, naming them, where there are none or several.
    """
    while pa.types.is_struct(array.type):
        if array.type.num_fields != 1:
            names = ", ".join(field.name for field in array.type)
            raise InputError(f"a table or struct of one column is a column; this one has: {names}")
        array = _only_field(array)
    return array


def _only_field(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The one field of a struct column; a null struct is a null row."""
    if isinstance(array, pa.ChunkedArray):
        chunks = [chunk.flatten()[0] for chunk in array.chunks]
        return pa.chunked_array(chunks, array.type.field(0).type)
    return array.flatten()[0]


def flat(array: pa.Array) -> Batch:
    """The rows of a text array that is no dictionary; views are gathered into one buffer."""
    kind = array.type
    if pa.types.is_null(kind):
        n = len(array)
        return Batch(
            np.zeros(0, np.uint8), np.zeros(n + 1, np.int32), np.zeros(-(-n // 8), np.uint8)
        )
    if kind.id in _VIEWS:
        array = _gathered(array)
    return Batch.from_arrow(array)


def _gathered(array: pa.Array) -> pa.Array:
    """A view array as large_binary. As binary, so that no one minds text that is not UTF-8.

    Raises InputError if its views lead outside its data.
    """
    kind = array.type
    if pa.types.is_string_view(kind):
        array = array.view(pa.binary_view())
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        raise InputError(f"the views of this {kind} array lead outside its data: {error}") from None
    try:
        return array.cast(pa.large_binary())
    except pa.ArrowNotImplementedError:  # older pyarrow
        return pa.array([value.as_py() for value in array], pa.large_binary())


def encode(column: Column, encode_batch: EncodeBatch) -> list[Part]:
    """The rows of ids of every chunk."""
    if pa.types.is_dictionary(column.type):
        return list(_dictionary(column, encode_batch))
    done: list[Part] = []
    first = 0
    for chunk in column.chunks:
        done.append(encode_batch(flat(chunk), first.__add__, None))
        first += len(chunk)
    return done


def plain_chunks(column: Column) -> list[pa.Array]:
    """The chunks, dictionaries resolved: every row has its own text."""
    if not pa.types.is_dictionary(column.type):
        return column.chunks or [pa.array([], column.type)]
    return [chunk.dictionary_decode() for chunk in column.chunks] or [
        pa.array([], column.type.value_type)
    ]


def _dictionary(column: Column, encode_batch: EncodeBatch) -> list[tuple[Tokens, pa.Array]]:
    """Encodes each distinct value that some row has once: values of no row can't raise, or cost
    time."""
    done = []
    first = 0
    for values, chunks in _by_dictionary(column.chunks):
        indices = [chunk.indices.cast(pa.int64()) for chunk in chunks]
        rows = pa.chunked_array(indices, pa.int64()).combine_chunks()
        present = rows.drop_null().to_numpy(zero_copy_only=False)
        if present.size and not 0 <= present.min() <= present.max() < len(values):
            raise InputError("an index of this dictionary array leads outside its dictionary")
        times = np.bincount(present, minlength=len(values))
        batch = flat(values)
        if not times.all():
            batch = batch.with_nulls(times == 0)
        tokens = encode_batch(batch, _first_row(rows, first), times)
        done += [(tokens, part) for part in indices]
        first += len(rows)
    return done


def _by_dictionary(chunks: list[pa.Array]) -> list[tuple[pa.Array, list[pa.Array]]]:
    """Runs of chunks that have one dictionary."""
    runs: list[tuple[pa.Array, list[pa.Array]]] = []
    for chunk in chunks:
        if runs and _same(runs[-1][0], chunk.dictionary):
            runs[-1][1].append(chunk)
        else:
            runs.append((chunk.dictionary, [chunk]))
    return runs


def _same(a: pa.Array, b: pa.Array) -> bool:
    """Whether two arrays are the same memory."""
    addresses = [[buffer and buffer.address for buffer in array.buffers()] for array in (a, b)]
    return (a.offset, len(a)) == (b.offset, len(b)) and addresses[0] == addresses[1]


def _first_row(rows: pa.Array, first: int) -> RowOf:
    """For messages: the first row of the column that has a value."""

    def row_of(value: int) -> int:
        return first + int(pc.index(rows, pa.scalar(value, pa.int64())).as_py())

    return row_of


def lists(
    column: Column, parts: list[Part], dtype: np.dtype[Any], spans: bool
) -> pa.Array | pa.ChunkedArray:
    """The column of lists of ids (of structs, where there are spans): chunked as the input was,
    64-bit offsets where they are needed."""
    large = column.large or any(_total(part) > INT32_MAX for part in parts)
    chunks = []
    for part in parts:
        if isinstance(part, Tokens):
            chunks.append(part.to_arrow(large))
        else:
            chunks.append(part[0].to_arrow(large).take(part[1]))
    if not column.chunked:
        return chunks[0]
    return pa.chunked_array(chunks, list_type(dtype, spans, large))


def counts(column: Column, parts: list[Part]) -> pa.Array | pa.ChunkedArray:
    """The column of how many ids each row has; null where the row is."""
    chunks = []
    for part in parts:
        tokens = part if isinstance(part, Tokens) else part[0]
        mask = None if tokens.validity is None else ~tokens.validity
        chunk = pa.array(tokens.counts, pa.int64(), mask=mask)
        chunks.append(chunk if isinstance(part, Tokens) else chunk.take(part[1]))
    return pa.chunked_array(chunks, pa.int64()) if column.chunked else chunks[0]


def _total(part: Part) -> int:
    """Ids of a chunk."""
    if isinstance(part, Tokens):
        return part.n_ids
    tokens, indices = part
    return int(tokens.counts[indices.drop_null().to_numpy(zero_copy_only=False)].sum())
