"""The tokenizer in plain Python: slow, short, and the definition of what every engine must give.

    special → normalize → pretok (classify → remap → boundaries) → bytemap → bpe → vocab

One public function a stage, named as in the C core; `encode` runs them all and `stages` shows what
each one made. The rules are those of Hugging Face `tokenizers` 0.23.3 and `tiktoken` 0.14.0 on
valid UTF-8; other bytes follow the byte contract written at `classify`. All positions are byte
positions, half-open, within the bytes handed to the function that returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from saphira_gpu import reference_normalize, reference_patterns, reference_pretok
from saphira_gpu._resources import resource
from saphira_gpu.errors import InputError, UnsupportedError
from saphira_gpu.pretok.steps import Bytemap, Prefix, Scheme
from saphira_gpu.spec import AddedToken, Bpe, Spec

MODES = ("plain", "parse", "hf_plain", "error")

# Superatoms that together are the regex \s (Unicode's White_Space), and \w.
SPACE_TAGS = {"WsOther", "Newline", "Space"}
WORD_TAGS = {"NumWord", "Upper", "Lower", "LetterOther", "HanLetter", "HanURO", "HanNum"}
WORD_TAGS |= {"KanaLetter", "Mark", "MarkPunct", "HanMark", "KanaMark"}
WORD_TAGS |= {"Connector", "JoinControl", "SymWord"}


class Char(NamedTuple):
    """One character, or one byte that is part of none; its tag is the name of its superatom."""

    start: int
    end: int
    tag: str


class Segment(NamedTuple):
    """A stretch of the text: an added token, or (added is None) text between added tokens."""

    start: int
    end: int
    added: AddedToken | None


def special(spec: Spec, text: bytes, mode: str = "plain") -> list[Segment]:
    """Cuts `text` at its added tokens. Empty text gives no segment; empty content is ignored.

    Two passes: tokens with normalized = False on the whole text, then the others on each stretch
    that is left: `stages` makes that one in the normalized text, where each matches by its own
    normalized content. Here it is made too, but for a Spec with normalizers.

    mode says which matches stay text (they consume their span all the same): "plain"
    all but tokens of white space alone, "hf_plain" those with special = True, "parse" none. "error"
    raises InputError where "parse" has a token, unless it is white space alone.
    """
    if mode not in MODES:
        raise ValueError(f"special={mode!r} is none of {', '.join(MODES)}")
    segments = []
    for start, end, added in _cut(text, _needles(spec, normalized=False), mode):
        inner = [Segment(0, end - start, added)]
        if added is None and not spec.normalizers:
            inner = _cut(text[start:end], _needles(spec, normalized=True), mode)
        segments += [Segment(start + first, start + last, token) for first, last, token in inner]
    return segments


def _needles(spec: Spec, normalized: bool) -> dict[bytes, AddedToken]:
    """The added tokens of one pass by the bytes that they match."""
    tokens = {token.content: token for token in spec.added if token.normalized == normalized}
    found: dict[bytes, AddedToken] = {}
    for content, token in tokens.items():
        raw = content.encode()
        found.setdefault(normalize(spec, raw) if normalized else raw, token)
    found.pop(b"", None)
    return found


def _cut(text: bytes, needles: Mapping[bytes, AddedToken], mode: str) -> list[Segment]:
    """One pass: the leftmost match, the longest of those; the next search starts at its end."""
    chars = classify(text)
    segments = []
    done = search = 0
    while True:
        found = [(text.find(content, search), content, t) for content, t in needles.items()]
        found = [hit for hit in found if hit[0] >= 0]
        if not found:
            break
        start, content, token = min(found, key=lambda hit: (hit[0], -len(hit[1])))
        search = end = start + len(content)
        white = all(map(_is_white, classify(token.content.encode())))
        if (mode == "plain" and not white) or (mode == "hf_plain" and token.special):
            continue
        before = [char for char in chars if char.end <= start]
        after = [char for char in chars if char.start >= end]
        if token.single_word and WORD_TAGS & {char.tag for char in before[-1:] + after[:1]}:
            continue
        if mode == "error" and not white:
            raise InputError(f"the text holds the added token {token.content!r} at byte {start}")
        if token.lstrip:  # takes the white space before it, but never from the last token
            for char in takewhile(_is_white, reversed(before)):
                start = char.start
            start = max(start, done)
        if token.rstrip:
            for char in takewhile(_is_white, after):
                end = char.end
        if done < start:
            segments.append(Segment(done, start, None))
        if start >= end:  # the last token's rstrip took all of this match
            continue
        done = end  # below the last `done` if rstrip took the start of this match too
        segments.append(Segment(start, done, token))
    return [*segments, Segment(done, len(text), None)] if done < len(text) else segments


def _is_white(char: Char) -> bool:
    return char.tag in SPACE_TAGS


def normalize(spec: Spec, segment: bytes) -> bytes:
    """What the Spec's normalizers make of a segment, one after the other.

    Forms and lower case act on each run of valid UTF-8: a byte that is in no valid character stays
    as it is, and nothing is composed or reordered across it. White space at an end of the segment
    is what Strip removes, and Prepend comes before the segment.
    """
    return align(spec, segment)[0]


def align(spec: Spec, segment: bytes) -> tuple[bytes, Sequence[tuple[int, int]]]:
    """The normalized segment, and for each byte of it the (start, end) in the segment of the
    character it stands for."""
    spans = [(start, end) for start, end, _ in classify(segment) for _ in range(start, end)]
    return reference_normalize.align(spec.normalizers, segment, spans)


def classify(segment: bytes) -> list[Char]:
    """The characters of a segment with their tags, for any bytes.

    The byte contract: 00..7F is ASCII; 80..BF and F5..FF never lead; C0..F4 lead 2, 3 or 4 bytes by
    their high bits alone, so overlong forms, surrogates and values above U+10FFFF are characters.
    A lead has *failed* if a byte it needs is there and is no continuation: width 1, Other. It is
    *truncated* if the segment ends too soon. Truncated leads and bytes that lead nothing have width
    1 and the tag of the symbol that stands for the byte (`bytemap`). Rules that name a literal mean
    its one byte: an overlong space or newline is WsOther, an overlong apostrophe or slash Punct.
    """
    chars = []
    at = 0
    while at < len(segment):
        width, tag = _char_at(segment, at)
        chars.append(Char(at, at + width, tag))
        at += width
    return chars


def _char_at(segment: bytes, at: int) -> tuple[int, str]:
    """Width and tag of the character at byte `at`."""
    lead, tags = segment[at], tag_table()
    if lead < 0x80:
        return 1, tags[lead]
    if lead < 0xC0 or lead > 0xF4:
        return 1, tags[ord(BYTE_SYMBOL[lead])]
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    rest = segment[at + 1 : at + width]
    if any(byte & 0xC0 != 0x80 for byte in rest):
        return 1, "Other"
    if len(rest) < width - 1:
        return 1, tags[ord(BYTE_SYMBOL[lead])]
    value = lead & (0xFF >> (width + 1))
    for byte in rest:
        value = value << 6 | byte & 0x3F
    return width, _OVERLONG.get(tags[value], tags[value]) if value < 0x80 else tags[value]


_OVERLONG = {"Space": "WsOther", "Newline": "WsOther", "Apostrophe": "Punct", "Slash": "Punct"}


@lru_cache(1)
def tag_table() -> list[str]:
    """The tag of each value four bytes hold, from lines `first last number name` (hex, hex)."""
    tags = ["Other"] * 0x140000  # F4 BF BF BF is U+13FFFF
    for line in resource("tables/generated/superatoms.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            first, last, _, name = line.split()
            low, high = int(first, 16), int(last, 16) + 1
            tags[low:high] = [name] * (high - low)
    return tags


def remap(spec: Spec, chars: Sequence[Char]) -> str:
    """The class of each character under the Spec's scheme, one letter a character; "" for a Spec
    whose text is split by several."""
    scheme = spec.pretok.scheme
    if not _is_one_scheme(spec):
        return ""
    if scheme in _SCHEMES:
        classes, _ = _SCHEMES[scheme]
        return "".join(classes.get(char.tag, "O") for char in chars)
    return reference_patterns.classes(scheme, chars)


def _is_one_scheme(spec: Spec) -> bool:
    """Raises UnsupportedError for a scheme that isn't known."""
    scheme = spec.pretok.scheme
    if scheme and scheme not in _SCHEMES and scheme not in reference_patterns.names():
        raise UnsupportedError(f"the reference has no scheme {scheme!r}")
    return scheme != "" and not spec.pretok.add_prefix_space


