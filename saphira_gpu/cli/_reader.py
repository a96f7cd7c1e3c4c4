"""Record batches of one file, bounded in bytes whatever the size of its row groups or rows.

Parquet: pages are read through a buffered stream, so a row group is never in memory as a whole. The
rows of a batch are chosen from measured bytes per row: a row group starts with a small probe, and
where later rows turn out several times larger the group is opened again with fewer rows a batch
(sizes in the footer can't be trusted for that: a dictionary page counts a repeated text once).
Arrow IPC: a local file is mapped and cut into slices without a copy; a compressed record batch, and
one from a URL, must be in memory whole.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from saphira_gpu.cli._errors import about_file, expected_errors
from saphira_gpu.cli._inputs import Source
from saphira_gpu.errors import InputError

BATCH_BYTES = 8 << 20
PROBE_ROWS = 64
MOST_ROWS = 1 << 20
READ_BUFFER = 1 << 20
BYTES_OF = {
    "string": pa.binary(),
    "large_string": pa.large_binary(),
    "string_view": pa.binary_view(),
}


class Reader:
    """One open input file. `schema` is the file's; `fraction` is how much of it has been read,
    0..1.

    Raises InputError, naming the file, where it can't be opened or its columns don't fit.
    """

    def __init__(self, source: Source, text: str, keep: list[str]) -> None:
        self.source = source
        self.text = text
        self.fraction = 0.0
        # a remote file system has errors of its own
        self._errors = expected_errors(ValueError) if source.fs is None else (Exception,)
        self.columns = [text, *(name for name in keep if name != text)]
        self._handle: Any = None
        try:
            self._open()
            self._check_columns()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        source = self.source
        try:
            if source.fs is not None:
                self._handle = source.fs.open(source.path, "rb")
            elif not source.is_parquet:
                self._handle = pa.memory_map(source.path, "r")
            if source.is_parquet:
                self._file = pq.ParquetFile(
                    source.path if self._handle is None else self._handle,
                    buffer_size=READ_BUFFER,
                    pre_buffer=False,  # that would hold the column chunks of a row group in memory
                    page_checksum_verification=True,
                )
                self.schema = self._file.schema_arrow
            else:
                self._file = _open_ipc(self._handle)
                self.schema = self._file.schema
        except self._errors as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: BaseException) -> InputError:
        kind = "Parquet" if self.source.is_parquet else "Arrow IPC"
        if isinstance(error, OSError) and error.errno:  # the file system's word, not the format's
            return about_file(self.source.shown, error)
        named = about_file(f"cannot read it as {kind}", InputError(" ".join(str(error).split())))
        return InputError(f"{self.source.shown}: {named}")

    def _check_columns(self) -> None:
        shown = self.source.shown
        for name in self.columns:
            count = self.schema.names.count(name)
            if count != 1:
                problem = f"no column {name!r}" if not count else f"more than one column {name!r}"
                raise InputError(f"{shown}: {problem}; there are {', '.join(self.schema.names)}")
        kind = self.schema.field(self.text).type
        if not is_text(kind):
            raise InputError(f"{shown}: column {self.text!r} is {kind}, not text")

    def close(self) -> None:
        """Closes the file; harmless when it is closed."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def batches(self, limit: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
        """Record batches of the chosen columns, of about `limit` bytes or of one row.

        Raises InputError, naming the file, where its content is damaged.
        """
        try:
            whole = self._parquet(limit) if self.source.is_parquet else self._ipc()
            for batch in whole:
                yield from split(batch, limit)
        except InputError:
            raise
        except self._errors as error:
            raise self._unreadable(error) from None

    def _parquet(self, limit: int) -> Iterator[pa.RecordBatch]:
        footer = self._file.metadata
        seen = 0
        for group in range(footer.num_row_groups):
            rows = footer.row_group(group).num_rows
            done = 0
            size, probing = (PROBE_ROWS, True) if rows > PROBE_ROWS else (rows, False)
            while done < rows:
                skip = done
                for batch in self._file.iter_batches(
                    size, row_groups=[group], columns=self.columns
                ):
                    if skip:  # opened again: these rows are out already
                        drop = min(skip, batch.num_rows)
                        batch, skip = batch.slice(drop), skip - drop
                    if not batch.num_rows:
                        continue
                    done += batch.num_rows
                    seen += batch.num_rows
                    self.fraction = seen / max(1, footer.num_rows)
                    yield batch
                    measured = max(1, row_bytes(batch).sum())
                    fits = max(1, int(limit * batch.num_rows / measured))
                    if probing or size > 4 * fits:
                        size, probing = min(fits, MOST_ROWS), False
                        break
                else:
                    break

    def _ipc(self) -> Iterator[pa.RecordBatch]:
        if isinstance(self._file, pa.RecordBatchFileReader):
            total = self._file.num_record_batches
            for index in range(total):
                self.fraction = (index + 1) / total
                yield self._checked(self._file.get_batch(index))
        else:
            for batch in self._file:
                self.fraction = self._handle.tell() / max(1, self.source.size)
                yield self._checked(batch)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The chosen columns, their offsets checked: IPC buffers come from the file unread."""
        batch = batch.select(self.columns)
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                values = _as_bytes(column.dictionary)
                column = pa.DictionaryArray.from_arrays(column.indices, values, safe=False)
            _as_bytes(column).validate(full=True)
        return batch


def _as_bytes(column: pa.Array) -> pa.Array:
    """Text as bytes, so that validation does not take what is not UTF-8 for damage."""
    bare = BYTES_OF.get(str(column.type))
    return column if bare is None else column.view(bare)


def _open_ipc(handle: Any) -> Any:
    magic = handle.read(6)
    handle.seek(0)
    if magic == b"ARROW1":
        return pa.ipc.open_file(handle)
    if magic[:4] == b"FEA1":
        raise InputError("Feather version 1 is not supported")
    return pa.ipc.open_stream(handle)  # what Hugging Face datasets keep in .arrow files


def is_text(kind: Any) -> bool:
    """Whether encode_arrow takes a column of this pyarrow type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_null(kind) or _is_bytes(kind)


def _is_bytes(kind: Any) -> bool:
    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def row_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """About how many bytes each row of a batch holds, int64 [num_rows]: its texts, and the average
    of the other columns."""
    total = np.ones(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_bytes(column.type.value_type):
            lengths = np.append(_lengths(column.dictionary), 0)  # the 0 is for nulls
            total += lengths[
                column.indices.fill_null(len(lengths) - 1).to_numpy(zero_copy_only=False)
            ]
        elif _is_bytes(column.type):
            total += _lengths(column)
        elif not pa.types.is_dictionary(column.type):
            total += column.nbytes // max(1, len(column))
    return total


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    if not len(column):
        return np.zeros(0, np.int64)
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        views = np.frombuffer(column.buffers()[1], np.int32)  # 16 bytes each, the length first
        first = 4 * column.offset
        return views[first : first + 4 * len(column) : 4].astype(np.int64)
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
    return np.diff(offsets[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def split(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Slices (no copy) of at most `limit` bytes, or of one row where that alone is more."""
    ends = np.cumsum(row_bytes(batch))
    start = 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield batch.slice(start, stop - start)
        start = stop
