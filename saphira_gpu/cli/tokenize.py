"""`saphira-gpu tokenize`: text columns of Parquet and Arrow files in, Parquet files of ids out."""

import contextlib
import re
import signal
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from saphira_gpu.cli._options import (
    Dtype,
    Invalid,
    InvalidOption,
    RevisionOption,
    SchemeOption,
    Special,
    SpecialOption,
    TokenizerOption,
    load,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from saphira_gpu import Tokenizer
    from saphira_gpu.cli._inputs import Source
    from saphira_gpu.cli._progress import Meter, Totals

T = TypeVar("T")


def tokenize(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN...",
            help="Parquet or Arrow IPC files, folders (searched recursively), globs, fsspec URLs.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Local folder for the output, made if missing."
        ),
    ],
    tokenizer: TokenizerOption = "gpt2",
    scheme: SchemeOption = None,
    revision: RevisionOption = None,
    column: Annotated[str, typer.Option("--column", "-c", help="The text column.")] = "text",
    device: Annotated[
        str,
        typer.Option(help="Where to encode: auto, cpu or cuda; host is an aid for debugging."),
    ] = "auto",
    verify: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of rows on a device that the CPU encodes too, to compare (0.01).",
        ),
    ] = None,
    device_memory: Annotated[
        int | None,
        typer.Option(min=1, metavar="BYTES", help="Memory of the device that may be used."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads that encode; all cores this process may use by default."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column to copy to the output; may be repeated."),
    ] = None,
    append_eos: Annotated[
        bool,
        typer.Option("--append-eos", help="Append the end-of-text token to every row not null."),
    ] = False,
    eos_token: Annotated[
        str | None,
        typer.Option(
            metavar="TOK", help="The token of --append-eos; by default the tokenizer's own."
        ),
    ] = None,
    prepend_bos: Annotated[
        bool,
        typer.Option(
            "--prepend-bos", help="Put the begin-of-text token before every row not null."
        ),
    ] = False,
    bos_token: Annotated[
        str | None,
        typer.Option(
            metavar="TOK", help="The token of --prepend-bos; by default the tokenizer's own."
        ),
    ] = None,
    special: SpecialOption = Special.PLAIN,
    invalid: InvalidOption = Invalid.CONTRACT,
    dtype: Annotated[
        Dtype,
        typer.Option(help="Type of the ids; auto is the narrower of uint16 and uint32 that fits."),
    ] = Dtype.UINT32,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace output files that exist.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Encode a text column of many files into Parquet files of token ids.

    Each output holds input_ids (lists of ids), num_tokens (int64) and the kept columns, under the
    input's name (its path below a folder argument). A file appears only when it is whole.
    """
    from saphira_gpu._options import id_dtype
    from saphira_gpu.cli._columns import INPUT_IDS, NUM_TOKENS
    from saphira_gpu.cli._inputs import expand, place
    from saphira_gpu.cli._progress import Meter, Totals
    from saphira_gpu.cli._reader import Reader
    from saphira_gpu.cli._writer import remove_stale

    kept = list(dict.fromkeys(keep or []))
    for name in (INPUT_IDS, NUM_TOKENS):
        if name in kept:
            raise typer.BadParameter(f"{name} is a column of the output", param_hint="--keep")
    if eos_token is not None and not append_eos:
        raise typer.BadParameter("it needs --append-eos", param_hint="--eos-token")
    if bos_token is not None and not prepend_bos:
        raise typer.BadParameter("it needs --prepend-bos", param_hint="--bos-token")
    if re.match(r"[a-z][a-z0-9+.-]+:/", str(out)):
        raise typer.BadParameter(f"{out} is not a local folder", param_hint="--out")

    model = load(tokenizer, scheme, revision)
    job = Job(
        model=model,
        name=tokenizer,
        scheme=scheme,
        revision=revision,
        column=column,
        kept=kept,
        bos=edge_id(model, "bos", bos_token) if prepend_bos else None,
        eos=edge_id(model, "eos", eos_token) if append_eos else None,
        overwrite=overwrite,
        options={
            "device": device,
            "verify": verify,
            "device_memory": device_memory,
            "threads": threads,
            "special": special.value,
            "invalid": invalid.value,
            "dtype": id_dtype(dtype.value, model.vocab_size).name,
        },
    )
    sources = expand(inputs, out)
    targets = place(sources, out, overwrite)
    for source in sources:
        if source.fs is None:  # for a remote file this would be a round trip before the first one
            Reader(source, column, kept).close()
    remove_stale(targets)

    totals = Totals()
    try:
        with stopped_by_signals(), Meter([s.size for s in sources], totals, quiet) as meter:
            for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
                job.run(source, target, totals, meter, index)
    except (KeyboardInterrupt, Stopped) as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        done = f"{totals.files} of {len(sources)} files are done"
        typer.echo(f"saphira-gpu: stopped by {signal.Signals(number).name}; {done}", err=True)
        raise typer.Exit(128 + number) from None
    if not quiet:
        typer.echo(totals.summary(special.value, invalid.value))


def edge_id(model: "Tokenizer", edge: Literal["bos", "eos"], given: str | None) -> int:
    """The id of the token that begins or ends a text: `given`, else the one that the tokenizer's
    own definition names.

    Raises InputError where there is none, TokenizerFileError where the vocabulary doesn't have it.
    """
    from saphira_gpu.errors import InputError

    token = given if given is not None else getattr(model.spec, edge)
    if token is None:
        place = "begin" if edge == "bos" else "end"
        raise InputError(
            f"this tokenizer names no {place}-of-text token (tokenizer_config.json); "
            f"give --{edge}-token"
        )
    return model.token_id(token)


@dataclass(frozen=True)
class Job:
    """What is the same for every file of a run. options: keyword arguments of encode_arrow."""

    model: "Tokenizer"
    name: str
    scheme: str | None
    revision: str | None
    column: str
    kept: list[str]
    bos: int | None
    eos: int | None
    overwrite: bool
    options: dict[str, Any]

    def run(
        self, source: "Source", target: Path, totals: "Totals", meter: "Meter", index: int
    ) -> None:
        """Encodes one file. Reading is one batch ahead and writing one behind, in a thread each."""
        import numpy as np

        from saphira_gpu.cli._columns import output_schema
        from saphira_gpu.cli._reader import Reader
        from saphira_gpu.cli._writer import AtomicParquet

        reader = Reader(source, self.column, self.kept)
        try:
            fields = [reader.schema.field(name) for name in self.kept]
            schema = output_schema(fields, self.about(), np.dtype(self.options["dtype"]))
            meter.update(index, 0)
            rows = 0
            with (
                AtomicParquet(target, schema, self.overwrite) as writer,
                ThreadPoolExecutor(1) as pool,
                contextlib.closing(ahead(reader.batches())) as batches,
            ):
                written: Future[None] | None = None
                for batch in batches:
                    encoded = self.encode(batch, schema, source, rows, totals)
                    if written is not None:
                        written.result()
                    written = pool.submit(writer.write, encoded)
                    rows += batch.num_rows
                    meter.update(index, reader.fraction)
                if written is not None:
                    written.result()
        finally:
            reader.close()
        totals.files += 1

    def encode(
        self,
        batch: "pa.RecordBatch",
        schema: "pa.Schema",
        source: "Source",
        first_row: int,
        totals: "Totals",
    ) -> "pa.RecordBatch":
        """The output of one batch; adds to `totals`. Raises InputError naming the file and its
        row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from saphira_gpu.cli._columns import id_columns
        from saphira_gpu.cli._errors import about_file
        from saphira_gpu.errors import InputError

        text, report = batch.column(self.column), totals.report
        try:
            ids = self.model.encode_arrow(text, report=report, **self.options)
            lists, counts = id_columns(ids, self.bos, self.eos)
        except InputError as error:
            raise about_file(source.shown, error, first_row) from None
        totals.tokens += pc.sum(counts).as_py() or 0
        kept = [batch.column(name) for name in self.kept]
        return pa.RecordBatch.from_arrays([lists, counts, *kept], schema=schema)

    def about(self) -> dict[str, Any]:
        """What `inspect` needs to know of the output; nothing that differs from run to run."""
        import saphira_gpu

        given = {"scheme": self.scheme, "revision": self.revision}
        return {
            "tokenizer": self.name,
            **{key: value for key, value in given.items() if value is not None},
            "fingerprint": self.model.fingerprint,
            "version": saphira_gpu.__version__,
            "column": self.column,
            "special": self.options["special"],
            "invalid": self.options["invalid"],
            "bos_id": self.bos,
            "eos_id": self.eos,
        }


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """The same items (none of them None), the next one made in a thread while one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


class Stopped(BaseException):
    """SIGTERM or SIGHUP arrived. Not an Exception, so that nothing takes it for an error of its
    own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within it, SIGTERM and SIGHUP raise Stopped in the main thread, so that temporary files
    go."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
