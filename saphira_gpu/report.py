"""What an encoding pass saw."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Counts that `encode*` and `count*` add to, so that one Report can sum up many calls.

    rows: rows, null rows included. nulls: null rows of the input. bytes: bytes of text encoded.
    tokens: ids. added: hits of added tokens by name, whether they became ids or (special="plain")
    stayed text. invalid_rows: rows that are not UTF-8, whatever the policy made of them.
    """

    rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    added: dict[str, int] = field(default_factory=dict)
    invalid_rows: int = 0

    def add(self, other: Report) -> None:
        """Adds another report's counts to this one."""
        self.rows += other.rows
        self.nulls += other.nulls
        self.bytes += other.bytes
        self.tokens += other.tokens
        self.invalid_rows += other.invalid_rows
        for name, hits in other.added.items():
            self.added[name] = self.added.get(name, 0) + hits
