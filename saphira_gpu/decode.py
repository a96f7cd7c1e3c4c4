"""Ids → bytes → text: the way back."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from saphira_gpu import columns, spec
from saphira_gpu._arrays import I64, U32, Bools
from saphira_gpu._lazy import cached_property
from saphira_gpu.batch import INT32_MAX, Batch, Tokens, bits, cumulated
from saphira_gpu.engines import cpu
from saphira_gpu.errors import InputError
from saphira_gpu.vocabulary import Vocabulary

_Integers = np.ndarray[Any, np.dtype[Any]]
# Ids that are worth a call of the core.
_MANY = 200


class Decoder:
    """The bytes of every id: of the vocabulary's, and of the added tokens' content."""

    def __init__(
        self, vocabulary: Vocabulary, rule: spec.Decoder, raw: list[bytes] | None = None
    ) -> None:
        """raw: the bytes of every id, where not the vocabulary's."""
        raw = vocabulary.raw if raw is None else raw
        self.known = vocabulary.known
        self.special = vocabulary.special
        self._n = len(raw)
        self.table = _with_ends(raw, vocabulary.ends, rule.word_end)
        # Whether a token is something else at the end of a row: then the second half of the table
        # is what it is there.
        self.last_differs = len(vocabulary.ends) > 0 and rule.word_end != rule.last_word_end
        if self.last_differs:
            self.table += _with_ends(raw, vocabulary.ends, rule.last_word_end)

    @cached_property
    def _table(self) -> cpu.Table:
        n = len(self.table)
        return cpu.Table(self.table, np.resize(self.known, n), np.resize(self.special, n))

    def decode(self, ids: Any, skip_special: bool) -> bytes:
        """The joined bytes. ids: integers in any one-dimensional sequence or array.

        Raises InputError, naming the position and the id, for an id that isn't known.
        """
        return self.join(self.kept(integers(ids), skip_special), True)

    def join(self, numbers: _Integers, to_the_end: bool) -> bytes:
        """The joined bytes of numbers that are ids. to_the_end: no more ids come behind them."""
        if len(numbers) > _MANY and not self.last_differs:
            done = self._table.decode(
                numbers.astype(np.uint32), np.array([0, len(numbers)], np.int64), False
            )
            assert not isinstance(done, int)
            return done[0].tobytes()
        found = numbers.tolist()
        if self.last_differs and found and to_the_end:
            found[-1] += self._n
        return b"".join(map(self.table.__getitem__, found))

    def kept(self, numbers: _Integers, skip_special: bool) -> _Integers:
        """The numbers, all known, without special tokens where they are to be left out."""
        at = self.unknown(numbers)
        if at is not None:
            raise InputError(f"position {at}: {int(numbers[at])} is not an id of this tokenizer")
        return numbers[~self.special[numbers]] if skip_special else numbers

    def unknown(self, numbers: _Integers) -> int | None:
        """The first position of a number that is no id, or None."""
        if not numbers.size:
            return None
        bad: Bools = (numbers < 0) | (numbers >= self._n)
        if not bad.any():
            bad = ~self.known[numbers]
        return int(np.argmax(bad)) if bad.any() else None

    def decode_rows(self, rows: Iterable[Any], errors: str, skip_special: bool) -> list[str | None]:
        """The text of each row; None is a null row."""
        if isinstance(rows, str | bytes):
            raise InputError(f"decode_batch takes rows of ids, not {type(rows).__name__}")
        parts: list[_Integers] = []
        valid = []
        for row, ids in enumerate(rows):
            if hasattr(ids, "as_py"):  # an Arrow scalar
                ids = ids.as_py()
            try:
                parts.append(_signed(integers([] if ids is None else ids)))
            except InputError as error:
                raise InputError(f"row {row}, {error}", row) from None
            valid.append(ids is not None)
        offsets = cumulated(np.array([len(part) for part in parts], np.int64))
        numbers: _Integers = np.concatenate([np.zeros(0, np.int64), *parts])
        tokens = Tokens(numbers, offsets, np.array(valid, np.bool_))
        texts: list[str | None] = _texts([self._decoded(tokens, skip_special, 0)], errors)[
            0
        ].to_pylist()
        return texts

    def decode_column(
        self, column: Any, errors: str, skip_special: bool, binary: bool
    ) -> pa.Array | pa.ChunkedArray:
        """The text of a column of lists of ids; see `Tokenizer.decode_arrow`."""
        codecs.lookup_error(errors)
        array = columns.only_column(columns.imported(column))
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        first = 0
        done = []
        for chunk in chunks:
            tokens = _rows_of_ids(chunk, first)
            done.append(self._decoded(tokens, skip_special, first))
            first += len(chunk)
        if not binary:
            done = _texts(done, errors)
        kind = done[0].type if done else pa.large_binary() if binary else pa.string()
        return pa.chunked_array(done, kind) if isinstance(array, pa.ChunkedArray) else done[0]

    def _decoded(self, tokens: Tokens, skip_special: bool, first_row: int) -> pa.Array:
        """large_binary. tokens: offsets from 0. first_row: the column's row of row 0."""
        ids, offsets = tokens.ids, tokens.offsets
        at = self._outside(ids)
        if at is None:
            numbers = ids.astype(np.uint32, copy=False)
            if self.last_differs:
                at = self.unknown(numbers)
        if at is None:
            if self.last_differs:
                numbers = self._with_last(numbers, offsets, skip_special)
            done = self._table.decode(numbers, offsets, skip_special)
            if not isinstance(done, int):
                validity = None if tokens.validity is None else bits(tokens.validity)
                return Batch(*done, validity).to_arrow(pa.large_binary())
            at = done
        row = int(np.searchsorted(offsets, at, "right")) - 1
        where = f"row {first_row + row}, position {at - int(offsets[row])}"
        message = f"{where}: {int(ids[at])} is not an id of this tokenizer"
        raise InputError(message, first_row + row)

    def _outside(self, numbers: _Integers) -> int | None:
        """The first position of a number that a table of uint32 can't be asked for, or None."""
        kind = np.iinfo(numbers.dtype)
        if not numbers.size or (kind.min >= 0 and kind.max < 2**32):
            return None
        if numbers.min() >= 0 and numbers.max() < self._n:
            return None
        return int(np.argmax((numbers < 0) | (numbers >= self._n)))

    def _with_last(self, numbers: U32, offsets: I64, skip_special: bool) -> U32:
        """The numbers, the last one of each row that is decoded in the second half of the table."""
        kept = np.ones(len(numbers), np.bool_)
        if skip_special:
            kept = ~self.special[numbers]
        places = np.flatnonzero(kept)
        counts = np.concatenate(([0], np.cumsum(kept)))[offsets]
        last = places[counts[1:][np.diff(counts) > 0] - 1]
        numbers = numbers.copy()
        numbers[last] += np.uint32(self._n)
        return numbers


