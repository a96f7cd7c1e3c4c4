"""Spec → Plan: the flat arrays that an engine takes. The same bytes go to C and to CUDA."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saphira_gpu._arrays import I64, U8, U32
from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.pretok.steps import Step
from saphira_gpu.spec import AddedToken, Bpe, Normalizer, Spec

# The id of a byte without a token, which is left out of its piece.
NO_ID = 0xFFFFFFFF

# Flags of an added token, as SA_ADDED_* in saphira.h.
_FLAGS = {"special": 1, "normalized": 2, "lstrip": 4, "rstrip": 8, "single_word": 16}


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Arrays of a tokenizer, C-contiguous; see `sa_plan` in saphira.h for what each means.

    scheme: name of the compiled scheme, "" where `stages` split. normalizers: as in the Spec.
    token_offsets: int64[n_ids + 1]. token_bytes: uint8. byte_ids: uint32[256], NO_ID for a byte
    that is left out. token_ends: uint8[n_ids] and byte_ids_end: uint32[256], both None where no
    suffix marks the end of a word. merges: uint32[n, 3], or None for a rank file. added_offsets:
    int64[n_added + 1]. added_bytes: uint8. added_ids: uint32[n_added]. added_flags: uint8[n_added].
    """

    scheme: str
    stages: tuple[Step, ...]
    add_prefix_space: bool
    normalizers: tuple[Normalizer, ...]
    whole_piece_first: bool
    n_ids: int
    token_offsets: I64
    token_bytes: U8
    token_ends: U8 | None
    byte_ids: U32
    byte_ids_end: U32 | None
    merges: U32 | None
    n_ranks: int
    added_offsets: I64
    added_bytes: U8
    added_ids: U32
    added_flags: U8

    def struct(self, ffi: Any, scheme: int) -> tuple[Any, list[Any]]:
        """An `sa_plan` that points into these arrays, and what must stay alive while it is used.

        scheme: the core's number of `self.scheme`, -1 where `stages` split. Where a stage is a
        regular expression, what must stay alive must do so for as long as the model.
        """
        merges = np.zeros((0, 3), np.uint32) if self.merges is None else self.merges
        plan = ffi.new("sa_plan *")
        plan.scheme = scheme
        plan.whole_piece_first = self.whole_piece_first
        plan.add_prefix_space = self.add_prefix_space
        plan.n_ids = self.n_ids
        plan.n_merges = -1 if self.merges is None else len(merges)
        plan.n_ranks = self.n_ranks
        plan.n_added = len(self.added_ids)
        fields: dict[str, tuple[str, np.ndarray[Any, Any] | None]] = {
            "token_offsets": ("int64_t[]", self.token_offsets),
            "token_bytes": ("uint8_t[]", self.token_bytes),
            "token_ends": ("uint8_t[]", self.token_ends),
            "byte_ids": ("uint32_t[]", self.byte_ids),
            "byte_ids_end": ("uint32_t[]", self.byte_ids_end),
            "merges": ("uint32_t[]", merges),
            "added_offsets": ("int64_t[]", self.added_offsets),
            "added_bytes": ("uint8_t[]", self.added_bytes),
            "added_ids": ("uint32_t[]", self.added_ids),
            "added_flags": ("uint8_t[]", self.added_flags),
        }
        alive: list[Any] = []
        for name, (ctype, array) in fields.items():
            if array is not None:
                pointer = ffi.from_buffer(ctype, array)
                setattr(plan, name, pointer)
                alive.append(pointer)
        # Both of these build on the core, which takes plans.
        if not self.scheme:
            from saphira_gpu.pretok.program import stages_struct

            stages, kept = stages_struct(self.stages)
            plan.stages, plan.n_stages = stages, len(self.stages)
            alive += [stages, *kept]  # plan.stages, read back, would keep nothing alive
        if self.normalizers:
            from saphira_gpu.normalizers import struct

            normalizer, kept = struct(self.normalizers)
            plan.normalizer = normalizer
            alive += [normalizer, *kept]
        return plan, alive


