"""Tokenizer: text, lists of texts and Arrow columns → ids, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from saphira_gpu import columns, loaders
from saphira_gpu._arrays import I64, U32
from saphira_gpu.batch import Batch, Tokens, as_bytes
from saphira_gpu.decode import Decoder
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cpu import DEFAULT_CACHE_BYTES, SPECIAL, Special
from saphira_gpu.errors import DeviceError, InputError, TokenizerFileError, UnsupportedError
from saphira_gpu.plan import build
from saphira_gpu.report import Report
from saphira_gpu.spec import Spec
from saphira_gpu.stages import Piece, Stages, pieces, stages

Invalid = Literal["contract", "replace", "error", "null"]
_INVALID = ("contract", "replace", "error", "null")
_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("uint32",)

Text = str | bytes | bytearray | memoryview


class Tokenizer:
    """A tokenizer, ready to encode. Make one with `Tokenizer.load` or `Tokenizer.from_spec`.

    Options that the encoding methods share:

    special: what an added token in the text becomes. "plain": text (white space alone goes on
        matching). "parse": its id. "hf_plain": text if it is marked special, else its id. "error":
        InputError.
    invalid: what becomes of a row that isn't UTF-8. "contract": its bytes are encoded all the same.
        "replace": U+FFFD as Python's errors="replace". "error": InputError. "null": a null row.
    threads: native threads; None: SAPHIRA_THREADS, else the cores this process may use.
    report: a Report to add counts to.

    Ids never depend on threads, instruction set or what was encoded before. A Tokenizer may be used
    from several threads, survives fork, and pickles as its name or its file's bytes.
    """

    def __init__(
        self, spec: Spec, source: loaders.Source | None = None, cache_bytes: int | None = None
    ) -> None:
        cache_bytes = DEFAULT_CACHE_BYTES if cache_bytes is None else cache_bytes
        if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise ValueError(f"cache_bytes={cache_bytes!r} is not a number of bytes")
        self._spec = spec
        self._source = source
        self._cache_bytes = cache_bytes
        try:
            self._engine = cpu.Engine(build(spec), cache_bytes)
        except UnsupportedError as error:
            raise UnsupportedError(f"{spec.name or 'this Spec'}: {error}") from None

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        *,
        scheme: str | None = None,
        revision: str | None = None,
        cache_bytes: int | None = None,
    ) -> Tokenizer:
        """A tokenizer from an embedded name, a path (tokenizer.json, *.tiktoken or a folder) or a
        Hub id.

        scheme: the split scheme of a rank file whose name doesn't say it ("gpt2").
        revision: of the Hub repository. cache_bytes: bound of each thread's pretoken cache; 0:
        none.

        Raises TokenizerFileError or UnsupportedError, naming the key; see `loaders.load`.
        """
        found = loaders.find(source, scheme=scheme, revision=revision)
        return cls(found.spec(warn=True), found, cache_bytes)

    @classmethod
    def from_spec(cls, spec: Spec, *, cache_bytes: int | None = None) -> Tokenizer:
        """A tokenizer from a Spec of your own. Raises UnsupportedError for a scheme not compiled
        in."""
        return cls(spec, None, cache_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._source or self._spec, self._cache_bytes)

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, vocab_size={self.vocab_size})"

    # ---- what it is ----

    @property
    def spec(self) -> Spec:
        """The definition: one dataclass a stage."""
        return self._spec

    @property
    def name(self) -> str:
        """The embedded name, or the path or id it was loaded from."""
        return self._spec.name

    @property
    def vocab_size(self) -> int:
        """The number of ids, added tokens included: one more than the highest."""
        return self._engine.plan.n_ids

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) over all that decides an id."""
        return self._spec.fingerprint

    @property
    def eos(self) -> str | None:
        """The end-of-text token that the tokenizer's own definition names, or None."""
        return self._spec.eos

    @property
    def eos_id(self) -> int | None:
        """Its id, or None. Raises TokenizerFileError if the definition names a token that isn't
        there."""
        return None if self.eos is None else self.token_id(self.eos)

    def token_id(self, token: str) -> int:
        """The id of an added token, or of a token by its text.

        Raises TokenizerFileError if there is none.
        """
        for added in self._spec.added:
            if added.content == token:
                return added.id
        number = self._known.get(token.encode("utf-8", "surrogatepass"))
        if number is not None:
            return number
        raise TokenizerFileError(f"{self.name}: {token!r} is no token of this tokenizer")

    @cached_property
    def _known(self) -> dict[bytes, int]:
        """The id of every token of the vocabulary."""
        return {token: number for number, token in enumerate(self._spec.bpe.tokens) if token}

    # ---- encode ----

    def encode(
        self,
        text: Text,
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = 1,
        report: Report | None = None,
    ) -> U32:
        """uint32 ids of one text. invalid="null" is for batches and raises ValueError here."""
        options = _Options(special, invalid, threads, report, single=True)
        return self._run(Batch.from_text(text), options).ids

    def encode_batch(
        self,
        texts: Iterable[Text | None],
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = None,
        report: Report | None = None,
    ) -> Tokens:
        """Ids of many texts; None is a null row."""
        if isinstance(texts, str | bytes | bytearray | memoryview):
            raise InputError(f"encode_batch takes a list of texts, not {type(texts).__name__}")
        batch = Batch.from_texts(cast("Iterable[str | bytes | None]", texts))
        return self._run(batch, _Options(special, invalid, threads, report))

    def encode_arrow(
        self,
        column: Any,
        device: str = "auto",
        threads: int | None = None,
        special: Special = "plain",
        invalid: Invalid = "contract",
        dtype: str = "uint32",
        report: Report | None = None,
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
        """Ids of an Arrow column, as a column of lists of uint32.

        column: string, binary (any layout), a dictionary of those, or null: an Array, a
        ChunkedArray, or
            any object with `__arrow_c_array__` or `__arrow_c_stream__`. A table or struct of one
            column is that column. A null row gives a null list.
        device: "auto" or "cpu". dtype: "uint32".

        An Array gives a ListArray (LargeListArray for large_* columns, or beyond 2^31 - 1 ids); a
        ChunkedArray or stream gives a ChunkedArray of the same chunks. Text is read where it lies,
        views excepted; each distinct value of a dictionary is encoded once.

        Raises InputError for a column of another type, and where `special` or `invalid` says so,
        naming the row.
        """
        _on(device)
        _one_of("dtype", dtype, _DTYPES)
        options = _Options(special, invalid, threads, report)
        found = columns.read(column)
        return columns.lists(found, self._run_column(found, options))

    def count_arrow(
        self,
        column: Any,
        device: str = "auto",
        threads: int | None = None,
        special: Special = "plain",
        invalid: Invalid = "contract",
        report: Report | None = None,
    ) -> pa.Int64Array | pa.ChunkedArray:
        """How many ids each row has: int64, null for a null row, chunked as the column is."""
        _on(device)
        options = _Options(special, invalid, threads, report, ids=False)
        found = columns.read(column)
        return columns.counts(found, self._run_column(found, options))

    def count(
        self,
        text: Text,
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = 1,
        report: Report | None = None,
    ) -> int:
        """How many ids `encode` gives for a text."""
        options = _Options(special, invalid, threads, report, single=True, ids=False)
        return self._run(Batch.from_text(text), options).n_ids

    # ---- look inside ----

    def pre_tokenize(self, text: Text, *, special: Special = "plain") -> list[Piece]:
        """The pretokens of a text with their byte and character spans."""
        return pieces(self._engine, self._spec, as_bytes(text), self._looked_at(text, special))

    def stages(self, text: Text, *, special: Special = "plain") -> Stages:
        """What each stage made of a text."""
        special = self._looked_at(text, special)
        return stages(self._engine, self._spec, self._known, as_bytes(text), special)

    def _looked_at(self, text: Text, special: Special) -> Special:
        """`special`, after raising what "error" raises."""
        _one_of("special", special, tuple(SPECIAL))
        if special == "error":
            self.count(text, special=special)
        return special

    # ---- decode ----

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self._spec)

    def decode_bytes(self, ids: Any, *, skip_special: bool = False) -> bytes:
        """The bytes of some ids; those of all the ids of a text are the text's.

        skip_special: leave out added tokens marked special.
        Raises InputError, naming the position, for an id this tokenizer hasn't.
        """
        return self._decoder.decode(ids, skip_special)

    def decode(self, ids: Any, errors: str = "replace", skip_special: bool = False) -> str:
        """The text of some ids. errors: as in bytes.decode, for ids that cut a character."""
        return self.decode_bytes(ids, skip_special=skip_special).decode("utf-8", errors)

    # ---- the way from rows to ids ----

    def _run_column(self, column: columns.Column, options: _Options) -> list[columns.Part]:
        def run(batch: Batch, row_of: columns.RowOf, weights: I64 | None) -> Tokens:
            return self._run(batch, options, row_of, weights)

        parts = columns.encode(column, run)
        if options.report is not None:
            missing = sum(part[1].null_count for part in parts if not isinstance(part, Tokens))
            options.report.add(Report(rows=missing, nulls=missing))
        return parts

    def _run(
        self,
        batch: Batch,
        options: _Options,
        row_of: columns.RowOf = int,
        weights: I64 | None = None,
    ) -> Tokens:
        """Rows → Tokens under the options. row_of: for messages. weights: how often a row
        counts."""
        given = batch
        invalid = None
        if options.invalid != "contract" or options.report is not None:
            n, marks = cpu.invalid_rows(batch)
            invalid = np.flatnonzero(marks) if n else None
        if invalid is not None:
            batch = _apply(options.invalid, batch, invalid, row_of)
        wanted = options.report is not None and len(self._spec.added) > 0
        try:
            done = self._engine.encode(
                batch, options.special, options.threads, ids=options.ids, hits=wanted
            )
        except cpu.Hit as hit:
            row, name = row_of(hit.row), self._spec.added[hit.added].content
            raise InputError(
                f"row {row}: the text holds the added token {name!r} at byte {hit.byte}", row
            ) from None
        ids = np.zeros(0, np.uint32) if done.ids is None else done.ids
        tokens = Tokens(ids, done.offsets, batch.valid)
        if options.report is not None:
            n_invalid = np.zeros(batch.n_rows, np.int64)
            if invalid is not None:
                n_invalid[invalid] = 1
            self._report(options, given, batch, tokens, done, n_invalid, weights)
        return tokens

    def _report(
        self,
        options: _Options,
        given: Batch,
        batch: Batch,
        tokens: Tokens,
        done: cpu.Encoded,
        invalid: I64,
        weights: I64 | None,
    ) -> None:
        once: I64 = np.ones(given.n_rows, np.int64) if weights is None else weights
        null = np.zeros(given.n_rows, np.int64) if given.valid is None else ~given.valid * 1
        lengths = np.diff(batch.offsets).astype(np.int64)
        if tokens.validity is not None:
            lengths = lengths * tokens.validity
        hits = done.hits
        if weights is not None and hits.any():
            hits = sum(
                (
                    self._engine.encode(row, options.special, 1, ids=False, hits=True).hits * times
                    for row, times in _rows(batch, weights)
                ),
                np.zeros_like(hits),
            )
        named = zip(self._spec.added, hits.tolist(), strict=True)
        report = Report(
            rows=int(once.sum()),
            nulls=int((null * once).sum()),
            bytes=int((lengths * once).sum()),
            tokens=int((tokens.counts * once).sum()),
            added={token.content: n for token, n in named if n},
            invalid_rows=int((invalid * once).sum()),
        )
        assert options.report is not None
        options.report.add(report)


