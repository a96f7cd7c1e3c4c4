"""The facades: scripts written against the documented calls of the original libraries run on both,
unchanged but for where the tokenizer comes from."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
import tiktoken
import tokenizers
from oracles import END_OF_TEXT, fuzz, small_spec
from tokenizers import processors

import saphira_gpu
from saphira_gpu import InputError, Tokenizer, UnsupportedError
from saphira_gpu.facades import hf as our_hf
from saphira_gpu.facades import tiktoken as our_tiktoken
from saphira_gpu.spec import PostProcessor, Spec

MIXED = ["", "Hello, y'all! How are you 😁 ?", "a" + END_OF_TEXT + "b", " naïve  ☃\n", "日本語"]


# ---- Hugging Face: one script, two tokenizers ----


def hf_script(tokenizer: Any, texts: list[str]) -> list[Any]:
    """What a user of `tokenizers` does, by its documentation."""
    seen: list[Any] = []
    for add in (True, False):
        seen += [of_encoding(tokenizer.encode(text, add_special_tokens=add)) for text in texts]
        seen += map(of_encoding, tokenizer.encode_batch(texts, add_special_tokens=add))
        seen += map(of_encoding, tokenizer.encode_batch_fast(texts, add_special_tokens=add))
    seen += map(of_encoding, tokenizer.encode_batch(texts))
    tokenizer.encode_special_tokens = True
    seen += map(of_encoding, tokenizer.encode_batch(texts, is_pretokenized=False))
    tokenizer.encode_special_tokens = False
    ids = [tokenizer.encode(text).ids for text in texts]
    seen += [tokenizer.decode(row) for row in ids]
    seen.append(tokenizer.decode_batch(ids, skip_special_tokens=False))
    seen.append(tokenizer.decode_batch(ids))
    tokens = sorted({token for text in texts for token in tokenizer.encode(text).tokens})
    seen += [tokenizer.token_to_id(token) for token in [*tokens, "nonesuch token"]]
    seen += [tokenizer.id_to_token(i) for row in ids for i in row]
    seen += [tokenizer.get_vocab(), tokenizer.get_vocab_size(), tokenizer.id_to_token(10**7)]
    seen += [tokenizer.num_special_tokens_to_add(False)]
    added = tokenizer.get_added_tokens_decoder()
    seen.append({number: (token.content, token.special) for number, token in added.items()})
    return seen


def of_encoding(encoding: Any) -> tuple[Any, ...]:
    positions = range(max([end for _, end in encoding.offsets], default=0) + 1)
    return (
        encoding.ids,
        encoding.tokens,
        encoding.offsets,
        encoding.attention_mask,
        encoding.type_ids,
        encoding.special_tokens_mask,
        encoding.sequence_ids,
        encoding.n_sequences,
        encoding.overflowing,
        len(encoding),
        [encoding.token_to_chars(i) for i in range(len(encoding))],
        [encoding.char_to_token(i) for i in positions],
    )


def same(ours: list[Any], theirs: list[Any]) -> None:
    for got, want in zip(ours, theirs, strict=True):
        assert got == want


def test_hf_script(gpt2: Tokenizer) -> None:
    alphabet = [*oracles.RULES, " world", "hello", END_OF_TEXT]
    texts = [*MIXED, *oracles.random_texts("hf facade", alphabet, oracles.FUZZ_SIZE, 30)]
    same(hf_script(gpt2.as_hf(), texts), hf_script(oracles.hf_gpt2(), texts))


def templated() -> tuple[Spec, tokenizers.Tokenizer]:
    """A small tokenizer with a template, trimmed offsets and tokens that take white space."""
    added = [("<s>", "s"), ("</s>", "s"), ("<mask>", "sl"), ("<r>", "r"), ("<n>", "n"), ("é", "")]
    spec = small_spec([(b" ", b"a"), (b"a", b"b")], added)
    hf = oracles.hf_of(spec)
    ids = {token.content: token.id for token in spec.added}
    hf.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
            processors.TemplateProcessing(
                "<s> $A </s> </s>", special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])]
            ),
        ]
    )
    post = PostProcessor((ids["<s>"],), (ids["</s>"], ids["</s>"]), (False,))
    return Spec(spec.added, spec.pretok, spec.bpe, post=post), hf


def test_hf_template() -> None:
    spec, hf = templated()
    tok = Tokenizer.from_spec(spec)
    parts = ["<s>", "</s>", " <mask>", "<mask>", "<r> ", "<n>", "é", *" \n\u3000ab", "日"]
    texts = [*MIXED, *oracles.random_texts("template", parts, oracles.FUZZ_SIZE, 12)]
    same(hf_script(tok.as_hf(), texts), hf_script(hf, texts))
    encoding = tok.as_hf().encode("a \u3000<mask>")
    assert encoding.tokens == ["<s>", "a", " \u3000<mask>", "</s>", "</s>"]
    assert encoding.offsets == [(0, 0), (0, 1), (3, 9), (0, 0), (0, 0)]


def test_templates_of_the_tokenizer_itself() -> None:
    spec, _ = templated()
    tok = Tokenizer.from_spec(spec)
    first, last = spec.post.prefix[0], spec.post.suffix[0]
    assert tok.encode("ab", template=True).tolist() == [first, 257, last, last]
    ids, spans = tok.encode("ab", template=True, offsets="char")
    assert len(ids) == 4 and spans.tolist() == [[0, 0], [0, 2], [0, 0], [0, 0]]
    assert tok.count("ab", template=True) == 4 and tok.count("ab") == 1
    tokens = tok.encode_batch(["ab", None, ""], template=True, dtype="uint16")
    assert tokens.to_list() == [[first, 257, last, last], None, [first, last, last]]
    column = pa.array(["ab", None, ""])
    assert tok.encode_arrow(column, template=True).to_pylist() == tokens.to_list()
    counts = tok.count_arrow(column, template=True)
    assert counts.to_pylist() == [4, None, 3]
    with pytest.raises(ValueError, match="template=1 is neither True nor False"):
        tok.encode("a", template=1)  # type: ignore[call-overload]


def test_hf_decode_quirks(gpt2: Tokenizer) -> None:
    """Numbers that are no id are passed over; an added token in the byte alphabet is bytes."""
    spec = small_spec(added=[("é", "n"), ("<é>", ""), ("日é", ""), ("<s>", "s")])
    both = (Tokenizer.from_spec(spec).as_hf(), oracles.hf_of(spec))
    for rows in ([[97, 0xE9], [256, 97, 257, 258, 259, 10**6], [], [99, 4 * 10**9]],):
        for skip in (False, True):
            ours, theirs = (tok.decode_batch(rows, skip_special_tokens=skip) for tok in both)
            assert ours == theirs
    for bad in ([-1], [2**32]):
        for tok in both:
            with pytest.raises(OverflowError):
                tok.decode(bad)
    assert both[0].decode(np.array([97, 98], np.int64)) == "ab"


def test_hf_refuses_by_name(gpt2: Tokenizer) -> None:
    tok = gpt2.as_hf()
    with pytest.raises(UnsupportedError, match="pairs"):
        tok.encode("a", "b")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="pairs"):
        tok.encode_batch([("a", "b")])  # type: ignore[list-item]
    with pytest.raises(UnsupportedError, match="is_pretokenized"):
        tok.encode_batch(["a"], is_pretokenized=True)
    with pytest.raises(UnsupportedError, match="pairs"):
        tok.num_special_tokens_to_add(True)
    for text in (None, 5, b"a"):
        with pytest.raises(TypeError, match="a text is str"):
            tok.encode(text)  # type: ignore[arg-type]
    assert repr(tok) == "saphira_gpu.facades.hf.Tokenizer('gpt2')"
    assert repr(tok.encode("Hello world")) == "Encoding(num_tokens=2)"


# ---- tiktoken: one script, two encodings ----


def tiktoken_script(encoding: Any, texts: list[str]) -> list[Any]:
    """What a user of `tiktoken` does, by its documentation."""
    seen: list[Any] = []
    for text in texts:
        seen.append(encoding.encode_ordinary(text))
        seen.append(encoding.encode(text, disallowed_special=()))
        seen.append(encoding.encode(text, allowed_special="all"))
        if not any("\ud800" <= char < "\ue000" for char in text):
            array = encoding.encode_to_numpy(text, allowed_special="all")
            assert array.dtype == np.uint32
            seen.append(array.tolist())
        choices: list[dict[str, Any]] = [{}, {"disallowed_special": {END_OF_TEXT}}]
        choices += [{"disallowed_special": {"a"}}, {"allowed_special": {END_OF_TEXT}}]
        for options in choices:
            try:
                seen.append(encoding.encode(text, **options))
            except ValueError:
                seen.append("refused")
        ids = encoding.encode(text, allowed_special="all")
        seen += [
            encoding.decode(ids),
            encoding.decode_bytes(ids),
            encoding.decode_tokens_bytes(ids),
        ]
        if "\ufffd" not in encoding.decode(ids):
            seen.append(encoding.decode_with_offsets(ids))
        for number in ids:
            token = encoding.decode_single_token_bytes(number)
            assert encoding.encode_single_token(token) == number
            seen += [token, encoding.is_special_token(number)]
        seen.append(encoding.decode(ids[:1]))
    seen.append(encoding.encode_ordinary_batch(texts))
    seen.append(encoding.encode_batch(texts, allowed_special="all", num_threads=2))
    seen.append(encoding.encode_batch(texts, disallowed_special=()))
    rows = encoding.encode_ordinary_batch(texts)
    seen += [encoding.decode_batch(rows), encoding.decode_bytes_batch(rows)]
    seen += [encoding.n_vocab, encoding.max_token_value, encoding.eot_token]
    seen += [encoding.special_tokens_set, sorted(encoding.token_byte_values())]
    seen.append(encoding.encode_single_token(END_OF_TEXT))
    return seen


def test_tiktoken_script(gpt2: Tokenizer) -> None:
    alphabet = [*oracles.RULES, " world", "hello", END_OF_TEXT, END_OF_TEXT[:-1], "\ud83d\ude00"]
    texts = [*MIXED, "\ud83d", "a\udc00\ud800b\ud83d\ude00"]
    texts += oracles.random_texts("tiktoken facade", alphabet, oracles.FUZZ_SIZE, 30)
    ours = tiktoken_script(gpt2.as_tiktoken(), texts)
    same(ours, tiktoken_script(oracles.tiktoken_gpt2(), texts))


@fuzz(oracles.texts)
def test_tiktoken_random(text: str) -> None:
    ours, theirs = _gpt2().as_tiktoken(), oracles.tiktoken_gpt2()
    assert ours.encode(text, disallowed_special=()) == theirs.encode(text, disallowed_special=())
    ids = theirs.encode(text, allowed_special="all")
    assert ours.encode(text, allowed_special="all") == ids
    assert ours.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)


def test_tiktoken_sets() -> None:
    """Some special tokens allowed, some disallowed, some neither."""
    special = {"<a>": 256, "<b>": 257, "<c>": 258}
    spec = small_spec(added=[(content, "s") for content in special])
    ranks = {token: i for i, token in enumerate(spec.bpe.tokens) if token}
    theirs = tiktoken.Encoding(
        "small", pat_str=oracles.r50k_pat_str, mergeable_ranks=ranks, special_tokens=special
    )
    ours = Tokenizer.from_spec(spec).as_tiktoken()
    sets: list[Any] = ["all", set(), {"<a>"}, {"<a>", "<b>"}, {"<c>", "<z>"}, ("<b>",)]
    texts = oracles.random_texts("sets", [*special, "<z>", "x", " "], oracles.FUZZ_SIZE, 4)
    refused = 0
    for text in texts:
        for allowed in sets[:-1]:
            for disallowed in sets:
                options = {"allowed_special": allowed, "disallowed_special": disallowed}
                try:
                    want = theirs.encode(text, **options)
                except ValueError:
                    refused += 1
                    with pytest.raises(ValueError, match="the text holds the special token"):
                        ours.encode(text, **options)
                    continue
                assert ours.encode(text, **options) == want, (text, options)
    assert refused > 0


def test_tiktoken_longest_special_token() -> None:
    """Where the original's choice is not certain, the longest one matches."""
    tok = Tokenizer.from_spec(small_spec(added=[("<a>", "s"), ("<a>b", "s")])).as_tiktoken()
    assert tok.encode("<a>b<a>", allowed_special="all") == [257, 256]


