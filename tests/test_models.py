"""Published tokenizers: their files load, and their ids are those of the library they belong to.

The files are not part of the project. For a tokenizer.json the reference is Hugging Face
`tokenizers`, for rank files tiktoken; for Mistral's tekken.json it is tiktoken's Encoding of the
ranks in it, for Whisper's rank file one with Whisper's pattern, and for vocab.json with merges.txt
the tokenizer.json of the same model.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import oracles
import pytest
import tiktoken
import tokenizers
from tiktoken_ext import openai_public

from saphira_gpu import Tokenizer, UnsupportedError, loaders, reference
from saphira_gpu.spec import Spec

HF = ["gpt2", "llama3", "qwen3", "deepseek_v3", "gpt_neox", "roberta_base", "starcoder", "falcon"]
HF += ["clip", "whisper"]
RANKS = ["r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
NAMES = [*HF, *RANKS, "whisper_ranks", "tekken_240718", "gpt2_vocab_merges"]

# Scheme ("" for a program of stages), ids, added tokens, the ids of template=True, and its trims.
SHAPES: dict[str, tuple[str, int, int, tuple[int, ...], tuple[int, ...], int]] = {
    "gpt2": ("gpt2", 50257, 1, (), (), 0),
    "llama3": ("llama3", 128256, 256, (), (), 0),
    "qwen3": ("qwen2", 151669, 26, (), (), 0),
    "deepseek_v3": ("deepseek", 128815, 818, (), (), 0),
    "gpt_neox": ("gpt2", 50277, 25, (), (), 1),
    "roberta_base": ("gpt2", 50265, 5, (0,), (2,), 1),
    "starcoder": ("starcoder", 49152, 38, (), (), 0),
    "falcon": ("", 65024, 12, (), (), 0),
    "clip": ("", 49408, 2, (49406,), (49407,), 0),
    "whisper": ("gpt2", 51865, 1608, (50258, 50363), (50257,), 0),
    "r50k_base": ("gpt2", 50257, 1, (), (), 0),
    "p50k_base": ("gpt2", 50281, 1, (), (), 0),
    "p50k_edit": ("gpt2", 50284, 4, (), (), 0),
    "cl100k_base": ("cl100k", 100277, 5, (), (), 0),
    "o200k_base": ("o200k", 200019, 2, (), (), 0),
    "o200k_harmony": ("o200k", 201088, 1091, (), (), 0),
    "whisper_ranks": ("gpt2", 50257, 0, (), (), 0),
    "tekken_240718": ("tekken", 131072, 1000, (), (), 0),
    "gpt2_vocab_merges": ("gpt2", 50257, 1, (), (), 0),
}


@pytest.fixture(scope="session")
def vocabs(test_data: Path) -> Path:
    return test_data / "vocabs"


@pytest.fixture(scope="session")
def model(vocabs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tokenizer]:
    """A tokenizer by its name in NAMES; the last one is kept."""
    folder = tmp_path_factory.mktemp("ranks")
    return lru_cache(1)(lambda name: load(name, vocabs, folder))


def load(name: str, vocabs: Path, folder: Path) -> Tokenizer:
    """A tokenizer by its name in NAMES. folder: for files under another name."""
    if name == "whisper_ranks":
        return Tokenizer.load(vocabs / "whisper" / "multilingual.tiktoken", scheme="gpt2")
    if name in ("o200k_harmony", "p50k_edit"):
        base = name.split("_")[0] + "_base"
        shutil.copy(vocabs / base / f"{base}.tiktoken", folder / f"{name}.tiktoken")
        return Tokenizer.load(folder / f"{name}.tiktoken")
    if name == "gpt2_vocab_merges":
        return Tokenizer.load(vocabs / "gpt2" / "vocab.json")
    return Tokenizer.load(vocabs / name)


# ---- references ----

Ids = list[list[int]]


@lru_cache(2)
def hf(path: Path, plain: bool) -> tokenizers.Tokenizer:
    """HF's tokenizer of a file; plain: with special = true on all added tokens but white space."""
    document = json.loads(path.read_text("utf-8"))
    document["truncation"] = document["padding"] = None
    for token in document["added_tokens"] if plain else ():
        token["special"] = not set(token["content"]) <= oracles.WHITE_SPACE
    return tokenizers.Tokenizer.from_str(json.dumps(document))


