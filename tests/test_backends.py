"""The C core's tags and piece starts on every instruction set, through cffi.

Expected results come from literals, from the shared case files (SAPHIRA_TEST_DATA), from Hugging
Face `tokenizers`, and from `reference.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import oracles
import pyarrow.parquet as pq
import pytest
import tiktoken
from saphira_gpu._core import ffi, lib
from tokenizers import Regex, pre_tokenizers

from saphira_gpu import reference, reference_patterns
from saphira_gpu._resources import resource

ALPHABETS = (lib.SA_ALPHABET_SUPERATOMS, lib.SA_ALPHABET_SCRIPTS)
TABLES = json.loads(resource("tables/generated/schemes.json").read_text("utf-8"))
SCHEMES = {
    ffi.string(lib.sa_scheme_name(number)).decode(): number
    for number in range(lib.sa_scheme_count())
}
# Names in the case files -> scheme.
CASES = {
    "ByteLevel": "gpt2",
    "Regex/gpt2": "gpt2",
    "tiktoken/r50k": "gpt2",
    "Regex/llama3": "llama3",
    "Regex/qwen2": "qwen2",
    "Regex/qwen35": "qwen35",
    "tiktoken/cl100k": "cl100k",
    "Regex/o200k": "o200k",
    "tiktoken/o200k": "o200k",
    "Regex/tekken": "tekken",
    "Seq/starcoder": "starcoder",
}


def rows_of(texts: Sequence[bytes], bits: int = 64) -> tuple[object, bytes, np.ndarray]:
    """The C struct of rows (with what it points to), their bytes and offsets."""
    data = b"".join(texts)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64 if bits == 64 else np.int32)
    rows = ffi.new("sa_rows *")
    keep = ffi.from_buffer(data)
    rows.text = ffi.cast("const uint8_t *", keep)
    rows.offsets = ffi.cast("const void *", offsets.ctypes.data)
    rows.offset_bits = bits
    rows.n_rows = len(texts)
    return (rows, keep), data, offsets


def bits_of(words: np.ndarray, n: int) -> np.ndarray:
    """Positions of the set bits."""
    flags = np.unpackbits(words.view(np.uint8), bitorder="little")
    assert not flags[n:].any()
    return np.flatnonzero(flags)


def classify(
    alphabet: int, texts: Sequence[bytes], bits: int = 64
) -> tuple[np.ndarray, np.ndarray]:
    """Tags (uint8, one a byte) and positions of the character starts (int64)."""
    (rows, _keep), data, _offsets = rows_of(texts, bits)
    tags = np.empty(len(data), np.uint8)
    words = np.empty((len(data) + 63) // 64, np.uint64)
    assert (
        lib.sa_classify(
            alphabet, rows, ffi.from_buffer("uint8_t[]", tags), ffi.from_buffer("uint64_t[]", words)
        )
        == 0
    )
    return tags, bits_of(words, len(data))


def starts(scheme: str, texts: Sequence[bytes], bits: int = 64) -> np.ndarray:
    """Positions of the piece starts in the joined texts, int64."""
    (rows, _keep), data, _offsets = rows_of(texts, bits)
    words = np.empty((len(data) + 63) // 64, np.uint64)
    assert lib.sa_boundaries(SCHEMES[scheme], rows, ffi.from_buffer("uint64_t[]", words)) == 0
    return bits_of(words, len(data))


def split(scheme: str, texts: Sequence[bytes]) -> list[list[bytes]]:
    """Pieces of each text."""
    data = b"".join(texts)
    at = starts(scheme, texts).tolist()
    pieces = itertools.pairwise([*at, len(data)])
    result: list[list[bytes]] = []
    position = 0
    for text in texts:
        position += len(text)
        own: list[bytes] = []
        while sum(map(len, own)) < len(text):
            start, end = next(pieces)
            own.append(data[start:end])
        assert b"".join(own) == text
        result.append(own)
    return result


# ---- literals ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"Hello world", [b"Hello", b" world"]),
        (b"we'll 'll it's'", [b"we", b"'ll", b" '", b"ll", b" it", b"'s", b"'"]),
        (b"'sx'rex''s", [b"'s", b"x", b"'re", b"x", b"''", b"s"]),
        (b"a  b\n\n c", [b"a", b" ", b" b", b"\n\n", b" c"]),
        ("a \u3000b".encode(), [b"a", b" ", "\u3000".encode(), b"b"]),
        (b"\xe4\xb8A", [b"\xe4\xb8", b"A"]),  # a failed lead
        (b"\xe4\xb8", [b"\xe4", b"\xb8"]),  # truncated: two lone bytes, a letter and a symbol
        (b"\xf0\x9f\x98", [b"\xf0\x9f\x98"]),  # three lone bytes, all letters
        (b" \xc0\xa0b", [b" ", b"\xc0\xa0", b"b"]),  # an overlong space is white, not the space
        (b"\xc0\xa7s", [b"\xc0\xa7", b"s"]),  # an overlong apostrophe makes no contraction
        (b"\xf0\x80\x80\xa0 x", [b"\xf0\x80\x80\xa0", b" x"]),  # white space of four bytes
    ],
)
def test_pieces_by_hand(isa: str, text: bytes, expected: list[bytes]) -> None:
    assert split("gpt2", [text]) == [expected]


def test_every_place_in_a_block(isa: str) -> None:
    """The same rows behind 0..130 bytes of another row."""
    rows = [b"don't", b"", b"x  y", b"\xf0\x9f\x98\x80!", b"\xe3\x80\x80\xe3\x80\x80a", b"'", b"s"]
    expected = split("gpt2", rows)
    assert expected[2] == [b"x", b" ", b" y"]
    for shift in range(131):
        assert split("gpt2", [b"-" * shift, *rows])[1:] == expected


@pytest.mark.parametrize("bits", [32, 64])
def test_tags_by_hand(isa: str, bits: int) -> None:
    text = "aA1 \n'/é中\u0301😀".encode() + b"\xff\xe4\xb8"
    tags, chars = classify(lib.SA_ALPHABET_SUPERATOMS, [text], bits)
    lone = [9, 9, 10]  # the symbols of FF (y with diaeresis), E4 (a with diaeresis), B8 (cedilla)
    c = 0xFF
    assert tags.tolist() == [9, 7, 6, 3, 2, 30, 31, 9, c, 25, c, c, 13, c, 10, c, c, c, *lone]
    assert chars.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 14, 18, 19, 20]
    scripts, _ = classify(lib.SA_ALPHABET_SCRIPTS, ["aж中 ".encode()], bits)
    assert scripts.tolist() == [60, 28, c, 42, c, c, 0]


def test_remap(isa: str) -> None:
    table = np.arange(100, 132, dtype=np.uint8)
    tags = np.array([*range(32), 0xFF] * 5, np.uint8)
    out = np.empty_like(tags)
    assert (
        lib.sa_remap(
            ffi.from_buffer("uint8_t[]", table),
            ffi.from_buffer("uint8_t[]", tags),
            len(tags),
            ffi.from_buffer("uint8_t[]", out),
        )
        == 0
    )
    assert out.tolist() == [*range(100, 132), 0xFF] * 5


def test_arguments_are_checked() -> None:
    (rows, _keep), _data, _offsets = rows_of([b"x"])
    out = np.zeros(1, np.uint64)
    words = ffi.from_buffer("uint64_t[]", out)
    assert lib.sa_boundaries(lib.sa_scheme_count(), rows, words) == lib.SA_ERR_ARGUMENT
    assert lib.sa_boundaries(-1, rows, words) == lib.SA_ERR_ARGUMENT
    assert lib.sa_classify(2, rows, ffi.new("uint8_t[1]"), words) == lib.SA_ERR_ARGUMENT
    assert lib.sa_isa_select(lib.SA_ISA_COUNT) == lib.SA_ERR_ARGUMENT
    assert lib.sa_scheme_name(lib.sa_scheme_count()) == ffi.NULL
    assert lib.sa_table(b"no such table", ffi.NULL) == ffi.NULL


def test_utf8_rows(isa: str) -> None:
    good = [b"", b"a", "é中😀".encode(), b"\xf4\x8f\xbf\xbf", b"\xed\x9f\xbf", b"\x00" * 200]
    bad = [b"\x80", b"\xc0\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf5"]
    bad += [b"a" * 63 + b"\xc3", b"\xa9", b"\xf0\x9f\x98", "é".encode() * 40 + b"\xff"]
    texts = [text for pair in zip(good * 2, bad, strict=False) for text in pair]
    (rows, _keep), _data, _offsets = rows_of(texts)
    out = np.empty(len(texts), np.uint8)
    count = lib.sa_utf8_invalid(rows, ffi.from_buffer("uint8_t[]", out))
    assert out.tolist() == [0, 1] * len(bad)
    assert count == len(bad)


# ---- the environment ----


def run_python(code: str, isa: str) -> str:
    environment = {**os.environ, "SAPHIRA_ISA": isa}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_environment_forces_an_instruction_set(isa: str) -> None:
    code = (
        "from saphira_gpu._core import ffi, lib\n"
        "print(ffi.string(lib.sa_isa_name(lib.sa_isa_active())).decode())\n"
        "assert lib.sa_isa_refused() == ffi.NULL"
    )
    assert run_python(code, isa) == isa


@pytest.mark.parametrize("name", ["sse9", "AVX2", "neon"])
def test_unknown_instruction_set_is_kept_for_the_error(name: str) -> None:
    if name == "neon" and lib.sa_isa_available(lib.SA_ISA_NEON):
        pytest.skip("this processor has NEON")
    code = (
        "from saphira_gpu._core import ffi, lib\nprint(ffi.string(lib.sa_isa_refused()).decode())"
    )
    assert run_python(code, name) == name


# ---- against other implementations ----


def test_byte_contract_cases(isa: str, test_data: Path) -> None:
    cases = json.loads((test_data / "cases" / "byte_contract_cases.json").read_text())
    texts = [bytes.fromhex(case["hex"]) for case in cases]
    got = split("gpt2", texts)
    assert [[piece.hex() for piece in pieces] for pieces in got] == [
        case["expected_r50k_spans"] for case in cases
    ]
    invalid = [int(not case["valid_utf8"]) for case in cases]
    (rows, _keep), _data, _offsets = rows_of(texts)
    out = np.empty(len(texts), np.uint8)
    lib.sa_utf8_invalid(rows, ffi.from_buffer("uint8_t[]", out))
    assert out.tolist() == invalid


def test_pretokenizer_cases(isa: str, test_data: Path) -> None:
    texts: dict[str, list[bytes]] = {}
    expected: dict[str, list[list[bytes]]] = {}
    with (test_data / "cases" / "pretokenizer_cases.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            name = case["pretokenizer"]
            if name in CASES:
                text = case["input"].encode()
                texts.setdefault(name, []).append(text)
                expected.setdefault(name, []).append(
                    [text[start:end] for *_, start, end in case["expected"]]
                )
    assert set(texts) == set(CASES)
    for name in CASES:
        assert split(CASES[name], texts[name]) == expected[name], name


PATTERNS = {scheme["name"]: scheme["patterns"] for scheme in TABLES["schemes"]}


DENSE = [*"aB1 \n\r'/-s\u0301\u4e2d\u00a0\x01\u3007\u2e80\u30fb", "<|endoftext|>", "<|"]


def hf_pieces(pattern: str | list[str], texts: Sequence[str]) -> list[list[bytes]]:
    """Pieces by HF's Split(Regex, Isolated), or by several in a row."""
    patterns = pattern if isinstance(pattern, list) else [pattern]
    splits = [pre_tokenizers.Split(Regex(one), "isolated") for one in patterns]
    splitter = pre_tokenizers.Sequence(splits)
    return [[piece.encode() for piece, _ in splitter.pre_tokenize_str(text)] for text in texts]


