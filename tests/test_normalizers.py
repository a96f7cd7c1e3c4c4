"""Normalizers around the core: from tokenizer.json, in a Spec, and with added tokens."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import tokenizers
from oracles import FUZZ_SIZE, byte_positions, hf_of, random_texts, small_spec
from tokenizers import Regex, normalizers

from saphira_gpu import Tokenizer, reference
from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.normalizers import Program
from saphira_gpu.spec import NORMALIZERS, Normalizer, Spec

NFC, LOWER = Normalizer("nfc"), Normalizer("lowercase")

# ---- from tokenizer.json ----

READ = [
    (normalizers.NFC(), [NFC]),
    (normalizers.NFD(), [Normalizer("nfd")]),
    (normalizers.NFKC(), [Normalizer("nfkc")]),
    (normalizers.NFKD(), [Normalizer("nfkd")]),
    (normalizers.Lowercase(), [LOWER]),
    (normalizers.Strip(), [Normalizer("strip_left"), Normalizer("strip_right")]),
    (normalizers.Strip(left=False), [Normalizer("strip_right")]),
    (normalizers.Strip(left=False, right=False), []),
    (normalizers.Prepend("\u2581"), [Normalizer("prepend", content="\u2581")]),
    (normalizers.Replace(" ", "\u2581"), [Normalizer("replace", " ", "\u2581")]),
    (normalizers.Replace("$", ""), [Normalizer("replace", "$", "")]),
    (normalizers.Replace(Regex(r"\s+"), " "), [Normalizer("replace_spaces", content=" ")]),
    (normalizers.Sequence([]), []),
    (
        normalizers.Sequence(
            [normalizers.NFC(), normalizers.Sequence([normalizers.Lowercase()]), normalizers.NFC()]
        ),
        [NFC, LOWER, NFC],
    ),
]


@pytest.mark.parametrize(("hf", "steps"), READ, ids=lambda value: type(value).__name__)
def test_read_from_json(hf: Any, steps: list[Normalizer]) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.normalizer = hf
    stored = json.loads(tokenizer.to_str())["normalizer"]
    program = Program.from_json(stored)
    assert program.steps == tuple(steps)
    assert Program.from_json(json.dumps(stored)).steps == tuple(steps)
    for text in ["", " A e\u0301\u00e9\ufb01 $ \u2581\u3000B\n\n "]:
        assert program.normalize_str(text) == hf.normalize_str(text)


def test_null_is_no_steps() -> None:
    assert Program.from_json(None).steps == ()
    assert Program(()).normalize_str("\u212b e\u0301") == "\u212b e\u0301"
    assert Program(()).quick("\u212b")


UNSUPPORTED = [
    ({"type": "BertNormalizer", "lowercase": True}, "normalizer.type"),
    ({"type": "StripAccents"}, "StripAccents"),
    ({"type": "Precompiled", "precompiled_charsmap": ""}, "Precompiled"),
    ({"type": "NFC", "version": 16}, "normalizer.version"),
    ({"type": "Prepend", "prepend": ""}, "normalizer.prepend"),
    ({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}, "normalizer.pattern.Regex"),
    ({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "$0"}, "normalizer.content"),
    ({"type": "Replace", "pattern": {"String": ""}, "content": "x"}, "normalizer.pattern.String"),
    ({"type": "Replace", "pattern": {"Glob": "*"}, "content": "x"}, "normalizer.pattern"),
    ({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]}, r"normalizers\[1\]"),
]


@pytest.mark.parametrize(("value", "named"), UNSUPPORTED, ids=str)
def test_refused_by_name(value: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedError, match=named):
        Program.from_json(value)


MALFORMED = [
    ({}, "normalizer.type is missing"),
    ({"type": 3}, "normalizer.type is 3"),
    ({"type": "Strip", "strip_left": True}, "normalizer.strip_right is missing"),
    ({"type": "Strip", "strip_left": 1, "strip_right": True}, "strip_left is 1"),
    ({"type": "Prepend"}, "normalizer.prepend is missing"),
    ({"type": "Prepend", "prepend": "\ud800"}, "lone surrogate"),
    ({"type": "Replace", "pattern": " ", "content": "x"}, "normalizer.pattern is"),
    ({"type": "Replace", "pattern": {}, "content": "x"}, "normalizer.pattern is not one"),
    ({"type": "Replace", "pattern": {"String": " "}}, "normalizer.content is missing"),
    ({"type": "Sequence", "normalizers": {}}, "normalizer.normalizers is"),
    ({"type": "Sequence", "normalizers": ["NFC"]}, r"normalizer.normalizers\[0\] is"),
]


@pytest.mark.parametrize(("value", "named"), MALFORMED, ids=str)
def test_malformed(value: dict[str, Any], named: str) -> None:
    with pytest.raises(TokenizerFileError, match=named):
        Program.from_json(value)


def test_deep_nesting_is_refused() -> None:
    value: dict[str, Any] = {"type": "NFC"}
    for _ in range(15):
        value = {"type": "Sequence", "normalizers": [value]}
    assert Program.from_json(value).steps == (NFC,)
    for _ in range(5):
        value = {"type": "Sequence", "normalizers": [value]}
    with pytest.raises(UnsupportedError, match="within more than 16"):
        Program.from_json(value)
    with pytest.raises(TokenizerFileError, match="nested too deeply"):
        Program.from_json("[" * 200_000)
    with pytest.raises(TokenizerFileError, match="not JSON"):
        Program.from_json('{"type": "NFC"')


# ---- in a Spec ----


def test_steps_say_what_they_need() -> None:
    for kind in NORMALIZERS:
        content = "x" if kind == "prepend" else ""
        step = Normalizer(kind, "a" if kind == "replace" else "", content)
        assert Program([step]).steps == (step,)
    for arguments in [("nfx",), ("nfc", "a"), ("nfc", "", "a"), ("replace", ""), ("prepend",)]:
        with pytest.raises(ValueError, match=repr(arguments[0])):
            Normalizer(*arguments)
    with pytest.raises(ValueError, match="strip_left"):
        Normalizer("strip_left", content="a")


def test_fingerprint() -> None:
    """Steps, their order and their strings count; a Spec without any has the one it always had."""
    plain = small_spec()
    made = [
        (NFC,),
        (NFC, LOWER),
        (LOWER, NFC),
        (Normalizer("replace", "a", "b"),),
        (Normalizer("replace", "ab", ""),),
        (),
    ]
    prints = [replace(plain, normalizers=steps).fingerprint for steps in made]
    assert len(set(prints)) == len(made)
    assert prints[-1] == plain.fingerprint
    # The digest of small_spec() before Specs had normalizers.
    before = "06df58a12ce063277db8beafcc318ebb5f81954693a232b5b36580e7633aed08"
    assert plain.fingerprint == before


def test_copies_and_threads() -> None:
    program = Program([NFC, LOWER, Normalizer("replace", "é", "e")])
    for other in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program)):
        assert other.steps == program.steps
        assert other.normalize("E\u0301") == b"e"
    texts = random_texts("threads", "aE\u0301 é\u212b", 400, 400)
    alone = [program.normalize(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(program.normalize, texts)) == alone


def test_lone_surrogates_stay() -> None:
    assert Program([NFC]).normalize_str("e\u0301\ud800e\u0301") == "\u00e9\ud800\u00e9"


# ---- with added tokens ----

ADDED = [("<E\u0301>", "n"), ("<|\u212b|>", "sn"), ("\u212b", "s"), ("Ab", "nw"), ("  ", "nl")]
PIPELINES = [
    ([NFC], normalizers.NFC()),
    ([Normalizer("nfd")], normalizers.NFD()),
    ([NFC, LOWER], normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])),
    (
        [NFC, Normalizer("replace_spaces", content=" "), LOWER],
        normalizers.Sequence(
            [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
        ),
    ),
    ([Normalizer("prepend", content="_")], normalizers.Prepend("_")),
    ([Normalizer("strip_right")], normalizers.Strip(left=False)),
]


def with_steps(spec: Spec, steps: list[Normalizer], hf: Any) -> tuple[Spec, tokenizers.Tokenizer]:
    """The Spec and HF's tokenizer of it; HF wants the normalizer before it takes added tokens."""
    tokenizer = hf_of(replace(spec, added=()))
    tokenizer.normalizer = hf
    for token in spec.added:
        flags = {name: getattr(token, name) for name in ("lstrip", "rstrip", "single_word")}
        added = tokenizers.AddedToken(
            token.content, normalized=token.normalized, special=token.special, **flags
        )
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([added])
        assert tokenizer.token_to_id(token.content) == token.id
    return replace(spec, normalizers=tuple(steps)), tokenizer


