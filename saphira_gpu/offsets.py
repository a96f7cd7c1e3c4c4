"""Where each id comes from: its span in the row, as Hugging Face gives `offsets`.

The bytes of a row's ids add up to the row, so spans follow from the lengths of tokens. Where they
may not, a row takes a walk of its own (`offset_walk`).

A span covers whole characters: a token that cuts one has all of it. If the tokenizer trims, white
space at the ends of a token is left out of its span.
"""

from __future__ import annotations

import numpy as np

from saphira_gpu._arrays import I64, Bools, Ids
from saphira_gpu._options import Unit
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.engines import cpu
from saphira_gpu.offset_walk import Walk, Wide
from saphira_gpu.segments import Segmenter
from saphira_gpu.spec import Spec
from saphira_gpu.vocabulary import Vocabulary


class Offsets:
    """Finds the spans of ids that one tokenizer gave."""

    def __init__(
        self, engine: cpu.Engine, spec: Spec, vocabulary: Vocabulary, segmenter: Segmenter
    ) -> None:
        self._segmenter = segmenter
        self._walk = Walk(engine, spec, segmenter)
        self._lengths, self._careful = _lengths(engine, spec)
        self._trims = spec.post.trims
        self._spaces = _spaces(vocabulary) if self._trims else np.zeros((2, 0), np.int64)

    def find(self, batch: Batch, tokens: Tokens, special: str, unit: Unit) -> tuple[I64, Wide]:
        """int64[n_ids, 2]: start and end of each id within its row, in bytes or characters. And the
        text of added tokens that may have taken white space with them, or match normalized text.

        tokens: the ids of the batch under `special`.
        """
        rows = np.repeat(np.arange(batch.n_rows), tokens.counts)
        spans, wide = self._raw(batch, tokens, special, rows)
        text = _Characters(batch, rows)
        spans = text.of_bytes(spans)
        if self._trims:
            number = np.arange(len(rows)) - tokens.offsets[:-1][rows]
            spans = self._trimmed(spans, tokens.ids, number == 0, wide)
        return spans if unit == "char" else text.to_bytes(spans), wide

    def _raw(self, batch: Batch, tokens: Tokens, special: str, rows: I64) -> tuple[I64, Wide]:
        """Byte spans, through characters where tokens cut them; and the text of wide ones."""
        ends = np.cumsum(self._lengths[tokens.ids])
        before = np.concatenate(([0], ends))[tokens.offsets]
        spans = np.empty((len(tokens.ids), 2), np.int64)
        spans[:, 1] = ends - before[:-1][rows]
        spans[:, 0] = spans[:, 1] - self._lengths[tokens.ids]
        odd = np.diff(before) != np.diff(batch.offsets)
        odd[rows[self._careful[tokens.ids]]] = True
        some = tokens.counts > 0
        if self._segmenter.may_change_text:
            for row in np.flatnonzero(some & ~odd).tolist():
                odd[row] = self._segmenter.changes(batch.row(row))
        wide: Wide = {}
        for row in np.flatnonzero(some & odd).tolist():
            first, last = tokens.offsets[row : row + 2].tolist()
            own, of_row = self._walk.spans(batch.row(row), tokens.ids[first:last].tolist(), special)
            spans[first:last] = own
            wide |= {first + i: text for i, text in of_row.items()}
        return spans, wide

    def _trimmed(self, spans: I64, ids: Ids, is_first: Bools, wide: Wide) -> I64:
        """Spans in characters without the white space at the ends of each token, as the reference
        takes it off: so many characters as the token's string has there, whatever stands there.
        A pass that knows of a prefix space leaves a single one at the start of a row."""
        start, end = spans[:, 0].copy(), spans[:, 1].copy()
        before, behind = self._spaces[:, ids]
        for i, text in wide.items():
            before[i], behind[i] = _space(text)
        for knows_prefix in self._trims:
            kept = ((start == 0) | is_first) & (before == 1) & knows_prefix
            start = np.minimum(start + before - kept, end)
            end = np.where(end >= behind, np.maximum(end - behind, start), end)
        return np.stack((start, end), axis=1)


def _lengths(engine: cpu.Engine, spec: Spec) -> tuple[I64, Bools]:
    """int64[n_ids]: bytes of text that each id stands for. bool[n_ids]: where that may not be so,
    since it is an added token that takes white space with it, or matches normalized text, or has
    another length as a token of text."""
    lengths: I64 = np.diff(engine.plan.token_offsets)
    added = lengths.copy()
    careful = np.zeros(len(lengths), np.bool_)
    for token in spec.added:
        added[token.id] = len(token.content.encode())
        careful[token.id] = token.lstrip or token.rstrip or bool(spec.normalizers)
    in_both = (lengths > 0) & (lengths != added)
    return np.where(in_both, lengths, added), careful | in_both


class _Characters:
    """The characters of a batch, for spans in its rows; a byte that is part of none counts as one.

    rows: the row of each span.
    """

    def __init__(self, batch: Batch, rows: I64) -> None:
        first = int(batch.offsets[0])
        text = batch.data[first : int(batch.offsets[-1])]
        self._ascii = not (text & 0x80).any()
        if self._ascii:
            return
        bits = cpu.classify(batch)[1].astype("<u8").view(np.uint8)
        self._starts = np.unpackbits(bits, count=len(text), bitorder="little")
        # _before[i]: characters that start before byte i
        small = len(text) < 2**31
        self._before = np.zeros(len(text) + 1, np.int32 if small else np.int64)
        np.cumsum(self._starts, out=self._before[1:])
        self._row_starts = (batch.offsets[:-1].astype(np.int64) - first)[rows]
        self._row_ends = (batch.offsets[1:].astype(np.int64) - first)[rows]

    def of_bytes(self, spans: I64) -> I64:
        """Spans of bytes → of the characters that these bytes are part of."""
        if self._ascii:
            return spans
        low, high = spans[:, 0] + self._row_starts, spans[:, 1] + self._row_starts
        chars = np.empty_like(spans)
        chars[:, 1] = self._before[high]
        in_text = np.minimum(low + 1, len(self._starts))
        chars[:, 0] = np.minimum(self._before[in_text] - 1, chars[:, 1])
        first: I64 = self._before[self._row_starts].astype(np.int64)
        return chars - first[:, None]

    def to_bytes(self, spans: I64) -> I64:
        """Spans of characters → of their bytes."""
        if self._ascii:
            return spans
        positions = np.append(np.flatnonzero(self._starts), len(self._starts))
        first: I64 = self._before[self._row_starts].astype(np.int64)
        found = positions[spans + first[:, None]]
        whole: I64 = np.minimum(found, self._row_ends[:, None]) - self._row_starts[:, None]
        return whole


def _spaces(vocabulary: Vocabulary) -> I64:
    """int64[2, n_ids]: how many characters of white space each token's string starts and ends
    with."""
    counts = np.zeros((2, len(vocabulary.strings)), np.int64)
    for number, token in enumerate(vocabulary.strings):
        if token and (token[0] in _WHITE or token[-1] in _WHITE):
            counts[:, number] = _space(token)
    return counts


def _space(token: str) -> tuple[int, int]:
    return len(token) - len(token.lstrip(_WHITE)), len(token) - len(token.rstrip(_WHITE))


# The 25 characters of White_Space, and the symbol of the byte 0x20.
_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\u0120"
_WHITE += "".join(map(chr, range(0x2000, 0x200B)))