def build(spec: Spec) -> Plan:
    """The Plan of a Spec. Raises TokenizerFileError if the Spec contradicts itself."""
    bpe = spec.bpe
    n_ids = max(len(bpe.tokens), max((token.id for token in spec.added), default=-1) + 1)
    tokens = itertools.chain(
        (token or b"" for token in bpe.tokens), itertools.repeat(b"", n_ids - len(bpe.tokens))
    )
    token_offsets, token_bytes = _packed(tokens, n_ids)
    added_offsets, added_bytes = _packed((t.content.encode() for t in spec.added), len(spec.added))
    for token in spec.added:
        if token.id < 0:
            raise TokenizerFileError(
                f"{spec.name}: added token {token.content!r} has id {token.id}"
            )
    token_ends = None
    if bpe.ends:
        if len(bpe.ends) != len(bpe.tokens):
            raise TokenizerFileError(
                f"{spec.name}: {len(bpe.ends)} ends of words for {len(bpe.tokens)} tokens"
            )
        token_ends = np.zeros(n_ids, np.uint8)
        token_ends[: len(bpe.ends)] = bpe.ends
    return Plan(
        scheme=spec.pretok.scheme,
        stages=spec.pretok.stages,
        add_prefix_space=spec.pretok.add_prefix_space,
        normalizers=spec.normalizers,
        whole_piece_first=bpe.whole_piece_first,
        n_ids=n_ids,
        token_offsets=token_offsets,
        token_bytes=token_bytes,
        token_ends=token_ends,
        byte_ids=_byte_ids(bpe, spec.name, False),
        byte_ids_end=_byte_ids(bpe, spec.name, True) if bpe.ends else None,
        merges=_merges(bpe, spec.name),
        n_ranks=len(bpe.tokens) if bpe.merges is None else 0,
        added_offsets=added_offsets,
        added_bytes=added_bytes,
        added_ids=np.fromiter((t.id for t in spec.added), np.uint32, len(spec.added)),
        added_flags=np.fromiter(map(_flags, spec.added), np.uint8, len(spec.added)),
    )


def _packed(parts: Iterable[bytes], n: int) -> tuple[I64, U8]:
    """int64[n + 1] offsets into the joined bytes, and those bytes."""
    parts = list(parts)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, n), out=offsets[1:])
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


def _flags(token: AddedToken) -> int:
    return sum(bit for name, bit in _FLAGS.items() if getattr(token, name))


def _byte_ids(bpe: Bpe, name: str, end: bool) -> U32:
    """The id of every byte alone; end: at the end of a word. NO_ID for a byte that is left out."""
    ends = bpe.ends or itertools.repeat(False, len(bpe.tokens))
    ids = {
        token[0]: number
        for number, (token, at_end) in enumerate(zip(bpe.tokens, ends, strict=True))
        if token and len(token) == 1 and at_end == end
    }
    missing = [byte for byte in range(256) if byte not in ids]
    if missing and (bpe.merges is None or bpe.ends):
        raise TokenizerFileError(f"{name}: no token for byte {missing[0]:#04x}")
    return np.fromiter((ids.get(byte, NO_ID) for byte in range(256)), np.uint32, 256)


def _merges(bpe: Bpe, name: str) -> U32 | None:
    if bpe.merges is None:
        return None
    flat = np.fromiter(itertools.chain.from_iterable(bpe.merges), np.int64, 3 * len(bpe.merges))
    if flat.size and not (flat.min() >= 0 and flat.max() < len(bpe.tokens)):
        rank = int(np.flatnonzero((flat < 0) | (flat >= len(bpe.tokens)))[0]) // 3
        raise TokenizerFileError(f"{name}: merge {rank} = {bpe.merges[rank]} leaves the vocabulary")
    return flat.astype(np.uint32).reshape(-1, 3)
