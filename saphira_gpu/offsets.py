"""Where each id comes from: its span in the row, as Hugging Face gives `offsets`.

The bytes of a row's ids add up to the row, so spans follow from the lengths of tokens. A row takes
a walk of its own where they don't: an added token that takes white space with it.

A span covers whole characters: a token that cuts one has all of it. If the tokenizer trims, white
space at the ends of a token is left out of its span.
"""

from __future__ import annotations

import numpy as np

from saphira_gpu._arrays import I64, Bools
from saphira_gpu._options import Unit
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.engines import cpu
from saphira_gpu.spec import Spec


class Offsets:
    """Finds the spans of ids that one tokenizer gave."""

    def __init__(self, engine: cpu.Engine, spec: Spec) -> None:
        self._engine = engine
        n = engine.plan.n_ids
        self._lengths: I64 = np.diff(engine.plan.token_offsets)
        added: I64 = self._lengths.copy()
        self._careful: Bools = np.zeros(n, np.bool_)
        for token in spec.added:
            added[token.id] = len(token.content.encode())
            self._careful[token.id] = token.lstrip or token.rstrip
        in_both = (self._lengths > 0) & (self._lengths != added)
        self._careful |= in_both  # text or added token: only a walk can tell
        self._lengths[~in_both] = added[~in_both]

    def find(self, batch: Batch, tokens: Tokens, special: str, unit: Unit) -> I64:
        """int64[n_ids, 2]: start and end of each id within its row, in bytes or characters.

        tokens: the ids of the batch under `special`.
        """
        rows = np.repeat(np.arange(batch.n_rows), tokens.counts)
        spans = self._raw(batch, tokens, special, rows)
        return self._whole(batch, spans, rows, unit)

    def _raw(self, batch: Batch, tokens: Tokens, special: str, rows: I64) -> I64:
        """Byte spans, through characters where tokens cut them."""
        ends = np.cumsum(self._lengths[tokens.ids])
        before = np.concatenate(([0], ends))[tokens.offsets]
        spans = np.empty((len(tokens.ids), 2), np.int64)
        spans[:, 1] = ends - before[:-1][rows]
        spans[:, 0] = spans[:, 1] - self._lengths[tokens.ids]
        odd = np.diff(before) != np.diff(batch.offsets)
        if batch.valid is not None:
            odd &= batch.valid
        odd[rows[self._careful[tokens.ids]]] = True
        for row in np.flatnonzero(odd).tolist():
            own = slice(int(tokens.offsets[row]), int(tokens.offsets[row + 1]))
            spans[own] = self._walk(batch.row(row), tokens.ids[own].tolist(), special)
        return spans

    def _walk(self, text: bytes, ids: list[int], special: str) -> list[tuple[int, int]]:
        """Byte spans of one row: added tokens where they match, ids of text between them."""
        lengths = self._lengths
        spans: list[tuple[int, int]] = []
        at = 0
        for start, end, index in [*self._engine.find_special(special, text), (len(text), 0, -1)]:
            while at < start:
                length = int(lengths[ids[len(spans)]])
                spans.append((at, at + length))
                at += length
            if index >= 0:
                spans.append((start, end))
                at = end
        return spans

    def _whole(self, batch: Batch, spans: I64, rows: I64, unit: Unit) -> I64:
        """Spans of whole characters, in the unit asked for."""
        first = int(batch.offsets[0])
        text = batch.data[first : int(batch.offsets[-1])]
        if not len(text) or not (text & 0x80).any():
            return spans
        bits = cpu.classify(batch)[1].astype("<u8").view(np.uint8)
        starts = np.unpackbits(bits, count=len(text), bitorder="little")
        # before[i]: characters that start before byte i
        before = np.zeros(len(text) + 1, np.int64)
        np.cumsum(starts, out=before[1:])
        base = (batch.offsets[:-1].astype(np.int64) - first)[rows]
        low, high = spans[:, 0] + base, spans[:, 1] + base
        chars = np.empty_like(spans)
        chars[:, 1] = before[high]
        chars[:, 0] = np.minimum(before[np.minimum(low + 1, len(text))] - 1, chars[:, 1])
        if unit == "char":
            return chars - before[base][:, None]
        positions = np.append(np.flatnonzero(starts), len(text))
        row_ends = (batch.offsets[1:].astype(np.int64) - first)[rows]
        found: I64 = np.minimum(positions[chars], row_ends[:, None]) - base[:, None]
        return found
