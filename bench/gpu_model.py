"""A model of the CUDA path's speed, from what its kernels do on the host executor. No GPU is used.

    SAPHIRA_TEST_DATA=... python bench/gpu_model.py
    python bench/gpu_model.py --corpora english --kb 128 --no-record

Every stage runs on `HostDevice(count=True)` over a slice of each corpus, with a table of pieces
that has seen the megabytes before it. Counted per byte of text: bytes moved, 32 for each distinct
sector of a warp access (what leaves the SM if L1 holds nothing); of them those of the tables that
live with the encoder, which L2 holds (a piece table of 2^20 slots has 32 MB); streamed bytes, 32
for each distinct sector of a launch in the batch's own arrays, which are larger than L2;
collectives; atomics. The bounds: what streams at HBM's rate, what moves at L2's. Left out is what
each warp reads of the counters, and each block of the hot table (0.1 bytes a byte of text in a
batch of 256 MB): it grows with the grid, which is bounded, not with the text. Memory alone: issued
instructions, latency, occupancy, launches and bank conflicts are not in the bounds. With CuPy and
NVRTC also registers and SASS instructions (the cubin's .text, 16 bytes each).
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import _machine
import numpy as np
from _columns import CORPORA, corpus_path, read_column

from saphira_gpu import Tokenizer
from saphira_gpu.batch import Batch
from saphira_gpu.devices._host_memory import HostArray
from saphira_gpu.devices.compile_gate import parse
from saphira_gpu.devices.cupy import OPTIONS
from saphira_gpu.devices.host import HostDevice
from saphira_gpu.devices.source import flatten, kernels_folder
from saphira_gpu.engines.cuda.batches import PADDING
from saphira_gpu.engines.cuda.pipeline import KernelStages
from saphira_gpu.engines.cuda.rows import DeviceRows

HBM = 4.3e12  # bytes/s: measured copy rate of an H200
L2 = 5.5e12  # bytes/s: assumed, the order of what is published for an H100's L2; not measured here
GOAL = 50e9  # bytes of text/s, device to device
PINNED = 55e9  # bytes/s each way: assumed, PCIe 5 x16; the device check measures it
SECTOR = 32
ARCH = 90
# What `Device.zeros` writes: no kernel counts it.
ZEROS = "(zeroing)"
_SUMS = ("moved", "tables", "streamed", "collectives", "atomics")


class CountingDevice(HostDevice):
    """A HostDevice that also counts the bytes it is asked to zero."""

    zeroed = 0

    def zeros(self, shape: Any, dtype: Any) -> Any:
        made = super().zeros(shape, dtype)
        CountingDevice.zeroed += made.nbytes
        return made


def stage_of() -> dict[str, str]:
    """kernel → the file it is in, without its suffix: the stage."""
    found = {}
    for path in sorted(kernels_folder().glob("*.cu")):
        text = re.sub(r"__launch_bounds__\([^()]*\)", "", path.read_text(encoding="utf-8"))
        for name in re.findall(r"__global__\s+void\s+(\w+)", text):
            found[name] = path.stem
    return found


def batch_of(column: Any, start: int, n_bytes: int) -> Batch:
    """Whole rows from byte `start` of a column on, n_bytes of them or a row more."""
    whole = Batch.from_arrow(column)
    first = int(np.searchsorted(whole.offsets, whole.offsets[0] + start))
    first = min(first, whole.n_rows - 1)
    last = int(np.searchsorted(whole.offsets, whole.offsets[first] + n_bytes))
    return Batch(whole.data, whole.offsets[first : max(last, first + 1) + 1])


def run(
    stages: KernelStages, device: HostDevice, batch: Batch, special: str
) -> tuple[int, HostArray]:
    """All stages over a batch; how many ids there are, and the counters."""
    n, begin = batch.n_bytes, int(batch.offsets[0])
    padded = np.zeros(n + PADDING, np.uint8)
    padded[:n] = batch.data[begin : begin + n]
    text, rows = device.to_device(padded), DeviceRows.of(device, batch)
    made = stages.launch(text, n, rows, special, None, dtype=np.dtype(np.uint16), hits=False)
    return int(device.to_host(made.row_offsets)[-1]), made.counters


def where(
    traffic: dict[int, tuple[int, int]], lasting: list[tuple[int, int]], by_grid: set[int]
) -> dict[str, int]:
    """Sectors of a kernel by what they are of: what grows with the grid, tables that last, the
    batch's arrays.

    lasting: first and last address of each. by_grid: addresses. stream_sectors: different ones of
    a launch.
    """
    found = {"grid_sectors": 0, "table_sectors": 0, "stream_sectors": 0}
    for base, (sectors, distinct) in traffic.items():
        if base in by_grid:
            found["grid_sectors"] += sectors
        elif any(first <= base <= last for first, last in lasting):
            found["table_sectors"] += sectors
        else:
            found["stream_sectors"] += distinct
    return found


def corpus(
    tokenizer: Tokenizer, name: str, column: Any, n_bytes: int, warm: int, special: str
) -> dict[str, Any]:
    """Counts of every kernel over n_bytes of a corpus, after `warm` bytes of it."""
    device = CountingDevice(seconds=1000.0)
    stages = KernelStages(device, tokenizer._engine, 2 << 30)
    stages.hot_least = 0  # as a batch of usual size, which this slice is taken for
    warm = max(0, min(warm, Batch.from_arrow(column).n_bytes - 2 * n_bytes))
    if warm:
        run(stages, device, batch_of(column, 0, warm), special)
    lasting = [(m.pointer, m.pointer + m.size - 1) for m in device._memories if m.size]
    device.counters.clear()
    device.count = True
    CountingDevice.zeroed = 0
    batch = batch_of(column, warm, n_bytes)
    ids, counters = run(stages, device, batch, special)
    by_grid = {counters.pointer, stages.table.hot.pointer}
    stage = stage_of()
    kernels = [
        {"kernel": k, "stage": stage[k], **c} | where(device.traffic.get(k, {}), lasting, by_grid)
        for k, c in device.counters.items()
    ]
    return {
        "corpus": name,
        "bytes": batch.n_bytes,
        "rows": batch.n_rows,
        "ids": ids,
        "warm_bytes": warm,
        "special": special,
        "zeroed": CountingDevice.zeroed,
        "kernels": kernels,
    }


def table(result: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each stage, in the order they run: everything per byte of text."""
    n = result["bytes"]
    rows: dict[str, dict[str, float]] = {}
    for kernel in result["kernels"]:
        row = rows.setdefault(
            kernel["stage"],
            dict.fromkeys((*_SUMS, "launches"), 0.0),
        )
        atomics = kernel["global_atomics"]
        sectors = kernel["read_sectors"] + kernel["write_sectors"] + atomics
        row["moved"] += SECTOR * (sectors - kernel["grid_sectors"])
        row["tables"] += SECTOR * kernel["table_sectors"]
        row["streamed"] += SECTOR * kernel["stream_sectors"]
        row["collectives"] += kernel["collectives"]
        row["atomics"] += atomics
        row["launches"] += kernel["launches"]
    made = [
        {"stage": stage, **{key: row[key] / n for key in _SUMS}, "launches": int(row["launches"])}
        for stage, row in rows.items()
    ]
    zeroed = result["zeroed"] / n
    none: dict[str, Any] = dict.fromkeys((*_SUMS, "launches"), 0)
    zeroing = {"stage": ZEROS, "moved": zeroed, "streamed": zeroed}
    return [*made, none | zeroing]


