"""`saphira-gpu decode`: the text of ids."""

import re
import sys
from typing import Annotated

import typer

from saphira_gpu.cli._options import RevisionOption, SchemeOption, TokenizerOption, load


def decode(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="IDS...|-", help="Ids, also as a JSON array, or - for stdin."),
    ],
    tokenizer: TokenizerOption = "gpt2",
    scheme: SchemeOption = None,
    revision: RevisionOption = None,
    skip_special: Annotated[
        bool, typer.Option("--skip-special", help="Leave out special tokens.")
    ] = False,
) -> None:
    """Print the text of ids: its exact bytes, and a newline only if stdout is a terminal."""
    import numpy as np

    written = sys.stdin.read() if ids == ["-"] else " ".join(ids)
    numbers = parse_ids(written)
    model = load(tokenizer, scheme, revision)
    array = np.array(numbers, np.uint32)
    data = model.decode_bytes(array, skip_special=skip_special)
    sys.stdout.flush()
    sys.stdout.buffer.write(data + (b"\n" if sys.stdout.isatty() else b""))
    sys.stdout.buffer.flush()


def parse_ids(written: str) -> list[int]:
    """Numbers between white space, commas and square brackets.

    Raises InputError for anything else there, and for a number that no uint32 holds.
    """
    from saphira_gpu.errors import InputError

    numbers = []
    for word in re.split(r"[\s,\[\]]+", written):
        if not word:
            continue
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) >= 2**32:
            raise InputError(f"{word!r} is not an id")
        numbers.append(int(word))
    return numbers
