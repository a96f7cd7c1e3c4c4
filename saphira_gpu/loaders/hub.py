"""Tokenizers by their id on the Hugging Face Hub, behind the extra `[hub]`.

`huggingface_hub` does the work: its cache, its tokens and its offline mode (`HF_HUB_OFFLINE`)
apply.
"""

from __future__ import annotations

import re
from pathlib import Path

from saphira_gpu.errors import TokenizerFileError, UnsupportedError

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_repo_id(text: str) -> bool:
    """Whether a string has the form `org/name`."""
    return _REPO.fullmatch(text) is not None and ".." not in text and "--" not in text


def fetch(repo: str, revision: str | None = None) -> Path:
    """The local copy of a repository's tokenizer.json, with tokenizer_config.json beside it if it
    has one.

    Raises UnsupportedError without `huggingface_hub`, TokenizerFileError if the file can't be had.
    """
    try:
        import huggingface_hub
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise UnsupportedError(
            f"loading {repo!r} from the Hub needs huggingface_hub: pip install 'saphira_gpu[hub]'"
        ) from error
    try:
        path = huggingface_hub.hf_hub_download(repo, "tokenizer.json", revision=revision)
    except (
        Exception
    ) as error:  # network, permission, offline, no such file: many classes, one meaning
        at = f" at revision {revision}" if revision else ""
        reason = str(error).strip().splitlines()
        raise TokenizerFileError(
            f"{repo}{at}: tokenizer.json can't be had from the Hub: "
            f"{type(error).__name__}: {reason[0] if reason else 'no reason given'}"
        ) from error
    try:
        huggingface_hub.hf_hub_download(repo, "tokenizer_config.json", revision=revision)
    except EntryNotFoundError:  # optional; offline without a cached copy counts as absent too
        pass
    except Exception as error:
        raise TokenizerFileError(
            f"{repo}: tokenizer_config.json can't be had from the Hub: "
            f"{type(error).__name__}: {error}"
        ) from error
    return Path(path)
