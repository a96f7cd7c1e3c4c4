"""Devices: what is detected, how kernel files become one text, what a launch refuses, CuPy."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from saphira_gpu.devices import LaunchError, _build, compile_gate, detect, source
from saphira_gpu.devices import _host_abi as abi
from saphira_gpu.devices._rewrite import rewrite
from saphira_gpu.devices.cupy import CupyDevice
from saphira_gpu.devices.host import HostDevice, KernelFault, Schedule
from saphira_gpu.errors import DeviceError
from tests import fake_cupy
from tests.kernel_cases import CASES, KERNELS

try:
    _build.compiler()
    NO_COMPILER = ""
except DeviceError as error:
    NO_COMPILER = str(error)
needs_compiler = pytest.mark.skipif(bool(NO_COMPILER), reason=NO_COMPILER)


# ---- is there a GPU ----


class RuntimeFailure(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


def cupy_with(count: int | Exception, nvrtc: bool = True) -> Any:
    def device_count() -> int:
        if isinstance(count, Exception):
            raise count
        return count

    def version() -> tuple[int, int]:
        if not nvrtc:
            raise OSError("libnvrtc.so.13: cannot open\n shared object file")
        return 13, 1

    runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeFailure,
        getDeviceCount=device_count,
        getDeviceProperties=lambda _: {"name": b"Test device"},
    )
    cuda = SimpleNamespace(runtime=runtime, nvrtc=SimpleNamespace(getVersion=version))
    return SimpleNamespace(__version__="14.0", cuda=cuda)


@pytest.mark.parametrize(
    ("module", "missing", "words", "advice"),
    [
        (None, "cupy", "no CuPy", "pip install 'saphira_gpu[cuda13]'"),
        (cupy_with(RuntimeFailure(35)), "driver", "no driver, or one too old", "NVIDIA driver"),
        (cupy_with(OSError("libcudart")), "driver", "no CUDA runtime (libcudart)", "driver"),
        (cupy_with(RuntimeFailure(100)), "device", "no device", "CUDA_VISIBLE_DEVICES"),
        (cupy_with(0), "device", "no device", "nvidia-smi"),
        (
            cupy_with(2, nvrtc=False),
            "nvrtc",
            "2 device(s), no NVRTC (libnvrtc.so.13: cannot open shared object file)",
            "pip install nvidia-cuda-nvrtc",
        ),
    ],
)
def test_no_gpu(
    monkeypatch: pytest.MonkeyPatch, module: Any, missing: str, words: str, advice: str
) -> None:
    # None in sys.modules: importing it raises ModuleNotFoundError.
    monkeypatch.setitem(sys.modules, "cupy", module)
    state = detect.cuda_state()
    assert state.missing == missing
    assert words in state.words
    with pytest.raises(DeviceError, match="device='cuda': ") as caught:
        CupyDevice()
    assert words in str(caught.value) and advice in str(caught.value)


@pytest.mark.parametrize(
    "content", ["raise RuntimeError('built for\\nnumpy 1')", "import a_module_nobody_has"]
)
def test_broken_cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    (tmp_path / "cupy.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    state = detect.cuda_state()
    assert state.missing == "broken cupy"
    assert state.words.startswith("CuPy is broken (") and "\n" not in state.words
    with pytest.raises(DeviceError, match="reinstall"):
        detect.require_cuda()


def test_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_with(1))
    assert detect.cuda_state() == detect.CudaState(
        None, "CuPy 14.0, NVRTC 13.1, 1 device(s): Test device"
    )
    detect.require_cuda()


# ---- one text ----


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "kernels"
    (root / "shared").mkdir(parents=True)
    monkeypatch.setattr(source, "kernels_folder", lambda: root.resolve())
    return root


def test_flatten(folder: Path) -> None:
    (folder / "shared/a.h").write_text("#ifndef A\n#define A\nint a;\n#endif\n")
    (folder / "shared/b.h").write_text('#pragma once\n#include "a.h"\nint b;\n')
    (folder / "k.cu").write_text('#include "shared/b.h"  // bytes\n#include "shared/a.h"\nint k;\n')
    flat = source.flatten("k.cu")
    assert flat.files == ("k.cu", "shared/b.h", "shared/a.h")
    assert flat.text.splitlines() == [
        '#line 1 "k.cu"',
        '#line 1 "shared/b.h"',
        "",
        '#line 1 "shared/a.h"',
        "#ifndef A",
        "#define A",
        "int a;",
        "#endif",
        '#line 3 "shared/b.h"',
        "int b;",
        '#line 2 "k.cu"',
        "",
        "int k;",
    ]


def test_a_changed_header_changes_the_text(folder: Path) -> None:
    (folder / "k.cu").write_text('#include "shared/a.h"\n')
    (folder / "shared/a.h").write_text("int a;\n")
    before = source.flatten("k.cu").text
    (folder / "shared/a.h").write_text("int b;\n")
    assert source.flatten("k.cu").text != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#include <stdint.h>\n", "k.cu:1: #include <stdint.h>: kernels include only"),
        ('\n#include "none.h"\n', 'k.cu:2: no "none.h" under'),
        ('#include "../outside.h"\n', 'k.cu:1: no "../outside.h" under'),
        ('#if 1\n#include "a.h"\n#endif\n', "k.cu:2: an include inside a condition"),
        ('#ifndef X\n#define Y\n#include "a.h"\n#endif\n', "k.cu:3: an include inside a condition"),
    ],
)
def test_refused_includes(folder: Path, text: str, words: str) -> None:
    (folder / "a.h").write_text("int a;\n")
    (folder.parent / "outside.h").write_text("int a;\n")
    (folder / "k.cu").write_text(text)
    with pytest.raises(DeviceError) as caught:
        source.flatten("k.cu")
    assert words in str(caught.value)


def test_no_such_file(folder: Path) -> None:
    with pytest.raises(DeviceError, match="no kernel file"):
        source.flatten("k.cu")


# ---- CUDA as C++ ----


def test_rewrite_keeps_lines() -> None:
    text = (
        '#line 1 "k.cu"\n'
        "// __shared__ int no;\n"
        "#define KERNEL __global__ void fake(\n"
        'extern "C" __global__ void __launch_bounds__(64, 2) one(int *p) {\n'
        "  __shared__ __align__(16) volatile unsigned s[2][3 + 1],\n"
        "      /* note */ t;\n"
        "}\n"
    ).replace("[3 + 1],\n      /* note */ t;", "\n    [3 + 1];")
    cpp, kernels = rewrite(text)
    assert kernels == ("one",)
    lines = cpp.splitlines()
    assert lines[1:4] == text.splitlines()[1:4]
    assert lines[4].strip().startswith("auto &s = hx_shared_variable<0, volatile unsigned [2]")
    assert lines[6] == "}"
    assert lines[-1] == "HX_EXPORT(one, 64)"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("__shared__ int a, b;", "k.cu:2: write __shared__ as one"),
        ("__shared__ int a = 3;", "k.cu:2: write __shared__ as one"),
        ("__shared__ struct { int a; } s;", "k.cu:2: write __shared__ as one"),
        ("extern __shared__ int a[4];", "k.cu:2: extern __shared__ is an array without a size"),
        ("__global__ void plain(int a) {}", 'k.cu:2: kernel plain lacks extern "C"'),
        ("template <int n> __global__ void t() {}", 'k.cu:2: kernel t lacks extern "C"'),
    ],
)
def test_refused_declarations(line: str, words: str) -> None:
    with pytest.raises(DeviceError) as caught:
        rewrite(f'#line 1 "k.cu"\n\n{line}\n')
    assert words in str(caught.value)


@needs_compiler
def test_compiler_messages_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.cu"
    file.write_text('#include "sync.cuh"\n\nextern "C" __global__ void k(u32 *p) { p = 7.5; }\n')
    with pytest.raises(DeviceError, match=r"wrong\.cu:3:"):
        HostDevice().kernel(file, "k")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAPHIRA_CXX", "a-compiler-nobody-has")
    with pytest.raises(DeviceError, match=r"needs g\+\+ .* 'a-compiler-nobody-has' isn't here"):
        HostDevice().kernel(KERNELS / "scan.cu", "grid_sum")


# ---- launches ----


@needs_compiler
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": (0,)}, "grid (0,) of kernel 'insert' is not one to three ints"),
        ({"grid": 4}, "grid 4 of kernel 'insert' is not"),
        ({"grid": (1, 70000)}, "is too large"),
        ({"block": (32, 2.0)}, "block (32, 2.0) of kernel 'insert' is not"),
        ({"block": (64, 32)}, "is over 1024 threads"),
        ({"shared_mem": 240_000}, "shared_mem=240000"),
        ({0: np.zeros(5, np.uint64)}, "argument 0 of kernel 'insert' is an array in host memory"),
        ({1: 5}, "argument 1 of kernel 'insert' is a Python int"),
        ({1: np.uint64(5)}, "argument 1 of kernel 'insert': takes uint32, not uint64"),
        ({1: np.float32(5)}, "argument 1 of kernel 'insert': takes uint32, not float32"),
        ({1: None}, "argument 1 of kernel 'insert': takes uint32, not NoneType"),
        ({0: np.uint64(5)}, "argument 0 of kernel 'insert': takes a device array, not uint64"),
        ({0: "u4"}, "argument 0 of kernel 'insert': points to uint64, not to uint32"),
        ({0: "f8"}, "argument 0 of kernel 'insert': points to uint64, not to float64"),
        ({"drop": 1}, "kernel 'insert' takes 5 arguments, not 4"),
    ],
    ids=str,
)
def test_refused_launches(change: dict[Any, Any], words: str) -> None:
    device = HostDevice()
    args: list[Any] = [
        device.zeros(5, np.uint64),
        np.uint32(5),
        device.zeros(8, np.uint64),
        device.zeros(8, np.uint32),
        np.int32(7),  # signed or not is all the same
    ]
    launch: dict[str, Any] = {"grid": (1,), "block": (32,), "shared_mem": 0}
    for key, value in change.items():
        if isinstance(key, int):
            args[key] = device.zeros(5, value) if isinstance(value, str) else value
        elif key == "drop":
            del args[-value]
        else:
            launch[key] = value
    kernel = device.kernel(KERNELS / "table.cu", "insert")
    with pytest.raises(LaunchError) as caught:
        kernel(launch["grid"], launch["block"], args, shared_mem=launch["shared_mem"])
    assert words in str(caught.value)


@needs_compiler
def test_structs_are_those_of_the_header() -> None:
    library = ctypes.CDLL(str(_build.runtime()))
    structs = (abi.Param, abi.Kernel, abi.Region, abi.Options, abi.Counters, abi.Fault)
    sizes = (ctypes.c_int * len(structs)).in_dll(library, "hx_struct_sizes")
    assert list(sizes) == [ctypes.sizeof(struct) for struct in structs]


@needs_compiler
def test_launch_bounds(tmp_path: Path) -> None:
    file = tmp_path / "bound.cu"
    file.write_text('extern "C" __global__ void __launch_bounds__(8 * 8) k() {}\n')
    kernel = HostDevice().kernel(file, "k")
    kernel((2,), (64,), ())
    with pytest.raises(LaunchError, match="over its __launch_bounds__, 64 threads"):
        kernel((2,), (65,), ())


@needs_compiler
def test_no_such_kernel() -> None:
    with pytest.raises(DeviceError, match=r"no kernel 'sum' in .*there are exclusive_sums, notes_"):
        HostDevice().kernel(KERNELS / "scan.cu", "sum")


def test_arrays() -> None:
    device = HostDevice(check=True)
    array = device.to_device(np.arange(12, dtype=np.uint16).reshape(6, 2))
    assert (len(array), array.size, array.nbytes) == (6, 12, 24)
    np.testing.assert_array_equal(device.to_host(array[2:4]), [[4, 5], [6, 7]])
    assert device.to_host(array.view(np.uint32)[1:2]).tolist() == [[(3 << 16) | 2]]
    assert array[4:].pointer == array.pointer + 16
    empty = device.empty((2, 3), np.float32)
    assert empty.pointer % 512 == 0
    with pytest.raises(KernelFault, match="element 0 was never written"):
        device.to_host(empty)
    empty[1:].fill(2.5)
    assert device.to_host(empty[1:]).tolist() == [[2.5] * 3]
    with pytest.raises(KernelFault, match="uninitialised"):
        device.to_host(empty)
    with pytest.raises(TypeError, match="to_host"):
        np.asarray(array)
    with pytest.raises(IndexError, match="step 1"):
        array[::2]


# ---- CuPy's side, with kernels on the host executor ----


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_cupy_device(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    cupy: Any = fake_cupy.make(HostDevice(check=True, schedule=Schedule("random", resident=48)))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device = CupyDevice()
    CASES[case](device, 40, 64)
    device.kernel(str(KERNELS / "scan.cu"), "grid_sum")
    CASES["grid_sum"](device, 3000, 64)
    texts = {text.splitlines()[0] for text in cupy.compiled}
    assert len(texts) == len(cupy.compiled), "a file is compiled once"
    assert device.main.raw.depth == 0
    assert device.main.raw.waits >= 2  # a fetch waits
    before = device.main.raw.waits
    device.synchronize()
    assert device.main.raw.waits == before + 1


@needs_compiler
def test_cupy_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(HostDevice()))
    device = CupyDevice()
    kernel = device.kernel(str(KERNELS / "warps.cu"), "locked_count")
    args = device.zeros(1, np.uint32), device.zeros(1, np.uint32)
    kernel((1,), (32,), args, shared_mem=100_000)  # more than a kernel gets unasked
    assert device.to_host(args[1])[0] == 32
    with pytest.raises(LaunchError, match="Python int"):
        kernel((1,), (32,), (args[0], 5))
    with pytest.raises(LaunchError, match="over 1024 threads"):
        kernel((1,), (32, 33), args)
    with pytest.raises(LaunchError, match="grid"):
        kernel((), (32,), args)


# ---- the compile gate ----

LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 23 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    304 bytes stack frame, 584 bytes spill stores, 636 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 304 bytes cumulative stack size
"""