def bounds(row: dict[str, Any]) -> tuple[float, float]:
    """GB/s of text that HBM allows for what a stage streams, and L2 for all that it moves."""
    far, near = row["streamed"], row["moved"]
    return HBM / far / 1e9 if far else inf, L2 / near / 1e9 if near else inf


def render(result: dict[str, Any]) -> list[str]:
    """Lines of one corpus."""
    rows = table(result)
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key != "stage"}
    lines = [
        f"{result['corpus']}: {result['bytes']} bytes, {result['rows']} rows, {result['ids']} ids, "
        f"special={result['special']}, after {result['warm_bytes']} bytes; per byte of text:",
        f"{'stage':<14}{'moved B':>9}{'tables B':>10}{'streamed B':>12}"
        f"{'collect.':>10}{'atomics':>9}{'launches':>9}{'HBM GB/s':>10}{'L2 GB/s':>9}",
    ]
    for row in [*rows, {"stage": "all", **total}]:
        hbm, l2 = bounds(row)
        lines.append(
            f"{row['stage']:<14}{row['moved']:>9.2f}{row['tables']:>10.2f}"
            f"{row['streamed']:>12.2f}{row['collectives']:>10.4f}{row['atomics']:>9.4f}"
            f"{row['launches']:>9d}{hbm:>10.0f}{l2:>9.0f}"
        )
    largest = max(rows, key=lambda row: float(row["moved"]))
    hbm, l2 = bounds(total)
    low = min(hbm, l2)
    out = 2 * result["ids"] / result["bytes"]
    link = PINNED / max(1.0, out) / 1e9
    lines += [
        f"largest term: {largest['stage']}, {largest['moved'] / total['moved']:.0%} of what moves",
        f"device to device, memory alone: {low:.0f} GB/s, by {'HBM' if hbm < l2 else 'L2'} (all "
        f"that moves from HBM: {HBM / total['moved'] / 1e9:.0f}); the goal of {GOAL / 1e9:.0f} is "
        f"{GOAL / 1e9 / low:.0%} of that",
        f"host to host: {out:.2f} bytes of ids a byte of text, a full-duplex link of "
        f"{PINNED / 1e9:.0f} GB/s each way allows {link:.0f} GB/s; 80% of it needs kernels at "
        f"{0.8 * link:.0f} GB/s",
    ]
    return lines


