"""The command line, `saphira-gpu`: one file a command, the shared pieces in files with an
underscore.

Importing this module costs typer alone; numpy, pyarrow and the core are imported by the command
that needs them. Exit codes: 0, 1 for an error (one line on stderr), 2 for wrong usage, 128 + n for
signal n.
"""

import typer

from saphira_gpu.cli import decode, doctor, encode, inspect, stages, tokenize
from saphira_gpu.cli._errors import ErrorReportingGroup

app = typer.Typer(
    name="saphira-gpu",
    cls=ErrorReportingGroup,
    help="Exact, fast batch tokenizer: Parquet/Arrow text columns in, token ids out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(tokenize.tokenize)
app.command()(encode.encode)
app.command()(decode.decode)
app.command()(inspect.inspect)
app.command()(stages.stages)
app.command()(doctor.doctor)


def main() -> None:
    """Runs the command line on sys.argv and exits."""
    app(prog_name="saphira-gpu")