@pytest.mark.parametrize("scheme", [name for name in PATTERNS if "hf" in PATTERNS[name]])
def test_random_text_equals_hf_by_its_pattern(isa: str, scheme: str) -> None:
    texts = oracles.random_texts(f"schemes {scheme}", oracles.RULES, 300, 120)
    texts += oracles.random_texts(f"dense {scheme}", DENSE, 600, 40)
    got = split(scheme, [text.encode() for text in texts])
    for text, pieces, expected in zip(
        texts, got, hf_pieces(PATTERNS[scheme]["hf"], texts), strict=True
    ):
        assert pieces == expected, text


def test_starcoder_equals_hf(isa: str) -> None:
    digits, pattern = pre_tokenizers.Digits(True), Regex(PATTERNS["gpt2"]["hf"])
    sequence = pre_tokenizers.Sequence([digits, pre_tokenizers.Split(pattern, "isolated")])
    texts = oracles.random_texts("starcoder", oracles.RULES, 400, 120)
    texts += oracles.random_texts("starcoder dense", "a1\u00b2 \n's\U00011de0.", 600, 40)
    got = split("starcoder", [text.encode() for text in texts])
    for text, pieces in zip(texts, got, strict=True):
        expected = [piece.encode() for piece, _ in sequence.pre_tokenize_str(text)]
        assert pieces == expected, text


