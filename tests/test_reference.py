"""The oracle itself: `reference.py` against HF, tiktoken and literal cases, stage by stage."""

from __future__ import annotations

import json
from pathlib import Path

import oracles
import pytest

from saphira_gpu import reference
from saphira_gpu.errors import InputError, UnsupportedError
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

SPLIT_ONLY = oracles.small_spec()


def spans(data: bytes) -> list[tuple[int, int]]:
    """Pieces of a text taken as one segment."""
    chars = reference.classify(data)
    return reference.boundaries(SPLIT_ONLY, data, chars, reference.remap(SPLIT_ONLY, chars))


def pieces(data: bytes) -> list[bytes]:
    return [data[start:end] for start, end in spans(data)]


# ---- pretok ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Hello world", ["Hello", " world"]),
        ("it's 12'30", ["it", "'s", " 12", "'", "30"]),
        ("we'LL 'll", ["we", "'", "LL", " '", "ll"]),
        ("'\u017f", ["'", "\u017f"]),
        ("a  b\n\n c", ["a", " ", " b", "\n\n", " c"]),
        ("a \u00a0 b", ["a", " \u00a0", " b"]),
        ("a\u00a0b", ["a", "\u00a0", "b"]),
        ("tail \t ", ["tail", " \t "]),
        ("\u00b2\u00bd7\u2167!", ["\u00b2\u00bd7\u2167", "!"]),
        ("e\u0301x", ["e", "\u0301", "x"]),
        ("a\u200bb", ["a", "\u200b", "b"]),
        (" '", [" '"]),
        ("''s", ["''", "s"]),
        ("x's'", ["x", "'s", "'"]),
    ],
)
def test_pieces_by_hand(text: str, expected: list[str]) -> None:
    assert [piece.decode() for piece in pieces(text.encode())] == expected
    assert oracles.hf_spans(text) == spans(text.encode())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("c3a9", "c3a9"),  # é
        ("c3c3a9", "c3 c3a9"),  # a failed lead is Other, a letter follows
        ("61e4b862", "61 e4b8 62"),  # failed: Other, then ¸ (the symbol of B8) is Other too
        ("61e4b8", "61e4 b8"),  # truncated: ä (the symbol of E4) is a letter
        ("6180", "6180"),  # the symbol of 80 is U+0122, a letter
        ("b231", "b231"),  # the symbol of B2 is ², a number
        ("20bd", "20bd"),
        ("20c0a0", "20c0a0"),  # overlong space: white space, but not the space of ` ?`
        ("20c0a061", "20 c0a0 61"),
        ("61c0a773", "61 c0a7 73"),  # overlong apostrophe: no contraction
        ("27c1b3", "27 c1b3"),  # overlong s: a letter, no contraction
        ("e08080", "e08080"),  # overlong NUL
        ("61eda08062", "61 eda080 62"),  # a surrogate is Other
        ("61f4bfbfbf62", "61 f4bfbfbf 62"),  # above U+10FFFF: Other
        ("f5808080", "f5808080"),  # F5 never leads: õ, and three of U+0122
        ("ff", "ff"),
        ("0a80", "0a 80"),
    ],
)
def test_byte_contract_by_hand(data: str, expected: str) -> None:
    assert [piece.hex() for piece in pieces(bytes.fromhex(data))] == expected.split()


