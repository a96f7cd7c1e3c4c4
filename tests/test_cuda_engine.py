"""What is around the kernels: batches, streams, memory, the gate, the API."""

from __future__ import annotations

import dataclasses
import os
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from saphira_gpu import DeviceError, InputError, Report, Tokenizer, UnsupportedError, VerifyError
from saphira_gpu.batch import Batch
from saphira_gpu.devices import DeviceMemoryError, RowTooLarge, detect
from saphira_gpu.devices.host import HostDevice
from saphira_gpu.engines import placement
from saphira_gpu.engines.cuda import memory, verify
from saphira_gpu.engines.cuda.batches import copy_shared
from saphira_gpu.pretok.steps import Scheme
from tests import fake_cupy
from tests.cuda_standin import PER_BYTE, TABLES, StandIn
from tests.oracles import gpt2_spec

# Rows of all kinds: empty, short, longer than a small batch, not UTF-8, with added tokens.
ROWS = [
    b"Hello, world!", b"", b"don't  stop <|endoftext|> now", "Zażółć gęślą jaźń 東京".encode(),
    b"\xff\xfe a", b" ", b"x" * 700, b"1234567890 " * 9, b"", b"<|endoftext|>", b"\n\n  \t tail  ",
] * 7  # fmt: skip
TIGHT = TABLES + 2 * memory.PER_BATCH + 400 * memory.PER_BYTE  # batches of about 100 bytes


