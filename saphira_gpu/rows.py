"""The way from rows of text to rows of ids, under the options of a call."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from saphira_gpu import columns
from saphira_gpu._arrays import I64
from saphira_gpu._lazy import cached_property
from saphira_gpu._options import Options
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.engines import cpu
from saphira_gpu.errors import InputError
from saphira_gpu.offsets import Offsets
from saphira_gpu.report import Report
from saphira_gpu.segments import Segmenter
from saphira_gpu.spec import Spec
from saphira_gpu.vocabulary import Vocabulary


class Rows:
    """Encodes batches and columns with one tokenizer."""

    def __init__(self, engine: cpu.Engine, spec: Spec, vocabulary: Vocabulary) -> None:
        self.engine = engine
        self.spec = spec
        self.vocabulary = vocabulary

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
        invalid = None
        utf8_only = self.spec.pretok.is_utf8_only
        if options.invalid != "contract" or options.report is not None or utf8_only:
            n, marks = cpu.invalid_rows(batch)
            invalid = np.flatnonzero(marks) if n else None
        if invalid is not None:
            policy = options.invalid
            if policy == "contract" and utf8_only:  # a regex library follows no contract
                policy = "error"
            batch = _apply(policy, batch, invalid, row_of)
        wanted = options.report is not None and len(self.spec.added) > 0
        try:
            done = self.engine.encode(
                batch, options.special, options.threads, ids=not options.count, hits=wanted
            )
        except cpu.Hit as hit:
            row, name = row_of(hit.row), self.spec.added[hit.added].content
            byte = self._byte_of(hit, batch)
            raise InputError(
                f"row {row}: the text holds the added token {name!r} at byte {byte}", row
            ) from None
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
            n_invalid = np.zeros(batch.n_rows, np.int64)
            if invalid is not None:
                n_invalid[invalid] = 1
            self._report(options, given, batch, tokens, done, n_invalid, weights)
        return tokens

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
            invalid_rows=int((invalid * once).sum()),
        )
        assert options.report is not None
        options.report.add(report)


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