def boundaries(
    spec: Spec, segment: bytes, chars: Sequence[Char], classes: str
) -> list[tuple[int, int]]:
    """The pieces (start, end) of a segment under the Spec's scheme.

    Of GPT-2, at each position the first rule that matches gives the piece, as the alternatives of a
    regular expression do; the other schemes are regular expressions (`reference_patterns`).
    """
    if spec.pretok.scheme not in _SCHEMES:
        return reference_patterns.pieces(spec.pretok.scheme, segment, chars)
    _, rules = _SCHEMES[spec.pretok.scheme]
    pieces = []
    at = 0
    while at < len(chars):
        ends = (rule(segment[chars[at].start :], classes, at) for rule in rules)
        end = next(end for end in ends if end > at)
        pieces.append((chars[at].start, chars[end - 1].end))
        at = end
    return pieces


def program(spec: Spec, segment: bytes) -> list[tuple[tuple[int, int], str]]:
    """The pieces of a segment under the Spec's stages: where each comes from, and its symbols."""
    steps = spec.pretok.stages
    steps = (Scheme(spec.pretok.scheme),) if spec.pretok.scheme else steps
    steps = (Prefix(" "), *steps) if spec.pretok.add_prefix_space else steps
    mapped = any(isinstance(step, Bytemap) for step in steps)
    return [
        (piece.span, piece.text.decode() if mapped else bytemap(piece.text))
        for piece in reference_pretok.pieces(steps, segment)
    ]


