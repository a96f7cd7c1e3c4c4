"""What a loader yields: one dataclass per stage, in no file format and for no engine.

`input → special → normalize → pretok → bytemap → bpe → vocab → ids`: the fields of `Spec` are those
stages. A Spec is immutable, holds plain Python values only, and decides every id: two equal Specs
give equal ids, and `fingerprint` is a digest of all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass


@dataclass(frozen=True, slots=True)
class AddedToken:
    """Stage `special`: a token matched in the text before anything else looks at it."""

    content: str
    id: int
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


NORMALIZERS = (
    *("nfc", "nfd", "nfkc", "nfkd", "lowercase"),
    *("replace", "replace_spaces", "strip_left", "strip_right", "prepend"),
)


@dataclass(frozen=True, slots=True)
class Normalizer:
    """Stage `normalize`: one step of what is done to the text between added tokens.

    kind: one of NORMALIZERS.
        nfc, nfd, nfkc, nfkd: the forms of Unicode 9.0.
        lowercase: of Unicode 17.0, each code point alone.
        replace: every `pattern`, leftmost first, becomes `content`.
        replace_spaces: every run of white space becomes `content`.
        strip_left, strip_right: white space at that end of the segment goes.
        prepend: `content` goes before a segment that is not empty.
    pattern, content: empty where the kind has none. Raises ValueError for a kind that isn't there,
    a string that its kind has no use for, or an empty one where that would mean nothing.
    """

    kind: str
    pattern: str = ""
    content: str = ""

    def __post_init__(self) -> None:
        if self.kind not in NORMALIZERS:
            raise ValueError(f"{self.kind!r} is none of {', '.join(NORMALIZERS)}")
        if bool(self.pattern) != (self.kind == "replace"):
            raise ValueError(f"the step {self.kind!r} with pattern {self.pattern!r}")
        if self.content and self.kind not in ("replace", "replace_spaces", "prepend"):
            raise ValueError(f"the step {self.kind!r} with content {self.content!r}")
        if self.kind == "prepend" and not self.content:
            raise ValueError("the step 'prepend' without content")


@dataclass(frozen=True, slots=True)
class Pretok:
    """Stage `pretok`: a compiled scheme, by its name in `tables/schemes.toml`."""

    scheme: str


@dataclass(frozen=True, slots=True)
class Bpe:
    """Stages `bytemap`, `bpe` and `vocab`.

    tokens: the raw bytes of every id; None where an id is not in the vocabulary (added tokens have
        their own list).
    merges: (left id, right id, result id) by ascending rank; None for a rank file, where a pair
        merges if the joined bytes are a token, and the rank is the id.
    whole_piece_first: a piece that is a token becomes that token even where its merges would not
        reach it (tiktoken; `ignore_merges` in tokenizer.json).
    """

    tokens: tuple[bytes | None, ...]
    merges: tuple[tuple[int, int, int], ...] | None
    whole_piece_first: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole tokenizer. `name` and `eos` do not decide ids and are left out of the fingerprint."""

    added: tuple[AddedToken, ...]
    pretok: Pretok
    bpe: Bpe
    name: str = ""
    eos: str | None = None
    normalizers: tuple[Normalizer, ...] = ()

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) over all that decides an id. A stage that a Spec lacks adds nothing."""
        digest = hashlib.sha256(b"saphira_gpu spec 1\n")
        for field in fields(self):
            absent = field.name == "normalizers" and not self.normalizers
            if field.name not in ("name", "eos") and not absent:
                for part in _serial(getattr(self, field.name)):
                    digest.update(part)
        return digest.hexdigest()


def _serial(value: object) -> Iterator[bytes]:
    """An unambiguous byte form: a type letter, a length, the content."""
    if is_dataclass(value) and not isinstance(value, type):
        yield f"d{type(value).__name__}:{len(fields(value))};".encode()
        for field in fields(value):
            yield from _serial(getattr(value, field.name))
    elif isinstance(value, tuple):
        yield b"t%d;" % len(value)
        for item in value:
            yield from _serial(item)
    elif isinstance(value, bytes):
        yield b"b%d;" % len(value) + value
    elif isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        yield b"s%d;" % len(raw) + raw
    elif value is None or isinstance(value, bool | int):
        yield f"v{value};".encode()
    else:
        raise TypeError(f"a Spec holds no {type(value).__name__}")
