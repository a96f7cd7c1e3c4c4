"""Read records: the newest of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from _machine import RECORDS


def newest(folder: Path = RECORDS) -> dict[str, tuple[Path, dict[str, Any]]]:
    """kind → (path, record) of the newest record of each kind, by the date in its name."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        if "record" in record:
            found[record["record"]] = (path, record)
    return found
