"""Where each id comes from: its span in the row, as Hugging Face gives `offsets`.

The bytes of a row's ids add up to the row, so spans follow from the lengths of tokens. A row takes
a walk of its own where they don't: an added token that takes white space with it.

A span covers whole characters: a token that cuts one has all of it. If the tokenizer trims, white
space at the ends of a token is left out of its span.
"""

from __future__ import annotations

import numpy as np

from saphira_gpu._arrays import I64, Bools, Ids
from saphira_gpu._options import Unit
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.engines import cpu
from saphira_gpu.spec import Spec
from saphira_gpu.vocabulary import Vocabulary


class Offsets:
    """Finds the spans of ids that one tokenizer gave."""

    def __init__(self, engine: cpu.Engine, spec: Spec, vocabulary: Vocabulary) -> None:
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
        self._trims = spec.post.trims
        self._spaces = _spaces(vocabulary) if self._trims else np.zeros((2, 0), np.int64)

    def find(self, batch: Batch, tokens: Tokens, special: str, unit: Unit) -> I64:
        """int64[n_ids, 2]: start and end of each id within its row, in bytes or characters.

        tokens: the ids of the batch under `special`.
        """
        rows = np.repeat(np.arange(batch.n_rows), tokens.counts)
        spans = self._raw(batch, tokens, special, rows)
        text = _Characters(batch, rows)
        spans = text.of_bytes(spans)
        if self._trims:
            number = np.arange(len(rows)) - tokens.offsets[:-1][rows]
            spans = self._trimmed(spans, tokens.ids, number == 0)
        return spans if unit == "char" else text.to_bytes(spans)

    def _trimmed(self, spans: I64, ids: Ids, is_first: Bools) -> I64:
        """Spans in characters without the white space at the ends of each token, as the reference
        takes it off: so many characters as the token's string has there, whatever stands there.
        A pass that knows of a prefix space leaves one at the start of a row."""
        start, end = spans[:, 0].copy(), spans[:, 1].copy()
        before, behind = self._spaces[:, ids]
        for knows_prefix in self._trims:
            kept = ((start == 0) | is_first) & (before > 0) & knows_prefix
            start = np.minimum(start + before - kept, end)
            end = np.where(end >= behind, np.maximum(end - behind, start), end)
        return np.stack((start, end), axis=1)

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
        self._before = np.zeros(len(text) + 1, np.int64)
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
        chars -= self._before[self._row_starts][:, None]
        return chars

    def to_bytes(self, spans: I64) -> I64:
        """Spans of characters → of their bytes."""
        if self._ascii:
            return spans
        positions = np.append(np.flatnonzero(self._starts), len(self._starts))
        found = positions[spans + self._before[self._row_starts][:, None]]
        whole: I64 = np.minimum(found, self._row_ends[:, None]) - self._row_starts[:, None]
        return whole


def _spaces(vocabulary: Vocabulary) -> I64:
    """int64[2, n_ids]: how many characters of white space each token's string starts and ends
    with."""
    counts = np.zeros((2, len(vocabulary.strings)), np.int64)
    for number, token in enumerate(vocabulary.strings):
        if token and (token[0] in _WHITE or token[-1] in _WHITE):
            counts[0, number] = len(token) - len(token.lstrip(_WHITE))
            counts[1, number] = len(token) - len(token.rstrip(_WHITE))
    return counts


# The 25 characters of White_Space, and the symbol of the byte 0x20.
_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\u0120"
_WHITE += "".join(map(chr, range(0x2000, 0x200B)))
