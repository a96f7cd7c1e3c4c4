"""The text columns that are measured: Parquet corpora and made-up hard rows."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CORPORA = ("english", "multiscript", "code", "chat_markdown")
ROWS = ("english", "one_letter", "random_letters", "spaces", "one_cjk", "random_cjk")


def test_data() -> Path | None:
    """The folder with `corpora/` and `vocabs/`, from SAPHIRA_TEST_DATA."""
    value = os.environ.get("SAPHIRA_TEST_DATA")
    return Path(value) if value else None


def corpus_path(name: str) -> Path:
    """A corpus by name (one of CORPORA) or any Parquet path; FileNotFoundError names what lacks."""
    if name in CORPORA and not Path(name).exists():
        data = test_data()
        if data is None:
            raise FileNotFoundError(
                f"corpus {name!r} needs SAPHIRA_TEST_DATA (or give a Parquet file)"
            )
        return data / "corpora" / f"{name}.parquet"
    return Path(name)


def read_column(path: Path, column: str = "text", limit_bytes: int | None = None) -> pa.StringArray:
    """A Parquet column as one contiguous string array, cut after `limit_bytes` of text.

    The cut keeps whole rows (at least one). Null rows are dropped: contenders spell them
    differently. Row groups past the cut are not read.
    """
    parts: list[pa.Array] = []
    read = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1024, columns=[column]):
            parts.append(batch.column(0).drop_null())
            read += text_bytes(parts[-1])
            if limit_bytes is not None and read >= limit_bytes:
                break
    array = pa.concat_arrays(parts) if parts else pa.array([], pa.string())
    if limit_bytes is not None:
        ends = offsets(array)[1:] - offsets(array)[0]
        keep = int(np.searchsorted(ends, limit_bytes, side="right"))
        # concat copies, so that nothing of the rest stays in the buffers
        array = pa.concat_arrays([array.slice(0, max(keep, 1))])
    return array


def offsets(array: pa.Array) -> np.ndarray:
    """The offsets of a string array: (rows + 1,) int32 or int64 by its type, a view."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    raw = np.frombuffer(array.buffers()[1], np.int64 if wide else np.int32)
    return raw[array.offset : array.offset + len(array) + 1]


def data_view(array: pa.Array) -> np.ndarray:
    """The text buffer of a string array: (bytes,) uint8, a view from offset 0 of the buffer."""
    buffer = array.buffers()[2]
    return np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)


def text_bytes(array: pa.Array) -> int:
    """Bytes of UTF-8 text in the column."""
    if len(array) == 0:
        return 0
    at = offsets(array)
    return int(at[-1] - at[0])


def fingerprint(array: pa.Array) -> str:
    """sha256 (hex) of row lengths and text, so that every process shows it had the same input."""
    digest = hashlib.sha256()
    if len(array):
        at = offsets(array)
        digest.update(np.diff(at).astype("<u8").tobytes())
        digest.update(data_view(array)[int(at[0]) : int(at[-1])])
    return digest.hexdigest()


def hard_row(kind: str, size: int, english: Path | None = None) -> pa.StringArray:
    """One row of about `size` bytes of text of a kind in ROWS; random kinds have a fixed seed.

    `english` is the Parquet file that gives normal text; it is repeated when shorter than `size`.
    """
    rng = np.random.default_rng(20260101)
    if kind == "one_letter":
        text = b"a" * size
    elif kind == "random_letters":
        text = rng.integers(ord("a"), ord("z") + 1, size, dtype=np.uint8).tobytes()
    elif kind == "spaces":
        text = b" " * size
    elif kind == "one_cjk":
        text = "一".encode() * (size // 3)
    elif kind == "random_cjk":
        text = (
            rng.integers(0x4E00, 0xA000, size // 3, dtype=np.uint32)
            .tobytes()
            .decode("utf-32-le")
            .encode()
        )
    elif kind == "english":
        if english is None:
            raise FileNotFoundError("normal text needs a Parquet file")
        column = read_column(english, limit_bytes=size)
        at = offsets(column)
        text = data_view(column)[int(at[0]) : int(at[-1])].tobytes()
        text = (text * (size // max(len(text), 1) + 1))[:size].decode("utf-8", "ignore").encode()
    else:
        raise ValueError(f"no such kind of row: {kind!r}")
    return pa.array([text.decode()], pa.string())
