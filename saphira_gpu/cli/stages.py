"""`saphira-gpu stages`: what each stage made of one text, and where it leaves the reference."""

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saphira_gpu.cli import _pretokenizer
from saphira_gpu.cli._options import (
    Engine,
    RevisionOption,
    SchemeOption,
    Special,
    SpecialOption,
    TextArgument,
    TokenizerOption,
    load,
    text_bytes,
)

if TYPE_CHECKING:
    from saphira_gpu.reference import Stages as ReferenceSegment
    from saphira_gpu.stages import Segment

STAGES = ("special", "normalize", "classify", "remap", "boundaries", "bytemap", "bpe", "vocab")
Row = tuple[str, Sequence[str]]


def stages(
    text: TextArgument,
    tokenizer: TokenizerOption = "gpt2",
    scheme: SchemeOption = None,
    revision: RevisionOption = None,
    special: SpecialOption = Special.PLAIN,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Show the reference's view too; exit 1 if they differ."),
    ] = False,
    pretokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="CONFIG.json",
            help="Show the steps of a pre_tokenizer configuration instead of a tokenizer's stages.",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="With --pretokenizer: whose regular expressions it holds.")
    ] = Engine.HF,
) -> None:
    """Show what each stage made of a text, for finding the stage where two tokenizers part."""
    from saphira_gpu import reference as plain

    data = text_bytes(text)
    width = shutil.get_terminal_size((100, 24)).columns
    if pretokenizer is not None:
        _pretokenizer.show(data, pretokenizer, engine.value, reference, width)
        return
    model = load(tokenizer, scheme, revision)
    made = model.stages(data, special=special.value)
    typer.echo("\n".join(_shown(data, made.segments, width)))
    if not reference:
        return
    expected = plain.stages(model.spec, data, special.value)
    difference = first_difference(made.segments, expected)
    if difference is None:
        typer.echo("the reference agrees at every stage")
        return
    typer.echo("reference:")
    typer.echo("\n".join(_shown(data, expected, width)))
    typer.echo(difference)
    raise typer.Exit(1)


def first_difference(
    segments: "Sequence[Segment]", expected: "Sequence[ReferenceSegment]"
) -> str | None:
    """The first stage, in the order they run, whose output is not the reference's, in words; or
    None.

    Classes are compared by what they tell apart: the core has one set for all schemes, the
    reference only those its scheme needs.
    """
    coarser: dict[str, str] = {}
    for stage in STAGES:
        numbers = [-1] if stage == "special" else range(len(segments))
        pairs = [(output(segments, stage, n), output(expected, stage, n)) for n in numbers]
        for number, (ours, theirs) in enumerate(pairs):
            if stage == "remap" and len(ours) == len(theirs):
                ours = [coarser.setdefault(a, b) for a, b in zip(ours, theirs, strict=True)]
            if ours != theirs:
                at = next(
                    (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None
                )
                at = min(len(ours), len(theirs)) if at is None else at
                where = "" if stage == "special" else f"segment {number}, "
                return (
                    f"first difference: stage {stage}, {where}item {at}: "
                    f"{_item(ours, at)} here, {_item(theirs, at)} in the reference"
                )
    return None


def output(segments: Sequence[Any], stage: str, number: int) -> list[Any]:
    """What a stage made of segment `number`, as a list; of all of the text for stage `special`."""
    if stage == "special":
        return [(s.start, s.end, s.added.content if s.added else None) for s in segments]
    field = {
        "classify": "chars",
        "remap": "classes",
        "boundaries": "pieces",
        "bytemap": "symbols",
        "bpe": "tokens",
        "vocab": "ids",
    }
    values = getattr(segments[number], field.get(stage, "normalized"))
    return [tuple(value) if isinstance(value, list | tuple) else value for value in values]


def _item(values: list[Any], at: int) -> str:
    return repr(values[at]) if at < len(values) else "nothing"


def _shown(data: bytes, segments: Sequence[Any], width: int) -> Iterator[str]:
    for number, segment in enumerate(segments):
        span = f"[{segment.start}, {segment.end})"
        if segment.added is not None:
            yield f"special    segment {number}, bytes {span}: added token {segment.added.content}"
            yield f"vocab      {' '.join(map(str, segment.ids))}\n"
            continue
        yield f"special    segment {number}, bytes {span}: text"
        if segment.normalized != data[segment.start : segment.end]:
            yield f"normalize  {as_text(segment.normalized)}"
        else:
            yield "normalize  unchanged"
        text = segment.normalized
        yield from grid(
            [
                ("characters", [as_text(text[char[0] : char[1]]) for char in segment.chars]),
                ("classify", [char[2] for char in segment.chars]),
                ("remap", list(segment.classes)),
            ],
            width,
        )
        yield from grid(
            [
                ("boundaries", [f"[{first}, {last})" for first, last in segment.pieces]),
                ("pieces", [as_text(text[first:last]) for first, last in segment.pieces]),
                ("bytemap", segment.symbols),
                ("bpe", [" ".join(tokens) for tokens in segment.tokens]),
                ("vocab", list(_ids_by_piece(segment))),
            ],
            width,
        )
        yield ""


def _ids_by_piece(segment: Any) -> Iterator[str]:
    at = 0
    for tokens in segment.tokens:
        yield " ".join(map(str, segment.ids[at : at + len(tokens)]))
        at += len(tokens)


def as_text(raw: bytes) -> str:
    r"""The text with spaces as ␣, control characters and bytes that are no text as escapes."""
    from saphira_gpu.cli.inspect import visible

    text = visible(raw.decode("utf-8", "backslashreplace")).replace("\n", "\\n")
    return text.replace("\t", "\\t").replace(" ", "␣")


def grid(rows: Sequence[Row], width: int) -> Iterator[str]:
    """Rows with their cells in columns, as many columns a line as `width` cells of a terminal
    hold."""
    from rich.cells import cell_len, set_cell_size

    columns = list(zip(*(cells for _, cells in rows), strict=True))
    sizes = [max(map(cell_len, column)) + 2 for column in columns]
    start = 0
    while start < len(columns):
        if start:
            yield ""
        stop, used = start + 1, 11 + sizes[start]
        while stop < len(columns) and used + sizes[stop] <= width:
            used += sizes[stop]
            stop += 1
        for number, (label, _) in enumerate(rows):
            cells = (set_cell_size(columns[i][number], sizes[i]) for i in range(start, stop))
            yield f"{label:<11}{''.join(cells)}".rstrip()
        start = stop