class Lab:
    """A GPT-2 whose engines have stand-ins for stages, on one kind of device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: str, stages: Any = StandIn) -> None:
        self.made: list[StandIn] = []
        self.tok = Tokenizer.from_spec(gpt2_spec())
        self.host = HostDevice(check=True)
        self.name = "host"

        def kernels(*args: Any) -> StandIn:
            self.made.append(stages(*args))
            return self.made[-1]

        monkeypatch.setattr(placement, "kernels", kernels)
        if kind != "host":
            self.name = "cuda"
            cupy: Any = fake_cupy.make(self.host, kind)  # type: ignore[arg-type]
            monkeypatch.setitem(sys.modules, "cupy", cupy)
        else:
            monkeypatch.setattr("saphira_gpu.devices.host.HostDevice", lambda: self.host)

    def encode(self, column: Any, **options: Any) -> Any:
        return self.tok.encode_arrow(column, self.name, **{"verify": 0.0, **options})


@pytest.fixture(params=["host", "none", "first", "others", "all"])
def lab(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch, request.param)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch, "host")


def text() -> pa.Array:
    return pa.array(ROWS, pa.binary())


# ---- the data path ----


@pytest.mark.parametrize("special", ["plain", "parse", "hf_plain"])
def test_many_batches(lab: Lab, special: Any) -> None:
    """Small batches, so that copies in, kernels and copies out of several are under way at once."""
    report, want_report = Report(), Report()
    got = lab.encode(text(), special=special, device_memory=TIGHT, report=report)
    want = lab.tok.encode_arrow(text(), "cpu", special=special, report=want_report)
    assert got.equals(want) and got.type == want.type
    batches = lab.made[0].batches
    assert len(batches) == report.device_batches > 20
    assert max(n for n, rows in batches if rows > 1) <= 200
    assert sum(rows for _, rows in batches) == len(ROWS)
    assert (report.tokens, report.bytes, report.added, report.invalid_rows) == (
        want_report.tokens, want_report.bytes, want_report.added, want_report.invalid_rows,
    )  # fmt: skip
    assert report.device_bytes == sum(map(len, ROWS))
    assert 0 < report.device_memory <= TIGHT


def test_counts(lab: Lab) -> None:
    got = lab.tok.count_arrow(text(), lab.name, verify=1.0, device_memory=TIGHT)
    assert got.equals(lab.tok.count_arrow(text(), "cpu"))


def forms() -> dict[str, Any]:
    strings = ["a b", None, "", "Hello world", "don't", None, "日本", "a b"] * 5
    plain = pa.array(strings)
    nulls = pa.array(strings, pa.large_binary())
    buffers = pa.array(["ab", "cd ef", "g", "hij"]).buffers()[1:]
    # null rows with bytes under them
    over_bytes = pa.Array.from_buffers(pa.string(), 4, [pa.py_buffer(b"\x05"), *buffers])
    halves = [plain.dictionary_encode(), plain[4:9].dictionary_encode()]
    return {
        "string": plain,
        "slice": plain[3:29],
        "bits": plain[11:],
        "large binary": nulls[5:],
        "view": plain.cast(pa.string_view()),
        "dictionary": plain.dictionary_encode()[2:],
        "null": pa.nulls(9),
        "null bytes": over_bytes,
        "chunked": pa.chunked_array([plain[:3], plain[3:3], plain[5:]]),
        "chunked dictionary": pa.chunked_array(halves),
        "table": pa.table({"t": plain}),
        "empty": plain[:0],
        "no chunks": pa.chunked_array([], pa.string()),
        "empty rows": pa.array([""] * 100_000),
    }  # fmt: skip


@pytest.mark.parametrize("form", forms())
def test_input_forms(host: Lab, form: str) -> None:
    column = forms()[form]
    want = host.tok.encode_arrow(column, "cpu")
    budget = TIGHT if form != "empty rows" else None
    got = host.encode(column, device_memory=budget, verify=1.0)
    assert got.equals(want) and got.type == want.type
    kept = host.encode(column, output="device", device_memory=budget, verify=1.0)
    lists = want.combine_chunks() if isinstance(want, pa.ChunkedArray) else want
    assert len(kept) == len(lists)
    offsets = np.from_dlpack(kept.offsets)
    np.testing.assert_array_equal(np.diff(offsets), [len(row or []) for row in lists.to_pylist()])
    flat = [number for row in lists.to_pylist() for number in row or []]
    np.testing.assert_array_equal(np.from_dlpack(kept.values), np.array(flat, np.uint32))
    nulls = np.zeros(len(kept), np.bool_) if kept.validity is None else ~kept.validity
    np.testing.assert_array_equal(nulls, lists.is_null().to_numpy(zero_copy_only=False))


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "auto"])
def test_dtypes(lab: Lab, dtype: Any) -> None:
    spec = gpt2_spec()
    if dtype == "uint16":
        lab.tok = Tokenizer.from_spec(spec)
    want = lab.tok.encode_arrow(text(), "cpu", dtype=dtype)
    assert lab.encode(text(), dtype=dtype, device_memory=TIGHT).equals(want)
    kept = lab.encode(text(), dtype=dtype, output="device", device_memory=TIGHT)
    assert kept.values.dtype == want.values.to_numpy().dtype
    np.testing.assert_array_equal(kept.values.to_numpy(), want.values.to_numpy())


def test_other_options(host: Lab) -> None:
    """What is done before or after the engine is the same."""
    column = pa.array(ROWS[:22], pa.binary())
    for options in ({"offsets": "byte"}, {"invalid": "null"}, {"invalid": "replace"}):
        want = host.tok.encode_arrow(column, "cpu", **options)
        assert host.encode(column, verify=1.0, **options).equals(want)
    with pytest.raises(InputError, match="row 4: not UTF-8"):
        host.encode(column, invalid="error")
    with pytest.raises(ValueError, match="offsets= and output='device'"):
        host.encode(column, offsets="byte", output="device")


def test_error_mode(lab: Lab) -> None:
    column = pa.chunked_array([pa.array(["ok"] * 30), pa.array(["ok", "at <|endoftext|>", "ok"])])
    for output in ("arrow", "device"):
        with pytest.raises(InputError, match=r"row 31: .*'<\|endoftext\|>' at byte 3") as caught:
            lab.encode(column, special="error", device_memory=TIGHT, output=output)
        assert caught.value.row == 31
    fine = pa.array(["ok"] * 30)
    assert lab.encode(fine, special="error").equals(lab.tok.encode_arrow(fine, "cpu"))


def test_threads(lab: Lab) -> None:
    """Calls from several threads wait for each other."""
    want = lab.tok.encode_arrow(text(), "cpu")
    got: list[Any] = [None] * 4

    def work(i: int) -> None:
        got[i] = lab.encode(text(), device_memory=TIGHT)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.equals(want) for one in got)
    assert len(lab.made) == 1, "tables are uploaded once"


def test_copy_in_parts() -> None:
    source = np.random.default_rng(1).integers(0, 256, (40 << 20) + 5, np.uint8)
    target = np.zeros(len(source), np.uint8)
    copy_shared(target, source)
    np.testing.assert_array_equal(target, source)


# ---- memory ----


def test_out_of_memory_halves(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate says that all fits in a batch; it doesn't, as if others used the device."""
    monkeypatch.setattr(memory, "PER_BYTE", 1)
    monkeypatch.setattr(memory, "PER_ROW", 1)
    monkeypatch.setattr(memory, "PER_BATCH", 1)
    report = Report()
    need = TABLES + 800 * (PER_BYTE + 12)
    got = lab.encode(text(), device_memory=need, report=report)
    assert got.equals(lab.tok.encode_arrow(text(), "cpu"))
    assert report.device_halved > 0 and len(lab.made[0].batches) > 5