def ranks_of(path: Path) -> dict[bytes, int]:
    lines = [line.split() for line in path.read_bytes().splitlines()]
    return {base64.b64decode(token): int(rank) for token, rank in lines}


@lru_cache(1)
def encoding(vocabs: Path, name: str) -> tiktoken.Encoding:
    """tiktoken's Encoding of a rank file."""
    if name == "tekken_240718":
        document = json.loads((vocabs / name / f"{name}.json").read_text("utf-8"))
        config = document["config"]
        n = config["default_num_special_tokens"]
        used = document["vocab"][: config["default_vocab_size"] - n]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] + n for token in used}
        return tiktoken.Encoding(
            name, pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
        )
    if name == "whisper_ranks":
        ranks = ranks_of(vocabs / "whisper" / "multilingual.tiktoken")
        pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
        return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def from_here(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        file = url.rsplit("/", 1)[1]
        return ranks_of(vocabs / file.split(".")[0] / file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", from_here)
        return tiktoken.Encoding(**getattr(openai_public, name)())


def expected(vocabs: Path, name: str, mode: str, texts: Sequence[str]) -> Ids:
    """The ids that the reference gives."""
    if is_hf(name):
        folder = vocabs / ("gpt2" if name == "gpt2_vocab_merges" else name)
        found = hf(folder / "tokenizer.json", plain=mode == "plain")
        return oracles.hf_ids(found, texts, "parse" if mode == "parse" else "hf_plain")
    found = encoding(vocabs, name)
    if mode == "parse":
        return [found.encode(text, allowed_special="all") for text in texts]
    return [found.encode_ordinary(text) for text in texts]


def is_hf(name: str) -> bool:
    return name in HF or name == "gpt2_vocab_merges"


def modes(name: str) -> tuple[str, ...]:
    if name in ("tekken_240718", "whisper_ranks"):
        return ("plain",)  # the reference never matches special tokens in text
    return ("parse", "plain", "hf_plain") if is_hf(name) else ("parse", "plain")


# ---- texts ----


def random_texts(count: int) -> list[str]:
    return [
        *oracles.random_texts("models: rules", oracles.RULES, count // 2, 60),
        *oracles.random_unicode("models: unicode", count // 4, 40),
        *oracles.random_texts("models: ascii", oracles.ASCII, count // 4, 80),
    ]


def special_texts(spec: Spec, count: int) -> list[str]:
    """Added tokens, whole and in part, among other text."""
    rng = oracles.rng("models: special")
    names = [token.content for token in spec.added] or ["<|endoftext|>"]
    others = [" ", "\n", "a", "  ", "é", "1", "<", *oracles.RULES]
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 7)):
            name = rng.choice(names)
            parts.append(name if rng.random() < 0.5 else rng.choice(others))
            if rng.random() < 0.1:
                parts.append(name[: rng.randint(1, len(name))])
        texts.append("".join(parts))
    return texts


def same(name: str, mode: str, texts: Sequence[str], ours: Ids, theirs: Ids) -> None:
    for text, mine, reference_ids in zip(texts, ours, theirs, strict=True):
        assert mine == reference_ids, (name, mode, text)


def encode(tokenizer: Tokenizer, texts: Sequence[str], mode: Any) -> Ids:
    return tokenizer.encode_batch(texts, special=mode).to_list()


# ---- tests ----


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Every name, all tests of one after another, so that its files are read once."""
    return str(request.param)


def test_shape(name: str, model: Any) -> None:
    tokenizer = model(name)
    spec = tokenizer.spec
    scheme, n_ids, n_added, prefix, suffix, trims = SHAPES[name]
    assert (spec.pretok.scheme, tokenizer.vocab_size) == (scheme, n_ids)
    assert len(spec.added) == n_added
    assert (spec.post.prefix, spec.post.suffix) == (prefix, suffix)
    assert len(spec.post.trims) == trims
    assert not spec.pretok.is_utf8_only


def test_plain_reference(name: str, model: Any, vocabs: Path) -> None:
    """The package's own reference against the library, and the core against it on any bytes."""
    tokenizer = model(name)
    spec = tokenizer.spec
    texts = random_texts(80) + special_texts(spec, 20)
    for mode in modes(name):
        ours = [reference.encode(spec, text, mode) for text in texts]
        same(name, mode, texts, ours, expected(vocabs, name, mode, texts))
    for data in oracles.random_bytes("models: bytes", 60, 40):
        assert tokenizer.encode(data).tolist() == reference.encode(spec, data), data


def test_core(name: str, model: Any, vocabs: Path) -> None:
    tokenizer = model(name)
    texts = random_texts(8 * oracles.FUZZ_SIZE) + special_texts(tokenizer.spec, oracles.FUZZ_SIZE)
    for mode in modes(name):
        theirs = expected(vocabs, name, mode, texts)
        same(name, mode, texts, encode(tokenizer, texts, mode), theirs)


def test_corpora(name: str, model: Any, vocabs: Path, test_data: Path) -> None:
    tokenizer = model(name)
    texts = [text for corpus in CORPORA for text in slice_of(test_data, corpus)]
    theirs = expected(vocabs, name, "plain", texts)
    same(name, "plain", texts, encode(tokenizer, texts, "plain"), theirs)


CORPORA = ("english", "multiscript", "code", "chat_markdown")


@lru_cache(8)
def slice_of(test_data: Path, corpus: str) -> tuple[str, ...]:
    """Some rows of a corpus, from all over it."""
    import pyarrow.parquet as pq

    column = pq.read_table(test_data / "corpora" / f"{corpus}.parquet", columns=["text"])["text"]
    step = max(1, len(column) // 40)
    return tuple(column[i].as_py()[:5000] for i in range(0, len(column), step))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("albert", 'model.type = "Unigram" is not supported'),
        ("t5_small", 'model.type = "Unigram" is not supported'),
        ("xlm_roberta", 'model.type = "Unigram" is not supported'),
        ("bert_base_cased", 'model.type = "WordPiece" is not supported'),
        ("bert_base_uncased", 'model.type = "WordPiece" is not supported'),
        ("llama2", "model.byte_fallback = true is not supported"),
        ("mistral_v3", "model.byte_fallback = true is not supported"),
        ("sp_test_bpe/botchan_en_bpe_1000.model", "SentencePiece model"),
        ("sp_test_en/botchan_en_unigram_1000.model", "SentencePiece model"),
        ("llama2/tokenizer.model", "SentencePiece model"),
    ],
)
def test_other_families_are_refused_by_name(file: str, message: str, vocabs: Path) -> None:
    with pytest.raises(UnsupportedError, match=message):
        loaders.load(vocabs / file)


def test_one_vocabulary_in_several_files(vocabs: Path) -> None:
    assert loaders.load(vocabs / "r50k_base").fingerprint == loaders.load("gpt2").fingerprint
    for name in ("cl100k_base", "o200k_base"):
        assert loaders.load(vocabs / name).fingerprint == loaders.load(name).fingerprint
    whisper = loaders.load(vocabs / "whisper")
    ranks = loaders.load(vocabs / "whisper" / "multilingual.tiktoken", scheme="gpt2")
    assert whisper.bpe.tokens[:50256] == ranks.bpe.tokens[:50256]
    assert loaders.load(vocabs / "qwen3").eos == "<|im_end|>"
