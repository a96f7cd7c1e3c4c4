"""What each stage made of one text: to look at, and to compare with `reference.stages`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from saphira_gpu import segments
from saphira_gpu._arrays import U64, Bools
from saphira_gpu._resources import resource
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.segments import Segmenter
from saphira_gpu.spec import AddedToken, Spec


class Piece(NamedTuple):
    """A pretoken: its text, normalized (U+FFFD where it isn't UTF-8), and where it comes from in
    bytes and in characters of the text.

    Spans are half-open. A byte that is part of no character counts as one.
    """

    text: str
    byte_span: tuple[int, int]
    char_span: tuple[int, int]


class Char(NamedTuple):
    """A character, or a byte that is part of none: its bytes and the name of its tag
    (superatom)."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the text, and what the stages after `special` made of it.

    start, end: bytes of the text. added: the added token that it is; it then has ids alone.
    normalized: its bytes; what follows counts in them. chars and classes: of each character, the
    tag and the name of the class it is remapped to (none where steps split, not a scheme). pieces:
    (start, end) of what each comes from. symbols: each piece in
    the byte alphabet. tokens: of each piece, likewise. ids: of all pieces.
    """

    start: int
    end: int
    added: AddedToken | None
    normalized: bytes = b""
    chars: Sequence[Char] = ()
    classes: Sequence[str] = ()
    pieces: Sequence[tuple[int, int]] = ()
    symbols: Sequence[str] = ()
    tokens: Sequence[Sequence[str]] = ()
    ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Stages:
    """input: the text. segments: what stage `special` cut it into. ids: of the whole text."""

    input: bytes
    segments: Sequence[Segment]
    ids: Sequence[int]

    def __str__(self) -> str:
        return "\n".join(
            [f"input    {self.input!r}", *map(_shown, self.segments), f"ids      {self.ids}"]
        )


def _shown(segment: Segment) -> str:
    head = f"special  [{segment.start}, {segment.end})"
    if segment.added is not None:
        return f"{head} added token {segment.added.content!r} → {list(segment.ids)}"
    tags = " ".join(char.tag for char in segment.chars)
    return "\n".join(
        [
            f"{head} text",
            f"  normalize  {segment.normalized!r}",
            f"  classify   {tags}",
            f"  remap      {' '.join(segment.classes)}",
            f"  boundaries {' '.join(f'[{a}, {b})' for a, b in segment.pieces)}",
            f"  bytemap    {' | '.join(segment.symbols)}",
            f"  bpe        {' | '.join(' '.join(tokens) for tokens in segment.tokens)}",
            f"  vocab      {' '.join(map(str, segment.ids))}",
        ]
    )


def stages(
    engine: cpu.Engine,
    spec: Spec,
    segmenter: Segmenter,
    known: Mapping[bytes, int],
    text: bytes,
    special: str,
) -> Stages:
    """Runs the core's stages one by one. known: the id of every token of the vocabulary."""
    done: list[Segment] = []
    ids: list[int] = []
    for found in segmenter.segments(text, special):
        if found.added is not None:
            done.append(Segment(found.start, found.end, found.added, ids=[found.added.id]))
        else:
            done.append(_segment(engine, spec, segmenter, known, found))
        ids += done[-1].ids
    return Stages(text, done, ids)


def _segment(
    engine: cpu.Engine,
    spec: Spec,
    segmenter: Segmenter,
    known: Mapping[bytes, int],
    found: segments.Segment,
) -> Segment:
    data = found.data
    batch = Batch(np.frombuffer(data, np.uint8), np.array([0, len(data)], np.int64))
    tags, starts = cpu.classify(batch)
    names, row, class_names = _names(spec.pretok.scheme)
    chars = [Char(a, b, names[tags[a]]) for a, b in _spans(starts, len(data))]
    pieces = list(segmenter.pieces(data))
    per_piece = [engine.bpe(piece.data) for piece in pieces]
    if spec.bpe.whole_piece_first:
        wholes = [known.get(piece.data) for piece in pieces]
        per_piece = [
            ids if whole is None else [whole] for whole, ids in zip(wholes, per_piece, strict=True)
        ]
    ends = np.zeros(len(spec.bpe.tokens), np.bool_)
    ends[np.flatnonzero(spec.bpe.ends)] = True

    def symbols(number: int) -> str:
        text = _bytelevel.to_text(spec.bpe.tokens[number] or b"")
        return text + spec.bpe.end_of_word_suffix if ends[number] else text

    return Segment(
        start=found.start,
        end=found.end,
        added=None,
        normalized=data,
        chars=chars,
        classes=[class_names[row[tags[char.start]]] for char in chars] if row else [],
        pieces=[(piece.start, piece.end) for piece in pieces],
        symbols=[_bytelevel.to_text(piece.data) for piece in pieces],
        tokens=[[symbols(number) for number in ids] for ids in per_piece],
        ids=[number for ids in per_piece for number in ids],
    )


def pieces(segmenter: Segmenter, text: bytes, special: str) -> list[Piece]:
    """The pretokens of a text; an added token in it is a piece of its own."""
    batch = Batch(np.frombuffer(text, np.uint8), np.array([0, len(text)], np.int64))
    starts = _bits(cpu.classify(batch)[1], len(text)) if text else np.zeros(0, np.bool_)
    before = np.concatenate(([0], np.cumsum(starts)))
    found: list[tuple[bytes, int, int]] = []
    for segment in segmenter.segments(text, special):
        if segment.added is not None:
            found.append((segment.data, segment.start, segment.end))
            continue
        for piece in segmenter.pieces(segment.data):
            own = segment.spans[piece.start : piece.end]
            found.append((piece.data, int(own[0, 0]), int(own[-1, 1])))
    return [
        Piece(data.decode("utf-8", "replace"), (a, b), (int(before[a]), int(before[b])))
        for data, a, b in found
    ]


def _bits(bitmap: U64, n: int) -> Bools:
    """bool[n] of a bitmap in little-endian 64-bit words."""
    raw = bitmap.astype("<u8").view(np.uint8)
    return np.unpackbits(raw, count=n, bitorder="little").view(np.bool_)


def _spans(bitmap: U64, n: int) -> list[tuple[int, int]]:
    """(start, end) of the stretches that start at the set bits and cover n bytes."""
    starts = np.flatnonzero(_bits(bitmap, n)).tolist()
    return list(zip(starts, [*starts[1:], n], strict=True)) if starts else []


@cache
def _names(scheme: str) -> tuple[list[str], list[int], list[str]]:
    """(names of the tags, class of each tag, names of the classes) of a scheme; no classes where
    steps split instead (scheme is "")."""
    path = resource("tables/generated/schemes.json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if not scheme:
        return data["superatoms"], [], []
    remap = next(entry["remap"] for entry in data["schemes"] if entry["name"] == scheme)
    return data["superatoms"], data["remap"][remap], list(data["classes"])
