"""What an encoding pass saw."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Counts that `encode*` and `count*` add to, so that one Report can sum up many calls.

    rows: rows, null rows included. nulls: null rows of the input. bytes: bytes of text encoded.
    tokens: ids. added: hits of added tokens by name, whether they became ids or (special="plain")
    stayed text. invalid_rows: rows that are not UTF-8, whatever the policy made of them.

    Of a device, all 0 on the CPU: device_batches: batches it encoded. device_halved: how often a
    batch found no room and was halved. device_bytes: bytes of text it encoded. device_memory: the
    most bytes of its memory in use at a time. verified_rows: rows that the CPU encoded too.
    verify_seed: of their choice; None where nothing was verified.
    """

    rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    added: dict[str, int] = field(default_factory=dict)
    invalid_rows: int = 0
    device_batches: int = 0
    device_halved: int = 0
    device_bytes: int = 0
    device_memory: int = 0
    verified_rows: int = 0
    verify_seed: int | None = None

    def add(self, other: Report) -> None:
        """Adds another report's counts to this one."""
        self.rows += other.rows
        self.nulls += other.nulls
        self.bytes += other.bytes
        self.tokens += other.tokens
        self.invalid_rows += other.invalid_rows
        self.device_batches += other.device_batches
        self.device_halved += other.device_halved
        self.device_bytes += other.device_bytes
        self.device_memory = max(self.device_memory, other.device_memory)
        self.verified_rows += other.verified_rows
        if other.verify_seed is not None:
            self.verify_seed = other.verify_seed
        for name, hits in other.added.items():
            self.added[name] = self.added.get(name, 0) + hits