def test_cases_of_pretokenizers(test_data: Path) -> None:
    names = {"ByteLevel": 0, "Regex/gpt2": 0, "tiktoken/r50k": 0}
    with (test_data / "cases/pretokenizer_cases.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if case["pretokenizer"] in names:
                expected = [(row[3], row[4]) for row in case["expected"]]
                assert spans(case["input"].encode()) == expected, case
                names[case["pretokenizer"]] += 1
    assert names == {"ByteLevel": 242, "Regex/gpt2": 242, "tiktoken/r50k": 242}


def test_cases_of_the_byte_contract(test_data: Path) -> None:
    cases = json.loads((test_data / "cases/byte_contract_cases.json").read_text())
    for case in cases:
        data = bytes.fromhex(case["hex"])
        assert [piece.hex() for piece in pieces(data)] == case["expected_r50k_spans"], case
    assert len(cases) == 39


@oracles.fuzz(oracles.texts, size=4)
def test_spans_equal_hf(text: str) -> None:
    assert spans(text.encode()) == oracles.hf_spans(text)


def test_spans_of_random_strings_equal_hf() -> None:
    made = oracles.random_texts("rules", oracles.RULES, 10 * oracles.FUZZ_SIZE, 40)
    made += oracles.random_unicode("unicode", 5 * oracles.FUZZ_SIZE, 30)
    for text in made:
        assert spans(text.encode()) == oracles.hf_spans(text), repr(text)


@oracles.fuzz(oracles.any_bytes)
def test_classes_are_local(data: bytes) -> None:
    """What owns a continuation byte is decided by the three bytes before it and the three after."""
    starts = {char.start for char in reference.classify(data)}
    for i, byte in enumerate(data):
        owned = False
        for k in range(1, min(i, 3) + 1):
            lead = data[i - k]
            needed = 0 if not 0xC0 <= lead <= 0xF4 else 1 + (lead >= 0xE0) + (lead >= 0xF0)
            rest = data[i - k + 1 : i - k + 1 + needed]
            owned |= len(rest) == needed >= k and all(0x80 <= b < 0xC0 for b in rest)
        assert (i in starts) != (owned and 0x80 <= byte < 0xC0), i


@oracles.fuzz(oracles.any_bytes)
def test_pieces_cover_any_bytes(data: bytes) -> None:
    assert b"".join(pieces(data)) == data
    assert all(start < end for start, end in spans(data))


@pytest.mark.parametrize("last", [0x1000, pytest.param(0x110000, marks=pytest.mark.long)])
def test_word_and_space_tags(last: int) -> None:
    r"""The superatoms that `special` takes for \s and \w, by HF's own rules."""
    from tokenizers import pre_tokenizers

    splitter = pre_tokenizers.Whitespace()  # \w+|[^\w\s]+
    for first in range(0, last, 4096):
        chars = [chr(cp) for cp in range(first, first + 4096) if not 0xD800 <= cp < 0xE000]
        text = "".join(f"a{char}! " for char in chars)
        tags = [char.tag for char in reference.classify("".join(chars).encode())]
        found = {span[0]: piece for piece, span in splitter.pre_tokenize_str(text)}
        for i, (char, tag) in enumerate(zip(chars, tags, strict=True)):
            word = found[4 * i] == "a" + char
            space = found[4 * i] == "a" and found.get(4 * i + 1) is None
            assert (tag in reference.SPACE_TAGS) == space == (char in oracles.WHITE_SPACE), char
            assert (tag in reference.WORD_TAGS) == word, repr(char)


# ---- bytemap, bpe, vocab ----


def test_bytemap_by_hand() -> None:
    assert reference.bytemap(b" caf\xc3\xa9\n\x00\x7f\x80\xad\xff") == "ĠcafÃ©ĊĀġĢŃÿ"
    assert dict(enumerate(reference.BYTE_SYMBOL)) == oracles.byte_symbols()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("Hello world", [15496, 995]),
        ("it's", [270, 338]),
        ("   def f(x):\n\n", [220, 220, 825, 277, 7, 87, 2599, 628]),
        ("naïve café", [2616, 38776, 40304]),
        ("日本", [33768, 98, 17312, 105]),
    ],
)
def test_ids_by_hand(text: str, ids: list[int]) -> None:
    assert reference.encode(oracles.gpt2_spec(), text) == ids
    assert oracles.tiktoken_gpt2().encode_ordinary(text) == ids


def test_lowest_rank_leftmost_first() -> None:
    spec = oracles.small_spec([(b"b", b"c"), (b"a", b"b"), (b"a", b"a"), (b"aa", b"a")])
    assert reference.bpe(spec, "abc") == ["a", "bc"]
    assert reference.bpe(spec, "ababc") == ["ab", "a", "bc"]
    assert reference.bpe(spec, "aaaaa") == ["aa", "aaa"]


def test_whole_piece_first() -> None:
    """`abc` is a token no merge makes: only a look-up of the whole piece gives it."""
    for first, tokens in ((False, ["ab", "c"]), (True, ["abc"])):
        spec = oracles.small_spec([(b"a", b"b")], whole_piece_first=first, extra=[b"abc"])
        assert reference.bpe(spec, "abc") == tokens
        assert [oracles.hf_of(spec).encode("abc").ids] == [reference.encode(spec, "abc")]