class FakeNvrtc:
    """Compiles nothing; gives the log, or an error for texts with `wrong`."""

    class NVRTCError(Exception):
        pass

    def __init__(self, log: str) -> None:
        self.log = log
        self.options: list[tuple[str, ...]] = []
        self.alive = 0

    def getVersion(self) -> tuple[int, int]:
        return 13, 0

    def createProgram(self, text: str, name: str, headers: tuple[()], names: tuple[()]) -> str:
        assert "#include" not in text and headers == names == ()
        self.alive += 1
        return text

    def compileProgram(self, program: str, options: tuple[str, ...]) -> None:
        self.options.append(options)
        if "wrong" in program:
            raise self.NVRTCError("NVRTC_ERROR_COMPILATION (6)")

    def getProgramLog(self, program: str) -> str:
        return "k.cu(1): error: wrong" if "wrong" in program else self.log

    def getCUBIN(self, program: str) -> bytes:
        return b"cubin"

    def destroyProgram(self, program: str) -> None:
        self.alive -= 1


def gate(monkeypatch: pytest.MonkeyPatch, nvrtc: FakeNvrtc, *arguments: str) -> int:
    cuda = SimpleNamespace(nvrtc=nvrtc)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    return compile_gate.main(arguments)


def test_gate_reads_the_log() -> None:
    one, two = compile_gate.parse("k.cu", LOG)
    assert one == compile_gate.KernelReport("k.cu", "one", 90, 23, 128, 0, 0, 0)
    assert two == compile_gate.KernelReport("k.cu", "two", 90, 255, 0, 304, 584, 636)
    assert two.spills and not one.spills


