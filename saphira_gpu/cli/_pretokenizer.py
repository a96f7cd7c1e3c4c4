"""What the steps of a pretokenizer made of one text, aligned under its characters."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from saphira_gpu import PreTokenizer
    from saphira_gpu.pretok.steps import Step
    from saphira_gpu.reference import Char

Row = tuple[str, Sequence[str]]


def show(data: bytes, path: str, engine: str, reference: bool, width: int) -> None:
    """Prints the stages of a text under the configuration in a file. reference: compare with the
    plain one too; raises typer.Exit(1) where they differ, UnsupportedError where it can't run."""
    from saphira_gpu import PreTokenizer, reference_pretok
    from saphira_gpu.cli.stages import grid

    ours = PreTokenizer(Path(path).read_bytes(), engine)
    characters, pieces = rows(ours, data)
    for block in (characters, pieces):
        typer.echo("\n".join([*grid(block, width), ""]))
    if reference:
        found = [span for _, span in ours.pre_tokenize_str(data, "byte")]
        expected = [piece.span for piece in reference_pretok.pieces(ours.steps, data)]
        if found != expected:
            typer.echo(f"the reference differs: {expected}")
            raise typer.Exit(1)
        typer.echo("the reference agrees")


def rows(ours: "PreTokenizer", data: bytes) -> tuple[list[Row], list[Row]]:
    """One column a character: its bytes and tag, and for each step its class and whether a piece
    starts at it (|) or it is in none (x). One column a piece: its spans and text."""
    from saphira_gpu import reference
    from saphira_gpu.cli.stages import as_text
    from saphira_gpu.pretok.program import Program

    chars = reference.classify(data)
    texts = [data[char.start : char.end] for char in chars]
    above: list[Row] = [
        ("characters", [as_text(text) for text in texts]),
        ("bytes", [text.hex(" ") for text in texts]),
        ("classify", [char.tag for char in chars]),
    ]
    for number, step in enumerate(ours.steps, 1):
        above.append((f"{number} {type(step).__name__}"[:10], list(_classes(step, chars))))
        _, spans = Program(ours.steps[:number]).pieces(data)
        above.append(("  pieces", list(_marks([(a, b) for _, _, a, b in spans], chars))))
    made, spans = Program(ours.steps).pieces(data)
    below: list[Row] = [
        ("bytes", [f"[{a}, {b})" for _, _, a, b in spans]),
        ("given", [as_text(data[a:b]) for _, _, a, b in spans]),
        ("pieces", [as_text(made[a:b]) for a, b, _, _ in spans]),
    ]
    return above, below


def _classes(step: "Step", chars: "Sequence[Char]") -> Iterator[str]:
    """The class of each character in the step's remap row; nothing for steps that have none."""
    from saphira_gpu.pretok import schemes
    from saphira_gpu.pretok.steps import Classes, Scheme

    table: Any = schemes.table()
    row = step.row if isinstance(step, Classes) else None
    if isinstance(step, Scheme):
        row = next(s["remap"] for s in table["schemes"] if s["name"] == step.name)
    names = list(table["classes"])
    for char in chars:
        number = table["superatoms"].index(char.tag)
        yield names[table["remap"][row][number]] if row else ""


def _marks(spans: Sequence[tuple[int, int]], chars: "Sequence[Char]") -> Iterator[str]:
    for char in chars:
        if any(start == char.start for start, _ in spans):
            yield "|"
        else:
            yield "" if any(start < char.end <= end for start, end in spans) else "x"