def test_a_row_too_large(lab: Lab) -> None:
    column = pa.chunked_array([pa.array(["a", "b"]), pa.array(["c", "d" * 2_000_000, "e"])])
    with pytest.raises(RowTooLarge, match=r"row 3, 2000000 bytes, finds no room.*aren't cut") as e:
        lab.encode(column, device_memory=TIGHT)
    assert e.value.row == 3
    fine = pa.array(["a", "b"])  # the engine goes on
    assert lab.encode(fine).equals(lab.tok.encode_arrow(fine, "cpu"))
    assert lab.encode(column, device_memory=1 << 30).equals(lab.tok.encode_arrow(column, "cpu"))
    assert len(lab.made) == 2


def test_too_little_memory(host: Lab) -> None:
    with pytest.raises(DeviceMemoryError, match="device_memory=20000 is too little: tables take"):
        host.encode(text(), device_memory=20_000)
    with pytest.raises(DeviceMemoryError, match="no room on the device"):
        host.encode(text(), device_memory=5_000)
    assert host.encode(text(), device_memory=TIGHT).equals(host.tok.encode_arrow(text(), "cpu"))


def test_memory_is_given_back(lab: Lab) -> None:
    lab.encode(text(), device_memory=TIGHT)
    kept = lab.encode(text(), device_memory=TIGHT, output="device")
    values = np.from_dlpack(kept.values)
    want = values.copy()
    del kept
    for _ in range(3):
        lab.encode(pa.array(["other text"] * 50), device_memory=TIGHT)
    np.testing.assert_array_equal(values, want)  # still the first one's
    del values
    assert lab.host.memory().used < TABLES + 50_000


def test_sizes() -> None:
    found = memory.sizes(1 << 30, 100 << 20)
    most = 2 * (found.bytes * memory.PER_BYTE + found.rows * memory.PER_ROW + memory.PER_BATCH)
    assert 0.9 * (924 << 20) < most <= 924 << 20
    assert memory.sizes(1 << 50, 0).bytes <= memory.MOST_BYTES < 1 << 32
    assert found.halved(1000, 10) == memory.Sizes(500, 5)
    assert memory.Sizes(1, 1).halved(1, 1) == memory.Sizes(1, 1)


# ---- output="device" ----


