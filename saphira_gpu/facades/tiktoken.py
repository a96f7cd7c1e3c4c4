"""`tiktoken`: its calls for encoding and decoding.

    from saphira_gpu.facades import tiktoken      # was: import tiktoken
    encoding = tiktoken.get_encoding("gpt2")

What there is gives what the original (0.14.0) gives, with one difference: where one special token
is the start of another, the longer one matches (the original takes them in no certain order).
There is no `encode_with_unstable`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Literal

import numpy as np

import saphira_gpu
from saphira_gpu._arrays import Ids
from saphira_gpu._lazy import cached_property
from saphira_gpu.decode import Decoder
from saphira_gpu.errors import InputError
from saphira_gpu.vocabulary import Vocabulary

_All = Literal["all"]


class Encoding:
    """A tokenizer with the calls of `tiktoken.Encoding`. Make one with `get_encoding`, or with
    `saphira_gpu.Tokenizer.as_tiktoken`.

    tokenizer: the tokenizer behind it. Its special tokens are all added tokens but those of white
    space alone.
    """

    def __init__(self, tokenizer: saphira_gpu.Tokenizer, vocabulary: Vocabulary) -> None:
        self.tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._special_tokens = {
            token.content: token.id
            for token in tokenizer.spec.added
            if token.content and not token.content.isspace()
        }

    @property
    def name(self) -> str:
        return self.tokenizer.name

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # ---- encode ----

    def encode(
        self,
        text: str,
        *,
        allowed_special: _All | AbstractSet[str] = frozenset(),
        disallowed_special: _All | Collection[str] = "all",
    ) -> list[int]:
        """The ids of a text. allowed_special: special tokens that become their ids. Raises
        ValueError where one of disallowed_special is in the text ("all": all that are not allowed);
        those in neither set are text."""
        return _listed(self._encode([text], allowed_special, disallowed_special, 1))[0]

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: _All | AbstractSet[str] = frozenset(),
        disallowed_special: _All | Collection[str] = "all",
    ) -> Ids:
        """uint32 ids, as of `encode`."""
        return self._encode([text], allowed_special, disallowed_special, 1)[0]

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which special tokens are text."""
        return _listed(self._plain([text], 1))[0]

    def encode_batch(
        self,
        text: list[str],
        *,
        num_threads: int = 8,
        allowed_special: _All | AbstractSet[str] = frozenset(),
        disallowed_special: _All | Collection[str] = "all",
    ) -> list[list[int]]:
        """The ids of many texts, as of `encode`."""
        done = self._encode(text, allowed_special, disallowed_special, num_threads)
        return _listed(done)

    def encode_ordinary_batch(self, text: list[str], *, num_threads: int = 8) -> list[list[int]]:
        """The ids of many texts, as of `encode_ordinary`."""
        return _listed(self._plain(text, num_threads))

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of what is one token, special or not. Raises KeyError if it isn't one."""
        is_text = isinstance(text_or_bytes, str)
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        number = self._vocabulary.id(token)
        if number is None:
            raise KeyError(text_or_bytes if is_text else token)
        return number

    def _encode(
        self,
        texts: Iterable[str],
        allowed: _All | AbstractSet[str],
        disallowed: _All | Collection[str],
        threads: int,
    ) -> list[Ids]:
        texts = list(map(_scalar, texts))
        allowed = self.special_tokens_set if allowed == "all" else allowed
        if disallowed == "all":
            disallowed = self.special_tokens_set - allowed
        if disallowed:
            forbidden = _pattern(frozenset(disallowed))
            for text in texts:
                found = forbidden.search(text)
                if found:
                    raise InputError(
                        f"the text holds the special token {found[0]!r}, which is not allowed: name"
                        " it in allowed_special to make it an id, or pass disallowed_special=() to"
                        " leave it text"
                    )
        known = frozenset(self.special_tokens_set & allowed)
        if not known:
            return self._plain(texts, threads)
        parts = [_pattern(known).split(text) for text in texts]  # text and tokens in turn
        encoded = iter(self._plain([part for row in parts for part in row[::2]], threads))
        return [self._joined(row, encoded) for row in parts]

    def _joined(self, row: Sequence[str], encoded: Any) -> Ids:
        """The ids of one text. encoded: gives the ids of every second part."""
        if len(row) == 1:
            return next(encoded)  # type: ignore[no-any-return]
        ids = [next(encoded)]
        for token in row[1::2]:
            ids += [np.array([self._special_tokens[token]], np.uint32), next(encoded)]
        return np.concatenate(ids)

    def _plain(self, texts: Iterable[str], threads: int) -> list[Ids]:
        texts = list(map(_scalar, texts))
        if len(texts) == 1:  # a short one has a way of its own
            return [self.tokenizer.encode(texts[0], threads=threads)]
        tokens = self.tokenizer.encode_batch(texts, threads=threads)
        return [row for row in tokens if row is not None]

    # ---- decode ----

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self._vocabulary, self.tokenizer.spec.decoder)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes of some ids. Raises KeyError for what is no id."""
        numbers = np.array(tokens if isinstance(tokens, np.ndarray) else list(tokens), np.uint32)
        at = self._decoder.unknown(numbers)
        if at is not None:
            raise KeyError(f"{int(numbers[at])} at position {at} is no token")
        return self._decoder.join(numbers, True)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Their text. errors: as in bytes.decode."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id. Raises KeyError for what is no id."""
        index = self._vocabulary.index(token)
        if index is None:
            raise KeyError(token)
        return self._vocabulary.raw[index]

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Their text, and for each id the character of it that holds the id's first byte. Raises
        UnicodeDecodeError where they are no UTF-8."""
        parts = self.decode_tokens_bytes(tokens)
        text = b"".join(parts).decode()
        offsets = []
        chars = 0  # that started so far
        for part in parts:
            offsets.append(max(0, chars - _continues(part[0])))
            chars += sum(not _continues(byte) for byte in part)
        return text, offsets

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """The text of each row of ids."""
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """The bytes of each row of ids."""
        return [self.decode_bytes(tokens) for tokens in batch]

    # ---- vocabulary ----

    def token_byte_values(self) -> list[bytes]:
        """The bytes of every token that is not special, in ascending order."""
        return sorted(token for token in self.tokenizer.spec.bpe.tokens if token)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`, else of the end-of-text token that the tokenizer names. Raises
        KeyError if there is neither."""
        number = self._special_tokens.get("<|endoftext|>", self.tokenizer.eos_id)
        if number is None:
            raise KeyError("<|endoftext|>")
        return number

    @cached_property
    def special_tokens_set(self) -> set[str]:
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is a special token's."""
        return token in self._special_tokens.values()

    @property
    def max_token_value(self) -> int:
        """The largest id."""
        return self.tokenizer.vocab_size - 1

    @property
    def n_vocab(self) -> int:
        """One more than the largest id."""
        return self.tokenizer.vocab_size


@lru_cache(maxsize=16)
def get_encoding(encoding_name: str) -> Encoding:
    """An encoding by an embedded name, or whatever else `saphira_gpu.Tokenizer.load` takes."""
    return saphira_gpu.Tokenizer.load(encoding_name).as_tiktoken()


def _scalar(text: str) -> str:
    """The text with surrogates put together, U+FFFD for one that is alone. Raises TypeError for
    what is no str."""
    if not isinstance(text, str):
        raise TypeError(f"a text is str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@lru_cache(maxsize=64)
def _pattern(tokens: frozenset[str]) -> re.Pattern[str]:
    """Finds any of some strings, the longest where several start."""
    ordered = sorted(tokens, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, ordered)) + ")")


def _listed(rows: Iterable[Ids]) -> list[list[int]]:
    return [ids.tolist() for ids in rows]


def _continues(byte: int) -> bool:
    return 0x80 <= byte < 0xC0