def test_gate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "k.cu"
    file.write_text("int a;\n")
    clean = FakeNvrtc(LOG[: LOG.index("ptxas info    : Compiling entry function 'two'")])
    table = tmp_path / "table.json"
    assert gate(monkeypatch, clean, str(file), "--json", str(table)) == 0
    architectures = {f"--gpu-architecture=sm_{arch}" for arch in (80, 90, 100, 120)}
    assert architectures == {word for options in clean.options for word in options[-2:-1]}
    assert clean.alive == 0
    assert '"registers": 23' in table.read_text()
    assert gate(monkeypatch, FakeNvrtc(LOG), str(file)) == 1
    assert "SPILLS 584/636" in capsys.readouterr().out
    file.write_text("wrong\n")
    broken = FakeNvrtc(LOG)
    assert gate(monkeypatch, broken, str(file)) == 1
    assert "k.cu(1): error: wrong" in capsys.readouterr().out
    assert broken.alive == 0


def test_gate_without_cupy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert compile_gate.main([]) == compile_gate.NOT_CHECKED
    assert "not checked, no CuPy with NVRTC" in capsys.readouterr().out


def test_gate_without_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compile_gate, "kernel_files", list)
    assert gate(monkeypatch, FakeNvrtc(LOG)) == compile_gate.NOT_CHECKED
    assert "not checked, no kernel files in" in capsys.readouterr().out


def test_real_gate() -> None:
    """The test kernels for all architectures, where CuPy and NVRTC are installed."""
    cupy = pytest.importorskip("cupy", reason="the compile gate needs CuPy (extra cuda13)")
    for name in ("scan.cu", "compact.cu", "table.cu", "warps.cu"):
        for arch in compile_gate.ARCHITECTURES:
            rows = compile_gate.compile_file(KERNELS / name, arch, cupy.cuda.nvrtc)
            assert rows and not any(row.spills for row in rows)
            assert {row.arch for row in rows} == {arch}
