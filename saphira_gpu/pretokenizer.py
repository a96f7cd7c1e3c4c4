"""PreTokenizer: HF's pre_tokenizer configurations, compiled; classify: the tags they work on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from saphira_gpu import columns
from saphira_gpu._arrays import I64, U8, U64, Bools
from saphira_gpu.batch import INT32_MAX, Batch, as_bytes, bitmap
from saphira_gpu.engines import cpu
from saphira_gpu.errors import InputError
from saphira_gpu.pretok import config as configs
from saphira_gpu.pretok import schemes
from saphira_gpu.pretok.program import SPAN, Program
from saphira_gpu.pretok.steps import Regex, Step, spans_only

Engine = Literal["hf", "tiktoken"]
Offsets = Literal["char", "byte"]
Alphabet = Literal["superatoms", "atoms", "scripts"]

Text = str | bytes | bytearray | memoryview

# Bytes up to which a loop over a text is faster than setting up a pass of the core.
_SHORT = 256


class PreTokenizer:
    """A pretokenizer: text → pieces. Make one with `PreTokenizer.from_config`.

    Pieces never depend on threads or instruction set. A PreTokenizer may be used from several
    threads and pickles as its configuration. Bytes that are not UTF-8 are characters by the rules
    at `reference.classify` (patterns that run through a regex library refuse them), and every piece
    is a text of its own to the steps that come after. So to a later step a lead that lacks bytes
    is cut short where its piece ends there, and has the class of its byte-alphabet symbol, though
    what followed it in the row made it fail; a compiled scheme that stands for several Splits
    (`tables/schemes.toml`) looks at the row as a whole. On UTF-8 the two are the same.
    """

    def __init__(self, config: Mapping[str, Any] | str | bytes, engine: str = "hf") -> None:
        if engine not in schemes.ENGINES:
            raise ValueError(f"engine={engine!r} is none of {', '.join(schemes.ENGINES)}")
        self._config, steps = configs.parse(config, engine)
        self._engine = engine
        self._steps = steps
        self._utf8_only = any(isinstance(step, Regex) for step in steps)
        self._texts = Program(steps)
        self._spans = Program(spans_only(steps))

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any] | str | bytes, engine: Engine = "hf"
    ) -> PreTokenizer:
        """A pretokenizer from the `pre_tokenizer` of a tokenizer.json, as a dict or as JSON text.

        engine: whose regular expressions the patterns of Split are: HF's or tiktoken's.

        Raises TokenizerFileError where the configuration is malformed and UnsupportedError where it
        asks for what isn't there (a pattern that is no compiled scheme, without the extra [regex]);
        both name the key.
        """
        return cls(config, engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return PreTokenizer, (self._config, self._engine)

    def __repr__(self) -> str:
        return f"PreTokenizer({json.dumps(self._config, ensure_ascii=False)}, {self._engine!r})"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, a copy."""
        return cast("dict[str, Any]", json.loads(json.dumps(self._config)))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What the configuration comes to, in order."""
        return self._steps

    def pre_tokenize_str(
        self, text: Text, offsets: Offsets = "char"
    ) -> list[tuple[str, tuple[int, int]]]:
        """The pieces of a text, each with the span (start, end) of the text that it comes from.

        A piece is text as the last step left it: with ▁ for spaces, in the byte alphabet (and
        U+FFFD for bytes that are not UTF-8). offsets: "char" counts characters, "byte" the bytes of
        UTF-8.
        Raises InputError for a text that is not UTF-8 where a regex library needs it.
        """
        if offsets not in ("char", "byte"):
            raise ValueError(f"offsets={offsets!r} is none of char, byte")
        raw = as_bytes(text)
        if self._utf8_only:
            _refuse_invalid(Batch.from_texts([raw]), int)
        made, pieces = self._texts.pieces(raw)
        place = _chars_before(raw) if offsets == "char" and not raw.isascii() else None
        found = []
        for start, end, first, last in pieces:
            span = (first, last) if place is None else (int(place[first]), int(place[last]))
            found.append((_decoded(made[start:end]), span))
        return found

    def pre_tokenize_arrow(
        self, column: Any, threads: int | None = None
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
        """The pieces of every row of an Arrow column: list<struct<start: int64, end: int64>>.

        column: as for `Tokenizer.encode_arrow`; what comes back is chunked as it is, with a null
        list for a null row. Spans are bytes of the row, half-open. threads: native threads; None:
        SAPHIRA_THREADS, else the cores this process may use.
        Raises InputError for a column of another type, and, naming the row, for one that is not
        UTF-8 where a regex library needs it.
        """
        n_threads = cpu.thread_count(threads)
        found = columns.read(column)

        def run(batch: Batch, row_of: columns.RowOf, weights: I64 | None) -> Any:
            if self._utf8_only:
                _refuse_invalid(batch, row_of)
            return self._spans.spans(batch, n_threads)

        parts: list[Any] = list(columns.encode(found, run))
        return _lists(found, parts, SPAN)


def classify(column_or_bytes: Any, alphabet: Alphabet = "superatoms") -> tuple[Any, Any]:
    """The tags of a text or an Arrow column, and where characters start.

    A text (bytes or str) gives uint8[n] tags, one a byte, 0xFF on the bytes of a character behind
    its first, and bool[n] starts. A column gives list<uint8> tags and list<bool> starts, shaped as
    for `PreTokenizer.pre_tokenize_arrow`. alphabet: what the tags are: "superatoms" (0..31),
    "atoms" (0..11) or "scripts" (0..135, 0 = none); `tables/generated/schemes.json` names them in
    order.
    Raises InputError for a column that is not text.
    """
    if alphabet not in ("superatoms", "atoms", "scripts"):
        raise ValueError(f"alphabet={alphabet!r} is none of superatoms, atoms, scripts")
    if isinstance(column_or_bytes, str | bytes | bytearray | memoryview):
        tags = _Tags(Batch.from_texts([as_bytes(column_or_bytes)]), alphabet)
        return tags.tags, tags.starts
    found = columns.read(column_or_bytes)

    def run(batch: Batch, row_of: columns.RowOf, weights: I64 | None) -> Any:
        return _Tags(batch, alphabet)

    parts: list[Any] = list(columns.encode(found, run))
    starts = [
        (part[0].as_starts(), part[1]) if isinstance(part, tuple) else part.as_starts()
        for part in parts
    ]
    return _lists(found, parts, pa.uint8()), _lists(found, starts, pa.bool_())


class _Tags:
    """Tags of a batch: uint8 a byte, and the bitmap of character starts."""

    def __init__(self, batch: Batch, alphabet: str) -> None:
        scripts, superatoms = cpu.lib.SA_ALPHABET_SCRIPTS, cpu.lib.SA_ALPHABET_SUPERATOMS
        number = scripts if alphabet == "scripts" else superatoms
        self.tags, self._words = cpu.classify(batch, number)
        if alphabet == "atoms":
            self.tags = _atoms(self.tags)
        self._offsets = np.asarray(batch.offsets, np.int64) - int(batch.offsets[0])
        self._valid = batch.valid

    @property
    def starts(self) -> Bools:
        bits = np.unpackbits(self._words.view(np.uint8), bitorder="little")
        return bits[: len(self.tags)].view(np.bool_)

    @property
    def n(self) -> int:
        return len(self.tags)

    def to_arrow(self, large: bool) -> pa.Array:
        return self._list(pa.uint8(), self.tags, large)

    def as_starts(self) -> _Starts:
        return _Starts(self)

    def _list(self, kind: pa.DataType, data: U8 | U64, large: bool) -> pa.Array:
        values = pa.Array.from_buffers(kind, self.n, [None, pa.py_buffer(data)])
        offsets = self._offsets if large else self._offsets.astype(np.int32)
        return pa.Array.from_buffers(
            pa.large_list(kind) if large else pa.list_(kind),
            len(self._offsets) - 1,
            [bitmap(self._valid), pa.py_buffer(offsets)],
            children=[values],
        )


class _Starts:
    """The starts of _Tags as a part of their own; their bitmap is Arrow's layout already."""

    def __init__(self, tags: _Tags) -> None:
        self._tags = tags
        self.n = tags.n

    def to_arrow(self, large: bool) -> pa.Array:
        return self._tags._list(pa.bool_(), self._tags._words, large)


