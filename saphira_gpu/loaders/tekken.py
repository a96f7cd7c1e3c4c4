"""Mistral's `tekken.json` → Spec.

The file lists more ranks than are used: the first `default_vocab_size − default_num_special_tokens`
of them. Special tokens have the ids below `default_num_special_tokens`, the others rank + that
number. Those that a file does not list are `<SPECIAL_n>`; files up to version v7 list none and have
the names of `_NAMES` first (as mistral-common has it). That library never matches special tokens in
text, which is what special="plain" does. Pieces and merges are tiktoken's.
"""

from __future__ import annotations

import binascii
from typing import Any

from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders import tiktoken
from saphira_gpu.loaders._config import Config
from saphira_gpu.loaders._document import Document, shown
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.pretok import schemes
from saphira_gpu.spec import AddedToken, Bpe, Pretok, Spec

_NAMES = "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
_NAMES += "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] "
_NAMES += "[SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
_VERSIONS_WITHOUT_LIST = 7
_MAX_SPECIAL = 1 << 16


def is_tekken(doc: Document) -> bool:
    """Whether a JSON document is one of these: they have a `config` and a list `vocab`."""
    return "config" in doc.root and "model" not in doc.root


def of_document(doc: Document, config: Config) -> Spec:
    """The Spec of a file's JSON.

    Raises TokenizerFileError for a malformed file, UnsupportedError for a pattern that is no
    compiled scheme of tiktoken.
    """
    settings = doc.member(doc.root, "config", dict, "")
    n_special = _count(doc, settings, "default_num_special_tokens", _MAX_SPECIAL)
    size = _count(doc, settings, "default_vocab_size", MAX_ID + 1)
    vocab = doc.member(doc.root, "vocab", list, "")
    n_ranks = size - n_special
    if not 256 <= n_ranks <= len(vocab):
        why = f"leaves {n_ranks} of {len(vocab)} ranks, and the bytes alone are 256"
        doc.bad("config.default_vocab_size", why)
    pattern = doc.member(settings, "pattern", str, "config")
    scheme = schemes.find(pattern, "tiktoken", "Isolated", False)
    if scheme is None:
        doc.unsupported("config.pattern", pattern, "is no compiled scheme of tiktoken")
    ranks: dict[bytes, int] = {}
    for rank in range(n_ranks):
        token = _token(doc, vocab[rank], rank)
        if ranks.setdefault(token, rank) != rank:
            doc.bad(f"vocab[{rank}].token_bytes", f"repeats those of rank {ranks[token]}")
    for byte in range(256):
        if bytes((byte,)) not in ranks:
            raise TokenizerFileError(f"{doc.origin}: vocab has no token for byte {byte:#04x}")
    added = _special(doc, settings, n_special)
    tokens: list[bytes | None] = [None] * n_special
    tokens += ranks
    tiktoken.check(added, tokens, doc.origin)
    known = {token.content for token in added}
    return Spec(
        added=added,
        pretok=Pretok(scheme),
        bpe=Bpe(tuple(tokens), None, whole_piece_first=True),
        name=doc.origin,
        eos=config.eos or ("</s>" if "</s>" in known else None),
        bos=config.bos or ("<s>" if "<s>" in known else None),
    )


def _count(doc: Document, settings: dict[str, Any], name: str, limit: int) -> int:
    number = doc.member(settings, name, int, "config")
    if not 0 <= number <= limit:
        doc.bad(f"config.{name}", f"is {number}, not a number from 0 to {limit}")
    return number


def _token(doc: Document, entry: object, rank: int) -> bytes:
    key = f"vocab[{rank}]"
    entry = doc.typed(entry, dict, key)
    if doc.member(entry, "rank", int, key) != rank:
        doc.bad(f"{key}.rank", f"is {entry['rank']}: ranks are not 0, 1, 2, … in order")
    coded = doc.member(entry, "token_bytes", str, key)
    try:
        token = binascii.a2b_base64(coded, strict_mode=True)
    except ValueError:
        token = b""
    if not token:
        doc.bad(f"{key}.token_bytes", f"is {shown(coded)}, not the base64 of a token")
    return token


def _special(doc: Document, settings: dict[str, Any], n: int) -> tuple[AddedToken, ...]:
    """n tokens, those of the file first. All count as special: none is matched in text."""
    listed = doc.root.get("special_tokens")
    names: dict[str, int] = {}
    if listed is None:
        version = doc.member(settings, "version", str, "config")
        number = version[1:]
        if version[:1] != "v" or not (number.isascii() and number.isdigit() and len(number) < 4):
            doc.bad("config.version", f"is {shown(version)}, not v and a number")
        if int(number) > _VERSIONS_WITHOUT_LIST:
            doc.bad("special_tokens", f"is missing from a file of version {version}")
        names = {name: i for i, name in enumerate(_NAMES.split())}
    else:
        taken: set[int] = set()
        for i, entry in enumerate(doc.typed(listed, list, "special_tokens")):
            key = f"special_tokens[{i}]"
            entry = doc.typed(entry, dict, key)
            name = doc.member(entry, "token_str", str, key)
            rank = doc.member(entry, "rank", int, key)
            if name in names or rank in taken or not 0 <= rank < n or not _is_text(name):
                doc.bad(key, f"is {shown(entry)}, not a name and a rank below {n} of its own")
            names[name] = rank
            taken.add(rank)
    if len(names) > n:
        doc.bad("config.default_num_special_tokens", f"is {n}, and there are {len(names)}")
    for rank in range(len(names), n):
        if names.setdefault(f"<SPECIAL_{rank}>", rank) != rank:
            doc.bad("special_tokens", f"names <SPECIAL_{rank}>, which is the name of rank {rank}")
    return tuple(AddedToken(name, rank) for name, rank in names.items() if name)


def _is_text(name: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in name)