def test_tiktoken_errors(gpt2: Tokenizer) -> None:
    text = "a" + END_OF_TEXT
    for tok in (gpt2.as_tiktoken(), oracles.tiktoken_gpt2()):
        for call, given in (
            (tok.encode, text),
            (tok.encode_to_numpy, text),
            (tok.encode_batch, [text]),
        ):
            with pytest.raises(ValueError):
                call(given)
        for token in ("nonesuch token", b"\xff\xff\xff", ""):
            with pytest.raises(KeyError):
                tok.encode_single_token(token)
        for number in (50257, 2**31):
            with pytest.raises(KeyError):
                tok.decode_single_token_bytes(number)
            for decode in (tok.decode, tok.decode_bytes, tok.decode_tokens_bytes):
                with pytest.raises(KeyError):
                    decode([1, number])
        with pytest.raises(OverflowError):
            tok.decode([-1])
        with pytest.raises(UnicodeDecodeError):
            tok.decode(tok.encode("☃")[:1], errors="strict")
        with pytest.raises(TypeError):
            tok.encode(b"a")
    with pytest.raises(InputError, match="disallowed_special=\\(\\)"):
        gpt2.as_tiktoken().encode(END_OF_TEXT)
    wrong: list[Any] = [0, True, "2"]
    for texts in (["a"], ["a", "b"]):
        for threads in wrong:
            with pytest.raises(ValueError, match="threads="):
                gpt2.as_tiktoken().encode_ordinary_batch(texts, num_threads=threads)
    small = Tokenizer.from_spec(small_spec()).as_tiktoken()
    with pytest.raises(KeyError):
        _ = small.eot_token


