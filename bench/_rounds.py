"""Rounds of fresh processes: every cell's two contenders once in a round, one after the other.

A cell is one comparison: a tokenizer, a corpus, a number of threads, an instruction set of ours, a
peer. A round runs a pair of every cell, so that a machine that changes its pace while it works
changes it for all cells alike; a budget of seconds cuts whole rounds, never a cell.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _peers import Files
from _run import WARM, WorkerFailed, progress, worker

Run = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One comparison. isa: that forced on ours, None = its choice. pairs: rounds it takes part in.
    limit_mb: only the first rows, up to this much text (10^6 bytes). warm_calls: None = Setup's."""

    tokenizer: str
    corpus: str
    threads: int
    peer: str
    base: str = "ours"
    isa: str | None = None
    pairs: int = 7
    limit_mb: float | None = None
    warm_calls: int | None = None

    def key(self) -> dict[str, Any]:
        """What tells a cell's runs from others'."""
        return {name: v for name, v in asdict(self).items() if name not in ("pairs", "warm_calls")}

    def input(self) -> tuple[Any, ...]:
        """Cells with the same input must give the same ids."""
        return self.tokenizer, self.corpus, self.limit_mb

    def title(self) -> str:
        limit = f", {self.limit_mb:g} MB" if self.limit_mb else ""
        isa = f", {self.isa}" if self.isa else ""
        many = "thread" if self.threads == 1 else "threads"
        return f"{self.tokenizer}, {self.corpus}{limit}, {self.threads} {many}{isa}, {self.peer}"


@dataclass
class Setup:
    """What every process needs. columns: corpus → Parquet file."""

    files: dict[str, Files]
    columns: dict[str, Path]
    column: str = "text"
    hf1: Path | None = None
    warm: tuple[str, ...] = WARM
    warm_calls: int = 5
    warm_seconds: float = 10.0
    pin: bool = True
    timeout: float = 300.0

    def run(self, cell: Cell, name: str, **more: Any) -> Run:
        """One process of one contender of a cell. WorkerFailed where it fails or takes too long."""
        limit = int(cell.limit_mb * 1e6) if cell.limit_mb else None
        spec = {
            "parquet": str(self.columns[cell.corpus]),
            "name": self.column,
            "limit_bytes": limit,
        }
        options: dict[str, Any] = {
            "hf1_python": self.hf1,
            "warm": self.warm,
            "warm_calls": cell.warm_calls or self.warm_calls,
            "warm_seconds": self.warm_seconds,
            "isa": cell.isa if name.partition(":")[0] == "ours" else None,
            "pin": self.pin,
            "timeout": self.timeout,
        }
        steps = worker(name, self.files[cell.tokenizer], spec, cell.threads, **options | more)
        if steps["timed_out"]:
            raise WorkerFailed(f"{name}: over {self.timeout:g} s")
        return steps


@dataclass
class Outcome:
    """runs: every process in the order in which they ran. failed: cell title → why it has no
    figure. rounds: whole ones."""

    runs: list[Run] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0


def measure(setup: Setup, cells: list[Cell], budget: float | None) -> Outcome:
    """Run all rounds, or as many whole ones (at least one) as the budget of seconds holds.

    A cell whose process fails, or whose ids differ from those of the first process with the same
    input, is dropped and its runs with it. The first to run is the base of the first cell, so a
    base whose ids change from process to process drops every cell.
    """
    outcome = Outcome()
    first: dict[tuple[Any, ...], tuple[Cell, str, Run]] = {}
    last: dict[Cell, float] = {}  # seconds of a cell's last pair
    started = time.monotonic()
    rounds = max((cell.pairs for cell in cells), default=0)
    for number in range(rounds):
        now = [c for c in cells if c.pairs > number and c.title() not in outcome.failed]
        spent = time.monotonic() - started
        expected = sum(last.get(cell, 0.0) for cell in now)
        if not now or (number and budget is not None and spent + expected > budget):
            break
        if number == 1:
            left = sum(last.get(c, 0.0) * (c.pairs - 1) for c in now)
            fits = "" if budget is None else f" within {budget:.0f} s"
            _say(f"a round took {spent:.0f} s; the others take about {left:.0f} s more, if{fits}")
        for i, cell in enumerate(now):
            progress(f"round {number + 1} of {rounds}, {i + 1} of {len(now)}: {cell.title()}")
            begun = time.monotonic()
            pair = _pair(setup, cell, number, first)
            last[cell] = time.monotonic() - begun
            if isinstance(pair, str):
                outcome.failed[cell.title()] = pair
                outcome.runs = [r for r in outcome.runs if not belongs(r, cell)]
                progress("")
                _say(f"dropped: {cell.title()}: {pair}")
            else:
                outcome.runs += pair
        outcome.rounds = number + 1
    progress("")
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def belongs(run: Run, cell: Cell) -> bool:
    """Whether a run is one of the cell's."""
    return all(run[name] == value for name, value in cell.key().items())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _pair(
    setup: Setup, cell: Cell, number: int, first: dict[tuple[Any, ...], tuple[Cell, str, Run]]
) -> list[Run] | str:
    """The base's run and the peer's, or why there is no figure."""
    pair = []
    for name in (cell.base, cell.peer):
        try:
            run = cell.key() | {"contender": name, "pair": number} | setup.run(cell, name)
        except WorkerFailed as error:
            return str(error)
        base_cell, base_name, base = first.setdefault(cell.input(), (cell, name, run))
        if run["loaded"]["input_sha256"] != base["loaded"]["input_sha256"]:
            return f"{name} was given another column than {base_name}"
        if run["cold"]["ids_sha256"] != base["cold"]["ids_sha256"]:
            try:
                where = _difference(setup, (base_cell, base_name), (cell, name))
            except WorkerFailed as error:
                where = str(error)
            return f"the ids of {base_name} and {name} differ: {where}"
        pair.append(run)
    return pair


def _difference(setup: Setup, *sides: tuple[Cell, str]) -> str:
    """The first row on which two contenders differ, from new processes."""
    dumped = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (cell, name) in enumerate(sides):
            target = Path(folder) / f"{number}.npz"
            setup.run(cell, name, warm=(), dump=target)
            with np.load(target) as saved:
                dumped.append((saved["ids"], saved["lengths"]))
    return first_difference(*dumped)


def first_difference(
    ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]
) -> str:
    """Name the first row that differs. A side: ids (tokens,) uint32, lengths (rows,) uint64."""
    (a, a_len), (b, b_len) = ours, theirs
    if len(a_len) != len(b_len):
        return f"the numbers of rows differ: {len(a_len)} and {len(b_len)}"
    a_end, b_end = np.cumsum(a_len).astype(int), np.cumsum(b_len).astype(int)
    a_at = b_at = 0
    for row, (a_next, b_next) in enumerate(zip(a_end, b_end, strict=True)):
        left, right = a[a_at:a_next], b[b_at:b_next]
        if not np.array_equal(left, right):
            short = min(len(left), len(right))
            unequal = np.flatnonzero(left[:short] != right[:short])
            at = int(unequal[0]) if unequal.size else short
            return (
                f"first in row {row}, token {at}: {left[at : at + 5].tolist()} and "
                f"{right[at : at + 5].tolist()} ({len(left)} and {len(right)} tokens)"
            )
        a_at, b_at = a_next, b_next
    return "no row differs when run again: the ids of one side are not stable"
