"""The way from rows of text to rows of ids, under the options of a call."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from saphira_gpu import columns
from saphira_gpu._arrays import I64
from saphira_gpu._lazy import cached_property
from saphira_gpu._options import Options, Placement
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.devices import DeviceMemoryError, RowTooLarge
from saphira_gpu.devices.detect import cuda_state
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cuda.output import DeviceTokens
from saphira_gpu.engines.placement import AUTO_BYTES, Engines
from saphira_gpu.engines.settings import Settings
from saphira_gpu.errors import DeviceError, InputError, UnsupportedError, VerifyError
from saphira_gpu.offsets import Offsets
from saphira_gpu.report import Report
from saphira_gpu.segments import Segmenter
from saphira_gpu.spec import Spec
from saphira_gpu.vocabulary import Vocabulary

# Errors of an engine that are about a row of the batch.
_ROW_ERRORS = (cpu.Hit, VerifyError, RowTooLarge)


class Rows:
    """Encodes batches and columns with one tokenizer."""

    def __init__(self, engine: cpu.Engine, spec: Spec, vocabulary: Vocabulary) -> None:
        self.engine = engine
        self.spec = spec
        self.vocabulary = vocabulary
        self.engines = Engines(engine)

    @cached_property
    def offsets(self) -> Offsets:
        """What finds the span of each id."""
        return Offsets(self.engine, self.spec, self.vocabulary, self.segmenter)

    @cached_property
    def segmenter(self) -> Segmenter:
        """What cuts a row up to pieces."""
        return Segmenter(self.engine, self.spec)

    def run_column(self, column: columns.Column, options: Options) -> list[columns.Part]:
        """The rows of ids of every chunk of a column."""

        def run(batch: Batch, row_of: columns.RowOf, weights: I64 | None) -> Tokens:
            return self.run(batch, options, row_of, weights)

        parts = columns.encode(column, run)
        if options.report is not None:
            missing = sum(part[1].null_count for part in parts if not isinstance(part, Tokens))
            options.report.add(Report(rows=missing, nulls=missing))
        return parts

    def run(
        self,
        batch: Batch,
        options: Options,
        row_of: columns.RowOf = int,
        weights: I64 | None = None,
    ) -> Tokens:
        """Rows → Tokens under the options. row_of: for messages. weights: how often a row
        counts."""
        given = batch
        batch, invalid = self._checked(batch, options, row_of)
        try:
            done = self._encode(batch, options)
        except _ROW_ERRORS as error:
            raise self._named(error, row_of, batch) from None
        ids = np.zeros(0, np.uint32) if done.ids is None else done.ids
        tokens = Tokens(ids, done.offsets, batch.valid)
        if options.offsets is not None:
            spans, _ = self.offsets.find(batch, tokens, options.special, options.offsets)
            tokens = Tokens(tokens.ids, tokens.offsets, tokens.validity, spans)
        post = self.spec.post
        if options.template and (post.prefix or post.suffix):
            tokens = tokens.wrapped(post.prefix, post.suffix)
        tokens = tokens.cast(options.dtype)
        if options.report is not None:
            self._report(options, given, batch, tokens, done, invalid, weights)
        return tokens

    def run_on_device(self, column: columns.Column, options: Options) -> DeviceTokens:
        """The rows of ids of a whole column, left on the device.

        Raises DeviceError where device="auto" finds no GPU, or none that takes this tokenizer;
        UnsupportedError for a template that adds ids.
        """
        place = options.placement
        assert place is not None
        post = self.spec.post
        if options.template and (post.prefix or post.suffix):
            raise UnsupportedError("template=True and output='device' don't go together")
        engine = self.engines.get(place.device, AUTO_BYTES)
        if engine is None:
            raise DeviceError(
                "output='device' needs a GPU that takes this tokenizer; device='cuda' says what "
                f"is missing ({cuda_state().words})"
            )
        parts: list[DeviceTokens] = []
        first = 0
        for chunk in columns.plain_chunks(column):
            row_of, given = first.__add__, columns.flat(chunk)
            batch, invalid = self._checked(given, options, row_of)
            try:
                made, done = engine.encode_on_device(
                    batch, options.special, options.threads, options.dtype,
                    _settings(place), options.report, self._hits(options),
                )  # fmt: skip
            except _ROW_ERRORS as error:
                raise self._named(error, row_of, batch) from None
            if options.report is not None:
                counts = Tokens(np.zeros(0, np.uint32), done.offsets, batch.valid)
                self._report(options, given, batch, counts, done, invalid, None)
            parts.append(made)
            first += len(chunk)
        return engine.together(parts, options.dtype)

    def _checked(
        self, batch: Batch, options: Options, row_of: columns.RowOf
    ) -> tuple[Batch, I64 | None]:
        """The batch as the policy for invalid rows makes it, and those rows, if any were looked
        for."""
        utf8_only = self.spec.pretok.is_utf8_only
        if options.invalid == "contract" and options.report is None and not utf8_only:
            return batch, None
        n, marks = cpu.invalid_rows(batch)
        if not n:
            return batch, None
        invalid = np.flatnonzero(marks)
        policy = options.invalid
        if policy == "contract" and utf8_only:  # a regex library follows no contract
            policy = "error"
        return _apply(policy, batch, invalid, row_of), invalid

    def _hits(self, options: Options) -> bool:
        return options.report is not None and len(self.spec.added) > 0

    def _encode(self, batch: Batch, options: Options) -> cpu.Encoded:
        """By the engine that the options say."""
        ids, hits = not options.count, self._hits(options)
        place = options.placement
        if place is not None:
            engine = self.engines.get(place.device, batch.n_bytes)
            if engine is not None:
                try:
                    return engine.encode(
                        batch, options.special, options.threads, ids=ids, hits=hits,
                        settings=_settings(place), report=options.report,
                    )  # fmt: skip
                except DeviceMemoryError:
                    if place.device != "auto":
                        raise
        return self.engine.encode(batch, options.special, options.threads, ids=ids, hits=hits)

    def _named(
        self, error: cpu.Hit | VerifyError | RowTooLarge, row_of: columns.RowOf, batch: Batch
    ) -> Exception:
        """An engine's error as one that names the row of the column."""
        row = row_of(error.row)
        if not isinstance(error, cpu.Hit):
            return error.named(row)
        name, byte = self.spec.added[error.added].content, self._byte_of(error, batch)
        return InputError(f"row {row}: the text holds the added token {name!r} at byte {byte}", row)

    def _byte_of(self, hit: cpu.Hit, batch: Batch) -> int:
        """Where the added token is in its row: a normalizer's text has other positions."""
        if not self.spec.normalizers:
            return hit.byte
        segments = self.segmenter.segments(batch.row(hit.row), "error")
        token = self.spec.added[hit.added]
        return next(segment.start for segment in segments if segment.added == token)

    def _report(
        self,
        options: Options,
        given: Batch,
        batch: Batch,
        tokens: Tokens,
        done: cpu.Encoded,
        invalid: I64 | None,
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
                    self.engine.encode(row, options.special, 1, ids=False, hits=True).hits * times
                    for row, times in _rows(batch, weights)
                ),
                np.zeros_like(hits),
            )
        named = zip(self.spec.added, hits.tolist(), strict=True)
        report = Report(
            rows=int(once.sum()),
            nulls=int((null * once).sum()),
            bytes=int((lengths * once).sum()),
            tokens=int((tokens.counts * once).sum()),
            added={token.content: n for token, n in named if n},
            invalid_rows=0 if invalid is None else int(once[invalid].sum()),
        )
        assert options.report is not None
        options.report.add(report)


def _settings(place: Placement) -> Settings:
    return Settings(verify=place.verify, device_memory=place.device_memory)


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