def test_interfaces(lab: Lab) -> None:
    kept = lab.encode(text(), output="device")
    want = lab.tok.encode_arrow(text(), "cpu").values.to_numpy()
    for array, dtype in ((kept.values, np.uint32), (kept.offsets, np.int64)):
        assert array.dtype == dtype and len(array) == array.shape[0]
        assert array.nbytes == len(array) * np.dtype(dtype).itemsize
        assert array.__dlpack_device__()[0] == 1  # kDLCPU, where the executor's memory is
        has_cuda = hasattr(array, "__cuda_array_interface__")
        assert (
            has_cuda == (lab.name == "cuda") and hasattr(array, "__array_interface__") != has_cuda
        )
        if has_cuda:
            assert array.__cuda_array_interface__["shape"] == array.shape
    np.testing.assert_array_equal(np.from_dlpack(kept.values), want)
    if lab.name == "host":
        np.testing.assert_array_equal(np.asarray(kept.values), want)
    assert "DeviceArray(shape=" in repr(kept.values)
    assert np.from_dlpack(kept.offsets)[-1] == len(want)


# ---- the gate ----


class Wrong(StandIn):
    """One id of a row is another one, and so is what one stage makes of it."""

    stage = "values"

    def encode(self, batch: Batch, special: str, hits: bool) -> tuple[Any, Any, Any]:
        ids, offsets, counted = super().encode(batch, special, hits)
        for row in range(batch.n_rows):
            if batch.row(row) == b"don't":
                ids[offsets[row]] += 1
        return ids, offsets, counted

    def look(self, *args: Any) -> verify.Stages:
        right = super().look(*args)
        if self.stage == "ids":
            return right
        if self.stage == "values":
            ids, counts = right.values
            return dataclasses.replace(right, values=(ids + 1, counts))
        changed = getattr(right, self.stage).copy()
        changed[0] ^= 1
        return dataclasses.replace(right, **{self.stage: changed})


@pytest.mark.parametrize("stage", ["segments", "tags", "boundaries", "pieces", "values", "ids"])
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    lab = Lab(monkeypatch, "host", type("Wrong", (Wrong,), {"stage": stage}))
    column = pa.chunked_array([pa.array(["fine"] * 40), pa.array(["fine", None, "don't", "fine"])])
    right = lab.tok.encode("don't").tolist()
    for output in ("arrow", "device"):
        with pytest.raises(VerifyError, match=f"row 42: .* first in stage {stage} ") as caught:
            lab.encode(column, verify=1.0, output=output, device_memory=TIGHT)
        error = caught.value
        assert (error.row, error.stage, error.seed) == (42, stage, 0)
        assert error.cpu_ids == right
        assert error.device_ids == [right[0] + 1, *right[1:]]
        assert isinstance(error, DeviceError)
    lab.encode(column, verify=0.0)  # nobody looked


def test_some_rows_are_verified(host: Lab) -> None:
    column = pa.array(["a b c"] * 4000)
    report = Report()
    host.encode(column, verify=0.05, report=report)
    assert 120 < report.verified_rows < 290 and report.verify_seed == 0
    first = verify.chosen(7, 0, 4000, 0.05)
    np.testing.assert_array_equal(first, verify.chosen(7, 0, 4000, 0.05))
    parts = [verify.chosen(7, at, 1000, 0.05) + at for at in range(0, 4000, 1000)]
    np.testing.assert_array_equal(first, np.concatenate(parts))
    assert not np.array_equal(first, verify.chosen(8, 0, 4000, 0.05))
    assert len(verify.chosen(7, 5, 10, 1.0)) == 10 and len(verify.chosen(7, 5, 10, 0.0)) == 0
    default = Report()
    host.tok.encode_arrow(pa.array(["a"] * 20_000), "host", report=default)
    assert 120 < default.verified_rows < 290


def test_stages_of_a_row_with_added_tokens() -> None:
    engine = Tokenizer.from_spec(gpt2_spec())._engine
    row = Batch.from_text("don't<|endoftext|> stop")
    found = verify.expected_stages(engine, row, "parse", None)
    assert found.segments.tolist() == [1 | 1 << 5 | 1 << 18 | 1 << 23]
    assert found.pieces.tolist() == [0, 3, 5, 18, 23]
    ids, counts = found.values
    assert ids.tolist() == engine.encode(row, "parse", 1).ids.tolist()  # type: ignore[union-attr]
    assert counts.tolist() == [0, 1, 2, 3, 4]


