"""Small models for the cases of stage bpe, each hard for a merging kernel in a way of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from saphira_gpu import loaders
from saphira_gpu.engines.cpu import Engine
from saphira_gpu.plan import build
from saphira_gpu.spec import Bpe, Pretok, Spec

BYTES = tuple(bytes([byte]) for byte in range(256))


@cache
def engine_of(name: str) -> Engine:
    """An embedded model, or one of those made up below."""
    return Engine(build(_MADE[name]() if name in _MADE else loaders.load(name)))


def _merging(pairs: Sequence[tuple[bytes, bytes]], **more: Any) -> Spec:
    tokens = list(BYTES)
    ids = {token: i for i, token in enumerate(tokens)}
    for left, right in pairs:
        if left + right not in ids:
            ids[left + right] = len(tokens)
            tokens.append(left + right)
    triples = [(ids[left], ids[right], ids[left + right]) for left, right in pairs]
    return Spec((), Pretok("gpt2"), Bpe(tuple(tokens), tuple(triples), **more), name="made")


def _random_pairs(source: random.Random, letters: bytes, n: int, longest: int) -> Any:
    tokens = [bytes([letter]) for letter in letters]
    pairs: list[tuple[bytes, bytes]] = []
    while len(pairs) < n:
        left, right = source.choice(tokens), source.choice(tokens)
        if len(left + right) <= longest and left + right not in tokens:
            pairs.append((left, right))
            tokens.append(left + right)
    return pairs


def shuffled() -> Spec:
    """Not monotone: ranks in no order of what is made of what."""
    source = random.Random(5)
    pairs = _random_pairs(source, b"abc", 60, 12)
    source.shuffle(pairs)
    return _merging(pairs)


def few() -> Spec:
    return _merging(_random_pairs(random.Random(6), b"abcde", 80, 15))


def long_tokens() -> Spec:
    """Tokens so long that windows of the usual size don't do."""
    return _merging([(b"a" * (1 << i), b"a" * (1 << i)) for i in range(11)])


def long_shuffled() -> Spec:
    pairs = [(b"a" * (1 << i), b"a" * (1 << i)) for i in range(11)] + [(b"b", b"a"), (b"a", b"b")]
    return _merging([pairs[i] for i in (1, 0, 11, 3, 2, 5, 4, 12, 6, 10, 9, 8, 7)])


def chain() -> Spec:
    """What merges is decided from the right end of a run of bytes, each one more than the last."""
    return _merging([(bytes([i]), bytes([i + 1])) for i in reversed(range(1, 200))])


def headed_chain() -> Spec:
    """As chain, with a token that takes the first byte of a run if nothing else does."""
    pairs = [(bytes([i]), bytes([i + 1])) for i in reversed(range(1, 50))]
    return _merging([(b"x", b"\x01"), *pairs, (b"x\x01", b"\x01")])


def doubles() -> Spec:
    return _merging([(b"a" * (1 << i), b"a" * (1 << i)) for i in range(4)])


def _long_chain() -> list[tuple[bytes, bytes]]:
    pairs = [(bytes([i]) * k, bytes([i]) * k) for k in (1, 2) for i in range(1, 51)]
    return pairs + [(bytes([i]) * 4, bytes([i + 1]) * 4) for i in reversed(range(1, 49))]


def long_chain() -> Spec:
    """As chain, of units of four equal bytes; the last one is in no pair of the chain."""
    return _merging(_long_chain())


def odd_chain() -> Spec:
    """As long_chain; twice its longest token is five of its units."""
    more = [(b"y" * a, b"y" * b) for a, b in ((1, 1), (2, 2), (4, 4), (8, 2))]
    return _merging([*_long_chain(), *more])


def chain_ends() -> Spec:
    """long_chain with a suffix at the end of words, whose bytes merge with none."""
    bpe_rules = long_chain().bpe
    assert bpe_rules.merges is not None
    ids = [id + 256 * (id > 255) for id in range(len(bpe_rules.tokens))]
    triples = tuple((ids[a], ids[b], ids[made]) for a, b, made in bpe_rules.merges)
    tokens = (*BYTES, *bpe_rules.tokens)
    flags = tuple(256 <= id < 512 for id in range(len(tokens)))
    made_bpe = Bpe(tokens, triples, end_of_word_suffix="</w>", ends=flags)
    return Spec((), Pretok("gpt2"), made_bpe, name="chain_ends")


def sparse() -> Spec:
    """Bytes without a symbol, which are left out: all but a few letters and the space."""
    pairs = _random_pairs(random.Random(7), b"abc ", 40, 9)
    spec = _merging(pairs)
    tokens = tuple(t if t and (len(t) > 1 or t in b"abc ") else None for t in spec.bpe.tokens)
    return Spec((), Pretok("gpt2"), Bpe(tokens, spec.bpe.merges), name="sparse")


def ends() -> Spec:
    """With a suffix at the end of words."""
    tokens = [*BYTES, *BYTES]
    flags = [False] * 256 + [True] * 256
    ids = {(token, end): i for i, (token, end) in enumerate(zip(tokens, flags, strict=True))}
    triples: list[tuple[int, int, int]] = []
    source = random.Random(8)
    letters = [(bytes([c]), end) for c in b"abc " for end in (False, True)]
    # d and e merge within words alone, d and f at their end
    for right, at_end in ((b"e", False), (b"f", True)):
        ids[b"d" + right, at_end] = len(tokens)
        tokens.append(b"d" + right)
        flags.append(at_end)
        triples.append((ids[b"d", False], ids[right, at_end], ids[b"d" + right, at_end]))
    while len(triples) < 60:
        (left, left_end), (right, end) = source.choice(letters), source.choice(letters)
        made = (left + right, end)
        if left_end or made in ids or len(left + right) > 10:
            continue
        ids[made] = len(tokens)
        tokens.append(left + right)
        flags.append(end)
        letters.append(made)
        triples.append((ids[left, False], ids[right, end], ids[made]))
    made_bpe = Bpe(tuple(tokens), tuple(triples), end_of_word_suffix="</w>", ends=tuple(flags))
    return Spec((), Pretok("gpt2"), made_bpe, name="ends")


def whole_first() -> Spec:
    """Whole pieces first, tokens that merges don't reach among them, long ones too, and a twin."""
    spec = few()
    extra = (b"aaaaabbbb", b"zq", b"long " * 7, b"x" * 300, b"y" * 255, b"zq", b"w" * 4096)
    tokens = (*spec.bpe.tokens, *extra)
    return Spec((), Pretok("gpt2"), Bpe(tokens, spec.bpe.merges, whole_piece_first=True), name="w")


def ranks() -> Spec:
    """A rank file."""
    tokens = [
        *BYTES,
        *(left + right for left, right in _random_pairs(random.Random(9), b"abc", 70, 14)),
    ]
    return Spec((), Pretok("gpt2"), Bpe(tuple(tokens), None), name="ranks")


_MADE: dict[str, Callable[[], Spec]] = {
    made.__name__: made
    for made in (
        shuffled, few, long_tokens, long_shuffled, chain, headed_chain, doubles, long_chain,
        odd_chain, chain_ends, sparse, ends, whole_first, ranks,
    )
}  # fmt: skip
MODELS = tuple(_MADE)
