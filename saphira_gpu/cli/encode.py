"""`saphira-gpu encode`: the ids of one text."""

from typing import Annotated

import typer

from saphira_gpu.cli._options import (
    Invalid,
    InvalidOption,
    RevisionOption,
    SchemeOption,
    Special,
    SpecialOption,
    TextArgument,
    TokenizerOption,
    load,
    text_bytes,
)


def encode(
    text: TextArgument,
    tokenizer: TokenizerOption = "gpt2",
    scheme: SchemeOption = None,
    revision: RevisionOption = None,
    special: SpecialOption = Special.PLAIN,
    invalid: InvalidOption = Invalid.CONTRACT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> None:
    """Print the ids of a text, which is taken byte for byte (a final newline of stdin included)."""
    model = load(tokenizer, scheme, revision)
    ids = model.encode(text_bytes(text), special=special.value, invalid=invalid.value)
    listed = list(map(str, ids.tolist()))
    typer.echo(f"[{', '.join(listed)}]" if as_json else " ".join(listed))
