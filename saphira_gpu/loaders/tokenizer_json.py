"""`tokenizer.json` of GPT-2's kind → Spec.

Supported: a BPE model behind a ByteLevel pre_tokenizer with GPT-2's split and no prefix space, no
normalizer, and added tokens with every flag. Merges may be "a b" strings or pairs, `model.type` may
be missing. A post_processor and a decoder of ByteLevel kind are accepted: they never change the ids
of text. Stored truncation and padding are reported as a warning and not applied. Whatever else a
file asks for is refused by name.

Where the file format leaves a choice, the reference (`tokenizers` 0.23.3) decides: a merge given
twice has its last rank; an added token without text is ignored; the id of an added token is the one
it has in the vocabulary, else the next free one. The reference assigns that id whatever the file
says, so a file that says otherwise contradicts itself and is refused.
"""

from __future__ import annotations

import warnings
from typing import Any

from saphira_gpu.errors import UnsupportedError
from saphira_gpu.loaders import _bytelevel
from saphira_gpu.loaders._document import Document, shown
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

_TOP = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer"}
_TOP |= {"post_processor", "decoder", "model"}
_MODEL = {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}
_MODEL |= {"fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}
_BYTE_LEVEL = {"type", "add_prefix_space", "trim_offsets", "use_regex"}
_FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")
_ADDED = {"id", "content", *_FLAGS}


def parse(data: bytes, origin: str, eos: str | None = None, warn: bool = True) -> Spec:
    """The Spec of a file's bytes. `origin` names the file in messages; `eos` comes from beside it.

    Raises TokenizerFileError for a malformed file, UnsupportedError for what isn't supported.
    """
    doc = Document(data, origin)
    root = doc.root
    doc.only(root, _TOP, "")
    if root.get("version") not in (None, "1.0"):
        doc.unsupported("version", root["version"])
    if root.get("normalizer") is not None:
        doc.unsupported("normalizer", root["normalizer"])
    _pre_tokenizer(doc, root.get("pre_tokenizer"))
    _harmless(doc, root.get("post_processor"), "post_processor")
    _harmless(doc, root.get("decoder"), "decoder")
    model = doc.member(root, "model", dict, "")
    vocab = _model(doc, model)
    contents = _added_contents(doc, root.get("added_tokens"))
    bpe = _bpe(doc, model, vocab, contents)
    added = _added_tokens(doc, contents, vocab)
    if warn:
        _report(doc, "truncation")
        _report(doc, "padding")
    return Spec(added=added, pretok=Pretok("gpt2"), bpe=bpe, name=origin, eos=eos)


def _report(doc: Document, key: str) -> None:
    value = doc.root.get(key)
    if value is not None:
        message = f"{doc.origin}: {key} = {shown(value)} is stored in the file and not applied"
        warnings.warn(message, UserWarning, stacklevel=5)


def _byte_level(doc: Document, value: object, key: str) -> dict[str, Any]:
    """A ByteLevel object; every other kind is refused."""
    stage = doc.typed(value, dict, key)
    kind = doc.member(stage, "type", str, key)
    if kind != "ByteLevel":
        doc.unsupported(f"{key}.type", kind)
    doc.only(stage, _BYTE_LEVEL, key)
    for name in ("add_prefix_space", "trim_offsets"):
        doc.member(stage, name, bool, key)
    doc.typed(stage.get("use_regex", True), bool, f"{key}.use_regex")
    return stage


def _pre_tokenizer(doc: Document, value: object) -> None:
    if value is None:
        doc.unsupported("pre_tokenizer", None)
    stage = _byte_level(doc, value, "pre_tokenizer")
    if stage["add_prefix_space"]:
        doc.unsupported("pre_tokenizer.add_prefix_space", True)
    if not stage.get("use_regex", True):
        doc.unsupported("pre_tokenizer.use_regex", False)


def _harmless(doc: Document, value: object, key: str) -> None:
    """A post_processor trims offsets, a decoder has its own options: neither touches an id."""
    if value is not None:
        _byte_level(doc, value, key)


def _model(doc: Document, model: dict[str, Any]) -> dict[str, int]:
    """Checks the options of the model; its vocabulary, token → id."""
    kind = model.get("type", "BPE" if "merges" in model else None)
    if kind is None:
        doc.bad("model.type", "is missing")
    if doc.typed(kind, str, "model.type") != "BPE":
        doc.unsupported("model.type", kind)
    doc.only(model, _MODEL, "model")
    dropout = model.get("dropout")
    if dropout is not None and type(dropout) not in (int, float):
        doc.bad("model.dropout", f"is {shown(dropout)}, not a number")
    if dropout:
        doc.unsupported("model.dropout", dropout)
    for name in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix"):
        text = model.get(name)
        if text is not None and (doc.typed(text, str, f"model.{name}") or name == "unk_token"):
            doc.unsupported(f"model.{name}", text)
    for name in ("fuse_unk", "byte_fallback", "ignore_merges"):
        flag = model.get(name)
        if flag is not None and doc.typed(flag, bool, f"model.{name}") and name != "ignore_merges":
            doc.unsupported(f"model.{name}", flag)
    vocab = doc.member(model, "vocab", dict, "model")
    ids = vocab.values()
    if set(map(type, ids)) != {int} or not 0 <= min(ids) <= max(ids) <= MAX_ID:
        for token, number in vocab.items():
            if type(number) is not int or not 0 <= number <= MAX_ID:
                why = f"is {shown(number)}, not an id from 0 to {MAX_ID}"
                doc.bad(f"model.vocab[{shown(token)}]", why)
    if len(set(ids)) < len(vocab):
        owner: dict[int, str] = {}
        for token, number in vocab.items():
            if owner.setdefault(number, token) is not token:
                why = f"repeats the id {number} of {shown(owner[number])}"
                doc.bad(f"model.vocab[{shown(token)}]", why)
    if "" in vocab:
        doc.bad('model.vocab[""]', "is a token without text")
    return vocab


def _bpe(
    doc: Document, model: dict[str, Any], vocab: dict[str, int], contents: dict[str, dict[str, Any]]
) -> Bpe:
    tokens: list[bytes | None] = [None] * (max(vocab.values(), default=-1) + 1)
    foreign: set[str] = set()
    for token, number in vocab.items():
        try:
            tokens[number] = _bytelevel.to_bytes(token)
        except UnicodeEncodeError:
            # Byte-level text never reaches such an entry; it is only there as an added token.
            if token not in contents:
                doc.unsupported("model.vocab", token, "is not written in the byte alphabet")
            foreign.add(token)
    for byte, symbol in enumerate(_bytelevel.ALPHABET):
        if symbol not in vocab:
            why = f"has no token {shown(symbol)} for byte {byte:#04x}: such bytes would be dropped"
            raise UnsupportedError(f"{doc.origin}: model.vocab {why}")
    merges = _merges(doc, doc.member(model, "merges", list, "model"), vocab, foreign)
    return Bpe(tuple(tokens), merges, whole_piece_first=bool(model.get("ignore_merges")))


def _merges(
    doc: Document, entries: list[Any], vocab: dict[str, int], foreign: set[str]
) -> tuple[tuple[int, int, int], ...]:
    ranked: dict[tuple[int, int], int] = {}
    for i, entry in enumerate(entries):
        if type(entry) is str:
            if i == 0 and entry.startswith("#version"):
                continue
            parts: list[Any] = entry.split(" ")
        else:
            parts = entry if type(entry) is list and set(map(type, entry)) == {str} else []
        if len(parts) != 2:
            doc.bad(f"model.merges[{i}]", f"is {shown(entry)}, not a pair of tokens")
        left, right = parts
        try:
            pair = (vocab[left], vocab[right])
            result = vocab[left + right]
        except KeyError as error:
            name = shown(error.args[0])
            doc.bad(f"model.merges[{i}]", f"names {name}, which is not in model.vocab")
        if foreign and not foreign.isdisjoint((left, right, left + right)):
            doc.unsupported(f"model.merges[{i}]", entry, "is not written in the byte alphabet")
        ranked.pop(pair, None)  # the last rank counts
        ranked[pair] = result
    return tuple([(left, right, result) for (left, right), result in ranked.items()])


def _added_contents(doc: Document, value: object) -> dict[str, dict[str, Any]]:
    """The entries of `added_tokens`, checked, by content and in the file's order."""
    entries: dict[str, dict[str, Any]] = {}
    if value is None:
        return entries
    for i, entry in enumerate(doc.typed(value, list, "added_tokens")):
        key = f"added_tokens[{i}]"
        entry = doc.typed(entry, dict, key)
        doc.only(entry, _ADDED, key)
        content = doc.member(entry, "content", str, key)
        doc.member(entry, "id", int, key)
        for flag in _FLAGS:
            doc.member(entry, flag, bool, key)
        try:
            content.encode()
        except UnicodeEncodeError:
            doc.bad(f"{key}.content", f"is {shown(content)}, which is not valid text")
        if content in entries:
            doc.bad(f"{key}.content", f"repeats {shown(content)}")
        if content:
            entries[content] = entry
    return entries


def _added_tokens(
    doc: Document, contents: dict[str, dict[str, Any]], vocab: dict[str, int]
) -> tuple[AddedToken, ...]:
    owners = {number: token for token, number in vocab.items()} if contents else {}
    added = []
    highest = -1
    for content, entry in contents.items():
        number = vocab.get(content)
        if number is None:
            number = max(highest + 1, len(vocab))
        key = f"added_tokens: the id of {shown(content)}"
        if entry["id"] != number:
            doc.bad(key, f"is {entry['id']}, but the reference gives it {number}")
        if number > MAX_ID:
            doc.bad(key, f"is {number}, above {MAX_ID}")
        if owners.setdefault(number, content) != content:
            doc.bad(key, f"is {number}, which is the id of {shown(owners[number])}")
        highest = max(highest, number)
        added.append(AddedToken(content, number, **{flag: entry[flag] for flag in _FLAGS}))
    return tuple(added)
