"""The parts of device_check.sh, one a run: `_device_check.py PART --device D --out FOLDER`.

Each writes FOLDER/PART.json and prints a summary. Exit status: 0 passed, 1 a difference or an
error, 3 what it needs isn't there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _machine import describe

from saphira_gpu import Tokenizer
from saphira_gpu.batch import Batch
from saphira_gpu.engines import cpu, placement
from saphira_gpu.engines.cuda import pretok, rows
from saphira_gpu.engines.cuda.batches import PADDING
from saphira_gpu.engines.cuda.pipeline import KernelStages
from saphira_gpu.engines.cuda.rows import DeviceRows

CORPORA = ("english", "multiscript", "code", "chat_markdown")
MODELS = ("gpt2", "cl100k_base", "o200k_base")
NOT_CHECKED = 3


class Sizes:
    """Bytes of text. Those of the host executor are what it does in seconds."""

    def __init__(self, quick: bool, device: str) -> None:
        host = device == "host"
        self.corpus = 20_000 if host else 1 << 20 if quick else 64 << 20
        self.schemes = 6_000 if host else 1 << 20 if quick else 4 << 20
        self.hard = 3_000 if host else 100_000 if quick else 1_000_000
        self.kernels = 4_000 if host else 256 << 10
        self.sanitizer = 2_000 if host else 1 << 20
        self.timed = 60_000 if host else 64 << 20 if quick else 1 << 30
        self.batch = 60_000 if host else 256 << 20
        self.runs = 1 if host else 5


# ---- texts ----


def documents(corpus: str, limit: int) -> list[str]:
    """Documents of a corpus, as many as fill `limit` bytes or there are."""
    path = Path(os.environ["SAPHIRA_TEST_DATA"]) / "corpora" / f"{corpus}.parquet"
    found: list[str] = []
    for text in pq.read_table(path, columns=["text"])["text"].to_pylist():
        if limit <= 0:
            break
        found.append(text[: max(limit, 1)])
        limit -= len(text.encode())
    return found


def hard(n: int) -> dict[str, list[bytes]]:
    """Rows that are hard for some rule or for merging, of about n bytes, and rows at edges."""
    source = random.Random(1)
    letters = bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=n))
    mixed = bytes(source.choices(b" \t\r\n\x0b\x0c", k=n))
    tile = 253 * 64
    return {
        "one letter": [b"a" * n],
        "random letters": [letters],
        "digits": [b"7" * n],
        "spaces": [b" " * n, b" " * n + b"x"],
        "newlines": [b"\n" * n, b"!" + b"\n" * n + b"x"],
        "mixed white space": [mixed],
        "punctuation and newlines": [b"?!\n" * (n // 3)],
        "upper and lower": [b"aB" * (n // 2), b"ABc" * (n // 3)],
        "CJK": ["漢字かな".encode() * (n // 12)],
        "marks": ["e\u0301\u0323".encode() * (n // 5)],
        "emoji with joiners": ["👩\u200d💻".encode() * (n // 11)],
        "invalid bytes": [source.randbytes(n), b"\xf0\x9f" * (n // 2)],
        "apostrophes": [b"'s't're've'm'll'd" * (n // 17), b"''" * (n // 2)],
        "lengths": [b"x" * k for k in (0, 1, 63, 64, 65, tile - 1, tile, tile + 1)],
        "empty rows": [b""] * (100_000 if n >= 100_000 else 3_000),
    }


def opened(name: str) -> Any:
    return placement.opened(name)


# ---- parts ----


def exact(device: str, sizes: Sizes) -> dict[str, Any]:
    """Ids on the device and on the CPU: corpora, hard rows, every scheme, modes, nulls, slices."""
    checked: list[dict[str, Any]] = []

    def same(what: str, tokenizer: Tokenizer, column: Any, **options: Any) -> None:
        found = tokenizer.encode_arrow(column, device=device, verify=0.0, **options)
        expected = tokenizer.encode_arrow(column, device="cpu", **options)
        equal = found.equals(expected)
        checked.append(
            {"what": what, "bytes": column.nbytes, "rows": len(column), "equal": equal, **options}
        )
        if not equal:
            row = next(
                i
                for i, (a, b) in enumerate(
                    zip(found.to_pylist(), expected.to_pylist(), strict=True)
                )
                if a != b
            )
            raise SystemExit(f"{what}: row {row} differs: {column[row].as_py()[:200]!r}")

    on = opened(device)
    device = on  # one device, so one set of tables a model
    models = {name: Tokenizer.load(name) for name in MODELS}
    for name, tokenizer in models.items():
        for corpus in CORPORA:
            texts = documents(corpus, sizes.corpus // (1 if name == "gpt2" else 2))
            same(f"{name}, {corpus}", tokenizer, pa.array(texts, pa.large_string()))
        for what, column in hard(sizes.hard).items():
            same(f"{name}, {what}", tokenizer, pa.array(column, pa.large_binary()))
    gpt2 = models["gpt2"]
    chat = documents("chat_markdown", sizes.schemes)
    with_tokens = [f"<|endoftext|>{text}<|endoftext|>" for text in chat]
    nulls = pa.array([None if i % 3 == 0 else text for i, text in enumerate(chat)])
    same("added tokens", gpt2, pa.array(with_tokens), special="parse")
    same("nulls and a slice", gpt2, nulls[1:-1] if len(nulls) > 3 else nulls)
    text = pa.array(
        [t for corpus in CORPORA for t in documents(corpus, sizes.schemes)], pa.large_string()
    )
    for number in range(cpu.lib.sa_scheme_count()):
        scheme = cpu.ffi.string(cpu.lib.sa_scheme_name(number)).decode()
        pretok_of = dataclasses.replace(gpt2.spec.pretok, scheme=scheme)
        tokenizer = Tokenizer.from_spec(dataclasses.replace(gpt2.spec, pretok=pretok_of))
        same(f"scheme {scheme}", tokenizer, text)
        if sizes.hard <= 100_000 or scheme in ("cl100k", "o200k", "kimi", "deepseek"):
            for what, column in hard(sizes.hard // 4).items():
                same(f"scheme {scheme}, {what}", tokenizer, pa.array(column, pa.large_binary()))
    total = sum(int(item["bytes"]) for item in checked)
    print(f"{len(checked)} comparisons, {total:,} bytes, all ids equal")
    return {"checked": checked}


def kernels(device: str, sizes: Sizes) -> dict[str, Any]:
    """What every stage makes of a text, on this device and on the host executor (check build)."""
    from saphira_gpu.devices.host import HostDevice

    compared = []
    on, host = opened(device), HostDevice(check=True)
    for name in MODELS:
        tokenizer = Tokenizer.load(name)
        engine = cpu.Engine(tokenizer._engine.plan)
        here = KernelStages(on, engine, 64 << 20)
        there = KernelStages(host, engine, 64 << 20)
        for corpus in CORPORA:
            texts = [f"<|endoftext|>{t}" for t in documents(corpus, sizes.kernels)]
            batch = Batch.from_texts([*texts, None, "", "\xe9", b"\xff\xc3 x"])
            for mode in ("plain", "parse"):
                one, two = here.look(batch, mode, None), there.look(batch, mode, None)
                for field in dataclasses.fields(one):
                    a, b = getattr(one, field.name), getattr(two, field.name)
                    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
                    if not all(np.array_equal(x, y) for x, y in pairs):
                        raise SystemExit(f"{name}, {corpus}, {mode}: stage {field.name} differs")
                    compared.append(f"{name} {corpus} {mode} {field.name}")
    print(f"{len(compared)} outputs of stages compared with the host executor, all equal")
    return {"compared": compared}


_SANITIZED = """
import pyarrow as pa
from _device_check import documents
from saphira_gpu import Tokenizer
column = pa.array(documents("multiscript", {size}) + documents("code", {size} // 4))
for name in ("gpt2", "o200k_base"):
    tokenizer = Tokenizer.load(name)
    found = tokenizer.encode_arrow(column, device="cuda", verify=0.0, special="parse")
    assert found.equals(tokenizer.encode_arrow(column, device="cpu", special="parse"))
"""


def sanitizer(device: str, sizes: Sizes) -> dict[str, Any]:
    """compute-sanitizer over 1 MB; on the host executor its check build says the same and more."""
    if device == "host":
        print("not checked: the check build of the host executor is what part kernels runs")
        raise SystemExit(NOT_CHECKED)
    tool = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if tool is None:
        print("not checked: no compute-sanitizer here")
        raise SystemExit(NOT_CHECKED)
    code = _SANITIZED.format(size=sizes.sanitizer)
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    results = {}
    for check in ("memcheck", "initcheck"):
        done = subprocess.run(
            [tool, "--tool", check, "--error-exitcode", "9", sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": paths},
        )
        tail = (done.stdout + done.stderr)[-2000:]
        results[check] = {"status": done.returncode, "tail": tail}
        print(f"{check}: exit status {done.returncode}; {tail.strip().splitlines()[-1:]}")
        if done.returncode == 9:
            raise SystemExit(f"{check} reports errors:\n{tail}")
        if done.returncode:
            print(f"not checked: {check} can't run here")
            raise SystemExit(NOT_CHECKED)
    return results


def transfer(device: str, sizes: Sizes) -> dict[str, Any]:
    """GB/s of copies between host and device, of pinned and of pageable memory, one way alone."""
    on = opened(device)
    n = 1 << 20 if device == "host" else 1 << 28
    pinned = on.pinned(n, np.uint8)
    pinned[:] = 1
    pageable = np.ones(n, np.uint8)
    there = on.empty(n, np.uint8)
    ways: dict[str, Callable[[], object]] = {
        "pinned to device": lambda: on.main.copy(there, pinned),
        "device to pinned": lambda: on.main.copy(pinned, there),
        "pageable to device": lambda: on.to_device(pageable),
        "device to pageable": lambda: on.to_host(there),
    }
    rates = {name: n / timed(on, way, 5) / 1e9 for name, way in ways.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:.1f} GB/s")
    return {"bytes": n, "GB/s": rates}


def timed(on: Any, call: Callable[[], object], runs: int) -> float:
    """Seconds of a call and what it asks of the device: the median of some, after one more."""
    seconds = []
    for _ in range(runs + 1):
        on.synchronize()
        begun = time.perf_counter()
        call()
        on.synchronize()
        seconds.append(time.perf_counter() - begun)
    return median(seconds[1:]) if runs > 1 else seconds[-1]


def column_of(corpus: str, n: int) -> pa.Array:
    """n bytes of a corpus or a little more, repeated as often as that takes."""
    texts = documents(corpus, n)
    once = pa.array(texts, pa.large_string())
    size = sum(len(text.encode()) for text in texts)
    return pa.concat_arrays([once] * max(1, -(-n // size)))


class Timed:
    """A device that waits for every kernel. seconds: by the kernel's file, which is its stage."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self.seconds: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def kernel(self, file: str, name: str) -> Callable[..., None]:
        kernel, stage = self._device.kernel(file, name), Path(file).stem

        def run(*args: Any, **options: Any) -> None:
            self._device.synchronize()
            begun = time.perf_counter()
            kernel(*args, **options)
            self._device.synchronize()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begun

        return run


def stages(device: str, sizes: Sizes) -> dict[str, Any]:
    """GB/s of text of every stage's kernels, warm, of a batch that lies on the device, each waited
    for. classify is no part of a whole encode: boundaries make their classes themselves."""
    on = Timed(opened(device))
    tokenizer = Tokenizer.load("gpt2")
    made = KernelStages(on, cpu.Engine(tokenizer._engine.plan), 16 << 30)
    found: dict[str, Any] = {}
    for corpus in CORPORA[:3]:
        batch = Batch.from_arrow(column_of(corpus, sizes.batch))
        n = batch.n_bytes
        with on.current():
            text, on_rows = on.to_device(padded(batch)), DeviceRows.of(on, batch)
            passes: list[dict[str, float]] = []
            for _ in range(sizes.runs + 1):
                on.seconds = {}
                launched = made.launch(
                    text, n, on_rows, "plain", None, dtype=np.dtype(np.uint16), hits=False
                )
                segments = rows.new_marks(on, n, 0, launched.counters).segments
                pretok.classify(on, made.alphabet, text, n, segments)
                passes.append(on.seconds)
        rates = {name: n / median(p[name] for p in passes[1:]) / 1e9 for name in passes[-1]}
        found[corpus] = {"bytes": n, "GB/s": rates}
        words = ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items())
        print(f"{corpus}, {n:,} bytes (repeated), GB/s of text: {words}")
    return found


def padded(batch: Batch) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a batch as kernels take them: zeros behind."""
    text = np.zeros(batch.n_bytes + PADDING, np.uint8)
    text[: batch.n_bytes] = batch.data[int(batch.offsets[0]) : int(batch.offsets[-1])]
    return text


def speed(device: str, sizes: Sizes) -> dict[str, Any]:
    """Whole encodes in GB/s of text, in turn with the CPU core and gigatoken; ids compared."""
    found: dict[str, Any] = {}
    try:
        for module in ("awkward", "gigatoken"):
            import_module(module)
        peer = True
    except ImportError as error:
        peer = False
        print(f"gigatoken is not compared: {error}")
    on = opened(device)
    for name in ("gpt2", "o200k_base"):
        tokenizer = Tokenizer.load(name)
        for corpus in CORPORA[:2]:
            column = column_of(corpus, sizes.timed)
            n = Batch.from_arrow(column).n_bytes
            encode = partial(tokenizer.encode_arrow, column, dtype="auto")
            ways: dict[str, Callable[[], Any]] = {
                "host to host": partial(encode, device=on, verify=0.0),
                "cpu, all threads": partial(encode, device="cpu"),
            }
            if device != "host":
                ways["host to device"] = partial(encode, device=on, verify=0.0, output="device")
            if not ways["host to host"]().equals(ways["cpu, all threads"]()):
                raise SystemExit(f"{name}, {corpus}: ids differ; no figure is shown")
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(sizes.runs):
                for way, call in ways.items():
                    seconds[way].append(timed(on, call, 1))
            rates = {way: n / median(of) / 1e9 for way, of in seconds.items()}
            rates["device to device"] = on_device(on, tokenizer, column, sizes)
            if peer:
                rates["gigatoken"] = of_gigatoken(name, column, n, max(sizes.runs - 2, 1))
            found[f"{name} {corpus}"] = {"bytes": n, "GB/s": rates}
            words = ", ".join(f"{way} {rate:.3g}" for way, rate in rates.items())
            print(f"{name}, {corpus}, {n:,} bytes (repeated), ids equal, GB/s of text: {words}")
    return found


def on_device(on: Any, tokenizer: Tokenizer, column: pa.Array, sizes: Sizes) -> float:
    """GB/s of the kernels alone: text on the device to ids on the device, batch after batch."""
    made = KernelStages(on, cpu.Engine(tokenizer._engine.plan), 16 << 30)
    batch = Batch.from_arrow(column)
    last = int(np.searchsorted(batch.offsets, int(batch.offsets[0]) + sizes.batch, "right")) - 1
    part = Batch(batch.data, batch.offsets[: max(last, 1) + 1])
    n = part.n_bytes
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
    with on.current():
        text, on_rows = on.to_device(padded(part)), DeviceRows.of(on, part)

        def run() -> Any:
            return made.launch(text, n, on_rows, "plain", None, dtype=dtype, hits=False)

        launched = run()
        total = int(on.to_host(launched.row_offsets)[-1])
        ids = on.to_host(launched.ids[:total]).astype(np.uint32)
        expected = tokenizer.encode_arrow(part.to_arrow(pa.large_string()), device="cpu")
        if not np.array_equal(ids, expected.values.to_numpy()):
            raise SystemExit(f"{tokenizer.name}: ids on the device differ; no figure is shown")
        return n / timed(on, run, sizes.runs) / 1e9


def of_gigatoken(name: str, column: pa.Array, n: int, runs: int) -> float:
    """GB/s of gigatoken's best path (as bench/compare.py runs it), warm, with all threads."""
    from _machine import cores
    from _peers import Gigatoken, tokenizer_files

    vocabs = Path(os.environ["SAPHIRA_TEST_DATA"]) / "vocabs"
    peer = Gigatoken(tokenizer_files(name, vocabs), "awkward", cores())
    peer.load()
    given = peer.convert(column.cast(pa.string()) if n < 1 << 31 else column)
    seconds = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        made = peer.encode(given)
        seconds.append(time.perf_counter() - begun)
        del made
    return n / median(seconds[1:]) / 1e9


PARTS: dict[str, Callable[[str, Sizes], dict[str, Any]]] = {
    "exact": exact,
    "kernels": kernels,
    "sanitizer": sanitizer,
    "transfer": transfer,
    "stages": stages,
    "speed": speed,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if "SAPHIRA_TEST_DATA" not in os.environ:
        print("SAPHIRA_TEST_DATA is not set: no corpora to check with")
        return NOT_CHECKED
    begun = time.monotonic()
    found = PARTS[options.part](options.device, Sizes(options.quick, options.device))
    record = {
        "part": options.part,
        "device": options.device,
        "machine": describe(),
        "seconds": round(time.monotonic() - begun, 1),
        "found": found,
    }
    (options.out / f"{options.part}.json").write_text(json.dumps(record, indent=1, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
