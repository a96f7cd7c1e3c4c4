"""What a loader yields: one dataclass per stage, in no file format and for no engine.

`input → special → normalize → pretok → bytemap → bpe → vocab → ids`: the fields of `Spec` are those
stages. A Spec is immutable, holds plain Python values only, and decides every id: two equal Specs
give equal ids, and `fingerprint` is a digest of all that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from saphira_gpu.pretok.steps import Regex, Step


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
    """Stage `pretok`: a compiled scheme, or a program of steps.

    scheme: the name of a scheme in `tables/schemes.toml`; "" where `stages` split.
    stages: steps, each of which splits every piece that the one before it left, a text of its own;
        no step at all leaves the segment whole. Pieces are bytes: a Bytemap at the end goes without
        saying and is left out, one before the end is there, for the steps behind it to see.
    add_prefix_space: a segment that does not start with U+0020 gets one first.
    Raises ValueError for a scheme and stages together.
    """

    scheme: str = ""
    stages: tuple[Step, ...] = ()
    add_prefix_space: bool = False

    def __post_init__(self) -> None:
        if self.scheme and self.stages:
            raise ValueError(f"the scheme {self.scheme!r} and stages: one of them splits")

    @property
    def is_utf8_only(self) -> bool:
        """Whether text must be UTF-8: a regex library reads it."""
        return any(isinstance(step, Regex) for step in self.stages)


@dataclass(frozen=True, slots=True)
class Bpe:
    """Stages `bytemap`, `bpe` and `vocab`.

    tokens: the raw bytes of every id, without the end-of-word suffix; None where an id is not in
        the vocabulary (added tokens have their own list). With merges, a byte that is no token is
        left out of the piece before anything is merged; a rank file has them all.
    merges: (left id, right id, result id) by ascending rank; None for a rank file, where a pair
        merges if the joined bytes are a token, and the rank is the id.
    whole_piece_first: a piece that is a token becomes that token even where its merges would not
        reach it (tiktoken; `ignore_merges` in tokenizer.json).
    end_of_word_suffix: what the text of a token ends with if it ends a piece; "" if nothing tells.
    ends: for each id whether its token has that suffix; () where there is none. The last byte of a
        piece is then the token of that byte with the suffix, the others are those without.
    """

    tokens: tuple[bytes | None, ...]
    merges: tuple[tuple[int, int, int], ...] | None
    whole_piece_first: bool = False
    end_of_word_suffix: str = ""
    ends: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class PostProcessor:
    """What comes after the model, where it is asked for.

    prefix, suffix: ids around those of a text (template=True).
    trims: passes over the offsets that take white space off both ends of each; of every pass
        whether it knows of `add_prefix_space` (HF's trim_offsets).
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    trims: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoder:
    """How tokens become text: their bytes, joined.

    word_end: what a token with the end-of-word suffix has behind it; last_word_end: the same for
        the last id.
    """

    word_end: str = ""
    last_word_end: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole tokenizer. `name`, `eos`, `bos`, `post` and `decoder` do not decide the ids of text
    and are left out of the fingerprint. eos, bos: the tokens that end and begin a text, by
    content."""

    added: tuple[AddedToken, ...]
    pretok: Pretok
    bpe: Bpe
    name: str = ""
    eos: str | None = None
    normalizers: tuple[Normalizer, ...] = ()
    bos: str | None = None
    post: PostProcessor = PostProcessor()
    decoder: Decoder = Decoder()

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) over all that decides an id. What a Spec makes no use of adds nothing."""
        digest = hashlib.sha256(b"saphira_gpu spec 1\n")
        for part in (self.added, self.pretok, self.bpe):
            for piece in _serial(part):
                digest.update(piece)
        if self.normalizers:
            for piece in _serial(self.normalizers):
                digest.update(piece)
        return digest.hexdigest()


# Fields that came later: they add to the fingerprint only where they are set, with their name.
_LATER = {"stages", "add_prefix_space", "end_of_word_suffix", "ends"}


def _serial(value: object) -> Iterator[bytes]:
    """An unambiguous byte form: a type letter, a length, the content."""
    if is_dataclass(value) and not isinstance(value, type):
        first = [field.name for field in fields(value) if field.name not in _LATER]
        yield f"d{type(value).__name__}:{len(first)};".encode()
        for name in first:
            yield from _serial(getattr(value, name))
        for field in fields(value):
            if field.name in _LATER and getattr(value, field.name):
                yield f"n{field.name};".encode()
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
