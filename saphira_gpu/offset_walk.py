"""The spans of one row's ids where text and tokens differ: a normalizer changes it, a prefix comes
before it, the split drops some of it, or an added token takes white space with it.

The row goes through the stages up to the split once more (`segments`); ids then follow each other
within each piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saphira_gpu._arrays import I64
from saphira_gpu.engines import cpu
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.plan import NO_ID
from saphira_gpu.segments import Segment, Segmenter
from saphira_gpu.spec import Spec

# Of some ids, by their place among all: the text that an added token matched with the white space
# it took.
Wide = dict[int, str]


class Walk:
    """Finds the spans of the ids of one row."""

    def __init__(self, engine: cpu.Engine, spec: Spec, segmenter: Segmenter) -> None:
        self._segmenter = segmenter
        # Units of length are bytes. Where the vocabulary lacks some, and ids don't add up to their
        # piece, the reference counts the bytes of the byte alphabet's symbols, and so do we: it
        # takes each id to stand where the one before it ends, as if nothing had been left out.
        missing = engine.plan.byte_ids == NO_ID
        symbols = np.array([len(symbol.encode()) for symbol in _bytelevel.ALPHABET])
        self._units = symbols if missing.any() else np.ones(256, np.int64)
        self._known_units = np.where(missing, 0, self._units)
        total = np.concatenate(([0], np.cumsum(self._units[engine.plan.token_bytes])))
        self._lengths = np.diff(total[engine.plan.token_offsets]).tolist()
        pretok = spec.pretok
        # Else the ids of a segment add up to it, whatever its pieces are.
        self._is_split = not pretok.scheme or pretok.add_prefix_space or bool(missing.any())

    def spans(
        self, text: bytes, ids: list[int], special: str
    ) -> tuple[list[tuple[int, int]], Wide]:
        """Byte spans of a row's ids, and the added tokens among them that may take white space."""
        found: list[tuple[int, int]] = []
        wide: Wide = {}
        for segment in self._segmenter.segments(text, special):
            if segment.added is not None:
                wide[len(found)] = segment.data.decode()
                found.append((segment.start, segment.end))
                continue
            for spans, length in self._pieces(segment):
                at = 0
                while at < length:
                    end = at + self._lengths[ids[len(found)]]
                    found.append((int(spans[at, 0]), int(spans[end - 1, 1])))
                    at = end
        return found, wide

    def _pieces(self, segment: Segment) -> Iterator[tuple[I64, int]]:
        """Of each stretch that ids follow each other in: the span of each of its units, and the
        units that they add up to."""
        if not self._is_split:
            yield segment.spans, len(segment.spans)
            return
        for piece in self._segmenter.pieces(segment.data):
            raw = np.frombuffer(piece.data, np.uint8)
            spans = np.repeat(segment.spans[piece.sources], self._units[raw], axis=0)
            yield spans, int(self._known_units[raw].sum())
