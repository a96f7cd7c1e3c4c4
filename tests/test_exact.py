"""Ids of the compiled core equal HF's, tiktoken's and the oracle's, whatever runs them."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import exact_corpora
import numpy as np
import oracles
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from saphira_gpu._core import ffi, lib

import saphira_gpu
from saphira_gpu import InputError, Report, Tokenizer, reference
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu
from saphira_gpu.plan import build
from saphira_gpu.spec import AddedToken, Bpe, Spec


def lists(tokens: saphira_gpu.Tokens) -> list[list[int]]:
    offsets, ids = tokens.offsets.tolist(), tokens.ids.tolist()
    return [ids[start:end] for start, end in itertools.pairwise(offsets)]


def core_bpe(engine: cpu.Engine, piece: bytes) -> tuple[list[int], int]:
    """Ids and merge steps of `sa_bpe`: one piece, no cache, no look-up of the whole piece."""
    ids = np.zeros(max(len(piece), 1), np.uint32)
    steps = ffi.new("int64_t *")
    source, target = ffi.from_buffer("uint8_t[]", piece), ffi.from_buffer("uint32_t[]", ids)
    n = lib.sa_bpe(engine.model, source, len(piece), target, steps)
    assert 0 <= n <= len(piece)
    return ids[:n].tolist(), steps[0]


# ---- references: HF and tiktoken ----


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("Hello world", [15496, 995]),
        ("it's", [270, 338]),
        ("naïve café", [2616, 38776, 40304]),
        ("日本", [33768, 98, 17312, 105]),
    ],
)
def test_ids_by_hand(isa: str, gpt2: Tokenizer, text: str, ids: list[int]) -> None:
    assert gpt2.encode(text).tolist() == ids


@pytest.mark.parametrize("corpus", ["english", "multiscript", "code", "chat_markdown"])
@pytest.mark.parametrize("every", [60, pytest.param(1, marks=pytest.mark.long)])
def test_corpora(test_data: Path, corpus: str, every: int) -> None:
    results = exact_corpora.compare(test_data / f"corpora/{corpus}.parquet", every)
    for result in results:
        print(result)
    assert len(results) >= 2
    assert all(result.differences == 0 and result.documents > 0 for result in results), results


@lru_cache(1)
def made_texts() -> tuple[list[str], list[list[int]]]:
    """Random texts and HF's ids of them, checked against tiktoken's."""
    size = oracles.FUZZ_SIZE
    texts = oracles.random_texts("exact rules", oracles.RULES, 8 * size, 80)
    texts += oracles.random_texts("exact ascii", oracles.ASCII, 8 * size, 120)
    texts += oracles.random_texts("exact words", oracles.ASCII.lower() + " the and 's", size, 2000)
    texts += oracles.random_unicode("exact unicode", 4 * size, 60)
    expected = oracles.hf_ids(oracles.hf_gpt2(), texts)
    assert oracles.tiktoken_gpt2().encode_batch(texts, allowed_special="all") == expected
    return texts, expected


def test_random_texts(isa: str) -> None:
    texts, expected = made_texts()
    found = lists(Tokenizer.load("gpt2").encode_batch(texts, special="parse"))
    for text, ids, wanted in zip(texts, found, expected, strict=True):
        assert ids == wanted, repr(text)


@pytest.mark.parametrize("file", ["gpt2/tokenizer.json", "r50k_base/r50k_base.tiktoken"])
def test_random_texts_with_files(test_data: Path, file: str) -> None:
    """The same tokenizer from a merge list, where no piece is looked up whole, and from ranks."""
    texts, expected = made_texts()
    tokenizer = Tokenizer.load(test_data / "vocabs" / file)
    assert (tokenizer.spec.bpe.merges is None) == file.endswith(".tiktoken")
    assert lists(tokenizer.encode_batch(texts, special="parse")) == expected


@oracles.fuzz(st.lists(oracles.texts, max_size=5))
def test_texts_equal_hf(texts: list[str]) -> None:
    gpt2 = shared_gpt2()
    expected = oracles.hf_ids(oracles.hf_gpt2(), texts)
    for isa in on_every_isa():
        assert lists(gpt2.encode_batch(texts, special="parse")) == expected, isa
        assert [gpt2.count(text) for text in texts] == [len(gpt2.encode(text)) for text in texts]


@lru_cache(1)
def shared_gpt2() -> Tokenizer:
    return Tokenizer.load("gpt2")


def on_every_isa() -> Iterator[str]:
    """Each instruction set in turn; for tests that hypothesis repeats, where a fixture can't."""
    before = cpu.isa()
    try:
        for isa in cpu.isas():
            cpu.select_isa(isa)
            yield isa
    finally:
        cpu.select_isa(before)