class _Options:
    """The checked options of one call."""

    def __init__(
        self,
        special: str,
        invalid: str,
        threads: int | None,
        report: Report | None,
        *,
        single: bool = False,
        ids: bool = True,
    ) -> None:
        self.special = _one_of("special", special, tuple(SPECIAL))
        self.invalid = _one_of("invalid", invalid, _INVALID[:-1] if single else _INVALID)
        self.threads = cpu.thread_count(threads)
        if report is not None and not isinstance(report, Report):
            raise ValueError(f"report={report!r} is not a saphira_gpu.Report")
        self.report = report
        self.ids = ids


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value


def _on(device: str) -> None:
    if _one_of("device", device, _DEVICES) == "cuda":
        raise DeviceError(
            "device='cuda': the CUDA path is not in this version; use 'auto' or 'cpu'"
        )


def _apply(policy: str, batch: Batch, invalid: I64, row_of: columns.RowOf) -> Batch:
    """The batch after a policy for its invalid rows."""
    if policy == "error":
        row = int(invalid[0])
        try:
            batch.row(row).decode()
        except UnicodeDecodeError as error:
            at = f"row {row_of(row)}: not UTF-8 at byte {error.start}: {error.reason}"
            raise InputError(at, row_of(row)) from None
    if policy == "replace":
        rows = [int(row) for row in invalid]
        return batch.with_rows(
            {row: batch.row(row).decode("utf-8", "replace").encode() for row in rows}
        )
    if policy == "null":
        null = np.zeros(batch.n_rows, np.bool_)
        null[invalid] = True
        return batch.with_nulls(null)
    return batch