# ---- which device ----


def test_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large columns go to a GPU that is there; small ones, and those it can't take, to the CPU."""
    lab = Lab(monkeypatch, "none")
    monkeypatch.setattr(detect, "for_auto", lambda: True)
    small, large = pa.array(["a b"]), pa.array(["a b c d "] * (1 << 17))
    lab.tok.encode_arrow(small)
    assert not lab.made
    assert lab.tok.encode_arrow(large).equals(lab.tok.encode_arrow(large, "cpu"))
    assert sum(n for n, _ in lab.made[0].batches) == 8 << 17
    one = pa.array(["a b c d " * (1 << 17)])
    assert lab.tok.encode_arrow(one, device_memory=TIGHT).equals(lab.tok.encode_arrow(one, "cpu"))
    monkeypatch.setattr(detect, "for_auto", lambda: False)
    before = len(lab.made[0].batches)
    lab.tok.encode_arrow(large)
    assert len(lab.made[0].batches) == before
    with pytest.raises(DeviceError, match="output='device' needs a GPU"):
        lab.tok.encode_arrow(large, output="device")


def test_no_gpu_is_seen_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    detect.for_auto.cache_clear()
    monkeypatch.setattr(detect, "_NODES", ("/no/such/node",))
    monkeypatch.setattr(detect, "cuda_state", lambda: pytest.fail("CuPy would be imported"))
    assert detect.for_auto() is False
    detect.for_auto.cache_clear()


def test_cuda_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    tok = Tokenizer.from_spec(gpt2_spec())
    for method in (tok.encode_arrow, tok.count_arrow):
        with pytest.raises(DeviceError, match=r"device='cuda': no CuPy .*pip install"):
            method(pa.array(["a"]), device="cuda")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device='gpu' is none of auto, cpu, cuda, host"),
        ({"output": "numpy"}, "output='numpy' is none of arrow, device"),
        ({"verify": 1.5}, "verify=1.5 is not a share"),
        ({"verify": True}, "verify=True is not a share"),
        ({"verify": "all"}, "verify='all' is not a share"),
        ({"device_memory": 0}, "device_memory=0 is not a number of bytes"),
        ({"device_memory": 1.5}, "device_memory=1.5"),
        ({"device": "cpu", "output": "device"}, "output='device' is for device='cuda' or 'host'"),
    ],
)
def test_unknown_options(host: Lab, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        host.tok.encode_arrow(pa.array(["a"]), **options)


def test_a_device_of_the_caller(host: Lab) -> None:
    device = HostDevice(check=True)
    column = pa.array(["a b"])
    assert host.tok.encode_arrow(column, device).equals(host.tok.encode_arrow(column, "cpu"))
    assert host.made[0].device is device


def test_programs_of_stages_stay_on_the_cpu(host: Lab) -> None:
    pretok = dataclasses.replace(
        gpt2_spec().pretok, scheme="", stages=(Scheme("gpt2"), Scheme("gpt2"))
    )
    tok = Tokenizer.from_spec(dataclasses.replace(gpt2_spec(), pretok=pretok))
    column = pa.array(["a b c d "] * (1 << 17))
    with pytest.raises(UnsupportedError, match=r"device='host': .*program of stages"):
        tok.encode_arrow(column, "host")
    assert not host.made
    assert len(tok.encode_arrow(column)) == len(column)  # auto


def test_pickled_and_forked(host: Lab) -> None:
    want = host.encode(text())
    again = pickle.loads(pickle.dumps(host.tok))
    assert again.encode_arrow(text(), "host").equals(want)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        good = host.encode(text()).equals(want)
        os.write(write, b"1" if good else b"0")
        os._exit(0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert len(host.made) == 2


def test_a_forked_child_has_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch, "none")
    lab.encode(text())
    engine = lab.tok._rows.engines.get("cuda", 0)
    assert engine is not None
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(DeviceError, match="a forked child can't use the GPU of its parent"):
        engine.encode(Batch.from_text("a"), "plain", 1)