# A rule: (bytes from the position on, classes, position) → end, or the position where it does not
# match. These positions count characters.
Rule = Callable[[bytes, str, int], int]


def _run(classes: str, at: int, wanted: str) -> int:
    return next((i for i in range(at, len(classes)) if classes[i] not in wanted), len(classes))


def _contraction(text: bytes, classes: str, at: int) -> int:
    """'s|'t|'re|'ve|'m|'ll|'d"""
    suffixes = (b"s", b"t", b"re", b"ve", b"m", b"ll", b"d")
    return next((at + 1 + len(s) for s in suffixes if text.startswith(b"'" + s)), at)


def _spaced(wanted: str) -> Rule:
    """` ?X+` for a class X: one U+0020 or none, then a run."""

    def rule(text: bytes, classes: str, at: int) -> int:
        first = at + (classes[at] == "S")
        end = _run(classes, first, wanted)
        return end if end > first else at

    return rule


def _white_before(text: bytes, classes: str, at: int) -> int:
    r"""\s+(?!\S): white space up to the end, or all but the last before something else."""
    end = _run(classes, at, "SW")
    return end if end == len(classes) else max(at, end - 1)


def _white(text: bytes, classes: str, at: int) -> int:
    r"""\s+"""
    return _run(classes, at, "SW")


# Of each scheme: the superatoms that are Letter, Number, Space (U+0020) and other White space (the
# rest are Other); and its rules in order.
_SCHEMES: dict[str, tuple[dict[str, str], tuple[Rule, ...]]] = {
    # 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    "gpt2": (
        {
            **{"Upper": "L", "Lower": "L", "LetterOther": "L", "HanLetter": "L", "HanURO": "L"},
            **{"KanaLetter": "L", "NumWord": "N", "NumOther": "N", "HanNum": "N"},
            **{"Space": "S", "WsOther": "W", "Newline": "W"},
        },
        (_contraction, _spaced("L"), _spaced("N"), _spaced("O"), _white_before, _white),
    )
}
# GPT-2's symbol of each byte: itself where Latin-1 prints it, else U+0100, U+0101, … in turn.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_REST = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_SYMBOL = [chr(0x100 + _REST.index(b) if b in _REST else b) for b in range(256)]


def bytemap(piece: bytes) -> str:
    r"""One symbol of the byte alphabet for each byte: b" caf\xc3\xa9" → "ĠcafÃ©"."""
    return "".join(BYTE_SYMBOL[byte] for byte in piece)


