"""What one call asks of a device's engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one call. verify: share of rows that the CPU encodes too. seed: of their choice.
    device_memory: bytes, None: most of what is free."""

    verify: float = 0.01
    seed: int = 0
    device_memory: int | None = None


DEFAULTS = Settings()
