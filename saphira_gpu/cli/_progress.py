"""What a run counts, its progress line and its summary."""

import sys
import time
from dataclasses import dataclass, field
from itertools import accumulate

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from saphira_gpu.report import Report


@dataclass
class Totals:
    """Sums over a run. tokens: ids written, appended ones included; report: what encoding
    counted."""

    files: int = 0
    tokens: int = 0
    report: Report = field(default_factory=Report)
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def rates(self) -> tuple[float, float]:
        """(MB of text, tokens) per second; 1 MB is 10^6 bytes."""
        seconds = max(self.seconds, 1e-9)
        return self.report.bytes / 1e6 / seconds, self.tokens / seconds

    def summary(self, special: str, invalid: str) -> str:
        """The summary, a line each; hits and invalid rows only where there are any."""
        seconds = self.seconds
        speed, token_speed = self.rates()
        lines = [
            ("files", f"{self.files:,}"),
            ("rows", f"{self.report.rows:,}"),
            ("text", f"{self.report.bytes:,} bytes"),
            ("tokens", f"{self.tokens:,}"),
        ]
        if self.report.bytes:
            lines.append(("tokens/byte", f"{self.tokens / self.report.bytes:.4f}"))
        lines += [("time", f"{seconds:.2f} s"), ("speed", f"{speed:,.1f} MB/s of text")]
        lines += [("", f"{scaled(token_speed)} tokens/s")]
        for name, count in sorted(self.report.added.items()):
            fate = "left as text" if special == "plain" else "matched"
            lines.append(("added token", f"{name} {count:,} x, {fate}"))
        if self.report.invalid_rows:
            lines.append(("not UTF-8", f"{self.report.invalid_rows:,} rows, {_FATES[invalid]}"))
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)


_FATES = {
    "contract": "encoded by the byte contract",
    "replace": "encoded with U+FFFD for what is bad in them",
    "null": "made null",
}


def scaled(number: float) -> str:
    """A rate with three digits or so: 950, 12.3 k, 45.6 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


class Meter:
    """The progress line on stderr; silent where stderr is not a terminal, or `quiet`.

    sizes: bytes of every input file, by which the share done and the time left are reckoned.
    """

    def __init__(self, sizes: list[int], totals: Totals, quiet: bool) -> None:
        self.totals = totals
        self._ends = list(accumulate((max(1, size) for size in sizes), initial=0))
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._progress.add_task("", total=self._ends[-1], figures="")

    def __enter__(self) -> "Meter":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, index: int, fraction: float) -> None:
        """File `index` (0-based) has been done up to `fraction`, 0..1; `totals` is up to date."""
        speed, token_speed = self.totals.rates()
        start, end = self._ends[index : index + 2]
        rows = self.totals.report.rows
        self._progress.update(
            self._task,
            completed=start + fraction * (end - start),
            description=f"file {index + 1}/{len(self._ends) - 1}",
            figures=f"{rows:,} rows  {speed:,.0f} MB/s  {scaled(token_speed)} tokens/s",
        )
