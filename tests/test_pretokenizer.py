"""PreTokenizer and classify: configurations, columns, threads, offsets, and bytes that are no
text."""

from __future__ import annotations

import ctypes
import json
import mmap
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
from pretokenizers import (
    BERT,
    CONFIGS,
    SCRIPTS,
    WHITESPACE,
    WHITESPACE_SPLIT,
    Config,
    arrow_spans,
    byte_level,
    compare,
    dense_texts,
    digits,
    metaspace,
    needs_oniguruma,
    punctuation,
    scheme_config,
    scheme_configs,
    sequence,
    split,
)

import saphira_gpu
from saphira_gpu import PreTokenizer, classify, reference, reference_pretok
from saphira_gpu.batch import Batch
from saphira_gpu.errors import InputError, TokenizerFileError, UnsupportedError
from saphira_gpu.pretok.schemes import table
from saphira_gpu.pretok.steps import DROP, Classes, Regex, Scheme, spans_only

# ---- literal cases: they hold without the case files and without HF ----

CASES: list[tuple[Config, str, str]] = [
    (WHITESPACE, "don't!! a²", "don ' t !! a ²"),
    (WHITESPACE_SPLIT, " a\u3000b\u200bc\x1cd\n", "a b\u200bc\x1cd"),
    (BERT, "a_b,c  ¿d+", "a _ b , c ¿ d +"),
    (punctuation("Removed"), "--a--b--", "a b"),
    (punctuation("Isolated"), "--a--b--", "- - a - - b - -"),
    (punctuation("Contiguous"), "--a--b--", "-- a -- b --"),
    (punctuation("MergedWithPrevious"), "--a--b--", "- - a- - b- -"),
    (punctuation("MergedWithNext"), "--a--b--", "- -a - -b - -"),
    (split("-", "Removed", True, "String"), "a---b", "- - -"),
    (split("-", "MergedWithPrevious", True, "String"), "--a--b", "- -a - -b"),
    (split("-", "MergedWithNext", True, "String"), "--a--b", "- - a- - b"),
    (split("aa", "Isolated", False, "String"), "aaaaa", "aa aa a"),
    (digits(True), "a12½b", "a 1 2 ½ b"),
    (digits(False), "a12½b", "a 12½ b"),
    (byte_level(), "I'll go", "I 'll Ġgo"),
    (byte_level(True), "a\nb", "Ġa Ċ b"),
    (byte_level(True), "'s", "Ġ' s"),
    (byte_level(True), "\nx", "Ġ Ċ x"),
    (byte_level(False, False), "a b", "aĠb"),
    (sequence(digits(True), byte_level(True)), "a  12", "Ġa ĠĠ Ġ1 Ġ2"),
    (sequence(digits(True), byte_level()), "a  12", "a ĠĠ 1 2"),
    (metaspace("always"), "a  b▁c", "▁a ▁ ▁b ▁c"),
    (metaspace("never"), "a b", "a ▁b"),
    (metaspace("first", False), "a b", "▁a▁b"),
    (sequence(WHITESPACE_SPLIT, metaspace("first")), "a b", "▁a b"),
    ({"type": "CharDelimiterSplit", "delimiter": "日"}, "a日b日日c", "a b c"),
    ({"type": "FixedLength", "length": 2}, "añb日c", "añ b日 c"),
    ({"type": "FixedLength"}, "abcdefg", "abcde fg"),
    (SCRIPTS, "どこ東京ーabcд", "どこ東京ー abc д"),
    (sequence(byte_level(False, False), digits(False)), "a²", "aÂ ²"),
    (split(r"\s+", "Removed"), "a \n b", "a b"),
]


@pytest.mark.parametrize(("config", "text", "pieces"), CASES)
def test_cases(config: Config, text: str, pieces: str, isa: str) -> None:
    found = PreTokenizer.from_config(config).pre_tokenize_str(text)
    assert [piece for piece, _ in found] == pieces.split(" ")
    compare(config, [text, text * 9])


