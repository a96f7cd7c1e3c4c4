"""Plan: the arrays say what the Spec says, and the core refuses what it can't hold."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from oracles import gpt2_spec, small_spec

from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError
from saphira_gpu.engines import cpu
from saphira_gpu.plan import build
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")


def test_arrays_of_a_rank_file() -> None:
    spec = gpt2_spec()
    plan = build(spec)
    assert plan.scheme == "gpt2" and plan.whole_piece_first and plan.merges is None
    assert plan.n_ids == 50257 and plan.n_ranks == 50256
    assert plan.token_offsets.shape == (50258,) and plan.token_offsets.dtype == np.int64
    raw, ends = plan.token_bytes.tobytes(), plan.token_offsets.tolist()
    tokens = [raw[a:b] for a, b in itertools.pairwise(ends)]
    assert tokens == [*spec.bpe.tokens, b""]  # the added token is a hole here
    assert [spec.bpe.tokens[i] for i in plan.byte_ids] == [bytes([b]) for b in range(256)]
    assert plan.added_bytes.tobytes() == b"<|endoftext|>"
    assert plan.added_offsets.tolist() == [0, 13] and plan.added_ids.tolist() == [50256]


def test_arrays_of_merges() -> None:
    plan = build(small_spec([(b"a", b"b"), (b"ab", b"c")]))
    assert plan.merges is not None and plan.merges.dtype == np.uint32
    assert plan.merges.tolist() == [[97, 98, 256], [256, 99, 257]]
    assert plan.n_ranks == 0 and not plan.whole_piece_first
    assert plan.merges.flags.c_contiguous
    assert build(small_spec()).merges.shape == (0, 3)  # type: ignore[union-attr]


def test_added_tokens() -> None:
    contents = ["<a>", "", "日本", "<a>b"]
    spec = small_spec()
    for flag in range(32):
        flags = {name: bool(flag >> i & 1) for i, name in enumerate(FLAGS)}
        added = tuple(AddedToken(c, 300 + i, **flags) for i, c in enumerate(contents))
        plan = build(dataclasses.replace(spec, added=added))
        assert plan.added_flags.tolist() == [flag] * 4
        assert plan.added_ids.tolist() == [300, 301, 302, 303] and plan.n_ids == 304
        ends = plan.added_offsets.tolist()
        raw = plan.added_bytes.tobytes()
        found = [raw[a:b].decode() for a, b in itertools.pairwise(ends)]
        assert found == contents


def test_flags_are_those_of_the_header() -> None:
    for i, name in enumerate(FLAGS):
        assert getattr(cpu.lib, f"SA_ADDED_{name.upper()}") == 1 << i


def test_the_struct_points_into_the_arrays() -> None:
    plan = build(small_spec([(b"a", b"b")], [("<x>", "sn")]))
    struct, alive = plan.struct(cpu.ffi, 0)
    assert struct.n_merges == 1 and struct.n_added == 1 and struct.n_ids == plan.n_ids
    for name in ("token_offsets", "token_bytes", "byte_ids", "merges", "added_flags"):
        address = int(cpu.ffi.cast("uintptr_t", getattr(struct, name)))
        assert address == getattr(plan, name).ctypes.data
    assert len(alive) == 8
    assert build(gpt2_spec()).struct(cpu.ffi, 0)[0].n_merges == -1


def test_specs_that_contradict_themselves() -> None:
    spec = small_spec([(b"a", b"b")])
    tokens = spec.bpe.tokens
    cases = [
        (Bpe(tokens[1:], None), "no token for byte 0x00"),
        (Bpe((*tokens[:65], None, *tokens[66:]), None), "no token for byte 0x41"),
        (Bpe((), None), "no token for byte 0x00"),
        (Bpe(tokens, ((97, 98, 256), (0, 999, 1))), r"merge 1 = \(0, 999, 1\) leaves"),
        (Bpe(tokens, ((97, 98, -1),)), r"merge 0 = \(97, 98, -1\) leaves"),
        (Bpe(tokens, ((97, 2**40, 256),)), "merge 0 .* leaves the vocabulary"),
    ]
    for bpe, message in cases:
        with pytest.raises(TokenizerFileError, match=message):
            build(Spec((), Pretok("gpt2"), bpe, name="t"))
    with pytest.raises(TokenizerFileError, match="added token '<x>' has id -1"):
        build(dataclasses.replace(spec, added=(AddedToken("<x>", -1),)))


def test_the_core_refuses_by_name() -> None:
    spec = small_spec([(b"a", b"b")])
    with pytest.raises(UnsupportedError, match=r"scheme 'martian' is not supported.*gpt2"):
        Tokenizer.from_spec(dataclasses.replace(spec, pretok=Pretok("martian")))
    wrong = Bpe(spec.bpe.tokens, ((97, 98, 99),))
    with pytest.raises(UnsupportedError, match=r"core can't take this tokenizer: .+"):
        Tokenizer.from_spec(dataclasses.replace(spec, bpe=wrong))
    far = (AddedToken("<x>", (1 << 22) - 1),)
    with pytest.raises(UnsupportedError, match=r"core can't take this tokenizer: .+"):
        Tokenizer.from_spec(dataclasses.replace(spec, added=far))


def test_fingerprint_covers_what_decides_ids() -> None:
    spec = small_spec([(b"a", b"b")], [("<x>", "s")])
    assert dataclasses.replace(spec, name="other", eos="<x>").fingerprint == spec.fingerprint
    added = spec.added[0]
    changed = [
        dataclasses.replace(spec, added=()),
        dataclasses.replace(spec, added=(dataclasses.replace(added, lstrip=True),)),
        dataclasses.replace(spec, added=(dataclasses.replace(added, id=added.id + 1),)),
        dataclasses.replace(spec, added=(dataclasses.replace(added, content="<y>"),)),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, whole_piece_first=True)),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, merges=None)),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, merges=())),
        dataclasses.replace(spec, pretok=Pretok("other")),
    ]
    prints = {spec.fingerprint, *(one.fingerprint for one in changed)}
    assert len(prints) == len(changed) + 1
