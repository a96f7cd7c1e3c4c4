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


# In the order they are looked for, as in a folder.
_FILES = ("tokenizer.json", "tekken.json", "tiktoken.model", "vocab.json")


def fetch(repo: str, revision: str | None = None, scheme: str | None = None) -> Path:
    """The local copy of a repository's tokenizer file, with tokenizer_config.json beside it if it
    has one, and merges.txt beside a vocab.json. With a scheme, tokenizer.model will do too.

    Raises UnsupportedError without `huggingface_hub`, TokenizerFileError if the file can't be had.
    """
    try:
        import huggingface_hub
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise UnsupportedError(
            f"loading {repo!r} from the Hub needs huggingface_hub: pip install 'saphira_gpu[hub]'"
        ) from error

    def download(name: str) -> Path | None:
        """None: there is no such file, or none in the cache where the Hub may not be asked."""
        try:
            return Path(huggingface_hub.hf_hub_download(repo, name, revision=revision))
        except EntryNotFoundError as error:
            missing.append(error)
            return None
        except Exception as error:  # network, permission, no repository: many classes, one meaning
            raise failed(name, error) from error

    def failed(name: str, error: Exception) -> TokenizerFileError:
        at = f" at revision {revision}" if revision else ""
        reason = str(error).strip().splitlines()
        return TokenizerFileError(
            f"{repo}{at}: {name} can't be had from the Hub: "
            f"{type(error).__name__}: {reason[0] if reason else 'no reason given'}"
        )

    missing: list[Exception] = []
    for name in _FILES if scheme is None else (*_FILES, "tokenizer.model"):
        path = download(name)
        if path is None:
            continue
        if name == "vocab.json" and download("merges.txt") is None:
            raise failed("merges.txt", missing[-1]) from missing[-1]
        download("tokenizer_config.json")
        return path
    raise failed("tokenizer.json", missing[0]) from missing[0]
