"""Independent references for ids and spans, and makers of random input.

The references are Hugging Face `tokenizers` and `tiktoken`, built without the network from the
ranks that the package embeds. Random tests take their seed and size from one variable,
SAPHIRA_FUZZ="seed:size"; size is the number of examples of a test, or in proportion to it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import hypothesis
import tiktoken
import tokenizers
from hypothesis import strategies as st
from tiktoken_ext.openai_public import r50k_pat_str
from tokenizers import decoders, models, pre_tokenizers

from saphira_gpu import loaders
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

END_OF_TEXT = "<|endoftext|>"

# ---- vocabularies ----


@lru_cache(1)
def gpt2_spec() -> Spec:
    """The Spec of the embedded GPT-2."""
    return loaders.load("gpt2")


@lru_cache(1)
def gpt2_ranks() -> dict[bytes, int]:
    """Rank of every token of the embedded r50k_base file."""
    return {token: id for id, token in enumerate(gpt2_spec().bpe.tokens[:50256]) if token}


def merges_of(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The merge list of a rank file: each token is made of the two parts that are left when its own
    bytes are merged with the ranks below its own."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            low, at = min(
                (ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1)
            )
            assert low < rank, f"{token!r} is not reachable by merges"
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            merges.append((parts[0], parts[1]))
    return merges


@lru_cache(1)
def byte_symbols() -> dict[int, str]:
    """The byte alphabet, from HF's unordered list of it: the symbols of the bytes that Latin-1 does
    not print follow U+00FF in order of the bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    own = {ord(symbol): symbol for symbol in alphabet if ord(symbol) < 256}
    rest = [byte for byte in range(256) if byte not in own]
    return {**own, **dict(zip(rest, alphabet[len(own) :], strict=True))}


def as_symbols(token: bytes) -> str:
    return "".join(byte_symbols()[byte] for byte in token)


# ---- references ----


@lru_cache(1)
def hf_gpt2() -> tokenizers.Tokenizer:
    """HF's GPT-2, from the embedded ranks."""
    ranks = gpt2_ranks()
    tokens = {**{as_symbols(token): id for token, id in ranks.items()}, END_OF_TEXT: 50256}
    tokenizer = hf_byte_level(tokens, merges_of(ranks))
    tokenizer.add_special_tokens([tokenizers.AddedToken(END_OF_TEXT, special=True)])
    return tokenizer


def hf_byte_level(
    tokens: dict[str, int], merges: Iterable[tuple[bytes, bytes]], ignore_merges: bool = False
) -> tokenizers.Tokenizer:
    """An HF byte-level BPE with GPT-2's split. tokens: ids of byte-alphabet text."""
    symbols = [(as_symbols(left), as_symbols(right)) for left, right in merges]
    model = models.BPE(vocab=tokens, merges=symbols, ignore_merges=ignore_merges)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@lru_cache(1)
def tiktoken_gpt2() -> tiktoken.Encoding:
    """tiktoken's r50k_base, from the embedded ranks."""
    return tiktoken.Encoding(
        "r50k_base",
        pat_str=r50k_pat_str,
        mergeable_ranks=gpt2_ranks(),
        special_tokens={END_OF_TEXT: 50256},
        explicit_n_vocab=50257,
    )


def hf_ids(
    tokenizer: tokenizers.Tokenizer, texts: Sequence[str], special: str = "parse"
) -> list[list[int]]:
    """HF's ids of each text; special is "parse" or "hf_plain" (`encode_special_tokens`)."""
    tokenizer.encode_special_tokens = special == "hf_plain"
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    tokenizer.encode_special_tokens = False
    return [encoding.ids for encoding in encodings]


def hf_spans(text: str) -> list[tuple[int, int]]:
    """Byte spans of the pieces of HF's ByteLevel (GPT-2's pattern)."""
    at = byte_positions(text)
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [(at[start], at[end]) for _, (start, end) in pieces]


def byte_positions(text: str) -> list[int]:
    """Byte position of every character of a text, and its end."""
    positions = [0]
    for char in text:
        positions.append(positions[-1] + len(char.encode()))
    return positions


# ---- small tokenizers, made up ----


def small_spec(
    merges: Sequence[tuple[bytes, bytes]] = (),
    added: Sequence[tuple[str, str]] = (),
    whole_piece_first: bool = False,
    extra: Sequence[bytes] = (),
) -> Spec:
    """A Spec of the 256 bytes, the merges' results, `extra` tokens and added tokens.

    added: (content, flags); flags: s(pecial), n(ormalized), l(strip), r(strip), w(ord alone).
    """
    tokens = [bytes([byte]) for byte in range(256)]
    ids = {token: id for id, token in enumerate(tokens)}
    for token in [*(left + right for left, right in merges), *extra]:
        if token not in ids:
            ids[token] = len(tokens)
            tokens.append(token)
    triples = tuple((ids[left], ids[right], ids[left + right]) for left, right in merges)
    bpe = Bpe(tuple(tokens), triples, whole_piece_first)
    # As in HF, content that is byte-alphabet text of a token keeps that token's id.
    known = {as_symbols(token): id for token, id in ids.items()}
    made = []
    for content, flags in added:
        id = known.setdefault(content, len(known))
        made.append(AddedToken(content, id, *(flag in flags for flag in "snlrw")))
    return Spec(tuple(made), Pretok("gpt2"), bpe, name="small")


