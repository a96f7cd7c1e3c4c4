"""What a tokenizer_config.json beside a tokenizer's file says of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from saphira_gpu.loaders import _added
from saphira_gpu.loaders._document import Document
from saphira_gpu.spec import AddedToken


@dataclass(frozen=True, slots=True)
class Config:
    """eos, bos: the tokens that end and begin a text, by content. added: of `added_tokens_decoder`,
    which only formats without added tokens of their own make use of."""

    eos: str | None = None
    bos: str | None = None
    added: tuple[AddedToken, ...] = ()


def parse(data: bytes, origin: str, with_added: bool) -> Config:
    """data: the file's bytes, empty where there is none. origin: the file that it lies beside.

    Raises TokenizerFileError, naming the key, for a malformed one.
    """
    if not data:
        return Config()
    doc = Document(data, f"tokenizer_config.json beside {origin}")
    added = _added.of_config(doc) if with_added else ()
    return Config(_token(doc, "eos_token"), _token(doc, "bos_token"), added)


def _token(doc: Document, key: str) -> str | None:
    """A string, or an object with the string in `content`."""
    value = doc.root.get(key)
    if type(value) is dict:
        return doc.member(value, "content", str, key)
    return None if value is None else doc.typed(value, str, key)