def _signed(numbers: _Integers) -> _Integers:
    """Numbers that go together with those of other rows: none is uint64, which would make floats.

    Raises InputError, naming its position, for a number that int64 can't hold.
    """
    if numbers.dtype != np.uint64:
        return numbers
    if numbers.size and numbers.max() >= 2**63:
        at = int(np.argmax(numbers >= 2**63))
        raise InputError(f"position {at}: {int(numbers[at])} is not an id of this tokenizer")
    return numbers.astype(np.int64)


def _with_ends(raw: list[bytes], ends: I64, word_end: str) -> list[bytes]:
    table = list(raw)
    for number in ends.tolist():
        table[number] += word_end.encode()
    return table


def _rows_of_ids(array: pa.Array, first_row: int) -> Tokens:
    """The rows of a list array, which must be of integers and hold no null id.

    Raises InputError naming the type, or the row (counted from first_row) and position of a null.
    """
    t = pa.types
    kind = array.type
    if t.is_fixed_size_list(kind):
        array = array.cast(pa.list_(kind.value_type))
    elif t.is_list_view(kind) or t.is_large_list_view(kind):
        array = _without_view(array)
    elif not (t.is_list(kind) or t.is_large_list(kind)):
        raise InputError(f"a column of type {kind} holds no lists of ids")
    offsets = array.offsets.to_numpy().astype(np.int64)
    values = array.values
    if t.is_struct(values.type) and values.type.get_field_index("id") >= 0:
        values = values.flatten()[values.type.get_field_index("id")]  # a null struct is a null id
    if not t.is_integer(values.type):
        raise InputError(f"a column of type {kind} holds no lists of ids")
    if offsets[0] < 0 or offsets[-1] > len(values) or np.any(offsets[1:] < offsets[:-1]):
        raise InputError(f"the offsets of this {kind} array lead outside its values")
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    counts = np.diff(offsets)
    if valid is not None and counts[~valid].any():  # what null rows cover is nobody's
        numbers = np.repeat(valid, counts)
        values = values.slice(offsets[0], offsets[-1] - offsets[0]).filter(pa.array(numbers))
        offsets = np.concatenate(([0], np.cumsum(counts * valid)))
    own = values.slice(offsets[0], offsets[-1] - offsets[0])
    if own.null_count:
        at = int(offsets[0]) + own.is_null().to_numpy(zero_copy_only=False).argmax()
        row = int(np.searchsorted(offsets, at, "right")) - 1
        where = f"row {first_row + row}, position {at - int(offsets[row])}"
        raise InputError(f"{where}: null is not an id of this tokenizer", first_row + row)
    return Tokens(own.to_numpy(zero_copy_only=False), offsets - offsets[0], valid)