def random_merges(
    source: random.Random, letters: bytes, most: int, longest: int, shuffled: bool = True
) -> list[tuple[bytes, bytes]]:
    """Up to `most` merges over a few letters, in the order they were made or in any order, which no
    trainer need give. longest: bytes that a merge may make."""
    parts = [bytes([byte]) for byte in letters]
    merges: dict[tuple[bytes, bytes], None] = {}
    for _ in range(source.randint(1, most)):
        left, right = source.choice(parts), source.choice(parts)
        if (left, right) not in merges and len(left + right) <= longest:
            merges[left, right] = None
            parts.append(left + right)
    listed = list(merges)
    if shuffled:
        source.shuffle(listed)
    return listed


def hf_of(spec: Spec, plain: bool = False) -> tokenizers.Tokenizer:
    """HF's tokenizer of a Spec with merges.

    Added tokens must have the ids that HF gives them, as those of `small_spec`. plain: special =
    True on all tokens but those of white space alone, which together with `encode_special_tokens`
    is the reference of special="plain".
    """
    tokens = {as_symbols(token): id for id, token in enumerate(spec.bpe.tokens) if token}
    raw = [token or b"" for token in spec.bpe.tokens]
    merges = [(raw[left], raw[right]) for left, right, _ in spec.bpe.merges or ()]
    tokenizer = hf_byte_level(tokens, merges, spec.bpe.whole_piece_first)
    for token in spec.added:
        flags = {name: getattr(token, name) for name in ("lstrip", "rstrip", "single_word")}
        special = not set(token.content) <= WHITE_SPACE if plain else token.special
        added = tokenizers.AddedToken(
            token.content, normalized=token.normalized, special=special, **flags
        )
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([added])
        assert tokenizer.token_to_id(token.content) == token.id
    return tokenizer


# ---- random input ----

FUZZ_SEED, FUZZ_SIZE = map(int, os.environ["SAPHIRA_FUZZ"].split(":"))

# White space of every kind, and what looks like it and is none.
WHITE_SPACE = {*map(chr, [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028])}
WHITE_SPACE |= {*map(chr, [0x2029, 0x202F, 0x205F, 0x3000])}  # all 25
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2000\u2028\u2029\u202f\u3000"
NOT_SPACES = "\x1c\x1f\u180e\u200b\ufeff\u2060"
# Letters of contractions, and letters that a case-blind match would take for one.
CONTRACTIONS = "'sdmtrvelSDMTRVEL\u017f\u2019"
# A character or two of every superatom, the ends of the UTF-8 lengths, and what is no character.
RULES = (
    CONTRACTIONS
    + SPACES
    + NOT_SPACES
    + "0129\u00b2\u00bd\u0663\u2167\u3007\U0001d7ce\U00011de0"
    + "aZ\u00aa\u00e9\u0130\u01c5\u4e00\u3042\u30fc\uac00\U00020000\U0001f170\u24b6"
    + "\u0301\u0903\u20dd\u3099\U000111c9\U00016ff0\u200c\u200d"
    + "!_-/$+<>|.\u00a2\u2014\u203f\u3001\u30a0\u2e80\u3040\u309b\U00016fe2\u061d\U0001f600"
    + "\x00\x7f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff\ue000\u0378\ufffe"
)
ASCII = "".join(map(chr, range(128))) + "    ''''eeettaaoo\n\n"

unicode_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ascii_texts = st.text(st.sampled_from(ASCII), max_size=80)
rule_texts = st.text(st.sampled_from(RULES), max_size=60)
texts = st.one_of(unicode_texts, ascii_texts, rule_texts)

# Bytes that make and break UTF-8: leads of each length, overlong forms, surrogates, U+110000 up.
EDGE_BYTES = bytes.fromhex("0020410a27732f307f808fa0a7b2bf c0c1c2c3dfe0e2e4edeff0f1f4f5f8ff")
any_bytes = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(EDGE_BYTES), max_size=40).map(bytes),
    st.lists(st.one_of(rule_texts.map(str.encode), st.binary(max_size=3)), max_size=6).map(
        b"".join
    ),
)


def fuzz(*strategies: st.SearchStrategy[Any], size: float = 1) -> Callable[[Any], Any]:
    """`hypothesis.given` with the seed and size (times `size`) of SAPHIRA_FUZZ."""
    examples = max(1, int(FUZZ_SIZE * size))
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    def decorate(test: Any) -> Any:
        return hypothesis.seed(FUZZ_SEED)(settings(hypothesis.given(*strategies)(test)))

    return decorate


def rng(name: str) -> random.Random:
    """A generator of its own for each test, seeded by SAPHIRA_FUZZ."""
    return random.Random(f"{FUZZ_SEED} {name}")


def random_texts(name: str, alphabet: Sequence[str], count: int, longest: int) -> list[str]:
    """`count` strings over an alphabet (of characters or strings), 0 to `longest` symbols long."""
    source = rng(name)
    return ["".join(source.choices(alphabet, k=source.randint(0, longest))) for _ in range(count)]


def random_unicode(name: str, count: int, longest: int) -> list[str]:
    """Strings over all scalar values, half of them below U+3000."""
    source = rng(name)

    def char() -> str:
        value = source.randrange(0x3000 if source.random() < 0.5 else 0x110000)
        return chr(value if not 0xD800 <= value < 0xE000 else value - 0xD000)

    return ["".join(char() for _ in range(source.randint(0, longest))) for _ in range(count)]


def random_bytes(name: str, count: int, longest: int) -> list[bytes]:
    """Byte strings: even ones over all bytes, odd ones over those that make and break UTF-8."""
    source = rng(name)
    return [
        bytes(source.choices(EDGE_BYTES if i % 2 else range(256), k=source.randint(0, longest)))
        for i in range(count)
    ]