def _atoms(tags: U8) -> U8:
    row = np.array([*schemes.table()["superatom_atom"]], np.uint8)
    classes = np.empty_like(tags)
    ffi = cpu.ffi
    cpu.lib.sa_remap(
        ffi.from_buffer("uint8_t[]", row),
        ffi.from_buffer("uint8_t[]", tags),
        len(tags),
        ffi.from_buffer("uint8_t[]", classes),
    )
    return classes


def _lists(column: columns.Column, parts: list[Any], kind: pa.DataType) -> Any:
    """A column of lists, chunked as the input was. parts: of each chunk, something with `n` values
    and `to_arrow(large)`; or (of a dictionary) that of its values, and which row has which."""
    large = column.large or any(_total(part) > INT32_MAX for part in parts)
    chunks = []
    for part in parts:
        if isinstance(part, tuple):
            chunks.append(part[0].to_arrow(large).take(part[1]))
        else:
            chunks.append(part.to_arrow(large))
    if not column.chunked:
        return chunks[0]
    return pa.chunked_array(chunks, pa.large_list(kind) if large else pa.list_(kind))


def _total(part: Any) -> int:
    if not isinstance(part, tuple):
        return int(part.n)
    values, indices = part
    longest = values.to_arrow(True).value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return int(longest[indices.drop_null().to_numpy(zero_copy_only=False)].sum())


def _chars_before(raw: bytes) -> Sequence[int] | I64:
    """How many characters start before each byte, and before the end."""
    if len(raw) <= _SHORT:
        try:
            raw.decode()
        except UnicodeDecodeError:
            pass
        else:
            return list(accumulate((byte & 0xC0 != 0x80 for byte in raw), initial=0))
    starts = _Tags(Batch.from_texts([raw]), "superatoms").starts
    before = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(starts, out=before[1:])
    return before


def _decoded(piece: bytes) -> str:
    for errors in ("strict", "surrogatepass"):
        try:
            return piece.decode("utf-8", errors)
        except UnicodeDecodeError:
            pass
    return piece.decode("utf-8", "replace")


def _refuse_invalid(batch: Batch, row_of: columns.RowOf) -> None:
    n, marks = cpu.invalid_rows(batch)
    if n:
        row = row_of(int(np.flatnonzero(marks)[0]))
        raise InputError(f"row {row}: not UTF-8, which a split pattern run by Oniguruma needs", row)