@pytest.mark.parametrize("scheme", [name for name in PATTERNS if "tiktoken" in PATTERNS[name]])
def test_random_text_equals_tiktoken_by_its_pattern(isa: str, scheme: str) -> None:
    """Each piece of ours is made a token: tiktoken's tokens are its pieces if it splits alike."""
    texts = oracles.random_texts(f"tiktoken {scheme}", oracles.RULES, 300, 60)
    texts += oracles.random_texts(f"dense {scheme}", DENSE, 600, 40)
    got = split(scheme, [text.encode() for text in texts])
    tokens = dict.fromkeys(bytes([b]) for b in range(256))
    tokens.update(dict.fromkeys(piece for pieces in got for piece in pieces))
    encoding = tiktoken.Encoding(
        scheme,
        pat_str=PATTERNS[scheme]["tiktoken"],
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens={},
    )
    for text, pieces in zip(texts, got, strict=True):
        assert encoding.decode_tokens_bytes(encoding.encode_ordinary(text)) == pieces, text


def sample(folder: Path) -> Iterable[str]:
    """The first documents of each corpus."""
    for path in sorted((folder / "corpora").glob("*.parquet")):
        table = pq.ParquetFile(path).read_row_group(0).column(0)
        yield from (text.as_py() for text in table.slice(0, 25))


