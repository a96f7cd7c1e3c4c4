"""What the ids are: the form of a token as text, its bytes, and back."""

from __future__ import annotations

import contextlib
import operator
from typing import Any

import numpy as np

from saphira_gpu._arrays import I64, Bools
from saphira_gpu._lazy import cached_property
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.spec import Spec


class Vocabulary:
    """Every token of a Spec, the vocabulary's and the added ones.

    A token has two forms. Its string is what Hugging Face shows: the byte alphabet ("Ġworld"), and
    an added token's content as it is, an end-of-word suffix behind the others that have one. Its
    bytes are what it stands for in text (b" world"), without the suffix.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        size = max(len(spec.bpe.tokens), max((token.id for token in spec.added), default=-1) + 1)
        self.ends: I64 = np.flatnonzero(spec.bpe.ends)
        self.raw: list[bytes] = [token or b"" for token in spec.bpe.tokens]
        self.raw += [b""] * (size - len(self.raw))
        self.known: Bools = np.zeros(size, np.bool_)
        self.known[: len(spec.bpe.tokens)] = [token is not None for token in spec.bpe.tokens]
        self.special: Bools = np.zeros(size, np.bool_)
        for token in spec.added:
            self.raw[token.id] = token.content.encode()
            self.known[token.id] = True
            self.special[token.id] |= token.special

    @cached_property
    def strings(self) -> list[str | None]:
        """The string of every id, None where there is none."""
        bpe = self._spec.bpe
        strings: list[str | None] = [
            _bytelevel.to_text(token) if known else None
            for token, known in zip(self.raw, self.known.tolist(), strict=True)
        ]
        for number in self.ends.tolist():
            strings[number] = (strings[number] or "") + bpe.end_of_word_suffix
        for added in self._spec.added:
            strings[added.id] = added.content
        return strings

    @cached_property
    def raw_of_strings(self) -> list[bytes]:
        """The bytes of every id as Hugging Face decodes them: those that its string stands for in
        the byte alphabet, an added token's too where it can be written in it."""
        raw = list(self.raw)
        for added in self._spec.added:
            with contextlib.suppress(UnicodeEncodeError):
                raw[added.id] = _bytelevel.to_bytes(added.content)
        return raw

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The id of every token of the vocabulary, added ones apart, by its bytes; where there is
        one with the end-of-word suffix too, that of the other."""
        bpe = self._spec.bpe
        numbers = {token: number for number, token in enumerate(bpe.tokens) if token}
        if bpe.ends:
            plain = zip(bpe.tokens, bpe.ends, strict=True)
            numbers |= {t: number for number, (t, end) in enumerate(plain) if t and not end}
        return numbers

    @cached_property
    def ids_of_strings(self) -> dict[str, int]:
        """The id of every token by its string."""
        return {token: number for number, token in enumerate(self.strings) if token is not None}

    @cached_property
    def added_ids(self) -> dict[str, int]:
        """The id of every added token by its content."""
        return {token.content: token.id for token in self._spec.added}

    def id(self, token: str | bytes) -> int | None:
        """The id of a string, or of bytes; an added token's bytes are its content in UTF-8.

        Raises TypeError for anything else.
        """
        if isinstance(token, str):
            return self.ids_of_strings.get(token)
        if not isinstance(token, bytes):
            raise TypeError(f"a token is str or bytes, not {type(token).__name__}")
        number = self.ids.get(token)
        if number is not None:
            return number
        try:
            return self.added_ids.get(token.decode())
        except UnicodeDecodeError:
            return None

    def index(self, number: Any) -> int | None:
        """A number as an index into `raw` and `strings`, or None if it is no id.

        Raises TypeError if it is no integer.
        """
        number = operator.index(number)
        return number if 0 <= number < len(self.raw) and self.known[number] else None