def test_random_merges_equal_hf() -> None:
    for number in range(max(20, oracles.FUZZ_SIZE // 10)):
        merges = oracles.random_merges(oracles.rng(f"merges {number}"), b"abcd ", 40, 8)
        spec = oracles.small_spec(merges, whole_piece_first=number % 2 == 1)
        made = oracles.random_texts(f"pieces {number}", "aaaabbccd ", 40, 30)
        expected = oracles.hf_ids(oracles.hf_of(spec), made)
        for text, ids in zip(made, expected, strict=True):
            assert reference.encode(spec, text) == ids, (merges, text)


def test_ids_equal_hf_and_tiktoken() -> None:
    spec, tiktoken = oracles.gpt2_spec(), oracles.tiktoken_gpt2()
    made = oracles.random_texts("ids rules", oracles.RULES, 2 * oracles.FUZZ_SIZE, 40)
    made += oracles.random_texts("ids ascii", oracles.ASCII, 2 * oracles.FUZZ_SIZE, 60)
    made += oracles.random_unicode("ids unicode", oracles.FUZZ_SIZE, 30)
    for text, ids in zip(made, oracles.hf_ids(oracles.hf_gpt2(), made), strict=True):
        assert reference.encode(spec, text, "parse") == ids, repr(text)
        assert tiktoken.encode(text, allowed_special="all") == ids, repr(text)


@oracles.fuzz(oracles.texts)
def test_ids_equal_hf(text: str) -> None:
    assert [reference.encode(oracles.gpt2_spec(), text)] == oracles.hf_ids(
        oracles.hf_gpt2(), [text]
    )


def test_merges_of_the_rank_file() -> None:
    """The rank file and the merge list made of it are one tokenizer; so is HF's own file."""
    ranks = oracles.gpt2_ranks()
    merges = tuple(
        (ranks[left], ranks[right], ranks[left + right]) for left, right in oracles.merges_of(ranks)
    )
    assert len(merges) == 50000
    spec = oracles.gpt2_spec()
    listed = Spec(spec.added, spec.pretok, Bpe(spec.bpe.tokens, merges), name="listed")
    made = oracles.random_texts("rank file", oracles.ASCII, oracles.FUZZ_SIZE, 60)
    expected = [reference.encode(spec, text) for text in made]
    assert [reference.encode(listed, text) for text in made] == expected


def test_hf_file_equals_the_embedded_ranks(test_data: Path) -> None:
    import tokenizers

    ours = json.loads(oracles.hf_gpt2().to_str())
    path = test_data / "vocabs/gpt2/tokenizer.json"
    theirs = json.loads(tokenizers.Tokenizer.from_file(str(path)).to_str())
    assert ours["model"]["vocab"] == theirs["model"]["vocab"]
    assert ours["model"]["merges"] == theirs["model"]["merges"]


def test_corpora(test_data: Path) -> None:
    """Every 400th document, its first 600 characters, ids of the oracle equal HF's."""
    import pyarrow.parquet as pq

    spec = oracles.gpt2_spec()
    for path in sorted((test_data / "corpora").glob("*.parquet")):
        documents = pq.read_table(path, columns=["text"])["text"].to_pylist()[::400]
        made = [text[:600] for text in documents]
        for text, ids in zip(made, oracles.hf_ids(oracles.hf_gpt2(), made), strict=True):
            assert reference.encode(spec, text) == ids, (path.name, text)


# ---- special ----


def show(spec: Spec, text: str, mode: str) -> str:
    """The segments of a text: tokens in brackets, bars between."""
    data = text.encode()
    return "|".join(
        f"[{data[start:end].decode()}]" if token else data[start:end].decode()
        for start, end, token in reference.special(spec, data, mode)
    )


@pytest.mark.parametrize(
    ("tokens", "text", "mode", "expected"),
    [
        ("<x>", "a<x>b", "parse", "a|[<x>]|b"),
        ("<x>", "a<x>b", "plain", "a<x>b"),
        ("<x>:s", "a<x>b", "hf_plain", "a<x>b"),
        ("<x>", "a<x>b", "hf_plain", "a|[<x>]|b"),
        ("<x> <x>y x>yz", "a<x>yz", "parse", "a|[<x>y]|z"),
        ("<m>:l", "a \u3000<m> b", "parse", "a|[ \u3000<m>]| b"),
        ("<m>:lr", "a  <m>  <m>  b", "parse", "a|[  <m>  ]|[<m>  ]|b"),
        ("foo:w", "foo afoo foo\u0301 -foo-", "parse", "[foo]| afoo foo\u0301 -|[foo]|-"),
        ("foo:w oob", "foob", "parse", "foob"),  # a match passed over consumes its span
        ("<a>b:s b>c", "<a>b>c", "plain", "<a>b>c"),
        ("<a>b:s b>c", "<a>b>c", "hf_plain", "<a>b>c"),
        ("b ab:n", "xaby", "parse", "xa|[b]|y"),  # normalized = False is matched first
        (
            "\u3000 <x>",
            "a\u3000<x>",
            "plain",
            "a|[\u3000]|<x>",
        ),  # white space alone matches
        ("\u3000:s", "a\u3000", "hf_plain", "a\u3000"),
    ],
)
def test_special_by_hand(tokens: str, text: str, mode: str, expected: str) -> None:
    made = [(content, flags) for content, _, flags in (t.partition(":") for t in tokens.split(" "))]
    spec = oracles.small_spec(added=made)
    assert show(spec, text, mode) == expected
    hf = oracles.hf_of(spec, plain=mode == "plain")
    ids = oracles.hf_ids(hf, [text], "parse" if mode == "parse" else "hf_plain")
    assert ids == [reference.encode(spec, text, mode)]


def test_special_error() -> None:
    spec = oracles.small_spec(added=[("<x>", ""), ("  ", ""), ("foo", "w")])
    text = "a  b foot"  # white space alone, and a match that single_word turns down, are no hits
    assert reference.encode(spec, text, "error") == reference.encode(spec, text, "parse")
    with pytest.raises(InputError, match="<x>"):
        reference.encode(spec, "a<x>", "error")
    with pytest.raises(ValueError, match="nonsense"):
        reference.encode(spec, "a", "nonsense")


def test_end_of_text() -> None:
    spec, text = oracles.gpt2_spec(), "a<|endoftext|>b"
    assert reference.encode(spec, text, "parse") == [64, 50256, 65]
    plain = oracles.tiktoken_gpt2().encode_ordinary(text)
    assert reference.encode(spec, text) == reference.encode(spec, text, "hf_plain") == plain


def test_cases_of_special_tokens(test_data: Path) -> None:
    """All 40 but the five with a normalizer, which no Spec can ask for."""
    cases = json.loads((test_data / "cases/special_token_cases.json").read_text())
    ran = 0
    for case in cases:
        if case["normalizer"] is not None:
            continue
        made = [AddedToken(id=256 + i, **token) for i, token in enumerate(case["added_tokens"])]
        spec = Spec(tuple(made), SPLIT_ONLY.pretok, SPLIT_ONLY.bpe)
        at = oracles.byte_positions(case["input"])
        expected = [(at[row[2]], at[row[3]], row[0] == "added") for row in case["expected"]]
        mode = "hf_plain" if case["encode_special_tokens"] else "parse"
        found = reference.special(spec, case["input"].encode(), mode)
        assert [(start, end, token is not None) for start, end, token in found] == expected, case
        ran += 1
    assert (ran, len(cases)) == (35, 40)


CONTENTS = ["<a>", "<a>b", "b", "a", "foo", "oob", "foo bar", "x> "]
CONTENTS += ["  ", " ", "\n", " x", "\u3000", "é"]


def random_added(name: str) -> list[tuple[str, str]]:
    source = oracles.rng(name)
    contents = source.sample(CONTENTS, source.randint(1, 6))
    flags = ["".join(flag for flag in "snlrw" if source.random() < 0.3) for _ in contents]
    # HF itself panics where rstrip took what an lstrip token of white space begins with.
    made = zip(contents, flags, strict=True)
    return [(content, flag) for content, flag in made if not (content.isspace() and "l" in flag)]


@pytest.mark.parametrize("mode", ["parse", "hf_plain", "plain"])
def test_random_added_tokens_equal_hf(mode: str) -> None:
    for number in range(max(50, oracles.FUZZ_SIZE // 2)):
        spec = oracles.small_spec([(b"o", b"o")], random_added(f"added {number}"))
        hf = oracles.hf_of(spec, plain=mode == "plain")
        made = oracles.random_texts(f"added texts {number}", [*CONTENTS, "_", "\u0301"], 20, 9)
        expected = oracles.hf_ids(hf, made, "parse" if mode == "parse" else "hf_plain")
        for text, ids in zip(made, expected, strict=True):
            assert reference.encode(spec, text, mode) == ids, (spec.added, text)


# ---- all of it ----


def test_stages_show_every_stage() -> None:
    first, token, last = reference.stages(oracles.gpt2_spec(), "it's<|endoftext|> \xe9", "parse")
    assert (first.normalized, first.classes) == (b"it's", "LLOL")
    assert first.pieces == [(0, 2), (2, 4)]
    assert (first.symbols, first.tokens, first.ids) == (["it", "'s"], [["it"], ["'s"]], [270, 338])
    assert (token.start, token.end, token.ids) == (4, 17, [50256])
    assert (last.start, last.end, last.symbols) == (17, 20, ["ĠÃ©"])


def test_refusals() -> None:
    unknown = Spec((), Pretok("nonsense"), SPLIT_ONLY.bpe)
    with pytest.raises(UnsupportedError, match="nonsense"):
        reference.encode(unknown, "a")
    assert reference.encode(Spec((), Pretok("gpt2"), Bpe((b"a", None), ())), "bab") == [0]
    holes = Spec((), Pretok("gpt2"), Bpe((b"a", None), None))
    assert reference.encode(holes, "a") == [0]
    with pytest.raises(InputError, match="'b'"):
        reference.encode(holes, "b")
    with pytest.raises(UnicodeEncodeError):
        reference.encode(SPLIT_ONLY, "\ud800")
