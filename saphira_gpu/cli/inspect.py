"""`saphira-gpu inspect`: the documents of an output file, decoded."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saphira_gpu.cli._options import RevisionOption, SchemeOption

if TYPE_CHECKING:
    from saphira_gpu import Tokenizer

SHOWN_IDS = 12


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet file with input_ids.")],
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="Documents to show.")] = 5,
    start: Annotated[int, typer.Option(min=0, help="Number of the first one, from 0.")] = 0,
    chars: Annotated[int, typer.Option(min=1, help="Characters to show of each.")] = 400,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer", "-t", metavar="NAME", help="By default the one the file names."
        ),
    ] = None,
    scheme: SchemeOption = None,
    revision: RevisionOption = None,
) -> None:
    """Show what an output file holds: its origin, and its first documents decoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from saphira_gpu.cli._columns import INPUT_IDS, read_about
    from saphira_gpu.cli._errors import about_file
    from saphira_gpu.errors import InputError

    try:
        parquet = pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise about_file(str(file), InputError(f"cannot read it as Parquet: {error}")) from None
    with parquet:
        schema = parquet.schema_arrow
        if INPUT_IDS not in schema.names:
            names = ", ".join(schema.names)
            raise InputError(f"{file}: no column {INPUT_IDS!r}; there are {names}")
        kind = schema.field(INPUT_IDS).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_integer(
            kind.value_type
        ):
            raise InputError(f"{file}: column {INPUT_IDS!r} is {kind}, not a list of integers")
        about = read_about(schema)
        model = _load(file, tokenizer, scheme, revision, about)
        typer.echo(_header(parquet, about, tokenizer))
        for number, row in enumerate(islice(_rows(parquet, start), rows), start):
            typer.echo(_document(model, number, row, chars))


def _load(
    file: Path,
    given: str | None,
    scheme: str | None,
    revision: str | None,
    about: dict[str, Any],
) -> "Tokenizer":
    """The tokenizer given, else the one that the file names; its fingerprint must be the file's."""
    from saphira_gpu import Tokenizer
    from saphira_gpu.errors import InputError, SaphiraError

    name = given or about.get("tokenizer")
    scheme = scheme or (None if given else about.get("scheme"))
    revision = revision or (None if given else about.get("revision"))
    if name is None:
        raise InputError(f"{file} does not say which tokenizer made it; give --tokenizer")
    try:
        model = Tokenizer.load(name, scheme=scheme, revision=revision)
    except (SaphiraError, OSError) as error:
        if given is not None:
            raise
        raise InputError(f"{file} was made with {name!r}: {error}; give --tokenizer") from None
    if about.get("fingerprint", model.fingerprint) != model.fingerprint:
        raise InputError(
            f"{file} was made with another tokenizer than {name!r}: their fingerprints are "
            f"{about['fingerprint'][:12]} and {model.fingerprint[:12]}"
        )
    return model


def _header(parquet: Any, about: dict[str, Any], given: str | None) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    from saphira_gpu.cli._columns import NUM_TOKENS

    schema = parquet.schema_arrow
    lines = [("rows", f"{parquet.metadata.num_rows:,} in {parquet.num_row_groups} row groups")]
    if NUM_TOKENS in schema.names and pa.types.is_integer(schema.field(NUM_TOKENS).type):
        counts = (batch.column(0) for batch in parquet.iter_batches(columns=[NUM_TOKENS]))
        lines.append(("tokens", f"{sum(pc.sum(count).as_py() or 0 for count in counts):,}"))
    lines.append(("tokenizer", str(about.get("tokenizer", given))))
    keys = [
        "scheme",
        "revision",
        "fingerprint",
        "special",
        "invalid",
        "bos_id",
        "eos_id",
        "version",
    ]
    lines += [(key, str(about[key])) for key in keys if about.get(key) is not None]
    lines.append(("columns", ", ".join(f"{f.name}: {f.type}" for f in schema)))
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


def _rows(parquet: Any, start: int) -> Any:
    """input_ids of each row from `start` on (pyarrow scalars); row groups before it are not
    read."""
    from saphira_gpu.cli._columns import INPUT_IDS

    for group in range(parquet.num_row_groups):
        count = parquet.metadata.row_group(group).num_rows
        if start >= count:
            start -= count
            continue
        for batch in parquet.iter_batches(64, row_groups=[group], columns=[INPUT_IDS]):
            skipped = min(start, batch.num_rows)
            start -= skipped
            yield from batch.column(0).slice(skipped)


def _document(model: "Tokenizer", number: int, row: Any, chars: int) -> str:
    import numpy as np

    if not row.is_valid:
        return f"\n--- row {number}: null"
    ids = row.values.to_numpy(zero_copy_only=False).astype(np.uint32)
    listed = " ".join(map(str, ids[:SHOWN_IDS].tolist()))
    more = f" ... ({len(ids) - SHOWN_IDS:,} more)" if len(ids) > SHOWN_IDS else ""
    # a character may take several ids, but none of GPT-2's kind yields fewer bytes than one
    text = model.decode(ids[: 4 * chars + 4])
    cut = "..." if len(text) > chars or len(ids) > 4 * chars + 4 else ""
    head = f"\n--- row {number}: {len(ids):,} ids" + (f": {listed}{more}" if len(ids) else "")
    return f"{head}\n{visible(text[:chars])}{cut}" if len(ids) else head


def visible(text: str) -> str:
    """The text with control characters but tab and newline as escapes, so a terminal obeys none."""
    return "".join(c if c in "\t\n" or c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
