"""Hugging Face `tokenizers`: its calls for encoding and decoding.

    from saphira_gpu.facades.hf import Tokenizer      # was: from tokenizers import Tokenizer

What there is gives what the original (0.23.3) gives. What there is not: pairs and pre-tokenized
input (refused by name), padding, truncation (never applied, whatever the file stores), words,
training, and changes to a tokenizer that is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

import saphira_gpu
from saphira_gpu._arrays import I64, Ids
from saphira_gpu._lazy import cached_property
from saphira_gpu.batch import Batch
from saphira_gpu.decode import Decoder
from saphira_gpu.engines.cpu import Special
from saphira_gpu.errors import UnsupportedError
from saphira_gpu.rows import Rows
from saphira_gpu.spec import AddedToken


class Encoding:
    """The ids of one text and what belongs to each of them; every property is a list as long as
    they are, unless it says otherwise."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        ids: Ids,
        spans: I64 | None,
        wide: dict[int, str],
        template: bool,
    ) -> None:
        """ids, spans, wide: without the template's. spans: None where none were asked for."""
        self._tokenizer = tokenizer
        self._ids = ids
        self._spans = spans
        self._wide = wide
        post = tokenizer.tokenizer.spec.post
        self._before = list(post.prefix) if template else []
        self._after = list(post.suffix) if template else []

    def __len__(self) -> int:
        return len(self._before) + len(self._ids) + len(self._after)

    def __repr__(self) -> str:
        return f"Encoding(num_tokens={len(self)})"

    @cached_property
    def ids(self) -> list[int]:
        return [*self._before, *self._ids.tolist(), *self._after]

    @cached_property
    def tokens(self) -> list[str]:
        """The string of each id; an added token that took white space with it has that too. Empty
        strings for text, as the original's, in what `encode_batch_fast` returns."""
        strings = self._tokenizer.strings
        own = [""] * len(self._ids)
        if self._spans is not None:
            own = [strings[number] for number in self._ids.tolist()]
            for i, text in self._wide.items():
                own[i] = text
        before, after = ([strings[i] for i in ids] for ids in (self._before, self._after))
        return [*before, *own, *after]

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """Start and end of each id in the text, in characters; (0, 0) for the template's, and for
        all in what `encode_batch_fast` returns."""
        if self._spans is None:
            own = [(0, 0)] * len(self._ids)
        else:
            own = [(start, end) for start, end in self._spans.tolist()]
        return [(0, 0)] * len(self._before) + own + [(0, 0)] * len(self._after)

    @property
    def attention_mask(self) -> list[int]:
        """1 for each id: nothing is padding."""
        return [1] * len(self)

    @property
    def type_ids(self) -> list[int]:
        return [0] * len(self)

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for the ids of the template, 0 for those of the text."""
        return [1] * len(self._before) + [0] * len(self._ids) + [1] * len(self._after)

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 for the ids of the text, None for those of the template."""
        return [None if special else 0 for special in self.special_tokens_mask]

    @property
    def n_sequences(self) -> int:
        """1."""
        return 1

    @property
    def overflowing(self) -> list[Encoding]:
        """Empty: nothing is truncated."""
        return []

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        """The span of a token of the text, None for one of the template."""
        if not 0 <= token_index < len(self) or self.special_tokens_mask[token_index]:
            return None
        return self.offsets[token_index]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token whose span holds a character, None if there is none."""
        if sequence_index:
            return None
        for i, (start, end) in enumerate(self.offsets):
            if start <= char_pos < end and not self.special_tokens_mask[i]:
                return i
        return None


class Tokenizer:
    """A tokenizer with the calls of `tokenizers.Tokenizer`. Make one with `from_file` or
    `from_pretrained`, or with `saphira_gpu.Tokenizer.as_hf`.

    tokenizer: the tokenizer behind it. encode_special_tokens: True: special tokens in the text are
    text.
    """

    def __init__(self, tokenizer: saphira_gpu.Tokenizer, rows: Rows) -> None:
        self.tokenizer = tokenizer
        self._rows = rows
        self.encode_special_tokens = False

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """From a tokenizer.json, or whatever else `saphira_gpu.Tokenizer.load` takes."""
        return saphira_gpu.Tokenizer.load(path).as_hf()

    @classmethod
    def from_pretrained(cls, identifier: str, revision: str = "main") -> Tokenizer:
        """From the Hub."""
        return saphira_gpu.Tokenizer.load(identifier, revision=revision).as_hf()

    def __repr__(self) -> str:
        return f"saphira_gpu.facades.hf.Tokenizer({self.tokenizer.name!r})"

    # ---- encode ----

    def encode(
        self,
        sequence: str,
        pair: None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """The encoding of one text. add_special_tokens: with the template around it.

        Raises TypeError for what is no str, UnsupportedError for a pair or pre-tokenized input.
        """
        if pair is not None:
            raise UnsupportedError("pairs of texts are not supported")
        return self.encode_batch([sequence], is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self,
        input: Sequence[str],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """The encodings of many texts. Raises as `encode`."""
        return self._encode(input, is_pretokenized, add_special_tokens, True)

    def encode_batch_fast(
        self,
        input: Sequence[str],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """The same without offsets and strings."""
        return self._encode(input, is_pretokenized, add_special_tokens, False)

    def _encode(
        self, texts: Sequence[str], is_pretokenized: bool, template: bool, offsets: bool
    ) -> list[Encoding]:
        if is_pretokenized:
            raise UnsupportedError("is_pretokenized=True is not supported")
        texts = _checked(texts)
        special: Special = "hf_plain" if self.encode_special_tokens else "parse"
        batch = Batch.from_texts(texts)
        tokens = self.tokenizer.encode_batch(texts, special=special)
        wide: dict[int, str] = {}
        spans = None
        if offsets:
            spans, wide = self._rows.offsets.find(batch, tokens, special, "char")
        marks = np.array(sorted(wide), np.int64)
        made = []
        for first, last in pairwise(tokens.offsets.tolist()):
            low, high = np.searchsorted(marks, (first, last)).tolist()
            of_row = {i - first: wide[i] for i in marks[low:high].tolist()}
            own = None if spans is None else spans[first:last]
            made.append(Encoding(self, tokens.ids[first:last], own, of_row, template))
        return made

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many ids the template has."""
        if is_pair:
            raise UnsupportedError("pairs of texts are not supported")
        post = self.tokenizer.spec.post
        return len(post.prefix) + len(post.suffix)

    # ---- decode ----

    @cached_property
    def _decoder(self) -> Decoder:
        vocabulary = self._rows.vocabulary
        return Decoder(vocabulary, self.tokenizer.spec.decoder, vocabulary.raw_of_strings)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of some ids, U+FFFD for what is no UTF-8. As in the original, numbers that are
        no id are passed over, and an added token that the byte alphabet can write stands for those
        bytes. Raises OverflowError for a number that is no uint32."""
        numbers = np.array(ids if isinstance(ids, np.ndarray) else list(ids), np.uint32)
        inside = numbers[numbers < len(self._decoder.known)]
        known = inside[self._decoder.known[inside]]
        kept = self._decoder.kept(known, skip_special_tokens)
        return self._decoder.join(kept, True).decode("utf-8", "replace")

    def decode_batch(
        self, sequences: Iterable[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    # ---- vocabulary ----

    @cached_property
    def strings(self) -> list[str]:
        """The string of every id, "" where there is none."""
        return [token or "" for token in self._rows.vocabulary.strings]

    def token_to_id(self, token: str) -> int | None:
        """The id of a string, None if there is none."""
        return self.tokenizer.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """The string of an id, None if there is none."""
        return self.tokenizer.id_to_token(id)

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """The id of every string."""
        return self.tokenizer.vocab(with_added_tokens)

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many strings there are."""
        return len(self.tokenizer.vocab(with_added_tokens))

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id."""
        return {token.id: token for token in self.tokenizer.spec.added}


def _checked(texts: Sequence[str]) -> list[str]:
    texts = list(texts)
    for text in texts:
        if isinstance(text, tuple | list):
            raise UnsupportedError("pairs of texts and pre-tokenized input are not supported")
        if not isinstance(text, str):
            raise TypeError(f"a text is str, not {type(text).__name__}")
    return texts