# ---- what the compiler says ----


def compiled() -> list[dict[str, Any]]:
    """Registers and SASS instructions of every kernel; empty without CuPy and NVRTC."""
    try:
        nvrtc = import_module("cupy").cuda.nvrtc
        nvrtc.getVersion()
    except Exception:
        return []
    made = []
    for path in sorted(kernels_folder().glob("*.cu")):
        program = nvrtc.createProgram(flatten(path).text, path.name, (), ())
        try:
            options = (*OPTIONS, f"--gpu-architecture=sm_{ARCH}", "--ptxas-options=-v")
            nvrtc.compileProgram(program, options)
            sizes = text_sizes(nvrtc.getCUBIN(program))
            made += [
                {
                    "stage": path.stem,
                    "kernel": report.kernel,
                    "registers": report.registers,
                    "shared": report.shared,
                    "instructions": sizes[report.kernel] // 16,
                }
                for report in parse(path.name, nvrtc.getProgramLog(program))
            ]
        finally:
            nvrtc.destroyProgram(program)
    return made


def text_sizes(cubin: bytes) -> dict[str, int]:
    """Bytes of machine code of each kernel: the sections .text.NAME of a 64-bit ELF file."""
    (at,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, at + i * size) for i in range(count)]
    table_at = headers[names][4]
    found = {}
    for name, *_, length in headers:
        end = cubin.index(b"\0", table_at + name)
        section = cubin[table_at + name : end].decode()
        if section.startswith(".text."):
            found[section[len(".text.") :]] = length
    return found


def main() -> int:
    args = _arguments()
    try:
        names = [name for name in args.corpora.split(",") if name]
        size, warm = int(args.kb * 1024), int(args.warm_kb * 1024)
        columns = {
            n: read_column(corpus_path(n), limit_bytes=size + warm + (1 << 20)) for n in names
        }
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    tokenizer = Tokenizer.load(args.tokenizer)
    results = []
    lines = [f"{args.tokenizer}; HBM {HBM / 1e12:g} TB/s, L2 {L2 / 1e12:g} TB/s (assumed)"]
    for name in names:
        for special in args.special.split(","):
            results.append(corpus(tokenizer, name, columns[name], size, warm, special))
            lines += ["", *render(results[-1])]
    kernels = compiled()
    if kernels:
        lines += ["", f"sm_{ARCH}, SASS instructions as they stand (loops count once):"]
        for k in kernels:
            lines.append(
                f"{k['stage']:<14}{k['kernel']:<26}{k['registers']:>4} registers{k['shared']:>7} "
                f"bytes shared{k['instructions']:>7} instructions"
            )
    else:
        lines += ["", "registers and instructions: not compiled here, CuPy with NVRTC is missing"]
    for line in lines:
        print(f"model  {line}".rstrip())
    if not args.no_record:
        record = {
            "tokenizer": args.tokenizer,
            "what": "model",
            "machine": _machine.describe(),
            "revision": _machine.revision(),
            "settings": {"hbm": HBM, "l2": L2, "pinned": PINNED, "sector": SECTOR},
            "results": [r | {"stages": table(r)} for r in results],
            "compiled": kernels,
        }
        print(f"model  record: {_machine.write_record('gpu_model', record, args.records)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--tokenizer", default="gpt2")
    parser.add_argument("--special", default="plain", help="modes, with commas between")
    parser.add_argument("--kb", type=float, default=256.0, help="text that is counted")
    parser.add_argument("--warm-kb", type=float, default=16384.0, help="text encoded before it")
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