def test_spans_of_new_text() -> None:
    """What stands in front comes from the first character, and so does each of its symbols."""
    found = PreTokenizer.from_config(byte_level(True)).pre_tokenize_str("\n\u00e9")
    assert found == [("Ġ", (0, 1)), ("Ċ", (0, 1)), ("Ã©", (1, 2))]
    ours = PreTokenizer.from_config(sequence(byte_level(False, False), digits(False)))
    assert ours.pre_tokenize_str("x²", "byte") == [("xÂ", (0, 3)), ("²", (1, 3))]
    assert arrow_spans(ours.pre_tokenize_arrow(pa.array(["x²"]))) == [[(0, 3), (1, 3)]]


def test_no_stage_at_all() -> None:
    ours = PreTokenizer.from_config(sequence())
    assert ours.pre_tokenize_str("a b") == [("a b", (0, 3))]
    assert ours.pre_tokenize_str("") == []


def test_text_kinds() -> None:
    ours = PreTokenizer.from_config(WHITESPACE)
    for text in ("é b", "é b".encode(), bytearray("é b".encode()), memoryview("é b".encode())):
        assert ours.pre_tokenize_str(text) == [("é", (0, 1)), ("b", (2, 3))]
        assert ours.pre_tokenize_str(text, offsets="byte") == [("é", (0, 2)), ("b", (3, 4))]
    assert ours.pre_tokenize_str(b"\xff a") == [("\ufffd", (0, 1)), ("a", (2, 3))]
    with pytest.raises(ValueError, match="offsets='bits'"):
        ours.pre_tokenize_str("a", offsets="bits")  # type: ignore[arg-type]


# ---- configurations ----

MALFORMED = [
    ({}, "type is missing"),
    ({"type": 1}, "type is 1, not a string"),
    ({"type": "Digits"}, "individual_digits is missing"),
    ({"type": "Digits", "individual_digits": None}, "individual_digits is null, not a boolean"),
    ({"type": "Punctuation", "behavior": "isolated"}, "behavior is 'isolated', none of"),
    ({"type": "ByteLevel", "trim_offsets": True}, "add_prefix_space is missing"),
    ({"type": "ByteLevel", "add_prefix_space": True}, "trim_offsets is missing"),
    ({"type": "Metaspace"}, "replacement is missing"),
    ({"type": "Metaspace", "replacement": "ab"}, "replacement is 'ab', not one character"),
    ({**metaspace("always"), "prepend_scheme": "often"}, "prepend_scheme is 'often'"),
    ({**metaspace("always"), "add_prefix_space": False}, "add_prefix_space is false"),
    ({"type": "CharDelimiterSplit"}, "delimiter is missing"),
    ({"type": "CharDelimiterSplit", "delimiter": ""}, "delimiter is '', not one character"),
    ({"type": "FixedLength", "length": 0}, "length is 0"),
    ({"type": "FixedLength", "length": 1 << 63}, "length is 9223372036854775808"),
    ({"type": "FixedLength", "length": True}, "length is true, not an integer"),
    ({"type": "Split", "behavior": "Removed", "invert": False}, "pattern is missing"),
    ({**split("a"), "pattern": "a"}, 'pattern is "a", not an object'),
    ({**split("a"), "pattern": {"Glob": "a"}}, "pattern is not an object with one key"),
    ({**split("a"), "pattern": {"String": 1}}, "pattern.String is 1, not a string"),
    ({"type": "Sequence"}, "pretokenizers is missing"),
    (sequence(WHITESPACE, {"type": "Digits"}), r"pretokenizers\[1\].individual_digits is missing"),
    (sequence(sequence({"x": 1})), r"pretokenizers\[0\].pretokenizers\[0\].type is missing"),
    ("[1]", "top level is"),
    ('{"type":', "not JSON"),
    (b"\xff", "not UTF-8"),
]


@pytest.mark.parametrize(("config", "message"), MALFORMED)
def test_malformed_configurations(config: Any, message: str) -> None:
    with pytest.raises(TokenizerFileError, match=message):
        PreTokenizer.from_config(config)


DEEP: Config = WHITESPACE
for _ in range(40):
    DEEP = sequence(DEEP)

