"""The command line, `saphira-gpu`: one file a command, the shared pieces in files with an
underscore.

Importing this module costs typer alone; numpy, pyarrow and the core are imported by the command
that needs them. Exit codes: 0, 1 for an error (one line on stderr), 2 for wrong usage, 128 + n for
signal n.
"""

from typing import Annotated

import typer

from saphira_gpu.cli import decode, doctor, encode, inspect, stages, tokenize
from saphira_gpu.cli._errors import ErrorReportingGroup


def _version(wanted: bool) -> None:
    if wanted:
        import saphira_gpu

        typer.echo(f"saphira-gpu {saphira_gpu.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="saphira-gpu",
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Exact, fast batch tokenizer: Parquet/Arrow text columns in, token ids out."""


app.command()(tokenize.tokenize)
app.command()(encode.encode)
app.command()(decode.decode)
app.command()(inspect.inspect)
app.command()(stages.stages)
app.command()(doctor.doctor)


def main() -> None:
    """Runs the command line on sys.argv and exits."""
    app(prog_name="saphira-gpu")
