"""Vocabularies that come with the package, by name."""

from __future__ import annotations

from functools import cache

from saphira_gpu._resources import resource
from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders import _compact
from saphira_gpu.loaders.tiktoken import encoding, special
from saphira_gpu.spec import Bpe, Pretok, Spec

# Name -> the rank file it is; names of one file differ in their special tokens at most.
_FILES = {
    "gpt2": "r50k_base",
    "r50k_base": "r50k_base",
    "cl100k_base": "cl100k_base",
    "o200k_base": "o200k_base",
    "o200k_harmony": "o200k_base",
}
NAMES = tuple(_FILES)


@cache
def spec(name: str) -> Spec:
    """The Spec of an embedded name. Raises TokenizerFileError if its data file is missing or
    damaged."""
    try:
        data = resource(f"tables/vocabs/{_FILES[name]}.bin").read_bytes()
    except OSError as error:
        raise TokenizerFileError(
            f"{name}: the embedded vocabulary can't be read: {error}"
        ) from error
    with_it = encoding(name, name)
    return Spec(
        added=special(with_it),
        pretok=Pretok(with_it.scheme),
        bpe=Bpe(tuple(_compact.decode(data)), None, whole_piece_first=True),
        name=name,
        eos=with_it.eos,
    )
