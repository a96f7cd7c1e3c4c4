"""The whole encode on a device, kernels on the host executor, against the core."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saphira_gpu import InputError, Tokenizer, VerifyError
from saphira_gpu.devices.host import HostDevice, Schedule
from saphira_gpu.devices.source import kernels_folder
from saphira_gpu.spec import AddedToken, Normalizer
from tests import definitions, fake_cupy
from tests.on_executor import need_compiler
from tests.oracles import gpt2_spec

need_compiler()

NAMES = ("gpt2", "cl100k_base", "o200k_base")
MODES = ("plain", "parse", "hf_plain")
SCHEDULES = (
    Schedule("forward", resident=48),
    Schedule("reverse", resident=48),
    Schedule("random", seed=3, resident=48),
)
MEMORY = 96 << 20  # of o200k's tables too


@lru_cache(3)
def tok(name: str) -> Tokenizer:
    return Tokenizer.load(name)


def same(tokenizer: Tokenizer, column: Any, device: Any, **options: Any) -> None:
    want = tokenizer.encode_arrow(column, "cpu", **options)
    got = tokenizer.encode_arrow(column, device, verify=0.0, device_memory=MEMORY, **options)
    assert got.type == want.type
    if not got.equals(want):
        rows = zip(got.to_pylist(), want.to_pylist(), strict=True)
        row = next(i for i, (a, b) in enumerate(rows) if a != b)
        pytest.fail(f"row {row}: {column[row].as_py()!r}")


ADVERSARIAL = [
    b"", b"a", b"a" * 3000, b"7" * 3000, b" " * 3000, b"\n" * 3000, b" \n\t\r" * 700, b".\n" * 1500,
    b"aA" * 1500, "漢字".encode() * 500, "e\u0301".encode() * 900, "👩‍👩‍👧".encode() * 150,
    b"\xff\xc3\x80" * 900, b"'s'll" * 600, b"don't " * 500, b"x" * 63, b"x" * 64, b"x" * 65,
    b"zq" * 6000, *[b""] * 300,
]  # fmt: skip


@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("name", NAMES)
def test_adversarial_rows(name: str, check: bool) -> None:
    for schedule in SCHEDULES[:1] if check else SCHEDULES:
        same(tok(name), pa.array(ADVERSARIAL, pa.binary()), HostDevice(check, schedule))


@pytest.mark.parametrize("name", NAMES)
def test_byte_contract(test_data: Path, name: str) -> None:
    cases = json.loads((test_data / "cases/byte_contract_cases.json").read_text())
    column = pa.array([bytes.fromhex(case["hex"]) for case in cases], pa.binary())
    assert len(column) >= 39
    same(tok(name), column, HostDevice())


def test_special_cases(test_data: Path) -> None:
    """Each set of added tokens of the cases, with all of its texts, in every mode."""
    cases = json.loads((test_data / "cases/special_token_cases.json").read_text())
    groups: dict[str, list[Any]] = {}
    for case in cases:
        if case["normalizer"] is None:
            groups.setdefault(json.dumps(case["added_tokens"]), []).append(case["input"])
    assert len(groups) > 5
    device = HostDevice()
    for tokens, texts in groups.items():
        added = tuple(
            AddedToken(id=50257 + i, **token) for i, token in enumerate(json.loads(tokens))
        )
        tokenizer = Tokenizer.from_spec(dataclasses.replace(gpt2_spec(), added=added))
        for mode in MODES:
            same(tokenizer, pa.array(texts), device, special=mode)


@pytest.mark.parametrize("lazy", ["none", "first", "others", "all"])
def test_cupy(monkeypatch: pytest.MonkeyPatch, lazy: Any) -> None:
    """CupyDevice's own code, with streams that put their work off."""
    cupy: Any = fake_cupy.make(HostDevice(), lazy)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    tokenizer = Tokenizer.load("gpt2")
    column = pa.array([None, *ADVERSARIAL[:12], b"<|endoftext|>", None], pa.binary())
    for mode in MODES:
        same(tokenizer, column, "cuda", special=mode)
    kept = tokenizer.encode_arrow(column, "cuda", output="device", verify=1.0)
    want = tokenizer.encode_arrow(column, "cpu").values.to_numpy()
    np.testing.assert_array_equal(np.from_dlpack(kept.values), want)


