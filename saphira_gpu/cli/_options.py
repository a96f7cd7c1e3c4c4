"""Options that several commands share."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from saphira_gpu import Tokenizer


class Special(StrEnum):
    """What an added token in the text becomes."""

    PLAIN = "plain"
    PARSE = "parse"
    HF_PLAIN = "hf_plain"
    ERROR = "error"


class Invalid(StrEnum):
    """What becomes of a row that is not UTF-8."""

    CONTRACT = "contract"
    REPLACE = "replace"
    ERROR = "error"
    NULL = "null"


class Engine(StrEnum):
    """Whose regular expressions the patterns of a configuration are."""

    HF = "hf"
    TIKTOKEN = "tiktoken"


class Dtype(StrEnum):
    """The type of ids."""

    AUTO = "auto"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT32 = "int32"


TokenizerOption = Annotated[
    str,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="NAME",
        help="Embedded name, path (tokenizer.json, tekken.json, *.tiktoken, vocab.json beside "
        "merges.txt, or a folder), or Hub id.",
    ),
]
SchemeOption = Annotated[
    str | None,
    typer.Option(
        "--scheme", metavar="NAME", help="Split scheme of a rank file whose name does not say it."
    ),
]
RevisionOption = Annotated[
    str | None,
    typer.Option("--revision", metavar="REV", help="Revision of a Hub repository."),
]
SpecialOption = Annotated[
    Special,
    typer.Option(
        help="Added tokens in the text: plain leaves them text, parse makes them ids as HF does by "
        "default, hf_plain is HF's encode_special_tokens=True, error stops.",
    ),
]
InvalidOption = Annotated[
    Invalid,
    typer.Option(
        help="Rows that are not UTF-8: contract encodes their bytes, replace puts U+FFFD for bad "
        "ones, error stops, null makes the row null.",
    ),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT|-", help="The text, or - for stdin.")]


def load(name: str, scheme: str | None, revision: str | None) -> "Tokenizer":
    """The tokenizer of that name or path.

    Raises SaphiraError where it can't be loaded, and InputError where SAPHIRA_THREADS is no number.
    """
    from saphira_gpu import Tokenizer
    from saphira_gpu.engines.cpu import thread_count
    from saphira_gpu.errors import InputError

    try:
        thread_count(None)
    except ValueError as error:
        raise InputError(str(error)) from None
    return Tokenizer.load(name, scheme=scheme, revision=revision)


def text_bytes(text: str) -> bytes:
    """The bytes of an argument as the shell passed them (UTF-8 or not); `-` reads stdin to its
    end."""
    if text == "-":
        return sys.stdin.buffer.read()
    return text.encode("utf-8", "surrogateescape")
