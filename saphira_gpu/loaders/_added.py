"""Added tokens: `added_tokens` of tokenizer.json, `added_tokens_decoder` of tokenizer_config.json.

In a tokenizer.json the reference (`tokenizers` 0.23.3) decides: an added token without text is
ignored; its id is the one it has in the vocabulary, else the next free one, whatever the file says,
so that a file that says otherwise contradicts itself and is refused.
"""

from __future__ import annotations

from typing import Any

from saphira_gpu.loaders._document import Document, shown
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.spec import AddedToken

_FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")
_KEYS = {"id", "content", *_FLAGS}


def contents(doc: Document, value: object) -> dict[str, dict[str, Any]]:
    """The entries of `added_tokens`, checked, by content and in the file's order."""
    entries: dict[str, dict[str, Any]] = {}
    if value is None:
        return entries
    for i, entry in enumerate(doc.typed(value, list, "added_tokens")):
        key = f"added_tokens[{i}]"
        entry = doc.typed(entry, dict, key)
        doc.only(entry, _KEYS, key)
        content = doc.member(entry, "content", str, key)
        doc.member(entry, "id", int, key)
        for flag in _FLAGS:
            doc.member(entry, flag, bool, key)
        _is_text(doc, content, f"{key}.content")
        if content in entries:
            doc.bad(f"{key}.content", f"repeats {shown(content)}")
        if content:
            entries[content] = entry
    return entries


def tokens(
    doc: Document, entries: dict[str, dict[str, Any]], vocab: dict[str, int]
) -> tuple[AddedToken, ...]:
    """The added tokens with the ids that the reference gives them. entries: as `contents` does."""
    owners = {number: token for token, number in vocab.items()} if entries else {}
    added = []
    highest = -1
    for content, entry in entries.items():
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


def of_config(doc: Document) -> tuple[AddedToken, ...]:
    """The tokens of `added_tokens_decoder` (id → token), in the file's order; () without it."""
    found: dict[str, AddedToken] = {}
    ids: set[int] = set()
    decoder = doc.root.get("added_tokens_decoder")
    for name, entry in doc.typed(
        {} if decoder is None else decoder, dict, "added_tokens_decoder"
    ).items():
        key = f"added_tokens_decoder[{shown(name)}]"
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
        if not 0 <= number <= MAX_ID or number in ids:
            doc.bad(key, f"is not an id from 0 to {MAX_ID} of its own")
        ids.add(number)
        entry = doc.typed(entry, dict, key)
        content = doc.member(entry, "content", str, key)
        _is_text(doc, content, f"{key}.content")
        if content in found:
            doc.bad(f"{key}.content", f"repeats {shown(content)}")
        flags = {
            flag: doc.typed(entry.get(flag, flag == "special"), bool, f"{key}.{flag}")
            for flag in _FLAGS
        }
        if content:
            found[content] = AddedToken(content, number, **flags)
    return tuple(found.values())


def _is_text(doc: Document, content: str, key: str) -> None:
    try:
        content.encode()
    except UnicodeEncodeError:
        doc.bad(key, f"is {shown(content)}, which is not valid text")
