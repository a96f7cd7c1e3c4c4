"""Loaders: a file, an embedded name or a Hub id → Spec. They know no engine, and nothing else knows
files.

A local path beats an embedded name, which beats a Hub id.
"""

from __future__ import annotations

import os
from pathlib import Path

from saphira_gpu.errors import TokenizerFileError, UnsupportedError
from saphira_gpu.loaders import embedded, hub
from saphira_gpu.loaders._source import Source
from saphira_gpu.spec import Spec

__all__ = ["Source", "find", "load"]


def load(
    source: str | os.PathLike[str], *, scheme: str | None = None, revision: str | None = None
) -> Spec:
    """The Spec of a tokenizer.

    source: a path to a tokenizer.json, a *.tiktoken or a folder with one; an embedded name; a Hub
    id. scheme: the split scheme of a rank file whose name doesn't say it. revision: of a Hub
    repository.

    Raises TokenizerFileError for a source that is missing or malformed, UnsupportedError, naming
    it, for what a source asks for and isn't supported.
    """
    return find(source, scheme=scheme, revision=revision).spec(warn=True)


def find(
    source: str | os.PathLike[str], *, scheme: str | None = None, revision: str | None = None
) -> Source:
    """The source itself, read into memory but not yet parsed."""
    path = Path(source)
    if path.is_dir():
        return _folder(path, scheme)
    if path.exists():
        return _file(path, scheme)
    text = os.fspath(source)
    if isinstance(source, str):
        if text in embedded.NAMES:
            if scheme is not None:
                raise TokenizerFileError(
                    f"{text}: scheme= is for rank files; this encoding has its own"
                )
            return Source("embedded", text, text)
        if hub.is_repo_id(text) and path.suffix not in (".json", ".tiktoken"):
            return _file(hub.fetch(text, revision), scheme, origin=text)
    raise TokenizerFileError(
        f"{text!r} is no file or folder, no embedded tokenizer ({', '.join(embedded.NAMES)}) "
        "and no Hub id of the form 'org/name'"
    )


def _folder(folder: Path, scheme: str | None) -> Source:
    path = folder / "tokenizer.json"
    if path.is_file():
        return _file(path, scheme)
    ranks = sorted(folder.glob("*.tiktoken"))
    if len(ranks) == 1:
        return _file(ranks[0], scheme)
    found = f"{len(ranks)} *.tiktoken files" if ranks else "no *.tiktoken file"
    raise TokenizerFileError(f"{folder}: the folder holds no tokenizer.json and {found}")


def _file(path: Path, scheme: str | None, origin: str | None = None) -> Source:
    origin = origin or str(path)
    data = _read(path)
    beside = path.parent / "tokenizer_config.json"
    config = _read(beside) if beside.is_file() else b""
    if path.suffix == ".tiktoken" or (scheme is not None and path.suffix != ".json"):
        return Source("tiktoken", path.stem, origin, data, config, scheme)
    if path.suffix == ".json":
        return Source("tokenizer_json", path.stem, origin, data, config, scheme)
    raise UnsupportedError(
        f"{origin}: files of kind {path.suffix or path.name!r} are not supported "
        "(supported: tokenizer.json, *.tiktoken)"
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TokenizerFileError(f"{path}: can't be read: {error.strerror}") from error
