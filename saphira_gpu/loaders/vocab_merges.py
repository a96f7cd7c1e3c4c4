"""`vocab.json` (token → id) and `merges.txt` (a pair a line, by rank), GPT-2's own format → Spec.

Tokens are written in the byte alphabet. The files say nothing of the split: it is GPT-2's unless
the caller names another scheme. Added tokens are those of a tokenizer_config.json beside them, if
it lists any; else `<|endoftext|>`, where the vocabulary has it. CLIP's files, whose words are also
normalized, need its tokenizer.json.
"""

from __future__ import annotations

from typing import Any

from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.loaders import _model
from saphira_gpu.loaders._config import Config
from saphira_gpu.loaders._document import Document
from saphira_gpu.pretok import schemes
from saphira_gpu.spec import AddedToken, Pretok, Spec

_END = "<|endoftext|>"


def parse(
    vocab: bytes,
    merges: bytes,
    origin: str,
    scheme: str | None = None,
    config: Config | None = None,
) -> Spec:
    """The Spec of the two files' bytes.

    Raises TokenizerFileError for a malformed file; UnsupportedError for what isn't supported.
    """
    config = config or Config()
    known = [found["name"] for found in schemes.table()["schemes"]]
    if scheme is not None and scheme not in known:
        raise UnsupportedError(
            f"{origin}: scheme {scheme!r} is not supported (supported: {', '.join(known)})"
        )
    doc = Document(vocab, origin)
    tokens = _model.vocab(doc, {"vocab": doc.root})
    if "a</w>" in tokens:
        raise UnsupportedError(f"{origin}: files of CLIP's kind need its tokenizer.json")
    added = config.added
    if not added and _END in tokens:
        added = (AddedToken(_END, tokens[_END]),)
    owners = {number: token for token, number in tokens.items()}
    for token in added:
        theirs = owners.get(token.id, token.content), tokens.get(token.content, token.id)
        if theirs != (token.content, token.id):
            raise TokenizerFileError(
                f"{origin}: {token.content!r} is the added token {token.id}, but vocab.json has "
                f"{theirs[0]!r} there and {theirs[1]} for it"
            )
    model = {"type": "BPE", "vocab": doc.root, "merges": _lines(merges, f"{origin}: merges.txt")}
    bpe = _model.bpe(doc, model, tokens, {token.content for token in added})
    eos = config.eos or (_END if any(token.content == _END for token in added) else None)
    return Spec(added, Pretok(scheme or "gpt2"), bpe, name=origin, eos=eos, bos=config.bos)


def _lines(merges: bytes, origin: str) -> list[Any]:
    """The pairs; lines "#version…" and empty lines are none."""
    try:
        lines = merges.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerFileError(f"{origin}: not UTF-8 at byte {error.start}") from None
    lines = [line.removesuffix("\r") for line in lines]
    return [line for line in lines if line and not line.startswith("#version")]