UNSUPPORTED = [
    ({"type": "Delimiter"}, "type"),
    ({"type": "Whitespace", "extra": 1}, "extra"),
    (split("", kind="String"), "pattern.String"),
    (split(""), "pattern.Regex"),
    (sequence(*[byte_level()] * 9), "too often"),
    (DEEP, "levels"),
]


@pytest.mark.parametrize(("config", "message"), UNSUPPORTED)
def test_unsupported_configurations(config: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PreTokenizer.from_config(config)


def test_unknown_engine() -> None:
    with pytest.raises(ValueError, match="engine='pcre'"):
        PreTokenizer.from_config(WHITESPACE, engine="pcre")  # type: ignore[arg-type]


def test_json_text_and_dicts_are_the_same() -> None:
    for config in (WHITESPACE, CONFIGS["falcon"]):
        made = [PreTokenizer.from_config(c) for c in (config, json.dumps(config))]
        made.append(PreTokenizer.from_config(json.dumps(config).encode()))
        assert [one.config for one in made] == [config] * 3
        assert len({str(one.pre_tokenize_str("a 1.2")) for one in made}) == 1


@pytest.mark.parametrize("name", [*CONFIGS, *scheme_configs()])
def test_pickle(name: str) -> None:
    ours = PreTokenizer.from_config({**CONFIGS, **scheme_configs()}[name])
    again = pickle.loads(pickle.dumps(ours))
    assert repr(again) == repr(ours)
    text = "It's 12345 a²\u3000b\r\n, c_d'"
    assert again.pre_tokenize_str(text) == ours.pre_tokenize_str(text)


# ---- patterns ----


def steps_of(config: Config, engine: str = "hf") -> Any:
    return PreTokenizer(config, engine)._steps


def test_every_scheme_is_found_by_its_pattern() -> None:
    for scheme in table()["schemes"]:
        for engine in scheme["patterns"]:
            found = steps_of(scheme_config(scheme, engine), engine)
            first = (Classes("whitespace_split", (("WS", DROP),)),) if scheme["invert"] else ()
            assert found == (*first, Scheme(scheme["name"]))


def test_spellings_and_behaviours_that_are_the_same() -> None:
    gpt2 = next(s for s in table()["schemes"] if s["name"] == "gpt2")["patterns"]["hf"]
    spelled = gpt2.replace("'s|'t|'re|'ve|'m|'ll|'d", "'(?:[sdmt]|ll|ve|re)")
    assert spelled != gpt2
    for behavior, invert in (("Isolated", False), ("Isolated", True), ("Removed", True)):
        config = split(spelled, behavior, invert)
        assert steps_of(config) == (Scheme("gpt2"),)
        compare(config, dense_texts("scheme", 200))


def test_engines_differ() -> None:
    """HF reads {1,3}+ as one or more of {1,3}, tiktoken as a possessive {1,3}."""
    pattern = next(s for s in table()["schemes"] if s["name"] == "cl100k")["patterns"]["tiktoken"]
    hf, tiktoken = (
        PreTokenizer(split(pattern), engine).pre_tokenize_str("1234567")
        for engine in ("hf", "tiktoken")
    )
    assert [piece for piece, _ in hf] == ["1234567"]
    assert [piece for piece, _ in tiktoken] == ["123", "456", "7"]


def test_unknown_pattern_of_tiktoken() -> None:
    with pytest.raises(UnsupportedError, match=r"pattern\.Regex.*engine 'tiktoken'"):
        PreTokenizer.from_config(split("a.c"), engine="tiktoken")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onigurumacffi", None)
    from saphira_gpu.pretok import regex

    regex._compiled.cache_clear()
    with pytest.raises(UnsupportedError, match=r"pattern\.Regex = \"a\.c\".*saphira-gpu\[regex\]"):
        PreTokenizer.from_config(split("a.c"))


@needs_oniguruma
def test_patterns_that_match_nothing() -> None:
    for pattern in ("x*", "(?=a)", r"\b", "a|", "^", r"(?<=\d)"):
        with pytest.raises(UnsupportedError, match="can match the empty text"):
            PreTokenizer.from_config(split(pattern))
    hidden = PreTokenizer.from_config(split("(?=q)|x"))
    with pytest.raises(InputError, match="matched the empty text"):
        hidden.pre_tokenize_arrow(pa.array(["a", "aq"]))


@needs_oniguruma
def test_patterns_that_do_not_compile() -> None:
    with pytest.raises(TokenizerFileError, match=r"pattern\.Regex is no regular expression"):
        PreTokenizer.from_config(split("(a"))


@needs_oniguruma
def test_patterns_need_utf8() -> None:
    ours = PreTokenizer.from_config(split("a.c"))
    column = pa.chunked_array([pa.array([b"abc"]), pa.array([None, b"a\xffc"])])
    with pytest.raises(InputError, match="row 2") as caught:
        ours.pre_tokenize_arrow(column)
    assert caught.value.row == 2
    with pytest.raises(InputError, match="row 0"):
        ours.pre_tokenize_str(b"\xff")


# ---- columns ----

TEXTS = ["It's 12 é", None, "", "a\u3000b", "x" * 70 + " y"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
def test_columns(kind: pa.DataType) -> None:
    ours = PreTokenizer.from_config(WHITESPACE)
    wanted = [
        text if text is None else [span for _, span in ours.pre_tokenize_str(text, "byte")]
        for text in TEXTS
    ]
    array = pa.array(TEXTS, pa.string()).cast(kind)
    found = ours.pre_tokenize_arrow(array)
    spans = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    large = pa.types.is_large_string(kind)
    assert found.type == (pa.large_list(spans) if large else pa.list_(spans))
    found.validate(full=True)
    assert arrow_spans(found) == wanted
    assert arrow_spans(ours.pre_tokenize_arrow(array[1:4])) == wanted[1:4]
    chunked = ours.pre_tokenize_arrow(pa.chunked_array([array[:2], array[2:]]))
    assert chunked.num_chunks == 2 and arrow_spans(chunked) == wanted
    empty = ours.pre_tokenize_arrow(pa.chunked_array([], kind))
    assert len(empty) == 0 and empty.type == found.type


def test_dictionary_and_null_columns() -> None:
    ours = PreTokenizer.from_config(WHITESPACE)
    column = pa.array(["a b", None, "a b", "c"]).dictionary_encode()
    assert arrow_spans(ours.pre_tokenize_arrow(column)) == [
        [(0, 1), (2, 3)],
        None,
        [(0, 1), (2, 3)],
        [(0, 1)],
    ]
    assert ours.pre_tokenize_arrow(pa.nulls(3)).to_pylist() == [None] * 3
    with pytest.raises(InputError, match="int64"):
        ours.pre_tokenize_arrow(pa.array([1]))


def test_null_rows_with_bytes_under_them() -> None:
    data = pa.py_buffer(b"a b c d e")
    offsets = pa.py_buffer(np.array([0, 3, 6, 9], np.int32))
    column = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, data])
    for config in (WHITESPACE, byte_level(True), CONFIGS["falcon"]):
        found = PreTokenizer.from_config(config).pre_tokenize_arrow(column)
        assert [row is None for row in found.to_pylist()] == [False, True, False]
        assert len(found.values) == sum(map(len, filter(None, found.to_pylist())))