def bpe(spec: Spec, symbols: str) -> list[str]:
    """The tokens of one piece, as byte-alphabet text.

    Of all neighbouring pairs the one of lowest rank is merged, the leftmost where it occurs more
    than once; again, until no pair has a rank. The end-of-word suffix, if there is one, is part of
    the last symbol. Of a merge list, symbols without an id are left out.
    """
    ids, ranks = _tables(spec.bpe)
    if spec.bpe.whole_piece_first and symbols in ids:
        return [symbols]
    parts = [*symbols[:-1], symbols[-1] + spec.bpe.end_of_word_suffix]
    if ranks is not None:
        parts = [part for part in parts if part in ids]
    while True:
        if ranks is None:  # a rank file: a pair merges if it makes a token, whose id is its rank
            found = [(ids.get(a + b), at) for at, (a, b) in enumerate(pairwise(parts))]
        else:
            found = [(ranks.get(pair), at) for at, pair in enumerate(pairwise(parts))]
        best = min(((rank, at) for rank, at in found if rank is not None), default=None)
        if best is None:
            return parts
        at = best[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


Tables = tuple[dict[str, int], dict[tuple[str, str], int] | None]
_kept: list[tuple[Bpe, Tables]] = []


def _tables(bpe: Bpe) -> Tables:
    """Id of each token and rank of each pair, keyed by byte-alphabet text; kept for one Bpe."""
    for kept, tables in _kept:
        if kept is bpe:
            return tables
    text = [bytemap(token or b"") for token in bpe.tokens]
    for id, end in enumerate(bpe.ends):
        text[id] += bpe.end_of_word_suffix * end
    ids = {token: id for id, token in enumerate(text) if token}
    ranks = None
    if bpe.merges is not None:
        ranks = {(text[a], text[b]): rank for rank, (a, b, _) in enumerate(bpe.merges)}
    _kept[:] = [(bpe, (ids, ranks))]
    return ids, ranks


def vocab(spec: Spec, tokens: Sequence[str]) -> list[int]:
    """The id of each token. Raises InputError for a symbol that the vocabulary does not have."""
    ids, _ = _tables(spec.bpe)
    if missing := [token for token in tokens if token not in ids]:
        raise InputError(f"the vocabulary has no token {missing[0]!r}")
    return [ids[token] for token in tokens]


@dataclass(frozen=True, slots=True)
class Stages:
    """What each stage made of one segment. Of an added token: start, end, added and ids alone."""

    start: int
    end: int
    added: AddedToken | None
    normalized: bytes = b""
    chars: Sequence[Char] = ()
    classes: str = ""
    pieces: Sequence[tuple[int, int]] = ()  # in `normalized`
    symbols: Sequence[str] = ()  # of each piece
    tokens: Sequence[list[str]] = ()  # of each piece
    ids: Sequence[int] = ()


def _normalized(spec: Spec, text: bytes, mode: str) -> Iterator[tuple[Segment, bytes]]:
    """The segments of a text, and their bytes after normalization."""
    for segment in special(spec, text, mode):
        start, end, added = segment
        if added is not None or not spec.normalizers:
            yield segment, text[start:end]
            continue
        data, spans = align(spec, text[start:end])
        for first, last, token in _cut(data, _needles(spec, normalized=True), mode):
            source = Segment(start + spans[first][0], start + spans[last - 1][1], token)
            yield source, data[first:last]


def stages(spec: Spec, data: bytes | str, special: str = "plain") -> list[Stages]:
    """The segments of a text with every stage's result. Arguments and errors as for `encode`."""
    text = data.encode() if isinstance(data, str) else bytes(data)
    result = []
    for (start, end, added), segment in _normalized(spec, text, special):
        if added is not None:
            result.append(Stages(start, end, added, ids=[added.id]))
            continue
        chars = classify(segment)
        classes = remap(spec, chars)
        if _is_one_scheme(spec):
            pieces = boundaries(spec, segment, chars, classes)
            symbols = [bytemap(segment[first:last]) for first, last in pieces]
        else:
            made = program(spec, segment)
            pieces, symbols = [span for span, _ in made], [piece for _, piece in made]
        tokens = [bpe(spec, piece) for piece in symbols]
        ids = [id for piece in tokens for id in vocab(spec, piece)]
        result.append(
            Stages(start, end, None, segment, chars, classes, pieces, symbols, tokens, ids)
        )
    return result


def encode(spec: Spec, data: bytes | str, special: str = "plain") -> list[int]:
    """The ids of one text.

    data: any bytes, or a str (UnicodeEncodeError if it holds a lone surrogate).
    special: what becomes of added tokens in the text, one of MODES (see `special`, the stage).
    Raises InputError for an added token under special="error", ValueError for an unknown mode,
    UnsupportedError for a scheme the reference does not know.
    """
    return [id for segment in stages(spec, data, special) for id in segment.ids]
