"""What the figures were measured on, how much memory a process took, and where records go."""

from __future__ import annotations

import datetime
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
RECORDS = BENCH / "records"
OUT = BENCH / "out"

PACKAGES = ("saphira_gpu", "gigatoken", "tokenizers", "tiktoken", "pyarrow", "numpy", "awkward")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _cpu_fields() -> dict[str, str]:
    """The first processor's block of /proc/cpuinfo; empty where there is none."""
    fields: dict[str, str] = {}
    for line in (_read("/proc/cpuinfo") or "").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return fields


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe() -> dict[str, object]:
    """The machine in words and numbers, without its name. Values that can't be read are None."""
    cpu = _cpu_fields()
    flags = set(cpu.get("flags", cpu.get("Features", "")).split())
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind = _read(f"{index}/level"), _read(f"{index}/type")
        caches[f"L{level} {kind}"] = _read(f"{index}/size")
    memory = next(
        (
            line.split()[1]
            for line in (_read("/proc/meminfo") or "").splitlines()
            if "MemTotal" in line
        ),
        None,
    )
    return {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "cpu_family_model_stepping": [cpu.get(k) for k in ("cpu family", "model", "stepping")],
        "arch": platform.machine(),
        "isa": sorted(flags & {"avx2", "avx512bw", "avx512_vbmi", "avx512_vbmi2", "asimd", "sve"}),
        "virtual_machine": "hypervisor" in flags,
        "cores": cores(),
        "caches": caches,
        "memory_gib": round(int(memory) / 2**20, 1) if memory else None,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()),
    }


def versions() -> dict[str, str]:
    """Installed versions of every package that matters, as this interpreter sees them."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def revision() -> dict[str, object]:
    """Commit of the tree and whether tracked files differ from it; empty outside a repository."""
    try:
        git = ["git", "-C", str(ROOT)]
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"commit": commit.stdout.strip(), "modified": bool(changed.stdout.strip())}


def rss_bytes() -> int | None:
    """Resident memory now; None where /proc is missing."""
    return _status("VmRSS")


def peak_rss_bytes() -> int:
    """Highest resident memory so far of this process image (bytes).

    VmHWM belongs to the image that runs now; ru_maxrss survives an exec, so on Linux it would
    include the parent's size and is only the fallback (bytes on macOS, KiB elsewhere).
    """
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024


def reset_peak_rss() -> bool:
    """Start the peak again at the present size. False where the kernel does not allow it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(key: str) -> int | None:
    for line in (_read("/proc/self/status") or "").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return None


def write_record(kind: str, record: Mapping[str, object], folder: Path = RECORDS) -> Path:
    """Write `record` as `<folder>/<UTC date and time>_<kind>.json` and return the path."""
    now = datetime.datetime.now(datetime.UTC)
    head = {"record": kind, "format": 1, "date": now.isoformat(timespec="seconds")}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H%M%SZ}_{kind}.json"
    path.write_text(json.dumps(head | dict(record), indent=1) + "\n")
    return path


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table that also reads as plain text; the first column left, others right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        padded = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|"
    )
    return "\n".join([line(header), rule, *map(line, rows)])