@pytest.mark.parametrize("name", ["whitespace", "falcon", "bytes-prefix", "scheme-gpt2"])
def test_threads_do_not_matter(name: str) -> None:
    ours = PreTokenizer.from_config({**CONFIGS, **scheme_configs()}[name])
    texts = [text * 20 for text in dense_texts(name, 6000)]
    column = pa.array([None if i % 50 == 7 else text for i, text in enumerate(texts)])
    assert column.nbytes > 4 << 18  # enough for several threads
    one = ours.pre_tokenize_arrow(column, threads=1)
    assert one.equals(ours.pre_tokenize_arrow(column, threads=3))
    assert one.equals(ours.pre_tokenize_arrow(column))
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: ours.pre_tokenize_arrow(column, threads=2), range(3)):
            assert one.equals(found)


def test_instruction_sets_do_not_matter(isa: str) -> None:
    for name in ("whitespace", "scripts", "length-3", "falcon"):
        ours = PreTokenizer.from_config(CONFIGS[name])
        rows = oracles.random_bytes(name, 2 * oracles.FUZZ_SIZE, 400)
        steps = ours._steps
        for row, found in zip(
            rows, arrow_spans(ours.pre_tokenize_arrow(pa.array(rows))), strict=True
        ):
            assert found == [piece.span for piece in reference_pretok.pieces(steps, row)], row