# ---- where a tokenizer comes from ----


def test_constructors(tmp_path: Path) -> None:
    encoding = our_tiktoken.get_encoding("gpt2")
    assert encoding.name == "gpt2" and encoding.encode("hello world") == [31373, 995]
    assert our_tiktoken.get_encoding("gpt2") is encoding and repr(encoding) == "<Encoding 'gpt2'>"
    path = tmp_path / "tokenizer.json"
    oracles.hf_gpt2().save(str(path))
    tokenizer = our_hf.Tokenizer.from_file(str(path))
    same(hf_script(tokenizer, MIXED), hf_script(tokenizers.Tokenizer.from_file(str(path)), MIXED))
    assert isinstance(tokenizer.tokenizer, saphira_gpu.Tokenizer)


# ---- tokenizers that are not part of the project ----

NAMES = ["gpt2", "roberta_base", "qwen3", "llama3", "gpt_neox", "starcoder", "falcon"]
NAMES += ["clip", "whisper", "deepseek_v3"]


@pytest.mark.parametrize("name", NAMES)
def test_published_tokenizers(test_data: Path, name: str) -> None:
    path = test_data / "vocabs" / name / "tokenizer.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = our_hf.Tokenizer.from_file(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.no_truncation()
    theirs.no_padding()
    added = [token.content for token in ours.tokenizer.spec.added][:20]
    alphabet = [*oracles.RULES, " world", "hello", "  ", "Straße", "e\u0301", *added]
    texts = [*MIXED, *oracles.random_texts(f"facade {name}", alphabet, oracles.FUZZ_SIZE, 25)]
    same(hf_script(ours, texts), hf_script(theirs, texts))


