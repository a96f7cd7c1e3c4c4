"""Tokenizer: encode, decode, options, pickling and fork, and what it shows of its stages."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from oracles import gpt2_spec, small_spec
from test_loaders import rank_file, small_json

import saphira_gpu
from saphira_gpu import InputError, Report, Tokenizer, TokenizerFileError, reference
from saphira_gpu._lazy import cached_property
from saphira_gpu.engines import cpu
from saphira_gpu.rows import Rows
from saphira_gpu.spec import AddedToken

TEXTS = ["", " ", "Hello world", "don't  stop\n\n 12é", "日本語 ☃ 🙂", "\u00a0x\u2003", "a" * 1000]


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.load("gpt2")


# ---- what it is ----


def test_facts(tok: Tokenizer) -> None:
    assert tok.vocab_size == 50257 and tok.name == "gpt2"
    assert tok.eos == "<|endoftext|>" and tok.eos_id == 50256
    assert tok.token_id(" world") == 995
    with pytest.raises(TokenizerFileError, match="'nonesuch token' is no token"):
        tok.token_id("nonesuch token")
    assert len(tok.fingerprint) == 64 and tok.fingerprint == tok.spec.fingerprint
    assert Tokenizer.from_spec(small_spec()).eos_id is None
    assert repr(tok) == "Tokenizer('gpt2', vocab_size=50257)"
    assert saphira_gpu.__version__ == "0.1.0"


# ---- encode ----


@pytest.mark.parametrize("text", TEXTS)
def test_encode(tok: Tokenizer, text: str) -> None:
    ids = tok.encode(text)
    assert ids.dtype == np.uint32 and ids.ndim == 1
    assert ids.tolist() == oracles.tiktoken_gpt2().encode_ordinary(text)
    for same in (text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        assert tok.encode(same).tolist() == ids.tolist()
    assert tok.count(text) == len(ids)
    assert tok.encode(text, threads=4).tolist() == ids.tolist()


def test_encode_batch(tok: Tokenizer) -> None:
    tokens = tok.encode_batch([*TEXTS, None, b"caf\xc3\xa9"])
    want = [*(tok.encode(text).tolist() for text in TEXTS), None, tok.encode("café").tolist()]
    assert tokens.to_list() == want
    assert len(tokens) == len(want) and tokens[-1].tolist() == want[-1]  # type: ignore[union-attr]
    assert [None if row is None else row.tolist() for row in tokens] == want
    assert tokens[-2] is None
    assert tokens[2:5].to_list() == want[2:5]
    assert tokens[2:5].to_arrow().to_pylist() == want[2:5]
    assert tokens[5:2].to_list() == [] and tokens[7:].to_arrow().to_pylist() == want[7:]
    assert tokens.counts.tolist() == [0 if ids is None else len(ids) for ids in want]
    assert tokens.ids.dtype == np.uint32 and tokens.offsets.dtype == np.int64
    assert tokens.to_arrow().to_pylist() == want
    assert tokens.to_arrow().type == pa.list_(pa.uint32())
    assert tokens.to_arrow(large=True).type == pa.large_list(pa.uint32())
    assert repr(tokens) == f"Tokens(9 rows, {tokens.n_ids} ids)"
    with pytest.raises(IndexError):
        tokens[9]
    with pytest.raises(ValueError, match="step 1"):
        tokens[::2]
    assert tok.encode_batch([]).to_list() == []
    mixed = ["a", b"b\xff", bytearray(b"c"), memoryview(b"d"), None, np.str_("e"), "\0"]
    one_by_one = [None if text is None else tok.encode(text).tolist() for text in mixed]
    assert tok.encode_batch(mixed).to_list() == one_by_one
    assert tok.encode_batch(text for text in TEXTS).to_list() == want[:-2]


@pytest.mark.parametrize("text", [None, 5, ["a"], 1.5])
def test_not_text(tok: Tokenizer, text: Any) -> None:
    with pytest.raises(InputError, match=f"text is str or bytes, not {type(text).__name__}"):
        tok.encode(text)
    if text is not None:
        with pytest.raises(InputError, match="row 1: text is str or bytes") as caught:
            tok.encode_batch(["a", text])
        assert caught.value.row == 1
    for wrong in ("text", b"bytes"):
        with pytest.raises(InputError, match="encode_batch takes a list of texts"):
            tok.encode_batch(wrong)


def test_lone_surrogates_of_a_str(tok: Tokenizer) -> None:
    text = "a\ud800b"
    assert tok.encode(text).tolist() == tok.encode(b"a\xed\xa0\x80b").tolist()
    assert tok.decode_bytes(tok.encode(text)) == b"a\xed\xa0\x80b"
    replaced = b"a\xed\xa0\x80b".decode("utf-8", "replace")
    assert tok.encode(text, invalid="replace").tolist() == tok.encode(replaced).tolist()
    with pytest.raises(InputError, match="row 0: not UTF-8 at byte 1"):
        tok.encode(text, invalid="error")
    assert tok.encode_batch(["x", text, None], invalid="null").to_list() == [[87], None, None]
    report = Report()
    tok.encode_batch(["x", text, None], report=report)
    assert (report.rows, report.nulls, report.invalid_rows) == (3, 1, 1)


def test_special(tok: Tokenizer) -> None:
    text = "a<|endoftext|>b"
    plain = oracles.tiktoken_gpt2().encode_ordinary(text)
    assert tok.encode(text).tolist() == plain
    assert tok.encode(text, special="hf_plain").tolist() == plain
    assert tok.encode(text, special="parse").tolist() == [64, 50256, 65]
    with pytest.raises(InputError, match=r"row 0: .*'<\|endoftext\|>' at byte 1"):
        tok.encode(text, special="error")
    with pytest.raises(InputError, match="row 2: the text holds") as caught:
        tok.encode_batch(["a", None, text], special="error")
    assert caught.value.row == 2
    assert (
        tok.encode("a<|endoftext", special="error").tolist() == tok.encode("a<|endoftext").tolist()
    )


def test_hits_are_counted(tok: Tokenizer) -> None:
    report = Report()
    for special in ("plain", "parse", "hf_plain"):
        tok.encode_batch(
            ["<|endoftext|>", None, "a<|endoftext|><|endoftext|>"], special=special, report=report
        )
    assert report.added == {"<|endoftext|>": 9}
    assert report.rows == 9 and report.nulls == 3


def test_added_tokens_of_white_space_go_on_matching() -> None:
    spec = small_spec(added=[("  ", ""), ("<s>", "s")])
    ours = Tokenizer.from_spec(spec)
    numbers = {token.content: token.id for token in spec.added}
    for special, want in (
        ("plain", [*b"a", numbers["  "], *b"<s>"]),
        ("parse", [*b"a", numbers["  "], numbers["<s>"]]),
        ("hf_plain", [*b"a", numbers["  "], *b"<s>"]),
    ):
        assert ours.encode("a  <s>", special=special).tolist() == want
    assert ours.encode("a  b", special="error").tolist() == [*b"a", numbers["  "], *b"b"]


@oracles.fuzz(st.text(alphabet=st.sampled_from("ab <>s☃"), max_size=24))
def test_flags_of_added_tokens(text: str) -> None:
    spec, ours = _flagged()
    for special in ("plain", "parse", "hf_plain"):
        want = reference.encode(spec, text, special)
        assert ours.encode(text, special=special).tolist() == want, special
        shown = ours.stages(text, special=special)
        assert list(shown.ids) == want
        spans = [(s.start, s.end, s.added) for s in reference.stages(spec, text, special)]
        assert [(s.start, s.end, s.added) for s in shown.segments] == spans


_made: list[Any] = []


def _flagged() -> tuple[Any, Tokenizer]:
    if not _made:
        added = [("<s>", "sl"), ("<>", "r"), ("ab", "w"), ("☃", "snr"), ("  ", "")]
        spec = small_spec([(b"a", b"b"), (b" ", b"<")], added)
        _made.extend((spec, Tokenizer.from_spec(spec)))
    return _made[0], _made[1]


# ---- options ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"special": "all"}, "special='all' is none of plain, parse, hf_plain, error"),
        ({"invalid": "ignore"}, "invalid='ignore' is none of contract, replace, error, null"),
        ({"threads": 0}, "threads=0 is not a positive integer"),
        ({"threads": -1}, "threads=-1"),
        ({"threads": 1.5}, "threads=1.5"),
        ({"threads": True}, "threads=True"),
        ({"threads": "2"}, "threads='2'"),
        ({"device": "tpu"}, "device='tpu' is none of auto, cpu, cuda, host"),
        ({"dtype": "int64"}, "dtype='int64' is none of auto, uint16, uint32, int32"),
        ({"dtype": np.uint32}, "dtype=.* is none of auto, uint16"),
        ({"offsets": "utf16"}, "offsets='utf16' is none of byte, char, True, False"),
        ({"report": {}}, r"report=\{\} is not a saphira_gpu\.Report"),
        ({"special": None}, "special=None is none of"),
    ],
)
def test_unknown_options(tok: Tokenizer, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tok.encode_arrow(pa.array(["a"]), **options)


def test_null_policy_needs_a_batch(tok: Tokenizer) -> None:
    with pytest.raises(ValueError, match="invalid='null' is none of contract, replace, error"):
        tok.encode("a", invalid="null")


@pytest.mark.parametrize("size", [-1, 1.5, True, "1", 1 << 63])
def test_cache_bytes(size: Any) -> None:
    with pytest.raises(ValueError, match="cache_bytes="):
        Tokenizer.from_spec(gpt2_spec(), cache_bytes=size)


@pytest.mark.parametrize("size", [0, 1, 1 << 12, 1 << 17, 1 << 26])
def test_ids_do_not_depend_on_the_cache(tok: Tokenizer, size: int) -> None:
    small = Tokenizer.from_spec(gpt2_spec(), cache_bytes=size)
    texts = [*TEXTS, " ".join(f"{i * 7919:x}word{i}" for i in range(3000))]
    want = tok.encode_batch(texts).to_list()
    for _ in range(2):
        assert small.encode_batch(texts).to_list() == want


def test_threads_from_the_environment(monkeypatch: pytest.MonkeyPatch, tok: Tokenizer) -> None:
    monkeypatch.delenv("SAPHIRA_THREADS", raising=False)
    assert cpu.thread_count(None) == len(os.sched_getaffinity(0))
    monkeypatch.setenv("SAPHIRA_THREADS", "3")
    assert cpu.thread_count(None) == 3 and cpu.thread_count(7) == 7
    for bad in ("0", "-2", "many", "1.5", "٣"):
        monkeypatch.setenv("SAPHIRA_THREADS", bad)
        with pytest.raises(ValueError, match="SAPHIRA_THREADS="):
            tok.encode_batch(["a"])


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_isa_from_the_environment() -> None:
    code = "from saphira_gpu.engines import cpu; print(cpu.isa())"
    for name in cpu.isas():
        assert run(code, SAPHIRA_ISA=name).stdout.strip() == name
    code = "import saphira_gpu; saphira_gpu.Tokenizer.load('gpt2')"
    absent = next(name for name in ("neon", "avx512") if name not in cpu.isas())
    for name in (absent, "mmx"):
        done = run(code, SAPHIRA_ISA=name)
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert f"DeviceError: SAPHIRA_ISA={name}: instruction set '{name}' is not available" in last
        assert "available: scalar" in last


def test_an_unbuilt_tree_names_the_missing_step() -> None:
    code = "import sys; sys.modules['saphira_gpu._core'] = None; import saphira_gpu"
    done = run(code)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("saphira_gpu.errors.BuildError:") and "`pip install -e .`" in last


# ---- decode ----


@oracles.fuzz(st.binary(max_size=200))
def test_decode_gives_the_bytes_back(data: bytes) -> None:
    tok = _gpt2()
    assert tok.decode_bytes(tok.encode(data)) == data
    assert tok.decode_bytes(tok.encode(data, special="parse")) == data
    assert tok.decode(tok.encode(data)) == data.decode("utf-8", "replace")


def _gpt2() -> Tokenizer:
    if "gpt2" not in _kept:
        _kept["gpt2"] = Tokenizer.load("gpt2")
    return _kept["gpt2"]


_kept: dict[str, Tokenizer] = {}


def test_decode(tok: Tokenizer) -> None:
    ids = tok.encode("naïve ☃")
    assert tok.decode(ids) == "naïve ☃"
    for form in (ids.tolist(), tuple(ids), iter(ids.tolist()), pa.array(ids), ids.astype(np.int64)):
        assert tok.decode(form) == "naïve ☃"
    rows = tok.encode_arrow(pa.array(["naïve ☃"]))
    assert tok.decode(rows[0]) == "naïve ☃"
    assert tok.decode([]) == "" and tok.decode(np.array([])) == ""
    snow = tok.encode("☃")
    assert len(snow) > 1
    assert tok.decode(snow[:1]) == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        tok.decode(snow[:1], errors="strict")
    assert tok.decode(snow[:1], errors="ignore") == ""
    assert tok.decode([64, 50256, 65]) == "a<|endoftext|>b"
    assert tok.decode([64, 50256, 65], skip_special=True) == "ab"
    assert tok.decode_bytes([64, 50256, 65], skip_special=True) == b"ab"


def test_every_id_decodes_as_the_reference(tok: Tokenizer) -> None:
    encoding = oracles.tiktoken_gpt2()
    for i in range(50257):
        assert tok.decode_bytes([i]) == encoding.decode_single_token_bytes(i)


def test_skip_special_is_for_special_tokens_only() -> None:
    ours = Tokenizer.from_spec(small_spec(added=[("<s>", "s"), ("<n>", "")]))
    ids = ours.encode("a<s><n>", special="parse")
    assert len(ids) == 3 and ours.decode(ids, skip_special=True) == "a<n>"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 50257], "position 1: 50257 is not an id"),
        ([-1], "position 0: -1 is not an id"),
        ([1, 2**63], "position 1: 9223372036854775808 is not an id"),
        (np.array([3, 2**64 - 1], np.uint64), "position 1: 18446744073709551615 is not an id"),
        (np.array([5, -7]), "position 1: -7 is not an id"),
        ([1, None], "position 1: None is not an integer"),
        (pa.array([1, None]), "position 1: None is not an integer"),
        ([1.0], "position 0: 1.0 is not an integer"),
        ([True], "position 0: True is not an integer"),
        (np.array([1.5]), "not 1-d float64"),
        (np.zeros((2, 2), np.int64), "not 2-d int64"),
        (None, "ids are integers, not None"),
        ("12", "ids are integers, not str"),
        (pa.scalar(None, pa.list_(pa.uint32())), "ids are integers, not None"),
    ],
)
def test_decode_refuses(tok: Tokenizer, ids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tok.decode(ids)


def test_ids_without_a_token_do_not_decode() -> None:
    ours = Tokenizer.from_spec(dataclasses.replace(small_spec(), added=(AddedToken("<x>", 260),)))
    assert ours.vocab_size == 261 and ours.decode([260]) == "<x>"
    with pytest.raises(InputError, match="position 1: 258 is not an id"):
        ours.decode([97, 258])


# ---- processes ----


def _worker(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(number) for number in tokenizer.encode(text, special="parse")]


def _files(folder: Path) -> list[Path]:
    (folder / "tokenizer.json").write_text(json.dumps(small_json()))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    (folder / "mine.tiktoken").write_bytes(rank_file())
    return [folder / "tokenizer.json", folder / "mine.tiktoken"]


def test_pickle(tok: Tokenizer, tmp_path: Path) -> None:
    assert len(pickle.dumps(tok)) < 400
    json_path, ranks_path = _files(tmp_path)
    loaded = [
        tok,
        Tokenizer.load(json_path, cache_bytes=0),
        Tokenizer.load(ranks_path, scheme="gpt2"),
        Tokenizer.from_spec(small_spec([(b"a", b"b")], [("<x>", "s")])),
    ]
    data = [pickle.dumps(one) for one in loaded]
    for path in (json_path, ranks_path):
        path.unlink()  # the pickle holds the file's bytes
    for one, dump in zip(loaded, data, strict=True):
        again = pickle.loads(dump)
        assert again.fingerprint == one.fingerprint and again.eos == one.eos
        assert again._cache_bytes == one._cache_bytes
        assert again.encode("abc def", special="parse").tolist() == _worker(one, "abc def")


def test_report_and_errors_pickle() -> None:
    report = Report(rows=1, added={"a": 2})
    assert pickle.loads(pickle.dumps(report)) == report
    for row in (None, 7):
        error = pickle.loads(pickle.dumps(InputError("why", row)))
        assert str(error) == "why" and error.row == row


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_worker_processes(tok: Tokenizer, method: str) -> None:
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        done = list(pool.map(_worker, [tok] * 4, ["a<|endoftext|>b"] * 4))
    assert done == [[64, 50256, 65]] * 4


def test_a_forked_child_leaves_the_inherited_handles_alone(tok: Tokenizer) -> None:
    tok.encode("warm")
    engine = tok._engine
    with engine._lock:  # as if another thread had it
        child = os.fork()
        if child == 0:
            dropped = engine._encoder is None
            good = dropped and tok.encode("Hello world").tolist() == [15496, 995]
            os._exit(0 if good else 1)
        assert wait(child) == 0
    assert engine._encoder is not None


def test_fork_while_other_threads_encode(tok: Tokenizer) -> None:
    """The child must not wait for a lock that a thread of its parent held."""
    stop = threading.Event()
    column = pa.array(["some text to encode "] * 2000)

    def busy() -> None:
        while not stop.is_set():
            tok.encode_arrow(column, threads=2)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                good = tok.encode("Hello world").tolist() == [15496, 995]
                good = good and len(tok.encode_arrow(column, threads=2)) == 2000
                os._exit(0 if good else 1)
            assert wait(child) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_fork_while_another_thread_computes_a_property() -> None:
    """The child must not wait for that thread, which it does not have."""
    tok = Tokenizer.from_spec(small_spec())
    forked, inside = threading.Event(), threading.Event()

    class Slow(Rows):
        @cached_property
        def offsets(self) -> Any:
            inside.set()
            forked.wait(20)
            return None

    rows = Slow(tok._engine, tok.spec, tok._vocabulary)
    thread = threading.Thread(target=lambda: rows.offsets)
    thread.start()
    inside.wait(20)
    child = os.fork()
    if child == 0:
        forked.set()
        os._exit(rows.offsets is not None)
    try:
        assert wait(child) == 0
    finally:
        forked.set()
        thread.join()


def wait(child: int, seconds: float = 20) -> int:
    """The exit code of a child; one that hangs is ended and has none."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -999