def _rows(batch: Batch, weights: I64) -> Iterable[tuple[Batch, int]]:
    """Each valid row as a batch of its own, with its weight."""
    valid = batch.valid
    for i, times in enumerate(weights.tolist()):
        if valid is None or valid[i]:
            yield Batch(batch.data, batch.offsets[i : i + 2]), times


def _restored(source: loaders.Source | Spec, cache_bytes: int) -> Tokenizer:
    """Unpickles."""
    if isinstance(source, Spec):
        return Tokenizer(source, None, cache_bytes)
    return Tokenizer(source.spec(), source, cache_bytes)


def encode_arrow(
    column: Any, tokenizer: str | os.PathLike[str] | Tokenizer = "gpt2", **options: Any
) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray:
    """`Tokenizer.encode_arrow` with a tokenizer by name or path, loaded once. options: as there."""
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = _loaded(os.fspath(tokenizer), _stamp(tokenizer))
    return tokenizer.encode_arrow(column, **options)


@lru_cache(maxsize=4)
def _loaded(source: str, stamp: object) -> Tokenizer:
    return Tokenizer.load(source)


def _stamp(source: str | os.PathLike[str]) -> object:
    """Changes when a file changes."""
    path = Path(source)
    if path.is_dir():
        path = path / "tokenizer.json"
    try:
        stat = path.stat()
    except OSError:
        return None
    return str(path.resolve()), stat.st_mtime_ns, stat.st_size
