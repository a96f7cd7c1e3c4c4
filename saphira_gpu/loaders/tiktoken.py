"""`.tiktoken` rank files → Spec.

A line is `base64(token) rank`. The file says nothing of the split or of special tokens, so those
come with its name (`r50k_base.tiktoken`), or the caller names a scheme. A pair merges if the joined
bytes are a token, and the rank is the id; a piece that is a token is taken whole first, as tiktoken
does.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field

from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

SCHEMES = ("gpt2",)


@dataclass(frozen=True, slots=True)
class Encoding:
    """What goes with a published rank file."""

    scheme: str
    special: dict[str, int] = field(default_factory=dict)
    eos: str | None = None


_END = "<|endoftext|>"
ENCODINGS = {
    "gpt2": Encoding("gpt2", {_END: 50256}, _END),
    "r50k_base": Encoding("gpt2", {_END: 50256}, _END),
    "p50k_base": Encoding("gpt2", {_END: 50256}, _END),
    "cl100k_base": Encoding("cl100k"),
    "o200k_base": Encoding("o200k"),
    "o200k_harmony": Encoding("o200k"),
}


def encoding(name: str, origin: str, scheme: str | None = None) -> Encoding:
    """What goes with a rank file of this name, or with the scheme the caller names instead.

    Raises TokenizerFileError if neither says a scheme, UnsupportedError for a scheme not supported.
    """
    known = ENCODINGS.get(name)
    if scheme is not None:
        found = known if known is not None and known.scheme == scheme else Encoding(scheme)
    elif known is not None:
        found = known
    else:
        raise TokenizerFileError(
            f"{origin}: a rank file does not say its scheme and {name!r} is no known encoding; "
            f"name one with scheme= (supported: {', '.join(SCHEMES)})"
        )
    if found.scheme not in SCHEMES:
        raise UnsupportedError(
            f"{origin}: scheme {found.scheme!r} is not supported (supported: {', '.join(SCHEMES)})"
        )
    return found


def parse(
    data: bytes, name: str, origin: str, scheme: str | None = None, eos: str | None = None
) -> Spec:
    """The Spec of a rank file's bytes. `name` is the file's name without its suffix.

    Raises TokenizerFileError, naming the line, for a malformed file.
    """
    with_it = encoding(name, origin, scheme)
    return build(ranks(data, origin), with_it, origin, eos)


def ranks(data: bytes, origin: str) -> dict[bytes, int]:
    """Token → rank, from the lines of a rank file."""
    found: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            coded, digits = line.split(b" ")
            token = binascii.a2b_base64(coded, strict_mode=True)
            rank = int(digits) if digits.isdigit() else -1
        except ValueError:
            token, rank = b"", -1
        if not token or not 0 <= rank <= MAX_ID:
            text = line[:60].decode("ascii", "replace")
            raise TokenizerFileError(
                f"{origin}: line {number} is {text!r}, not a base64 token and a rank up to {MAX_ID}"
            )
        if token in found:
            raise TokenizerFileError(f"{origin}: line {number} repeats the token {token!r}")
        found[token] = rank
    return found


def build(ranks: dict[bytes, int], with_it: Encoding, origin: str, eos: str | None = None) -> Spec:
    """A Spec from token → rank and what goes with the file."""
    if not ranks:
        raise TokenizerFileError(f"{origin}: holds no ranks")
    tokens: list[bytes | None] = [None] * (max(ranks.values()) + 1)
    for token, rank in ranks.items():
        if tokens[rank] is not None:
            raise TokenizerFileError(f"{origin}: rank {rank} is given to two tokens")
        tokens[rank] = token
    for byte in range(256):
        if bytes((byte,)) not in ranks:
            raise TokenizerFileError(f"{origin}: has no token for byte {byte:#04x}")
    for content, number in with_it.special.items():
        if number < len(tokens) and tokens[number] is not None:
            raise TokenizerFileError(
                f"{origin}: the id {number} of {content} is the rank of a token"
            )
    added = tuple(AddedToken(content, number) for content, number in with_it.special.items())
    bpe = Bpe(tuple(tokens), None, whole_piece_first=True)
    return Spec(added, Pretok(with_it.scheme), bpe, name=origin, eos=eos or with_it.eos)