def test_every_code_point(isa: str) -> None:
    """Each scalar value between letters and after a space: all of Unicode in one batch of rows."""
    step = 1 if oracles.FUZZ_SIZE >= 1000 else 7
    chars = [chr(cp) for cp in range(0, 0x110000, step) if not 0xD800 <= cp < 0xE000]
    rows = ["".join(f"a{c}b {c}1" for c in chars[i : i + 64]) for i in range(0, len(chars), 64)]
    assert lists(shared_gpt2().encode_batch(rows)) == every_code_point(tuple(rows))


@lru_cache(1)
def every_code_point(rows: tuple[str, ...]) -> list[list[int]]:
    return oracles.hf_ids(oracles.hf_gpt2(), rows)


# ---- special ----


@pytest.mark.parametrize("special", ["plain", "parse", "hf_plain"])
def test_random_added_tokens(isa: str, special: str) -> None:
    contents = ["<a>", "<a>b", "b", "foo", "oob", "foo bar", "  ", " ", "\n", " x", "\u3000", "x> "]
    glue = ["_", "\u0301", "é", " 1", "\t"]
    for number in range(max(30, oracles.FUZZ_SIZE // 5)):
        source = oracles.rng(f"exact added {number}")
        added = [
            (content, "".join(flag for flag in "snlrw" if source.random() < 0.3))
            for content in source.sample(contents, source.randint(1, 6))
        ]
        # HF itself panics where rstrip took what an lstrip token of white space begins with.
        added = [(c, f) for c, f in added if not (c.isspace() and "l" in f)]
        spec = oracles.small_spec([(b"o", b"o"), (b" ", b"f")], added)
        texts = oracles.random_texts(f"exact added {number}", [*contents, *glue], 20, 9)
        hf = oracles.hf_of(spec, plain=special == "plain")
        expected = oracles.hf_ids(hf, texts, "parse" if special == "parse" else "hf_plain")
        found = lists(Tokenizer.from_spec(spec).encode_batch(texts, special=special))
        assert found == expected, (spec.added, texts)


def test_white_space_that_is_tokens_takes_linear_time() -> None:
    """Each of them takes the white space beside it: by looking at all of it each time, 30 s."""
    for flag in "lr":
        tokenizer = Tokenizer.from_spec(oracles.small_spec(added=[("\n", flag)]))
        begun = time.monotonic()
        assert len(tokenizer.encode("\n" * 200_000, special="parse")) == 200_000
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("special", ["plain", "parse", "hf_plain"])
def test_added_tokens_in_any_bytes(isa: str, special: str) -> None:
    contents = [b"<a>", b"foo", b"  ", "é".encode(), "\u3000".encode()]
    for number in range(max(20, oracles.FUZZ_SIZE // 10)):
        source = oracles.rng(f"bytes added {number}")
        added = [
            (content.decode(), "".join(flag for flag in "snlrw" if source.random() < 0.4))
            for content in source.sample(contents, source.randint(1, 4))
        ]
        spec = oracles.small_spec([(b"o", b"o"), (b" ", b"f")], added)
        parts = [*contents, b"\xe9", b"\xe4\xb8", b"\xc0\xa0", b"\x80", b"\xf0\x9f"]
        parts += [b" ", b"_", b"\n"]
        texts = [b"".join(source.choices(parts, k=source.randint(0, 9))) for _ in range(20)]
        tokenizer = Tokenizer.from_spec(spec)
        for text, ids in zip(
            texts, lists(tokenizer.encode_batch(texts, special=special)), strict=True
        ):
            assert ids == reference.encode(spec, text, special), (spec.added, text)
            segments = reference.special(spec, text, special)
            expected = [(start, end, token) for start, end, token in segments if token]
            assert added_spans(tokenizer, text, special) == expected, text


def added_spans(
    tokenizer: Tokenizer, text: bytes, special: str
) -> list[tuple[int, int, AddedToken]]:
    found = tokenizer._engine.find_special(special, text)
    return [(start, end, tokenizer.spec.added[index]) for start, end, index in found]


def test_cases_of_special_tokens(isa: str, test_data: Path) -> None:
    """All 40 but the five with a normalizer, which no Spec can ask for."""
    cases = json.loads((test_data / "cases/special_token_cases.json").read_text())
    cases = [case for case in cases if case["normalizer"] is None]
    for case in cases:
        contents = [token["content"] for token in case["added_tokens"]]
        made = [AddedToken(id=256 + i, **token) for i, token in enumerate(case["added_tokens"])]
        small = oracles.small_spec()
        tokenizer = Tokenizer.from_spec(Spec(tuple(made), small.pretok, small.bpe))
        text, at = case["input"], oracles.byte_positions(case["input"])
        special = "hf_plain" if case["encode_special_tokens"] else "parse"
        found = added_spans(tokenizer, text.encode(), special)
        expected = [(at[row[2]], at[row[3]]) for row in case["expected"] if row[0] == "added"]
        assert [(start, end) for start, end, _ in found] == expected, case
        assert all(token.content in contents for _, _, token in found)
    assert len(cases) == 35


def test_special_error(isa: str, gpt2: Tokenizer) -> None:
    texts = ["a", "b<|endoftext|", None, "c<|endoftext|>d"]
    with pytest.raises(InputError, match=r"row 3: .*<\|endoftext\|>.* at byte 1") as error:
        gpt2.encode_batch(texts, special="error")
    assert error.value.row == 3
    ordinary = gpt2.encode_batch(texts[:3], special="error")
    assert lists(ordinary) == lists(gpt2.encode_batch(texts[:3]))


def test_white_space_alone_is_no_error(isa: str) -> None:
    spec = oracles.small_spec(added=[("  ", ""), ("foo", "w"), ("<x>", "")])
    tokenizer = Tokenizer.from_spec(spec)
    text = "a  b foot"
    assert tokenizer.encode(text, special="error").tolist() == reference.encode(spec, text, "error")
    with pytest.raises(InputError, match="foo"):
        tokenizer.encode("a foo", special="error")


@pytest.mark.parametrize(("special", "ids"), [("plain", 0), ("parse", 2), ("hf_plain", 0)])
def test_hits_are_counted(isa: str, gpt2: Tokenizer, special: str, ids: int) -> None:
    report = Report()
    tokens = gpt2.encode_batch(["<|endoftext|>a<|endoftext|>", "b"], special=special, report=report)
    assert report.added == {"<|endoftext|>": 2}
    assert tokens.ids.tolist().count(50256) == ids


# ---- bpe ----


def pieces(count: int, longest: int) -> list[bytes]:
    """Random pieces, and those that make merging work: runs, few letters, text, any bytes."""
    source = oracles.rng("pieces")
    alphabets = [b"a", b"ab", b"e ", b"-=", bytes(range(97, 123)), bytes(range(256)), b" the and"]
    alphabets += [b"\xe4\xb8\xad\xe5\x9b\xbd", b"0123456789", b"\n\t "]
    return [
        bytes(source.choices(source.choice(alphabets), k=source.randint(1, longest)))
        for _ in range(count)
    ]


def test_bpe_equals_the_oracle(isa: str, gpt2: Tokenizer) -> None:
    spec = gpt2.spec
    merging = Spec((), spec.pretok, Bpe(spec.bpe.tokens, None, whole_piece_first=False))
    engine = cpu.Engine(build(merging), 0)
    for piece in pieces(max(60, oracles.FUZZ_SIZE // 4), 300):
        expected = reference.vocab(merging, reference.bpe(merging, reference.bytemap(piece)))
        assert core_bpe(engine, piece)[0] == expected, piece


def long_pieces() -> list[bytes]:
    source = oracles.rng("long pieces")
    lengths = [4095, 4096, 4097, 8191, 8193, 12289, 20000, 60000]
    made = [letter * n for letter in (b"a", b" ", b"-", "中".encode()) for n in lengths]
    for alphabet in (b"ab", b"etaoin", b" \n", bytes(range(97, 123)), bytes(range(128, 256))):
        made += [bytes(source.choices(alphabet, k=n)) for n in lengths]
    return made


def test_long_pieces_equal_hf(gpt2: Tokenizer) -> None:
    """Beyond any window of the merger. HF merges a piece with a heap over all of it."""
    model = oracles.hf_gpt2().model
    for piece in long_pieces():
        expected = [token.id for token in model.tokenize(oracles.as_symbols(piece))]
        assert core_bpe(gpt2._engine, piece)[0] == expected, (piece[:40], len(piece))


@pytest.mark.parametrize("shuffled", [False, True])
def test_random_vocabularies_equal_hf(shuffled: bool) -> None:
    """Merge lists no trainer would write: merges that make pairs of lower rank, tokens that two
    pairs make, tokens that are out of reach. Pieces from two bytes to several windows."""
    for number in range(max(30, oracles.FUZZ_SIZE // 10)):
        source = oracles.rng(f"vocabulary {shuffled} {number}")
        merges = oracles.random_merges(source, b"abc", 60, 64, shuffled)
        spec = oracles.small_spec(merges)
        engine = cpu.Engine(build(spec), 0)
        model = oracles.hf_of(spec).model
        for length in (2, 5, 9, 30, 47, 48, 49, 50, 100, 300, 5000, 9000):
            for letters in (b"a", b"ab", b"abc"):
                piece = bytes(source.choices(letters, k=length))
                expected = [token.id for token in model.tokenize(piece.decode())]
                assert core_bpe(engine, piece)[0] == expected, (merges, piece)


def falling_chain(source: random.Random, length: int) -> bytes:
    """Bytes in which no pair comes twice."""
    chain, pairs = [0], set()
    while len(chain) < length:
        pair = (chain[-1], source.randrange(256))
        if pair not in pairs:
            pairs.add(pair)
            chain.append(pair[1])
    return bytes(chain)


def test_what_comes_far_behind_can_decide() -> None:
    """Ranks that fall from left to right: the last pair merges first, which keeps the one before it
    from merging, and so on down to the first. No window that ends short of the end can know."""
    source = oracles.rng("chain")
    chain = falling_chain(source, 20_001)
    merges = [(chain[i : i + 1], chain[i + 1 : i + 2]) for i in range(len(chain) - 1)][::-1]
    spec = oracles.small_spec(merges)
    engine = cpu.Engine(build(spec), 0)
    model = oracles.hf_of(spec).model
    ends = (5002, 5003, 9000, 20_000, 20_001)
    made = [chain[first:last] for first in (0, 1, 5000) for last in ends]
    made += [chain * 2, chain[:9001] * 3, chain[:7000] + chain[3000:]]
    for piece in made:
        expected = [token.id for token in model.tokenize(oracles.as_symbols(piece))]
        found, steps = core_bpe(engine, piece)
        assert found == expected, len(piece)
        assert steps <= 8 * len(piece)


def test_whole_piece_first_equals_hf(isa: str) -> None:
    for number in range(max(20, oracles.FUZZ_SIZE // 10)):
        source = oracles.rng(f"whole {number}")
        merges = oracles.random_merges(source, b"abc", 60, 64)
        extra = [bytes(source.choices(b"abc", k=source.randint(2, 20))) for _ in range(10)]
        for first in (False, True):
            spec = oracles.small_spec(merges, whole_piece_first=first, extra=extra)
            words = [token.decode() for token in [*extra, *spec.bpe.tokens[256:]] if token]
            texts = [" ".join(words), *words]
            expected = oracles.hf_ids(oracles.hf_of(spec), texts)
            assert lists(Tokenizer.from_spec(spec).encode_batch(texts)) == expected, (merges, extra)


def drawn(alphabet: Sequence[int], n: int) -> bytes:
    return bytes(random.Random(1).choices(alphabet, k=n))


def cjk(n: int) -> bytes:
    return "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9FA5), k=n // 3))).encode()


# n bytes of what makes one endless piece.
HARD: dict[str, Callable[[int], bytes]] = {
    "one letter": lambda n: b"a" * n,
    "random letters": lambda n: drawn(range(97, 123), n),
    "two letters": lambda n: drawn(b"ab", n),
    "spaces": lambda n: b" " * n,
    "newlines": lambda n: b"\n" * n,
    "cjk": cjk,
    "one cjk": lambda n: "的".encode() * (n // 3),
    "dashes": lambda n: b"-=" * (n // 2),
    "digits": lambda n: drawn(b"0123456789", n),
    "stray bytes": lambda n: drawn(range(128, 192), n),
}


@pytest.mark.parametrize("size", [1 << 20, pytest.param(10 << 20, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", HARD)
def test_merge_steps_are_bounded(gpt2: Tokenizer, name: str, size: int) -> None:
    """Merges of one endless piece: no more than five for four bytes, so time grows in proportion;
    and the ids are HF's."""
    text = HARD[name](size)
    ids, steps = core_bpe(gpt2._engine, text)
    assert steps <= 1.25 * len(text)
    batch = Batch(np.frombuffer(text, np.uint8), np.array([0, len(text)], np.int64))
    done = cpu.Engine(gpt2._engine.plan, 0).encode(batch, "plain", 1)
    assert done.merge_steps <= 1.25 * len(text)
    assert len(text) - len(ids) <= steps
    part = text[:99_999]  # a whole number of characters of three bytes
    expected = [token.id for token in oracles.hf_gpt2().model.tokenize(oracles.as_symbols(part))]
    assert core_bpe(gpt2._engine, part)[0] == expected
    assert gpt2.decode_bytes(done.ids) == text


# ---- the cache ----


def test_cache_of_many_pieces(isa: str) -> None:
    """More distinct pieces than a small cache holds, of every length around its tables' limits."""
    source = oracles.rng("many")
    words = [
        "".join(source.choices("etaoinéß", k=n)) for n in [*range(1, 70), 127, 250, 255, 256, 300]
    ]
    words += ["".join(source.choices("abcdefgh", k=source.randint(1, 18))) for _ in range(6000)]
    rows = [" ".join(source.choices(words, k=60)) for _ in range(300)]
    expected = cached_rows(tuple(rows))
    for cache_bytes in (0, 4096, 1 << 17, None):
        tokenizer = Tokenizer.load("gpt2", cache_bytes=cache_bytes)
        for _ in range(2):
            assert lists(tokenizer.encode_batch(rows, threads=1)) == expected, cache_bytes


@lru_cache(1)
def cached_rows(rows: tuple[str, ...]) -> list[list[int]]:
    return oracles.hf_ids(oracles.hf_gpt2(), rows)


def test_pieces_that_differ_in_length_alone(isa: str, gpt2: Tokenizer) -> None:
    """Keys padded with zeros, or of inverted bytes, would take these for each other."""
    firsts, pads = (b"", b"!", b"?!"), (b"\0", b"\xff")
    rows = [first + pad * n for first in firsts for pad in pads for n in range(40)]
    source = oracles.rng("padding")
    for _ in range(3):
        source.shuffle(rows)
        for row, ids in zip(rows, lists(gpt2.encode_batch(rows, threads=1)), strict=True):
            assert ids == reference.encode(gpt2.spec, row), row


# ---- decode ----


def test_decode_gives_the_bytes_back(isa: str, gpt2: Tokenizer) -> None:
    for data in oracles.random_bytes("decode", 4 * oracles.FUZZ_SIZE, 200):
        assert gpt2.decode_bytes(gpt2.encode(data)) == data
    for text, _ in zip(*made_texts(), strict=True):
        assert gpt2.decode(gpt2.encode(text, special="parse")) == text


@oracles.fuzz(oracles.any_bytes)
def test_decode_gives_any_bytes_back(data: bytes) -> None:
    gpt2 = shared_gpt2()
    assert gpt2.decode_bytes(gpt2.encode(data, special="parse")) == data


# ---- what must not matter ----


@pytest.mark.parametrize("cache_bytes", [0, 1, 4096, 65536, None])
def test_the_cache_does_not_matter(isa: str, cache_bytes: int | None) -> None:
    texts, expected = made_texts()
    tokenizer = Tokenizer.load("gpt2", cache_bytes=cache_bytes)
    for _ in range(2):
        assert lists(tokenizer.encode_batch(texts, special="parse")) == expected
    assert lists(tokenizer.encode_batch(texts[::-1], special="parse")) == expected[::-1]


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_threads_do_not_matter(threads: int) -> None:
    """Enough text for every thread to get some, in long rows and in short ones."""
    texts, expected = made_texts()
    many = max(1, 3_000_000 // sum(len(text.encode()) for text in texts))
    tokenizer = Tokenizer.load("gpt2")
    found = tokenizer.encode_batch(texts * many, special="parse", threads=threads)
    assert lists(found) == expected * many
    joined = ["\n".join(texts)] * 9
    one = tokenizer.encode(joined[0], special="parse").tolist()
    assert lists(tokenizer.encode_batch(joined, special="parse", threads=threads)) == [one] * 9


@pytest.mark.parametrize("special", ["plain", "parse"])
def test_rows_that_threads_share(special: str) -> None:
    """Rows of over half a megabyte are encoded in parts: beside short ones, with pieces as long as
    a part, with and without added tokens."""
    source = oracles.rng("long rows")
    texts, _ = made_texts()
    hf = oracles.hf_gpt2()

    def long(size: int) -> str:
        return "".join(source.choices(texts, k=size * 2))[:size].replace(oracles.END_OF_TEXT, "")

    rows = [
        "short",
        long(700_000),
        "",
        long(300_000) + " " * 400_000 + "x" * 300_000 + long(300_000),
        f"a{oracles.END_OF_TEXT}{long(600_000)}",
        "1" * 600_000,
    ]
    expected = [hf.encode(row).ids for row in rows]
    if special == "plain":
        rows.pop(4), expected.pop(4)
    tokenizer = Tokenizer.load("gpt2")
    for threads in (1, 2, 3):
        assert lists(tokenizer.encode_batch(rows, special=special, threads=threads)) == expected  # type: ignore[arg-type]


def cut(data: bytes, source: random.Random, rows: int) -> list[bytes]:
    at = sorted([0, len(data), *(source.randint(0, len(data)) for _ in range(rows - 1))])
    return [data[start:end] for start, end in itertools.pairwise(at)]


def test_rows_cut_anywhere(isa: str, gpt2: Tokenizer) -> None:
    """A row's ids do not depend on the text beside it, nor on where it lies."""
    texts, _ = made_texts()
    source = oracles.rng("cut")
    data = "".join(source.sample(texts, min(len(texts), 400))).encode()
    for rows in (2, 50, 700):
        parts = cut(data, source, rows)
        expected = [reference.encode(gpt2.spec, part) for part in parts if len(part) < 200]
        found = lists(gpt2.encode_batch(parts))
        assert [ids for ids, part in zip(found, parts, strict=True) if len(part) < 200] == expected
        assert found == [gpt2.encode(part).tolist() for part in parts]
        for kind in (pa.binary(), pa.large_binary()):
            column = pa.array(parts, kind)
            assert gpt2.encode_arrow(column).to_pylist() == found
            first, last = sorted(source.sample(range(rows + 1), 2))
            assert gpt2.encode_arrow(column[first:last]).to_pylist() == found[first:last]


def test_null_and_empty_rows(isa: str, gpt2: Tokenizer) -> None:
    rows: Sequence[bytes | None] = [None, b"", b"a", None, b"\xff", b"", b" b", None]
    found = gpt2.encode_arrow(pa.array(rows, pa.binary())).to_pylist()
    assert found == [None if row is None else gpt2.encode(row).tolist() for row in rows]


@pytest.mark.parametrize("cache_bytes", [1 << 16, 1 << 18])
def test_pieces_merged_twice_in_a_full_cache(isa: str, cache_bytes: int) -> None:
    """Where the table behind the hot ones takes no more, an odd word is merged again and again."""
    source = random.Random(1)
    letters = "bcdfghjklmnpqrstvwxz"
    odd = ["".join(source.choices(letters, k=k)) for k in (6, 7, 12, 14, 15) for _ in range(40)]
    words = [
        "".join(source.choices(letters, k=3)) if source.random() < 0.8 else source.choice(odd)
        for _ in range(9000)
    ]
    text = " ".join(words)
    expected = Tokenizer.load("gpt2", cache_bytes=0).encode(text).tolist()
    tokenizer = Tokenizer.load("gpt2", cache_bytes=cache_bytes)
    for _ in range(2):
        assert tokenizer.encode(text).tolist() == expected