# ---- bytes ----

PLAIN = [
    name
    for name, config in CONFIGS.items()
    if not any(isinstance(step, Regex) for step in steps_of(config))
]


@pytest.mark.parametrize("name", PLAIN)
def test_any_bytes(name: str, isa: str) -> None:
    """Against the plain reference: spans and text."""
    ours = PreTokenizer.from_config(CONFIGS[name])
    rows = oracles.random_bytes(name, oracles.FUZZ_SIZE, 24)
    rows += [text.encode() + rows[i][:3] for i, text in enumerate(dense_texts(name, 60))]
    wanted = [reference_pretok.pieces(ours._steps, row) for row in rows]
    found = arrow_spans(ours.pre_tokenize_arrow(pa.array(rows, pa.binary())))
    for row, spans, pieces in zip(rows, found, wanted, strict=True):
        assert spans == [piece.span for piece in pieces], row
        made, places = ours._texts.pieces(row)
        assert [made[a:b] for a, b, _, _ in places] == [piece.text for piece in pieces], row
        assert [(a, b) for _, _, a, b in places] == spans, row


def test_characters_of_the_contract() -> None:
    """FixedLength and char offsets count them: overlong forms, surrogates and cut leads too."""
    ours = PreTokenizer.from_config({"type": "FixedLength", "length": 1})
    raw = b"a\xc0\x80\xed\xa0\x80\xff\xe4\xb8b\xf4\xbf\xbf\xbf\xe4\xb8"
    spans = [span for _, span in ours.pre_tokenize_str(raw, "byte")]
    wanted = [(0, 1), (1, 3), (3, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 14), (14, 15), (15, 16)]
    assert spans == wanted
    assert [span for _, span in ours.pre_tokenize_str(raw)] == [(i, i + 1) for i in range(10)]


def test_a_lead_cut_short_where_its_piece_ends(isa: str) -> None:
    """C3 before a space fails and is no letter; alone at the end of its piece it is one, Ã."""
    gpt2 = scheme_configs()["scheme-gpt2"]
    raw = b"a\xc3 b"
    for config, wanted in (
        (gpt2, [(0, 1), (1, 2), (2, 4)]),
        (sequence(WHITESPACE_SPLIT, gpt2), [(0, 2), (3, 4)]),
    ):
        ours = PreTokenizer.from_config(config)
        assert [span for _, span in ours.pre_tokenize_str(raw, "byte")] == wanted
        assert [piece.span for piece in reference_pretok.pieces(ours.steps, raw)] == wanted


