"""The spans of one row's ids where text and tokens differ: a normalizer changes it, a prefix comes
before it, the split drops some of it, or an added token takes white space with it.

The row goes through the stages up to the split once more, each with its alignment; ids then follow
each other within each piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from saphira_gpu._arrays import I64
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.normalizers import Program as Normalizers
from saphira_gpu.plan import NO_ID
from saphira_gpu.pretok.program import Program
from saphira_gpu.pretok.steps import Bytemap, Prefix, Replace
from saphira_gpu.spec import Spec

# Of some ids, by their place among all: the text that an added token matched with the white space
# it took.
Wide = dict[int, str]


class _Part(NamedTuple):
    """An added token (its text), or a piece of text (added is None) that ids follow each other in.

    spans: of each unit of length, the (start, end) in the row of the character behind it.
    length: units that the ids add up to.
    """

    spans: I64
    length: int
    added: str | None


class Walk:
    """Finds the spans of the ids of one row."""

    def __init__(self, engine: cpu.Engine, spec: Spec) -> None:
        self._engine = engine
        self._spec = spec
        self._normalizers = Normalizers(spec.normalizers) if spec.normalizers else None
        # Units of length are bytes. Where the vocabulary lacks some, and ids don't add up to their
        # piece, the reference counts the bytes of the byte alphabet's symbols, and so do we: it
        # takes each id to stand where the one before it ends, as if nothing had been left out.
        missing = engine.plan.byte_ids == NO_ID
        symbols = np.array([len(symbol.encode()) for symbol in _bytelevel.ALPHABET])
        self._units = symbols if missing.any() else np.ones(256, np.int64)
        self._known_units = np.where(missing, 0, self._units)
        total = np.concatenate(([0], np.cumsum(self._units[engine.plan.token_bytes])))
        self._lengths = np.diff(total[engine.plan.token_offsets]).tolist()
        self._is_split = bool(spec.pretok.stages) or bool(missing.any())
        kinds = {type(step) for step in spec.pretok.stages}
        self._adds = spec.pretok.add_prefix_space or not kinds.isdisjoint({Prefix, Replace})
        self._maps = Bytemap in kinds

    @property
    def may_change_text(self) -> bool:
        """Whether the ids of a row may add up to it by chance."""
        return self._adds or self._normalizers is not None

    def changes(self, text: bytes) -> bool:
        """Whether they may for this row, which has no added token among its ids."""
        return self._adds or (self._normalizers is not None and not self._normalizers.quick(text))

    def spans(
        self, text: bytes, ids: list[int], special: str
    ) -> tuple[list[tuple[int, int]], Wide]:
        """Byte spans of a row's ids, and the added tokens among them that may take white space."""
        found: list[tuple[int, int]] = []
        wide: Wide = {}
        for part in self._parts(text, special):
            if part.added is not None:
                wide[len(found)] = part.added
                found.append((int(part.spans[0, 0]), int(part.spans[-1, 1])))
                continue
            at = 0
            while at < part.length:
                end = at + self._lengths[ids[len(found)]]
                found.append((int(part.spans[at, 0]), int(part.spans[end - 1, 1])))
                at = end
        return found, wide

    def _parts(self, text: bytes, special: str) -> Iterator[_Part]:
        """Added tokens and pieces of a row in order."""
        whole = np.repeat(np.arange(len(text)), 2).reshape(-1, 2) + np.array([0, 1])
        if self._normalizers is None:
            yield from self._cut(text, whole, special, cpu.lib.SA_PASS_BOTH)
            return
        for start, end, is_text in self._added(text, special, cpu.lib.SA_PASS_RAW):
            if not is_text:
                yield _Part(whole[start:end], 0, text[start:end].decode())
                continue
            made, spans = self._normalizers.align(text[start:end])
            yield from self._cut(made, spans + start, special, cpu.lib.SA_PASS_NORMALIZED)

    def _cut(self, text: bytes, spans: I64, special: str, search: int) -> Iterator[_Part]:
        """Added tokens and pieces of text. spans: as of a part, for each byte of it."""
        for start, end, is_text in self._added(text, special, search):
            if is_text:
                yield from self._pieces(text[start:end], spans[start:end])
            else:
                yield _Part(spans[start:end], 0, text[start:end].decode())

    def _added(self, text: bytes, special: str, search: int) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether it is text and no added token) of all that a text consists of."""
        done = 0
        for start, end, _ in self._engine.find_special(special, text, search):
            if done < start:
                yield done, start, True
            yield start, end, False
            done = end
        if done < len(text):
            yield done, len(text), True

    def _pieces(self, text: bytes, spans: I64) -> Iterator[_Part]:
        """The pieces of a text; a text that is not split in a way that matters is one."""
        if self._spec.pretok.add_prefix_space and not text.startswith(b" "):
            text = b" " + text
            spans = np.concatenate((spans[:1], spans))
        if not self._is_split:
            yield _Part(spans, len(spans), None)
            return
        for piece, sources in self._split(text):
            raw = np.frombuffer(piece, np.uint8)
            each = np.repeat(spans[sources], self._units[raw], axis=0)
            yield _Part(each, int(self._known_units[raw].sum()), None)

    def _split(self, text: bytes) -> Iterator[tuple[bytes, I64]]:
        """Each piece, and for each byte of it the one of the text that it comes from."""
        if self._program is None:
            batch = Batch(np.frombuffer(text, np.uint8), np.array([0, len(text)], np.int64))
            bits = cpu.boundaries(self._spec.pretok.scheme, batch).astype("<u8").view(np.uint8)
            flags = np.unpackbits(bits, count=len(text), bitorder="little")
            for start, end in pairwise([*np.flatnonzero(flags).tolist(), len(text)]):
                yield text[start:end], np.arange(start, end)
            return
        made, rows = self._program.pieces(text)
        symbols = 0  # of the byte alphabet, before the piece
        done = 0
        for first, last, start, end in rows:
            piece = made[first:last]
            if self._maps:
                symbols += len(made[done:first].decode())
                piece = _bytelevel.to_bytes(piece.decode())
                done, start, end = first, symbols, symbols + len(piece)
            # What was put before a piece stands for its first character.
            before = len(piece) - (end - start)
            yield piece, np.maximum(np.arange(len(piece)) - before, 0) + start

    @cached_property
    def _program(self) -> Program | None:
        stages = self._spec.pretok.stages
        return Program(stages) if stages else None