@pytest.mark.parametrize("name", NAMES)
def test_hot_table(monkeypatch: pytest.MonkeyPatch, test_data: Path, name: str) -> None:
    """Batches of any size make and use it."""
    monkeypatch.setattr("saphira_gpu.engines.cuda.pipeline._HOT_LEAST", 0)
    tokenizer, device = Tokenizer.load(name), HostDevice()
    columns = [*corpora(test_data, 20_000).values(), pa.array(ADVERSARIAL, pa.binary())]
    for column in columns:
        same(tokenizer, column, device)
    assert device.counters["hot_fill"]["launches"] == 1
    assert device.counters["probe_hot"]["launches"] == len(columns) - 1


def test_rewriting_models() -> None:
    """The core makes the new text, the device goes on from there."""
    column = pa.array(["a\u030a b", "Hello", None, "", "x<|endoftext|>e\u0301 y", "\ufb01ne"] * 3)
    spec = gpt2_spec()
    pretok = dataclasses.replace(spec.pretok, add_prefix_space=True)
    for changed in (
        dataclasses.replace(spec, normalizers=(Normalizer("nfc"),)),
        dataclasses.replace(spec, normalizers=(Normalizer("nfkc"),), pretok=pretok),
        dataclasses.replace(spec, pretok=pretok),
    ):
        tokenizer = Tokenizer.from_spec(changed)
        assert tokenizer._engine.rewrites
        for mode in MODES:
            same(tokenizer, column, HostDevice(), special=mode)
        with pytest.raises(InputError, match="row 4: "):
            tokenizer.encode_arrow(column, HostDevice(), special="error")


def test_error_mode() -> None:
    with pytest.raises(InputError, match=r"row 1: .* at byte 2"):
        tok("gpt2").encode_arrow(pa.array(["a", "b <|endoftext|>"]), HostDevice(), special="error")


def test_a_wrong_kernel_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A piece's third id is written a bit too far: the gate names the row and the stage."""
    folder = tmp_path / "kernels"
    shutil.copytree(kernels_folder(), folder)
    file = folder / "shared/value.h"
    right = file.read_text()
    wrong = right.replace("(u64)third << 40", "(u64)third << 41")
    assert wrong != right
    file.write_text(wrong)
    monkeypatch.setattr("saphira_gpu.devices.source.kernels_folder", lambda: folder)
    column = pa.array(["fine", "Zażółć gęślą jaźń 東京 qzxv"])
    with pytest.raises(VerifyError) as caught:
        Tokenizer.load("gpt2").encode_arrow(column, HostDevice(), verify=1.0)
    assert caught.value.row == 1 and caught.value.stage == "values"
    assert caught.value.device_ids != caught.value.cpu_ids


def corpora(test_data: Path, size: int) -> dict[str, pa.Array]:
    """The first rows of each corpus, about so many bytes."""
    found = {}
    for file in sorted((test_data / "corpora").glob("*.parquet")):
        column = pq.read_table(file).column(
            0 if "text" not in pq.read_schema(file).names else "text"
        )
        rows, n = [], 0
        for value in column:
            rows.append(value.as_py())
            n += len((rows[-1] or "").encode())
            if n >= size:
                break
        found[file.stem] = pa.array(rows)
    return found


def test_corpora(test_data: Path) -> None:
    for column in corpora(test_data, 60_000).values():
        for name in NAMES:
            same(tok(name), column, HostDevice())


@pytest.mark.long
@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_corpora_long(test_data: Path, name: str, schedule: Schedule, check: bool) -> None:
    size = 256 << 10 if check else 2 << 20
    for column in corpora(test_data, size).values():
        same(tok(name), column, HostDevice(check, schedule, seconds=900))


@pytest.mark.long
@pytest.mark.parametrize("check", [True, False], ids=["check", "fast"])
@pytest.mark.parametrize("scheme", [s["name"] for s in definitions.schemes()["schemes"]])
def test_schemes_long(test_data: Path, scheme: str, check: bool) -> None:
    """Every compiled scheme, with GPT-2's vocabulary."""
    pretok = dataclasses.replace(gpt2_spec().pretok, scheme=scheme)
    tokenizer = Tokenizer.from_spec(dataclasses.replace(gpt2_spec(), pretok=pretok))
    schedule = Schedule("random", seed=7, resident=48)
    for column in corpora(test_data, 256 << 10 if check else 2 << 20).values():
        same(tokenizer, column, HostDevice(check, schedule, seconds=900))
