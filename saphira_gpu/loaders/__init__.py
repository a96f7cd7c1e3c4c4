"""Loaders: a file, an embedded name or a Hub id → Spec. They know no engine, and nothing else knows
files.

A local path beats an embedded name, which beats a Hub id. Of a folder, or a Hub repository, the
first of these is read: tokenizer.json, tekken.json (in a folder also one tekken*.json),
tiktoken.model, in a folder one *.tiktoken, vocab.json with merges.txt, and tokenizer.model if the
caller names its scheme.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.loaders import embedded, hub
from saphira_gpu.loaders._limits import MAX_FILE
from saphira_gpu.loaders._source import Source
from saphira_gpu.spec import Spec

__all__ = ["Source", "find", "load"]


def load(
    source: str | os.PathLike[str], *, scheme: str | None = None, revision: str | None = None
) -> Spec:
    """The Spec of a tokenizer.

    source: a path to a tokenizer.json, tekken.json, *.tiktoken, tiktoken.model, or vocab.json
    beside a merges.txt, or to a folder with one of them; an embedded name; a Hub id. scheme: the
    split scheme of a rank file whose name doesn't say it. revision: of a Hub repository.

    Raises TokenizerFileError for a source that is missing or malformed, UnsupportedError, naming
    it, for what a source asks for and isn't supported.
    """
    return find(source, scheme=scheme, revision=revision).spec(warn=True)


def find(
    source: str | os.PathLike[str], *, scheme: str | None = None, revision: str | None = None
) -> Source:
    """The source itself, read into memory but not yet parsed."""
    path = Path(source)
    if os.fspath(source) == "":  # as a path it would be this folder
        raise TokenizerFileError("the name of the tokenizer is an empty string")
    text = os.fspath(source)
    try:
        if path.is_dir():
            return _file(_of_folder(path, scheme), scheme)
        if path.exists():
            return _file(path, scheme)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise TokenizerFileError(
            f"the name of the tokenizer has {len(text)} characters, too many for a path: "
            f"{text[:40]!r}…"
        ) from None
    if isinstance(source, str):
        if text in embedded.NAMES:
            if scheme is not None:
                raise TokenizerFileError(
                    f"{text}: scheme= is for rank files; this encoding has its own"
                )
            return Source("embedded", text, text)
        if hub.is_repo_id(text) and path.suffix not in (".json", ".tiktoken", ".model", ".txt"):
            return _file(hub.fetch(text, revision, scheme), scheme, origin=text)
    raise TokenizerFileError(
        f"{text!r} is no file or folder, no embedded tokenizer ({', '.join(embedded.NAMES)}) "
        "and no Hub id of the form 'org/name'"
    )


def _of_folder(folder: Path, scheme: str | None) -> Path:
    names = ("tokenizer.json", "tekken.json")
    globs = ("tekken*.json", "tiktoken.model", "*.tiktoken")
    for pattern in (*names, *globs):
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) > 1:
            raise TokenizerFileError(
                f"{folder}: the folder holds no {' and no '.join(names)}, and "
                f"{len(found)} {pattern} files: name one"
            )
        if found:
            return found[0]
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return folder / "vocab.json"
    model = folder / "tokenizer.model"
    if model.is_file():
        if scheme is not None:
            return model
        raise UnsupportedError(
            f"{model}: a SentencePiece model is not supported, and a rank file needs scheme="
        )
    raise TokenizerFileError(
        f"{folder}: the folder holds none of {', '.join((*names, *globs))}, and no vocab.json with "
        "merges.txt"
    )


def _file(path: Path, scheme: str | None, origin: str | None = None) -> Source:
    origin = origin or str(path)
    beside = path.parent / "tokenizer_config.json"
    config = _read(beside) if beside.is_file() else b""
    if path.name in ("vocab.json", "merges.txt"):
        vocab, merges = path.parent / "vocab.json", path.parent / "merges.txt"
        data = _read(vocab)
        return Source("vocab_merges", path.stem, origin, data, config, scheme, _read(merges))
    data = _read(path)
    if path.suffix in (".tiktoken", ".model") or (scheme is not None and path.suffix != ".json"):
        return Source("tiktoken", path.stem, origin, data, config, scheme)
    if path.suffix == ".json":
        return Source("json", path.stem, origin, data, config, scheme)
    raise UnsupportedError(
        f"{origin}: files of kind {path.suffix or path.name!r} are not supported (supported: "
        "tokenizer.json, tekken.json, *.tiktoken, tiktoken.model, vocab.json with merges.txt)"
    )


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise TokenizerFileError(
                f"{path}: has {size} bytes; a tokenizer has {MAX_FILE} at most"
            )
        return path.read_bytes()
    except OSError as error:
        raise TokenizerFileError(f"{path}: can't be read: {error.strerror}") from error
