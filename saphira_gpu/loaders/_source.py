"""Where a Spec came from, small enough to pickle: an embedded name, or the bytes of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders import embedded, tiktoken, tokenizer_json
from saphira_gpu.loaders._document import Document
from saphira_gpu.spec import Spec


@dataclass(frozen=True, slots=True)
class Source:
    """kind: which loader reads it. name: the embedded name, or the rank file's name without suffix.
    origin: what messages call it. data: the file's bytes. config: those of
    tokenizer_config.json."""

    kind: Literal["embedded", "tiktoken", "tokenizer_json"]
    name: str
    origin: str
    data: bytes = b""
    config: bytes = b""
    scheme: str | None = None

    def spec(self, warn: bool = False) -> Spec:
        """Builds the Spec; `warn` reports what a file stores and nobody applies."""
        if self.kind == "embedded":
            return embedded.spec(self.name)
        eos = _eos(self.config, self.origin) if self.config else None
        if self.kind == "tiktoken":
            return tiktoken.parse(self.data, self.name, self.origin, self.scheme, eos)
        if self.scheme is not None:
            raise TokenizerFileError(
                f"{self.origin}: scheme= is for rank files; this file says its own"
            )
        return tokenizer_json.parse(self.data, self.origin, eos, warn)


def _eos(config: bytes, origin: str) -> str | None:
    """`eos_token` of a tokenizer_config.json: a string, or an object with the string in
    `content`."""
    doc = Document(config, f"tokenizer_config.json beside {origin}")
    value = doc.root.get("eos_token")
    if type(value) is dict:
        return doc.member(value, "content", str, "eos_token")
    return None if value is None else doc.typed(value, str, "eos_token")
