"""One row through the stages up to the split, each with its alignment: special, normalize, pretok.

This is the slow way, a row at a time, for what must know where things come from: offsets, and the
stages that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from saphira_gpu._arrays import I64
from saphira_gpu._lazy import cached_property
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.normalizers import Program as Normalizers
from saphira_gpu.pretok.program import Program
from saphira_gpu.pretok.steps import Bytemap, Prefix, Replace, Scheme
from saphira_gpu.spec import AddedToken, Spec


class Segment(NamedTuple):
    """An added token, or (added is None) the text between two of them.

    start, end: bytes of the row. data: the normalized bytes. spans: int64[len(data), 2], of each
    byte the (start, end) in the row of the character behind it.
    """

    start: int
    end: int
    added: AddedToken | None
    data: bytes
    spans: I64


class Piece(NamedTuple):
    """A piece of a segment: the bytes of its tokens, where they come from in the segment's data,
    and for each of them the byte of the data that it stands for."""

    data: bytes
    start: int
    end: int
    sources: I64


class Segmenter:
    """Cuts rows into segments, and these into pieces, as one tokenizer does."""

    def __init__(self, engine: cpu.Engine, spec: Spec) -> None:
        self._engine = engine
        self._spec = spec
        self._normalizers = Normalizers(spec.normalizers) if spec.normalizers else None
        kinds = {type(step) for step in spec.pretok.stages}
        self._adds = spec.pretok.add_prefix_space or not kinds.isdisjoint({Prefix, Replace})
        self._maps = Bytemap in kinds

    @property
    def may_change_text(self) -> bool:
        """Whether the text of tokens may differ from that of a row and be as long."""
        return self._adds or self._normalizers is not None

    def changes(self, text: bytes) -> bool:
        """Whether it may for a row without added tokens."""
        return self._adds or (self._normalizers is not None and not self._normalizers.quick(text))

    def segments(self, text: bytes, special: str) -> Iterator[Segment]:
        """The segments of a row in order; none of them is empty, added tokens apart."""
        whole = np.repeat(np.arange(len(text)), 2).reshape(-1, 2) + np.array([0, 1])
        if self._normalizers is None:
            yield from self._cut(text, whole, special, cpu.lib.SA_PASS_BOTH)
            return
        for segment in self._cut(text, whole, special, cpu.lib.SA_PASS_RAW):
            if segment.added is not None:
                yield segment
                continue
            made, spans = self._normalizers.align(segment.data)
            spans += segment.start
            yield from self._cut(made, spans, special, cpu.lib.SA_PASS_NORMALIZED)

    def _cut(self, text: bytes, spans: I64, special: str, search: int) -> Iterator[Segment]:
        """The added tokens of a text and what lies between them. spans: as of a segment."""

        def segment(start: int, end: int, added: AddedToken | None) -> Segment:
            own = spans[start:end]
            first, last = (own[0, 0], own[-1, 1]) if len(own) else (0, 0)
            return Segment(int(first), int(last), added, text[start:end], own)

        done = 0
        for start, end, index in self._engine.find_special(special, text, search):
            if done < start:
                yield segment(done, start, None)
            yield segment(start, end, self._spec.added[index])
            done = end
        if done < len(text):
            yield segment(done, len(text), None)

    def pieces(self, data: bytes) -> Iterator[Piece]:
        """The pieces of a segment's data."""
        if self._program is None:
            for start, end in self._by_scheme(data):
                yield Piece(data[start:end], start, end, np.arange(start, end))
            return
        made, rows = self._program.pieces(data)
        done = symbols = 0  # in what was made, before a piece: bytes, symbols of the byte alphabet
        for first, last, start, end in rows:
            piece = made[first:last]
            if self._maps:
                symbols += len(made[done:first].decode())
                done = first
                piece = _bytelevel.to_bytes(piece.decode())
            if self._maps and not self._adds:  # a symbol is a byte: exact where characters are cut
                sources = np.arange(symbols, symbols + len(piece))
            else:  # what was put before a piece stands for its first character
                before = len(piece) - (end - start)
                sources = np.clip(np.arange(len(piece)) - before, 0, end - start - 1) + start
            yield Piece(piece, start, end, sources)

    def _by_scheme(self, data: bytes) -> list[tuple[int, int]]:
        batch = Batch(np.frombuffer(data, np.uint8), np.array([0, len(data)], np.int64))
        bits = cpu.boundaries(self._spec.pretok.scheme, batch).astype("<u8").view(np.uint8)
        starts = np.flatnonzero(np.unpackbits(bits, count=len(data), bitorder="little"))
        return list(pairwise([*starts.tolist(), len(data)]))

    @cached_property
    def _program(self) -> Program | None:
        """The program of steps that split; None: a scheme alone does."""
        pretok = self._spec.pretok
        steps = (Scheme(pretok.scheme),) if pretok.scheme else pretok.stages
        if pretok.add_prefix_space:
            return Program((Prefix(" "), *steps))
        return None if pretok.scheme else Program(steps)
