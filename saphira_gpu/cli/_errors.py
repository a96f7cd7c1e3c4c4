"""Errors of a run become one line on stderr and exit code 1; wrong usage is typer's own, code 2."""

import re
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from saphira_gpu.errors import InputError, SaphiraError

ARROW_OS_ERROR = re.compile(r"Failed to open local file '(.*)'\. Detail: \[errno \d+\] (.*)")


def describe(error: BaseException) -> str:
    """One line that says what went wrong, without the class name where the message is enough."""
    if isinstance(error, MemoryError):
        return "out of memory"
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        where = name.decode(errors="replace") if isinstance(name, bytes) else name
        message = f"{where}: {error.strerror}" if where is not None else error.strerror
    return ARROW_OS_ERROR.sub(r"\1: \2", " ".join(message.split())) or type(error).__name__


def expected_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """`more`, and what a user's input or machine can cause; pyarrow's own once it is imported."""
    arrow = sys.modules.get("pyarrow")
    extra: tuple[type[Exception], ...] = (arrow.ArrowException,) if arrow is not None else ()
    return (SaphiraError, OSError, MemoryError, *extra, *more)


def about_file(shown: str, error: Exception, first_row: int = 0) -> InputError:
    """The same error with the file named and a batch's row number turned into the file's.

    first_row: number of rows of the file that came before the batch at fault.
    """
    message = describe(error)
    row = error.row if isinstance(error, InputError) else None
    if row is not None:
        message = message.replace(f"row {row}", f"row {row + first_row}", 1)
        row += first_row
    return InputError(message if shown in message else f"{shown}: {message}", row)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"saphira-gpu: warning: {' '.join(str(message).split())}", err=True)


class ErrorReportingGroup(TyperGroup):
    """Runs a subcommand and turns expected errors into their line and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # typer ends quietly when the reader of stdout has gone
        except Exception as error:
            if not isinstance(error, expected_errors()):
                raise
            typer.echo(f"saphira-gpu: {describe(error)}", err=True)
            raise typer.Exit(1) from None
