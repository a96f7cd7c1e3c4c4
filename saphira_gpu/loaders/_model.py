"""The `model` of a tokenizer.json, or the two files that came before it → Bpe.

Byte-level BPE: tokens are written in the byte alphabet, with `end_of_word_suffix` behind those that
end a piece where a file has one (CLIP's "</w>"). As `tokenizers` 0.23.3 has it, a merge given twice
has its last rank, and a byte that is no token is left out of its piece where no `unk_token` stands
for it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from saphira_gpu.errors import UnsupportedError
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.loaders._document import Document, shown
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.spec import Bpe

_KEYS = {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}
_KEYS |= {"fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}


def kind(doc: Document, model: dict[str, Any]) -> None:
    """Refuses every model but BPE. One without `type` is what its keys say, as in the reference."""
    signs = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
    found = model.get("type", next((signs[key] for key in signs if key in model), None))
    if found is None:
        doc.bad("model.type", "is missing")
    if doc.typed(found, str, "model.type") != "BPE":
        doc.unsupported("model.type", found)


def vocab(doc: Document, model: dict[str, Any]) -> dict[str, int]:
    """Token → id: no id twice, none out of range. A token without text (Whisper has one) only keeps
    its id from others."""
    tokens = doc.member(model, "vocab", dict, "model")
    ids = tokens.values()
    if tokens and (set(map(type, ids)) != {int} or not 0 <= min(ids) <= max(ids) <= MAX_ID):
        for token, number in tokens.items():
            if type(number) is not int or not 0 <= number <= MAX_ID:
                why = f"is {shown(number)}, not an id from 0 to {MAX_ID}"
                doc.bad(f"model.vocab[{shown(token)}]", why)
    if len(set(ids)) < len(tokens):
        owner: dict[int, str] = {}
        for token, number in tokens.items():
            if owner.setdefault(number, token) is not token:
                why = f"repeats the id {number} of {shown(owner[number])}"
                doc.bad(f"model.vocab[{shown(token)}]", why)
    return tokens


def bpe(
    doc: Document, model: dict[str, Any], tokens: dict[str, int], added: Collection[str]
) -> Bpe:
    """The model. tokens: as `vocab` gives it. added: the contents of the added tokens."""
    doc.only(model, _KEYS, "model")
    suffix, unk = _options(doc, model)
    whole = bool(model.get("ignore_merges"))
    if suffix and whole:
        doc.unsupported("model.ignore_merges", True, "is not supported with end_of_word_suffix")
    missing = _missing(tokens, "")
    if missing and model.get("byte_fallback"):
        doc.unsupported("model.byte_fallback", True, "is not supported (BPE of SentencePiece)")
    if len(missing) > 128:
        why = f"has tokens of their own for {256 - len(missing)} of the 256 bytes"
        raise UnsupportedError(f"{doc.origin}: model.vocab {why}: it is not byte-level")
    for reason, given in (("unk_token", unk is not None), ("ignore_merges", whole)):
        if missing and given:
            why = f"is not supported where the vocabulary has no token for byte {missing[0]:#04x}"
            doc.unsupported(f"model.{reason}", unk if reason == "unk_token" else whole, why)
    if suffix and (missing := missing or _missing(tokens, suffix)):
        why = f"is not supported where the vocabulary has no token for byte {missing[0]:#04x}"
        doc.unsupported("model.end_of_word_suffix", suffix, why)
    raw: list[bytes | None] = [None] * (max(tokens.values(), default=-1) + 1)
    foreign: set[str] = set()
    for token, number in tokens.items():
        text = token[: -len(suffix)] if suffix and token.endswith(suffix) else token
        try:
            raw[number] = _bytelevel.to_bytes(text or token)
        except UnicodeEncodeError:
            # Byte-level text never reaches such an entry; it is only there as an added token.
            if token not in added:
                doc.unsupported("model.vocab", token, "is not written in the byte alphabet")
            foreign.add(token)
    entries = doc.member(model, "merges", list, "model")
    merges = _merges(doc, entries, tokens, foreign, suffix)
    ends = [False] * (len(raw) if suffix else 0)
    for token, number in tokens.items() if suffix else ():
        ends[number] = token.endswith(suffix) and token != suffix
    return Bpe(tuple(raw), merges, whole, suffix, tuple(ends))


def _options(doc: Document, model: dict[str, Any]) -> tuple[str, str | None]:
    """end_of_word_suffix ("" if none) and unk_token, after refusing what can't be honoured."""
    dropout = model.get("dropout")
    if dropout is not None and type(dropout) not in (int, float):
        doc.bad("model.dropout", f"is {shown(dropout)}, not a number")
    if dropout:
        doc.unsupported("model.dropout", dropout)
    texts: dict[str, str | None] = {}
    for name in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix"):
        text = model.get(name)
        texts[name] = None if text is None else doc.typed(text, str, f"model.{name}")
    prefix, suffix = texts["continuing_subword_prefix"], texts["end_of_word_suffix"]
    if prefix:
        doc.unsupported("model.continuing_subword_prefix", prefix)
    for name in ("fuse_unk", "byte_fallback", "ignore_merges"):
        flag = model.get(name)
        if flag is not None:
            doc.typed(flag, bool, f"model.{name}")
    return suffix or "", texts["unk_token"]


def _missing(tokens: dict[str, int], suffix: str) -> list[int]:
    """The bytes without a token of their own."""
    symbols = enumerate(_bytelevel.ALPHABET)
    return [byte for byte, symbol in symbols if symbol + suffix not in tokens]


def _merges(
    doc: Document, entries: list[Any], tokens: dict[str, int], foreign: set[str], suffix: str
) -> tuple[tuple[int, int, int], ...]:
    ranked: dict[tuple[int, int], int] = {}
    for i, entry in enumerate(entries):
        if type(entry) is str:
            if entry.startswith("#version"):
                continue
            parts: list[Any] = entry.split(" ")
        else:
            parts = entry if type(entry) is list and set(map(type, entry)) == {str} else []
        if len(parts) != 2 or "" in parts:
            doc.bad(f"model.merges[{i}]", f"is {shown(entry)}, not a pair of tokens")
        left, right = parts
        try:
            pair = (tokens[left], tokens[right])
            result = tokens[left + right]
        except KeyError as error:
            name = shown(error.args[0])
            doc.bad(f"model.merges[{i}]", f"names {name}, which is not in model.vocab")
        if foreign and not foreign.isdisjoint((left, right, left + right)):
            doc.unsupported(f"model.merges[{i}]", entry, "is not written in the byte alphabet")
        if suffix and _breaks(left, right, suffix):
            doc.unsupported(f"model.merges[{i}]", entry, f"has {suffix!r} in another place")
        ranked.pop(pair, None)  # the last rank counts
        ranked[pair] = result
    return tuple([(left, right, result) for (left, right), result in ranked.items()])


def _breaks(left: str, right: str, suffix: str) -> bool:
    """Whether the suffix is not what marks the last token alone: it must end the result if and only
    if it ends the right part, and never the left one."""
    ends_right = right.endswith(suffix) and right != suffix
    ends_left = left.endswith(suffix) and left != suffix
    return ends_left or (left + right).endswith(suffix) != ends_right
