"""`.tiktoken` rank files and `tiktoken.model` → Spec.

A line is `base64(token) rank`. The file says nothing of the split or of special tokens, so those
come with its name (`r50k_base.tiktoken`), or the caller names a scheme and the special tokens are
those of a tokenizer_config.json beside it, if any (Kimi's `tiktoken.model`). A pair merges if the
joined bytes are a token, and the rank is the id; a piece that is a token is taken whole first, as
tiktoken does.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.loaders._config import Config
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.pretok import schemes
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec


@dataclass(frozen=True, slots=True)
class Encoding:
    """What goes with a published rank file: its split scheme, and content → id of its special
    tokens."""

    scheme: str
    special: dict[str, int] = field(default_factory=dict)
    eos: str | None = None


_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_O200K = {_END: 199999, "<|endofprompt|>": 200018}
# Of o200k_harmony, less 200000; the other ids there are reserved.
_HARMONY = {2: "return", 3: "constrain", 5: "channel", 6: "start", 7: "end", 8: "message"}
_HARMONY[12] = "call"


def _harmony() -> dict[str, int]:
    """Two names may have one id: <|endofprompt|> is also the reserved token 200018."""
    special = {**_O200K, "<|startoftext|>": 199998}
    for number in range(200000, 201088):
        special[f"<|{_HARMONY.get(number - 200000, f'reserved_{number}')}|>"] = number
    return special


ENCODINGS = {
    "gpt2": Encoding("gpt2", {_END: 50256}, _END),
    "r50k_base": Encoding("gpt2", {_END: 50256}, _END),
    "p50k_base": Encoding("gpt2", {_END: 50256}, _END),
    "p50k_edit": Encoding(
        "gpt2", {_END: 50256} | {name: 50281 + i for i, name in enumerate(_FIM)}, _END
    ),
    "cl100k_base": Encoding(
        "cl100k",
        {_END: 100257}
        | {name: 100258 + i for i, name in enumerate(_FIM)}
        | {"<|endofprompt|>": 100276},
        _END,
    ),
    "o200k_base": Encoding("o200k", _O200K, _END),
    "o200k_harmony": Encoding("o200k", _harmony(), _END),
}


def supported() -> list[str]:
    """Names of the compiled schemes that a rank file may have."""
    return [s["name"] for s in schemes.table()["schemes"] if "tiktoken" in s["patterns"]]


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
            f"name one with scheme= (supported: {', '.join(supported())})"
        )
    if found.scheme not in supported():
        raise UnsupportedError(
            f"{origin}: scheme {found.scheme!r} is not supported "
            f"(supported: {', '.join(supported())})"
        )
    return found


def parse(
    data: bytes, name: str, origin: str, scheme: str | None = None, config: Config | None = None
) -> Spec:
    """The Spec of a rank file's bytes. `name` is the file's name without its suffix.

    Raises TokenizerFileError, naming the line, for a malformed file; UnsupportedError for one that
    is none, as SentencePiece's models.
    """
    if b"\0" in data[:4096] or data[:1] == b"\n":
        raise UnsupportedError(
            f"{origin}: is no rank file (a SentencePiece model? those are not supported)"
        )
    with_it = encoding(name, origin, scheme)
    return build(ranks(data, origin), with_it, origin, config or Config())


def ranks(data: bytes, origin: str) -> dict[bytes, int]:
    """Token → rank, from the lines of a rank file. Whisper's file ranks a token without bytes,
    written "=", which no text reaches."""
    found: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            coded, digits = line.split(b" ")
            empty = coded == b"="
            token = b"" if empty else binascii.a2b_base64(coded, strict_mode=True)
            rank = int(digits) if digits.isdigit() else -1
        except ValueError:
            token, rank, empty = b"", -1, False
        if not (token or empty) or not 0 <= rank <= MAX_ID:
            text = line[:60].decode("ascii", "replace")
            raise TokenizerFileError(
                f"{origin}: line {number} is {text!r}, not a base64 token and a rank up to {MAX_ID}"
            )
        if token in found:
            raise TokenizerFileError(f"{origin}: line {number} repeats the token {token!r}")
        found[token] = rank
    return found


def build(ranks: dict[bytes, int], with_it: Encoding, origin: str, config: Config) -> Spec:
    """A Spec from token → rank, what goes with the file, and what lies beside it. The special
    tokens of a known encoding go before those of a config."""
    if not ranks:
        raise TokenizerFileError(f"{origin}: holds no ranks")
    tokens: list[bytes | None] = [None] * (max(ranks.values()) + 1)
    taken = bytearray(len(tokens))
    for token, rank in ranks.items():
        if taken[rank]:
            raise TokenizerFileError(f"{origin}: rank {rank} is given to two tokens")
        taken[rank] = 1
        tokens[rank] = token or None
    for byte in range(256):
        if bytes((byte,)) not in ranks:
            raise TokenizerFileError(f"{origin}: has no token for byte {byte:#04x}")
    added = special(with_it) or config.added
    check(added, tokens, origin)
    bpe = Bpe(tuple(tokens), None, whole_piece_first=True)
    eos = config.eos or with_it.eos
    return Spec(added, Pretok(with_it.scheme), bpe, name=origin, eos=eos, bos=config.bos)


def special(with_it: Encoding) -> tuple[AddedToken, ...]:
    """The special tokens of a known encoding."""
    return tuple(AddedToken(content, number) for content, number in with_it.special.items())


def check(added: Iterable[AddedToken], tokens: list[bytes | None], origin: str) -> None:
    """Refuses special tokens whose ids are tokens of the vocabulary."""
    for token in added:
        if token.id < len(tokens) and tokens[token.id] is not None:
            raise TokenizerFileError(
                f"{origin}: the id {token.id} of {token.content} is the rank of a token"
            )
