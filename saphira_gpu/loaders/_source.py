"""Where a Spec came from, small enough to pickle: an embedded name, or the bytes of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders import _config, embedded, tekken, tiktoken, tokenizer_json, vocab_merges
from saphira_gpu.loaders._document import Document
from saphira_gpu.spec import Spec


@dataclass(frozen=True, slots=True)
class Source:
    """kind: which loader reads it. name: the embedded name, or the rank file's name without suffix.
    origin: what messages call it. data: the file's bytes. config: those of
    tokenizer_config.json. merges: those of merges.txt, beside a vocab.json."""

    kind: Literal["embedded", "tiktoken", "json", "vocab_merges"]
    name: str
    origin: str
    data: bytes = b""
    config: bytes = b""
    scheme: str | None = None
    merges: bytes = b""

    def spec(self, warn: bool = False) -> Spec:
        """Builds the Spec; `warn` reports what a file stores and nobody applies."""
        if self.kind == "embedded":
            return embedded.spec(self.name)
        config = _config.parse(self.config, self.origin, with_added=self.kind != "json")
        if self.kind == "tiktoken":
            return tiktoken.parse(self.data, self.name, self.origin, self.scheme, config)
        if self.kind == "vocab_merges":
            data = (self.data, self.merges)
            return vocab_merges.parse(*data, self.origin, self.scheme, config)
        if self.scheme is not None:
            raise TokenizerFileError(
                f"{self.origin}: scheme= is for rank files; this file says its own"
            )
        doc = Document(self.data, self.origin)
        if tekken.is_tekken(doc):
            return tekken.of_document(doc, config)
        return tokenizer_json.of_document(doc, config.eos, config.bos, warn)