def _without_view(array: pa.Array) -> pa.LargeListArray:
    """A list_view or large_list_view as large_list. (pyarrow's cast leaves wrong offsets behind a
    null row.)"""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    sizes = array.sizes.to_numpy().astype(np.int64) * valid
    mask = None if array.null_count == 0 else pa.array(~valid)
    return pa.LargeListArray.from_arrays(pa.array(cumulated(sizes)), array.flatten(), mask=mask)


def _texts(chunks: list[pa.Array], errors: str) -> list[pa.Array]:
    """large_binary → string, or large_string where one of the chunks is too long for that."""
    fixed = []
    first = 0
    for chunk in chunks:
        batch = Batch.from_arrow(chunk)
        n, marks = cpu.invalid_rows(batch)
        if n:
            new = {}
            for row in np.flatnonzero(marks).tolist():
                where = f"row {first + row}: the text of these ids is not UTF-8"
                try:
                    new[row] = batch.row(row).decode("utf-8", errors).encode()
                except UnicodeDecodeError as error:
                    message = f"{where} at byte {error.start}: {error.reason}"
                    raise InputError(message, first + row) from None
                except UnicodeEncodeError:
                    message = f"{where}, and errors={errors!r} makes of it what no column can hold"
                    raise InputError(message, first + row) from None
            batch = batch.with_rows(new)
        fixed.append(batch)
        first += len(chunk)
    large = any(batch.n_bytes > INT32_MAX for batch in fixed)
    return [batch.to_arrow(pa.large_string() if large else pa.string()) for batch in fixed]


class DecodeStream:
    """Text of ids that come one by one or a few at a time. Bytes that may be the start of a
    character are held back until the rest has come.

    The pieces that `push` and `finish` return are, joined, what `decode` makes of all the ids.
    """

    def __init__(self, decoder: Decoder, errors: str, skip_special: bool) -> None:
        self._decoder = decoder
        self._skip_special = skip_special
        # The last id, where what it becomes depends on whether another one follows.
        self._held: _Integers = np.zeros(0, np.int64)
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, ids: Any) -> str:
        """The text that an id, or a sequence of them, adds. Raises InputError, naming the position
        in `ids`, for what is no id; then nothing was added."""
        if isinstance(ids, int | np.integer):
            ids = [ids]
        numbers = self._decoder.kept(integers(ids), self._skip_special)
        if self._decoder.last_differs:
            numbers = np.concatenate((self._held, numbers))
            self._held = numbers[-1:]
            numbers = numbers[:-1]
        return self._utf8.decode(self._decoder.join(numbers, False))

    def finish(self) -> str:
        """What was held back, and the stream is new again."""
        text = self._utf8.decode(self._decoder.join(self._held, True), final=True)
        self._utf8.reset()
        self._held = self._held[:0]
        return text


def integers(ids: Any) -> _Integers:
    """A one-dimensional integer array. Raises InputError for anything else."""
    if isinstance(ids, str | bytes):
        raise InputError(f"ids are integers, not {type(ids).__name__}")
    if hasattr(ids, "to_pylist") or hasattr(
        ids, "as_py"
    ):  # an Arrow array, or a list scalar of one
        ids = ids.to_pylist() if hasattr(ids, "to_pylist") else ids.as_py()
    if not isinstance(ids, np.ndarray):
        if ids is None:
            raise InputError("ids are integers, not None")
        ids = list(ids)
        if set(map(type, ids)) == {int}:
            with contextlib.suppress(OverflowError):
                return np.array(ids, np.int64)
        for at, value in enumerate(ids):
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
                raise InputError(f"position {at}: {value!r} is not an integer")
            if not -(2**63) <= value < 2**63:
                raise InputError(f"position {at}: {value} is not an id of this tokenizer")
        ids = np.array(ids, np.int64)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InputError(
            f"ids are a one-dimensional array of integers, not {ids.ndim}-d {ids.dtype}"
        )
    return ids if ids.size else np.zeros(0, np.int64)