def test_corpora_equal_hf(isa: str, test_data: Path) -> None:
    texts = [text[:8000] for text in sample(test_data)]
    encoded = [text.encode() for text in texts]
    got = split("gpt2", encoded)
    for text, raw, pieces in zip(texts, encoded, got, strict=True):
        assert pieces == [raw[start:end] for start, end in oracles.hf_spans(text)]


def test_random_text_equals_hf(isa: str) -> None:
    texts = oracles.random_texts("backends", oracles.RULES, 400, 200)
    texts += oracles.random_unicode("backends", 200, 100)
    encoded = [text.encode() for text in texts]
    for text, raw, pieces in zip(texts, encoded, split("gpt2", encoded), strict=True):
        assert pieces == [raw[start:end] for start, end in oracles.hf_spans(text)], text


# Bytes that belong to no character, next to what the rules look at.
BROKEN = [
    b"\xe3\x81",
    b"\xe3",
    b"\x81",
    b"\xf0\x9f",
    b"\xc3",
    b"\xff",
    b"\xc0\xa7",
    b"1",
    b"a",
    b" ",
    b"!",
    b"\n",
]
BROKEN += [
    text.encode() for text in ("\u4e2d", "\u0301", "\u3007", "\u30fb", "<|endoftext|>", "'s")
]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_bytes_equal_the_reference(isa: str, scheme: str) -> None:
    texts = oracles.random_bytes("backends", 400, 60)
    random = np.random.default_rng(oracles.FUZZ_SEED)
    texts += [b"".join(random.choice(BROKEN, 8).tolist()) for _ in range(400)]
    for text, pieces in zip(texts, split(scheme, texts), strict=True):
        spans = reference_patterns.pieces(scheme, text, reference.classify(text))
        assert pieces == [text[start:end] for start, end in spans], text.hex()


def test_instruction_sets_agree_on_the_corpora(test_data: Path) -> None:
    texts = [text.encode() for text in sample(test_data)]
    before = lib.sa_isa_active()
    results = []
    for number in range(lib.SA_ISA_COUNT):
        if lib.sa_isa_select(number) == 0:
            found = [starts(scheme, texts).tobytes() for scheme in SCHEMES]
            for alphabet in ALPHABETS:
                tags, chars = classify(alphabet, texts)
                found += [tags.tobytes(), chars.tobytes()]
            results.append(found)
    lib.sa_isa_select(before)
    assert all(found == results[0] for found in results)
