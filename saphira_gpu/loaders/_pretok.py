"""The `pre_tokenizer` of a byte-level tokenizer.json → Pretok."""

from __future__ import annotations

from saphira_gpu.loaders._document import Document
from saphira_gpu.pretok import config, schemes
from saphira_gpu.pretok.steps import AFTER, BEFORE, Bytemap, Classes, Prefix, Scheme, Step
from saphira_gpu.spec import Pretok

# Sequences that are compiled schemes of their own.
_SEQUENCES = {(Classes("digits", (("N", BEFORE | AFTER),)), Scheme("gpt2")): "starcoder"}


def pretok(doc: Document, value: object, key: str = "pre_tokenizer") -> Pretok:
    """ByteLevel must be in it, once: it is what makes a tokenizer byte-level.

    Raises TokenizerFileError where it is malformed; UnsupportedError, naming the key, for one
    without ByteLevel and for a pattern that is no compiled scheme, without the extra [regex].
    """
    if value is None:
        doc.unsupported(key, None, "is not supported: it has no ByteLevel")
    node = doc.typed(value, dict, key)
    steps = config.steps(doc, node, key, "hf")
    maps = sum(isinstance(step, Bytemap) for step in steps)
    if maps != 1:
        why = "has no ByteLevel" if maps == 0 else "has ByteLevel more than once"
        doc.unsupported(key, node, f"is not supported: it {why}")
    return of_steps(steps[:-1] if isinstance(steps[-1], Bytemap) else steps)


def of_steps(steps: tuple[Step, ...]) -> Pretok:
    """The plainest Pretok with these steps."""
    spaced = bool(steps) and steps[0] == Prefix(" ")
    rest = steps[1:] if spaced else steps
    scheme = rest[0].name if len(rest) == 1 and isinstance(rest[0], Scheme) else None
    if rest in _SEQUENCES and any(
        known["name"] == _SEQUENCES[rest] for known in schemes.table()["schemes"]
    ):
        scheme = _SEQUENCES[rest]
    if scheme is not None:
        return Pretok(scheme, add_prefix_space=spaced)
    return Pretok(stages=rest, add_prefix_space=spaced)