@pytest.mark.parametrize(("steps", "hf"), PIPELINES, ids=range(len(PIPELINES)))
def test_reference_with_added_tokens(steps: list[Normalizer], hf: Any) -> None:
    """Raw tokens cut the text, then each segment is normalized, then the others match in it."""
    # A token that is normalized to nothing matches nothing; HF panics in its search for it.
    added = [(content, flags) for content, flags in ADDED if hf.normalize_str(content)]
    spec, tokenizer = with_steps(small_spec(added=added), steps, hf)
    parts = ["<E\u0301>", "<\u00c9>", "<e\u0301>", "<|\u212b|>", "<|\u00c5|>", "\u212b", "A\u030a"]
    parts += ["Ab", "ab", "  ", " ", "\n", "e", "E", "\u0301", "<", "|", ">", "x", "<|\u00e5|>"]
    for text in random_texts("added", parts, 4 * FUZZ_SIZE, 10):
        for mode, skipped in (("parse", False), ("hf_plain", True)):
            tokenizer.encode_special_tokens = skipped
            assert reference.encode(spec, text, mode) == tokenizer.encode(text).ids, ascii(text)


def test_a_token_normalized_to_nothing_matches_nothing() -> None:
    spec = replace(small_spec(added=ADDED), normalizers=(Normalizer("strip_right"),))
    assert reference.encode(spec, "a  b", "parse") == reference.encode(spec, "a  b", "hf_plain")
    assert spec.added[4].id not in reference.encode(spec, "a  b", "parse")


def test_white_space_made_into_letters_goes_on_matching() -> None:
    """special="plain" looks at a token's own content, not at what the normalizer makes of it."""
    steps = (Normalizer("replace", " ", "xy"),)
    spec = replace(small_spec(added=[("  ", "n"), ("<|x|>", "n")]), normalizers=steps)
    for text in ("a  <|x|>", "xyxy"):
        found = reference.encode(spec, text, "plain")
        assert spec.added[0].id in found and spec.added[1].id not in found
        assert Tokenizer.from_spec(spec).encode(text).tolist() == found


def test_reference_positions_are_those_of_the_source() -> None:
    spec, _ = with_steps(small_spec(added=ADDED), [NFC, LOWER], PIPELINES[2][1])
    text = "e\u0301<E\u0301>x"
    at = byte_positions(text)
    made = reference.stages(spec, text, "parse")
    assert [(s.start, s.end) for s in made] == [(0, 1), (at[2], at[6]), (at[6], at[7])]
    assert [s.normalized for s in made] == ["\u00e9".encode(), b"", b"x"]
    assert made[1].added == spec.added[0]
