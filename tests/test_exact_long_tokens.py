"""Tokens that no merges reach, of any length: a piece equal to one is that token anywhere."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

from saphira_gpu import Tokenizer, UnsupportedError
from saphira_gpu.batch import Batch
from saphira_gpu.spec import Bpe, Pretok, Spec

# Around the bounds of keys (15), entries (44), merges in lanes (64), what the cache keeps (255,
# and 192 as a last block of 64 bytes counts whole), windows (4,096).
LENGTHS = (2, 15, 16, 44, 45, 64, 65, 192, 193, 200, 254, 255, 256, 257, 300, 1000, 4096)
CHUNK = 8192  # SA_CHUNK_BYTES


@pytest.fixture(scope="module")
def spec() -> Spec:
    """Without merges, so that every token of two bytes or more is whole or not at all."""
    letters = [b"x" * n for n in LENGTHS]
    return oracles.small_spec(whole_piece_first=True, extra=letters)


@pytest.mark.parametrize("cache_bytes", [0, 64 << 10, None])
def test_whole_tokens_of_any_length(isa: str, spec: Spec, cache_bytes: int | None) -> None:
    tokenizer = Tokenizer.from_spec(spec, cache_bytes=cache_bytes)
    for n in LENGTHS:
        piece, id = b"x" * n, 254 + 2 + LENGTHS.index(n)
        assert tokenizer.encode(piece).tolist() == [id]
        assert tokenizer.encode(b"1" + piece).tolist() == [ord("1"), id]
        assert tokenizer.encode(piece + b"1").tolist() == [id, ord("1")]
        for before in (0, 1, 63, 64, 191, 192, 254, 255, 256, 300):
            if before > n:
                continue
            head = (b"1 " * CHUNK)[: CHUNK - before - 1] + b"1"  # no token but single bytes
            assert tokenizer.encode(head + piece).tolist() == [*head, id], (n, before)
            twice = [*head, id, *b" x1", id]
            assert tokenizer.encode(head + piece + b" x1" + piece).tolist() == twice, (n, before)


def test_a_full_vocabulary_is_refused() -> None:
    """2^20 ids: a pair of the last one with itself would look like an empty slot."""
    tokens = [bytes([byte]) for byte in range(256)] + [None] * ((1 << 20) - 257) + [b"ab"]
    spec = Spec((), Pretok("gpt2"), Bpe(tuple(tokens), ((97, 98, len(tokens) - 1),)), name="full")
    with pytest.raises(UnsupportedError, match="1048576 ids; at most 1048575"):
        Tokenizer.from_spec(spec)
    fits = Bpe((*tokens[:-2], b"ab"), ((97, 98, len(tokens) - 2),))
    assert (
        Tokenizer.from_spec(Spec((), Pretok("gpt2"), fits, name="fits")).encode("abab").tolist()
        == [len(tokens) - 2] * 2
    )


def test_misses_of_a_shared_row_are_counted(gpt2: Tokenizer) -> None:
    """Threads that share a row miss what one thread misses, and some of it twice."""
    rng = np.random.default_rng(3)
    words = rng.integers(97, 123, (100_000, 9), np.uint8)
    words[:, 0] = 32
    data = words.reshape(-1)
    batch = Batch(data, np.array([0, len(data)], np.int64))
    engine = Tokenizer.load("gpt2")._engine
    alone = engine.encode(batch, "plain", 1)
    shared = Tokenizer.load("gpt2")._engine.encode(batch, "plain", 2)
    assert shared.pieces == alone.pieces and shared.cache_misses >= alone.cache_misses