class Guarded:
    """Bytes that end at a page no one may touch."""

    def __init__(self, data: bytes) -> None:
        page = mmap.PAGESIZE
        body = -(-max(len(data), 1) // page) * page
        self._map = mmap.mmap(-1, body + page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._map[body - len(data) : body] = data
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(address + body), page, 0) == 0
        view = (ctypes.c_uint8 * len(data)).from_address(address + body - len(data))
        self.array = np.frombuffer(view, np.uint8) if data else np.zeros(0, np.uint8)
        self._release = lambda: libc.mprotect(ctypes.c_void_p(address + body), page, 3)

    def close(self) -> None:
        assert self._release() == 0


@pytest.mark.parametrize("name", PLAIN)
def test_no_read_past_the_end(name: str, isa: str) -> None:
    """Texts of every length 0..160 before a page that can't be read, whole and cut short."""
    ours = PreTokenizer.from_config(CONFIGS[name])
    source = "It's 12é 日本\u3000a'\u00b2x.\U0001f600, " * 8
    for length in range(0, 161, 1 if name in ("whitespace", "scripts", "falcon") else 13):
        text = source.encode()[:length]
        guarded = Guarded(text)
        batch = Batch(guarded.array, np.array([0, length // 3, length], np.int64))
        found = ours._spans.spans(batch, 1)
        for row in range(2):
            spans = slice(*found.offsets[row : row + 2].tolist())
            pieces = reference_pretok.pieces(ours._steps, batch.row(row))
            places = zip(found.starts[spans].tolist(), found.ends[spans].tolist(), strict=True)
            assert list(places) == [piece.span for piece in pieces]
        guarded.close()


HOSTILE = {
    "white": " " * 64,
    "quotes": "'" * 64,
    "letters": "a" * 64,
    "digits": "1" * 64,
    "leads": "\U0001f600" * 16,
    "newlines": "\n \n\t" * 16,
}


@pytest.mark.parametrize("name", ["whitespace", "falcon", "string-overlaps", "bytes-prefix"])
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear(name: str, unit: str) -> None:
    ours = PreTokenizer.from_config(CONFIGS[name])

    def seconds(blocks: int) -> float:
        column = pa.array([HOSTILE[unit] * blocks])
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            ours.pre_tokenize_arrow(column, threads=1)
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(1 << 10), seconds(1 << 14)
    assert large < 16 * 6 * max(small, 5e-4)


# ---- classify ----


@pytest.mark.parametrize("alphabet", ["superatoms", "atoms", "scripts"])
def test_classify(alphabet: str) -> None:
    texts = ["aé日1 '", None, "", "\u0301_"]
    tags, starts = classify(pa.array(texts), alphabet)
    assert tags.type == pa.list_(pa.uint8()) and starts.type == pa.list_(pa.bool_())
    tags.validate(full=True)
    starts.validate(full=True)
    names = table()[alphabet]
    for text, row, begin in zip(texts, tags.to_pylist(), starts.to_pylist(), strict=True):
        if text is None:
            assert row is None and begin is None
            continue
        one, first = classify(text.encode(), alphabet)
        assert one.dtype == np.uint8 and first.dtype == np.bool_
        assert one.tolist() == row and first.tolist() == begin
        chars = reference.classify(text.encode())
        assert np.flatnonzero(first).tolist() == [char.start for char in chars]
        assert all(tag == 0xFF for tag, start in zip(row, begin, strict=True) if not start)
        for char in chars:
            if alphabet == "superatoms":
                assert names[row[char.start]] == char.tag
    wanted = {
        "superatoms": ["Lower", "Lower", "HanURO", "NumWord", "Space", "Apostrophe"],
        "atoms": ["Letter", "Letter", "Letter", "NumWord", "Space", "Apostrophe"],
        "scripts": ["Latin", "Latin", "Han", "Common", "Any", "Common"],
    }[alphabet]
    assert [names[tag] for tag in tags[0].as_py() if tag != 0xFF] == wanted


def test_classify_columns() -> None:
    column = pa.array(["a b", None, "a b", "日"]).dictionary_encode()
    tags, starts = classify(column)
    assert starts.to_pylist() == [[True] * 3, None, [True] * 3, [True, False, False]]
    assert tags.to_pylist()[0] == tags.to_pylist()[2]
    sliced, _ = classify(pa.array(["xx", "a", "b"])[1:])
    assert len(sliced) == 2 and len(sliced.values) == 2
    with pytest.raises(InputError):
        classify([b"a"])
    with pytest.raises(ValueError, match="alphabet"):
        classify(b"a", "bytes")  # type: ignore[arg-type]


def test_public_names() -> None:
    assert saphira_gpu.PreTokenizer is PreTokenizer and saphira_gpu.classify is classify


def test_steps_for_spans_alone() -> None:
    """Metaspace's cuts need no new text; what follows new text does."""
    for name in ("metaspace-always-True", "t5", "bytes", "bytes-whole"):
        assert "Replace" not in str(spans_only(steps_of(CONFIGS[name])))
        assert "Bytemap" not in str(spans_only(steps_of(CONFIGS[name])))
    assert "Bytemap" in str(spans_only(steps_of(CONFIGS["falcon"])))
