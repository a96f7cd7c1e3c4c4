"""The embedded vocabularies and the compact form they are kept in."""

from __future__ import annotations

import base64
import hashlib
import random
import struct
import time
import zlib
from pathlib import Path

import pytest

from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders import _compact

VOCABS = Path(__file__).resolve().parent.parent / "tables" / "vocabs"

# The sha256 of each rank file as its publisher gives it.
PUBLISHED = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
EMBEDDED = sorted(VOCABS.glob("*.bin"))


def text_of(tokens: list[bytes]) -> bytes:
    """A rank file, written here in the plainest way."""
    lines = [base64.b64encode(token).decode() + f" {rank}" for rank, token in enumerate(tokens)]
    return "".join(line + "\n" for line in lines).encode()


def test_what_is_embedded() -> None:
    assert [path.stem for path in EMBEDDED] == sorted(PUBLISHED)
    assert (VOCABS / "LICENSE-VOCABS").is_file()


@pytest.mark.parametrize("path", EMBEDDED, ids=lambda path: path.stem)
def test_embedded_is_the_published_file(path: Path) -> None:
    data = path.read_bytes()
    tokens = _compact.decode(data)
    assert hashlib.sha256(text_of(tokens)).hexdigest() == PUBLISHED[path.stem]
    assert _compact.sha256_of(data) == PUBLISHED[path.stem]
    assert _compact.rank_file(tokens) == text_of(tokens)


@pytest.mark.parametrize(
    ("name", "size", "seconds"), [("r50k_base", 170_000, 0.1), ("o200k_base", 750_000, 0.4)]
)
def test_size_and_time(name: str, size: int, seconds: float) -> None:
    """The bounds are wide: on an idle core it takes 0.015 and 0.06 seconds."""
    data = (VOCABS / f"{name}.bin").read_bytes()
    assert len(data) < size
    times = []
    for _ in range(5):
        start = time.process_time()
        _compact.decode(data)
        times.append(time.process_time() - start)
    assert min(times) < seconds


@pytest.mark.parametrize("name", PUBLISHED)
def test_rank_files_round_trip(name: str, test_data: Path) -> None:
    text = (test_data / "vocabs" / name / f"{name}.tiktoken").read_bytes()
    assert hashlib.sha256(text).hexdigest() == PUBLISHED[name]
    tokens = [base64.b64decode(line.split()[0]) for line in text.splitlines()]
    data = _compact.encode(tokens)
    assert _compact.decode(data) == tokens
    assert _compact.sha256_of(data) == PUBLISHED[name]
    assert len(data) < 0.3 * len(text)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [b"a"],
        [b"ab"],
        [b"ab", b"a", b"b", b"abab", b"aba"],
        [b"a", b"a", b"aa", b"aa"],
        [bytes([b]) for b in range(256)] + [b"\0\0", b"\0\0\0\0", b"x" * 5000],
    ],
    ids=["none", "one", "literal", "pairs", "twice", "bytes"],
)
def test_small_vocabularies_round_trip(tokens: list[bytes]) -> None:
    assert _compact.decode(_compact.encode(tokens)) == tokens


def test_random_vocabularies_round_trip() -> None:
    rng = random.Random(2)
    for _ in range(200):
        tokens = [
            bytes(rng.choices(b"abc", k=rng.randint(1, 9))) for _ in range(rng.randint(0, 60))
        ]
        assert _compact.decode(_compact.encode(tokens)) == tokens


def test_empty_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        _compact.encode([b"a", b""])


# ---- damaged files ----


def small() -> bytes:
    letters = [bytes([b]) for b in b"abcdefgh"]
    return _compact.encode([*letters, b"ab", b"cd", b"abcd", b"abcdabcd", b"long literal", b"gh"])


def refused(data: bytes) -> None:
    with pytest.raises(TokenizerFileError, match="compact vocabulary"):
        _compact.decode(data)


def test_every_truncation_is_refused() -> None:
    data = small()
    for length in range(len(data)):
        refused(data[:length])
    refused(data + b"\0")


def test_every_flipped_bit_is_refused() -> None:
    data = small()
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            refused(bytes(damaged))


def test_random_damage_is_refused() -> None:
    rng = random.Random(3)
    data = (VOCABS / "r50k_base.bin").read_bytes()
    for _ in range(30):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(data))] ^= rng.randint(1, 255)
        refused(bytes(damaged))
    refused(b"")
    refused(b"SAVOCAB2" + data[8:])


def forged(n: int, m: int, total: int, body: bytes) -> bytes:
    """A well-formed file around any contents: what damage alone would hardly reach."""
    header = struct.pack("<8sIIQ", _compact.MAGIC, n, m, total) + bytes(32)
    stream = zlib.compress(body)
    return header + hashlib.sha256(header + stream).digest() + stream


def planes(pairs: list[tuple[int, int]]) -> bytes:
    return b"".join(
        bytes(pair[side] >> 8 * place & 0xFF for pair in pairs)
        for side in (0, 1)
        for place in range(3)
    )


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def test_forgery_reaches_the_contents() -> None:
    data = forged(3, 1, 7, words(0, 1) + b"a" + planes([(0, 0), (1, 1)]))
    assert _compact.decode(data) == [b"a", b"aa", b"aaaa"]


@pytest.mark.parametrize(
    "data",
    [
        forged(2**32 - 1, 0, 0, b""),
        forged(1, 2, 0, b""),
        forged(1, 1, 2**63, words(0, 1) + b"a"),
        forged(2, 1, 3, words(0, 2**31) + b"a" + planes([(0, 0)])),
        forged(2, 1, 3, words(7, 1) + b"a" + planes([(0, 0)])),
        forged(3, 2, 9, words(1, 0, 1, 1) + b"ab" + planes([(0, 0)])),
        forged(3, 2, 9, words(0, 0, 1, 1) + b"ab" + planes([(0, 0)])),
        forged(2, 1, 3, words(0, 1) + b"a" + planes([(0, 2)])),
        forged(2, 1, 3, words(0, 1) + b"a" + planes([(1, 1)])),
        forged(2, 1, 3, words(0, 1) + b"a" + planes([(0, 0)])[:-1]),
        forged(1, 1, 0, words(0, 0)),
        forged(3, 0, 0, planes([(0, 0)] * 3)),
        forged(1, 1, 1, b"\0" * 50_000_000),
        forged(2, 1, 4, words(0, 1) + b"a" + planes([(0, 0)])),
    ],
    ids=lambda data: str(len(data)),
)
def test_hostile_contents_are_refused(data: bytes) -> None:
    refused(data)


def test_a_doubling_chain_is_refused_in_bounded_memory() -> None:
    chain = [(i, i) for i in range(100)]
    refused(forged(101, 1, 1 << 20, words(0, 1) + b"a" + planes(chain)))