def test_many_tokenizers_come_and_go() -> None:
    spec = small_spec([(b"a", b"b")])
    for _ in range(50):
        one = Tokenizer.from_spec(spec)
        assert one.encode("ab").tolist() == [256]
        child = os.fork()
        if child == 0:
            del one
            os._exit(0)
        assert wait(child) == 0


# ---- stages ----


@oracles.fuzz(st.text(max_size=40) | st.binary(max_size=40))
def test_stages_equal_the_reference(text: str | bytes) -> None:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    tok, spec = _gpt2(), gpt2_spec()
    ours, theirs = tok.stages(text), reference.stages(spec, data)
    assert ours.input == data and len(ours.segments) == len(theirs)
    assert list(ours.ids) == tok.encode(text).tolist()
    for mine, other in zip(ours.segments, theirs, strict=True):
        for name in ("start", "end", "added", "normalized"):
            assert getattr(mine, name) == getattr(other, name), name
        assert [tuple(char) for char in mine.chars] == [tuple(char) for char in other.chars]
        for name in ("pieces", "symbols", "tokens", "ids"):
            assert list(getattr(mine, name)) == list(getattr(other, name)), name
        assert len(mine.classes) == len(mine.chars)


@pytest.mark.parametrize("name", ["qwen3", "clip", "falcon", "deepseek_v3", "starcoder"])
def test_stages_of_published_tokenizers(test_data: Path, name: str) -> None:
    """Through normalizers, and splits of several steps."""
    ours = Tokenizer.load(test_data / "vocabs" / name / "tokenizer.json")
    parts = [*oracles.RULES, "e\u0301", "Hello", " a", "12", "<|endoftext|>", ">>TITLE<<"]
    for text in oracles.random_texts(f"stages {name}", parts, oracles.FUZZ_SIZE // 3, 20):
        shown = ours.stages(text, special="parse")
        assert list(shown.ids) == ours.encode(text, special="parse").tolist()
        expected = reference.stages(ours.spec, text, "parse")
        for segment, want in zip(shown.segments, expected, strict=True):
            assert (segment.start, segment.end, segment.added) == (want.start, want.end, want.added)
            assert segment.normalized == want.normalized
            for field in ("pieces", "symbols", "tokens", "ids"):
                assert list(getattr(segment, field)) == list(getattr(want, field)), field
        spans = [piece.byte_span for piece in ours.pre_tokenize(text)]
        assert all(0 <= start <= end <= len(text.encode()) for start, end in spans)


def test_stages_print(tok: Tokenizer) -> None:
    text = str(tok.stages("don't<|endoftext|> 12", special="parse"))
    for part in (
        'input    b"don\'t<|endoftext|> 12"',
        "special  [0, 5) text",
        "classify   Lower Lower Lower Apostrophe Lower",
        "remap      L L L AP L",
        "boundaries [0, 3) [3, 5)",
        "bytemap    don | 't",
        "special  [5, 18) added token '<|endoftext|>' → [50256]",
        "bpe        Ġ12",
        "ids      [9099, 470, 50256, 1105]",
    ):
        assert part in text
    with pytest.raises(InputError, match="holds the added token"):
        tok.stages("<|endoftext|>", special="error")
    assert tok.stages("").segments == []


@oracles.fuzz(st.text(max_size=60))
def test_pre_tokenize_equals_hf(text: str) -> None:
    from tokenizers import pre_tokenizers

    pieces = _gpt2().pre_tokenize(text)
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert [piece.char_span for piece in pieces] == [span for _, span in theirs]
    assert [piece.byte_span for piece in pieces] == oracles.hf_spans(text)
    assert [piece.text for piece in pieces] == [text[a:b] for a, b in (p.char_span for p in pieces)]


def test_pre_tokenize(tok: Tokenizer) -> None:
    assert tok.pre_tokenize("é 1") == [("é", (0, 2), (0, 1)), (" 1", (2, 4), (1, 3))]
    assert tok.pre_tokenize("") == []
    # 0xFF leads no character: it is one of its own, a letter as its symbol ÿ is.
    assert tok.pre_tokenize(b"a\xff!") == [("a\ufffd", (0, 2), (0, 2)), ("!", (2, 3), (2, 3))]
    pieces = tok.pre_tokenize("é<|endoftext|> b", special="parse")
    assert [(piece.text, piece.byte_span, piece.char_span) for piece in pieces] == [
        ("é", (0, 2), (0, 1)),
        ("<|endoftext|>", (2, 15), (1, 14)),
        (" b", (15, 17), (14, 16)),
    ]
