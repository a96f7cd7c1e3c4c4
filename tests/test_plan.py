"""Plan: the arrays say what the Spec says, and the core refuses what it can't hold."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from oracles import gpt2_spec, small_spec

from saphira_gpu import Tokenizer, TokenizerFileError, UnsupportedError, reference
from saphira_gpu.engines import cpu
from saphira_gpu.plan import NO_ID, build
from saphira_gpu.pretok.steps import DROP, RUN, Bytemap, Classes, Length, Literal, Scheme
from saphira_gpu.spec import AddedToken, Bpe, Decoder, Normalizer, PostProcessor, Pretok, Spec

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


def test_arrays_of_ends_of_words() -> None:
    tokens = [bytes([byte]) for byte in range(256)] * 2 + [b"ab", b"ab"]
    ends = (*[False] * 256, *[True] * 256, False, True)
    bpe = Bpe(tuple(tokens), ((97, 98, 512), (97, 256 + 98, 513)), False, "</w>", ends)
    plan = build(Spec((AddedToken("<x>", 514),), Pretok("gpt2"), bpe))
    assert plan.byte_ids.tolist() == list(range(256))
    assert plan.byte_ids_end is not None and plan.token_ends is not None
    assert plan.byte_ids_end.tolist() == list(range(256, 512))
    assert plan.token_ends.tolist() == [*map(int, ends), 0]
    tokenizer = Tokenizer.from_spec(Spec((), Pretok("gpt2"), bpe))
    assert tokenizer.encode("abab ab").tolist() == [512, 513, 32, 513]
    with pytest.raises(TokenizerFileError, match="513 ends of words for 514 tokens"):
        build(Spec((), Pretok("gpt2"), dataclasses.replace(bpe, ends=ends[1:])))
    with pytest.raises(TokenizerFileError, match="no token for byte 0x00"):
        build(Spec((), Pretok("gpt2"), dataclasses.replace(bpe, ends=(True,) * 514)))


def test_bytes_left_out() -> None:
    spec = small_spec([(b"a", b"b")])
    tokens = (*spec.bpe.tokens[:65], None, *spec.bpe.tokens[66:])
    spec = dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, tokens=tokens))
    plan = build(spec)
    assert plan.byte_ids[65] == NO_ID and plan.byte_ids[66] == 66
    tokenizer = Tokenizer.from_spec(spec)
    for text in ("A", "aAb", "AAAA", "xAy" * 30, "A" * 200, "aA" * 5000 + "b"):
        assert tokenizer.encode(text).tolist() == reference.encode(spec, text)
        assert tokenizer.count(text) == len(reference.encode(spec, text))
    assert tokenizer.encode("aAb A").tolist() == [256, 32]


def test_stages_and_normalizers() -> None:
    spec = small_spec([(b" ", b"b")])
    digits = Classes("digits", (("N", RUN),))
    stages = (digits, Literal("-", DROP), Scheme("gpt2"), Bytemap(), Length(2))
    pretok = Pretok(stages=stages, add_prefix_space=True)
    spec = dataclasses.replace(spec, pretok=pretok, normalizers=(Normalizer("lowercase"),))
    plan = build(spec)
    assert (plan.scheme, plan.stages, plan.add_prefix_space) == ("", stages, True)
    struct, _ = plan.struct(cpu.ffi, -1)
    assert struct.scheme == -1 and struct.n_stages == 5 and struct.add_prefix_space == 1
    assert struct.normalizer.n_steps == 1
    tokenizer = Tokenizer.from_spec(spec)
    for text in ("", "B-B 12-3", "\xc9a", "b b  b\xe9\xe9"):
        assert tokenizer.encode(text).tolist() == reference.encode(spec, text)
    assert build(small_spec()).struct(cpu.ffi, 0)[0].normalizer == cpu.ffi.NULL


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
    same = dataclasses.replace(
        spec,
        name="other",
        eos="<x>",
        bos="<x>",
        post=PostProcessor((1,), (2,), (True,)),
        decoder=Decoder(" ", ""),
    )
    assert same.fingerprint == spec.fingerprint
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
        dataclasses.replace(spec, pretok=Pretok("gpt2", add_prefix_space=True)),
        dataclasses.replace(spec, pretok=Pretok()),
        dataclasses.replace(spec, pretok=Pretok(stages=(Scheme("gpt2"),))),
        dataclasses.replace(spec, pretok=Pretok(stages=(Scheme("gpt2"),) * 2)),
        dataclasses.replace(spec, pretok=Pretok(stages=(Length(1),))),
        dataclasses.replace(spec, pretok=Pretok(stages=(Length(2),))),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, ends=(False,) * 257)),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, ends=(True,) * 257)),
        dataclasses.replace(spec, bpe=dataclasses.replace(spec.bpe, end_of_word_suffix="</w>")),
        dataclasses.replace(spec, normalizers=(Normalizer("nfc"),)),
        dataclasses.replace(spec, normalizers=(Normalizer("nfd"),)),
    ]
    # What later fields add to a Spec leaves the others' as they were.
    assert gpt2_spec().fingerprint == (
        "6fc4113c4f52c6459d08ab716b7126aefe0b03438b0e339ca36fb9812ceba56b"
    )
    prints = {spec.fingerprint, *(one.fingerprint for one in changed)}
    assert len(prints) == len(changed) + 1