RANKS = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"]


@pytest.mark.parametrize("name", RANKS)
def test_published_ranks(test_data: Path, name: str) -> None:
    from tiktoken.load import load_tiktoken_bpe
    from tiktoken_ext import openai_public

    path = test_data / "vocabs" / name / f"{name}.tiktoken"
    pattern = {
        "cl100k_base": openai_public.cl100k_base,
        "o200k_base": openai_public.o200k_base,
    }
    ours = Tokenizer.load(path).as_tiktoken()
    special = {token.content: token.id for token in ours.tokenizer.spec.added}
    ranks = load_tiktoken_bpe(str(path))
    theirs = tiktoken.Encoding(
        name,
        pat_str=_pattern(pattern[name]) if name in pattern else oracles.r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens=special,
    )
    alphabet = [*oracles.RULES, " world", "hello", "  ", "Straße", *special]
    texts = [*MIXED, *oracles.random_texts(f"facade {name}", alphabet, oracles.FUZZ_SIZE, 25)]
    same(tiktoken_script(ours, texts), tiktoken_script(theirs, texts))


def _pattern(definition: Any) -> str:
    """The split pattern of one of tiktoken's definitions, whose rank file would be downloaded."""
    import unittest.mock

    with unittest.mock.patch.dict(definition.__globals__, {"load_tiktoken_bpe": _nothing}):
        return str(definition()["pat_str"])


def _nothing(*args: Any, **options: Any) -> dict[bytes, int]:
    return {}


def _gpt2() -> Tokenizer:
    if not _kept:
        _kept.append(Tokenizer.load("gpt2"))
    return _kept[0]


_kept: list[Tokenizer] = []
