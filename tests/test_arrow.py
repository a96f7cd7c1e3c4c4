"""Arrow in and out: every form of column gives what its rows give one by one."""

from __future__ import annotations

import dataclasses
import gc
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import saphira_gpu
from saphira_gpu import InputError, Report, Tokenizer
from saphira_gpu.batch import Batch, Tokens
from saphira_gpu.engines import cpu
from saphira_gpu.engines._memory import Pool
from saphira_gpu.spec import AddedToken, Normalizer

ROWS: list[str | None] = [
    "Hello world",
    None,
    "",
    "  the  theatre's\n\n",
    "日本語 ☃ naïve",
    "a<|endoftext|>b",
    "x" * 300,
    None,
    "Hello world",
    "12345 67",
    "",
    " ",
]
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
]


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.load("gpt2")


def expected(tok: Tokenizer, rows: list[str | None], **options: Any) -> list[list[int] | None]:
    return [None if row is None else tok.encode(row, **options).tolist() for row in rows]


def as_type(rows: list[str | None], kind: pa.DataType) -> pa.Array:
    raw = [None if row is None else row.encode() for row in rows]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.array(raw, kind)
    return pa.array(rows, kind)


# ---- forms of columns ----


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_types(tok: Tokenizer, kind: pa.DataType) -> None:
    out = tok.encode_arrow(as_type(ROWS, kind))
    out.validate(full=True)
    large = kind in (pa.large_string(), pa.large_binary())
    assert out.type == (pa.large_list(pa.uint32()) if large else pa.list_(pa.uint32()))
    assert type(out) is (pa.LargeListArray if large else pa.ListArray)
    assert out.to_pylist() == expected(tok, ROWS)
    assert out.null_count == 2
    counts = tok.count_arrow(as_type(ROWS, kind))
    assert type(counts) is pa.Int64Array
    assert counts.to_pylist() == [None if ids is None else len(ids) for ids in out.to_pylist()]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_slices_at_any_offset(tok: Tokenizer, kind: pa.DataType) -> None:
    rows = [*ROWS, *ROWS[::-1]]
    array = as_type(rows, kind)
    want = expected(tok, rows)
    for start in range(len(rows) + 1):
        for length in (0, 1, 3, 9, len(rows)):
            part = array.slice(start, length)
            out = tok.encode_arrow(part)
            out.validate(full=True)
            assert out.to_pylist() == want[start : start + length]
            assert len(tok.count_arrow(part)) == len(part)
    twice = array.slice(2).slice(3, 7)
    assert tok.encode_arrow(twice).to_pylist() == want[5:12]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_dictionary(tok: Tokenizer, kind: pa.DataType) -> None:
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        values = as_type(["Hello world", None, "", "日本 語", "unused"], kind)
        indices = pa.array([0, 2, None, 3, 1, 0], pa.int8())
        array = pa.DictionaryArray.from_arrays(indices, values)
        rows = ["Hello world", "", None, "日本 語", None, "Hello world"]
    else:
        array, rows = as_type(ROWS, kind).dictionary_encode(), ROWS
    assert pa.types.is_dictionary(array.type)
    want = expected(tok, rows)
    for part, part_want in ((array, want), (array.slice(1, 4), want[1:5]), (array[:0], [])):
        out = tok.encode_arrow(part)
        out.validate(full=True)
        assert out.to_pylist() == part_want
        assert tok.count_arrow(part).to_pylist() == [w if w is None else len(w) for w in part_want]
    large = kind in (pa.large_string(), pa.large_binary())
    assert out.type == (pa.large_list(pa.uint32()) if large else pa.list_(pa.uint32()))
    chunked = tok.encode_arrow(pa.chunked_array([array, array.slice(2), array[:0]]))
    assert chunked.to_pylist() == [*want, *want[2:]]
    assert [len(chunk) for chunk in chunked.chunks] == [len(rows), len(rows) - 2, 0]


@pytest.mark.parametrize(
    "index", [pa.int8(), pa.uint8(), pa.uint32(), pa.int64(), pa.uint64()], ids=str
)
def test_dictionary_index_types(tok: Tokenizer, index: pa.DataType) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2], index), ["a b", "unused", "c"])
    assert tok.encode_arrow(array).to_pylist() == expected(tok, ["c", None, "a b", "c"])


def test_dictionaries_that_differ_by_chunk(tok: Tokenizer) -> None:
    first = pa.DictionaryArray.from_arrays([0, 1], ["one", "two"])
    second = pa.DictionaryArray.from_arrays([1, 0, None], ["three", "four"])
    out = tok.encode_arrow(pa.chunked_array([first, second]))
    assert out.to_pylist() == expected(tok, ["one", "two", "four", "three", None])


def test_rows_in_messages_count_through_dictionaries(tok: Tokenizer) -> None:
    first = pa.DictionaryArray.from_arrays([0, 1, 0], [b"one", b"two"])
    second = pa.DictionaryArray.from_arrays([1, 1, 0, None], [b"x\xff", b"four"])
    with pytest.raises(InputError, match="row 5: not UTF-8 at byte 1") as caught:
        tok.encode_arrow(pa.chunked_array([first, second]), invalid="error")
    assert caught.value.row == 5


def test_each_distinct_value_is_encoded_once(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    encode = tok._engine.encode

    def watched(batch: Batch, *args: Any, **options: Any) -> cpu.Encoded:
        done = encode(batch, *args, **options)
        seen.append(np.diff(done.offsets).tolist())
        return done

    monkeypatch.setattr(tok._engine, "encode", watched)
    array = pa.array(["a", "b", "c"] * 1000 + ["d d"]).dictionary_encode()
    tok.encode_arrow(pa.chunked_array([array[:1500], array[1500:3000]]))
    assert seen == [[1, 1, 1, 0]]  # the chunks share a dictionary; no row has the value "d d"


def test_unused_dictionary_values_raise_nothing(tok: Tokenizer) -> None:
    values = pa.array([b"ok", b"\xff", b"<|endoftext|>"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0]), values)
    out = tok.encode_arrow(array, invalid="error", special="error")
    assert out.to_pylist() == expected(tok, ["ok", "ok"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, None, 0, 1, 2]), values)
    with pytest.raises(InputError, match="row 3: not UTF-8 at byte 0") as caught:
        tok.encode_arrow(pa.chunked_array([array]), invalid="error")
    assert caught.value.row == 3
    with pytest.raises(InputError, match="row 9: the text holds") as caught:
        tok.encode_arrow(pa.chunked_array([array[:4], array[:1], array]), special="error")
    assert caught.value.row == 9


def test_null_type(tok: Tokenizer) -> None:
    out = tok.encode_arrow(pa.nulls(5))
    assert out.to_pylist() == [None] * 5 and out.type == pa.list_(pa.uint32())
    assert tok.count_arrow(pa.nulls(11)[3:]).to_pylist() == [None] * 8
    assert tok.encode_arrow(pa.nulls(0)).to_pylist() == []
    array = pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.nulls(1))
    assert tok.encode_arrow(array).to_pylist() == [None, None]


def test_chunks_are_kept(tok: Tokenizer) -> None:
    column = pa.chunked_array(
        [as_type(ROWS[:5], pa.string()), as_type([], pa.string()), as_type(ROWS, pa.string())[5:]]
    )
    out = tok.encode_arrow(column)
    assert isinstance(out, pa.ChunkedArray) and out.type == pa.list_(pa.uint32())
    assert [len(chunk) for chunk in out.chunks] == [5, 0, len(ROWS) - 5]
    assert out.to_pylist() == expected(tok, ROWS)
    counts = tok.count_arrow(column)
    assert [len(chunk) for chunk in counts.chunks] == [5, 0, len(ROWS) - 5]
    assert counts.to_pylist() == [None if row is None else tok.count(row) for row in ROWS]
    none = tok.encode_arrow(pa.chunked_array([], pa.large_string()))
    assert none.type == pa.large_list(pa.uint32()) and len(none) == 0 and none.num_chunks == 0
    assert tok.count_arrow(pa.chunked_array([], pa.string())).type == pa.int64()


def test_null_slots_over_bytes(tok: Tokenizer) -> None:
    """A null slot may hold bytes: they are no text, and nothing in them counts."""
    text = b"hidden <|endoftext|>\xff visible"
    offsets = np.array([0, 21, 29, 29], np.int32)
    validity = pa.py_buffer(bytes([0b110]))
    for kind in (pa.binary(), pa.string()):
        array = pa.Array.from_buffers(
            kind, 3, [validity, pa.py_buffer(offsets), pa.py_buffer(text)]
        )
        report = Report()
        for invalid in ("contract", "replace", "error", "null"):
            out = tok.encode_arrow(array, invalid=invalid, special="error", report=report)
            assert out.to_pylist() == [None, tok.encode(" visible").tolist(), []]
        assert (report.nulls, report.invalid_rows, report.added) == (4, 0, {})
        assert report.bytes == 4 * 8


def test_validity_without_nulls_and_all_null(tok: Tokenizer) -> None:
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    full = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x03"), offsets, pa.py_buffer(b"ab")]
    )
    assert tok.encode_arrow(full).null_count == 0
    none = pa.array([None, None], pa.string())
    assert tok.encode_arrow(none).to_pylist() == [None, None]


def test_arrays_without_text(tok: Tokenizer) -> None:
    for kind in TEXT_TYPES:
        assert tok.encode_arrow(pa.array([], kind)).to_pylist() == []
        blank = as_type(["", "", None], kind)
        assert tok.encode_arrow(blank).to_pylist() == [[], [], None]


def test_offsets_that_lead_outside(tok: Tokenizer) -> None:
    for bad in ([0, 1, 9], [-1, 2, 3], [0, 2, 1], [3, 2, 1]):
        offsets = np.array([0, 1, 3], np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
        array = pa.Array.from_buffers(pa.binary(), 2, buffers)
        offsets[:] = bad
        with pytest.raises(InputError, match="outside its data"):
            tok.encode_arrow(array)
    indices = pa.array([0, 5])
    array = pa.DictionaryArray.from_arrays(indices, ["a"], safe=False)
    with pytest.raises(InputError, match="outside its dictionary"):
        tok.encode_arrow(array)


@pytest.mark.parametrize("view", [(100, 7, 0), (100, 0, 1 << 20), (-5, 0, 0), (100, -1, 0)])
def test_views_that_lead_outside(tok: Tokenizer, view: tuple[int, int, int]) -> None:
    length, buffer, offset = view
    views = np.array([1, ord("a"), 0, 0, length, 0x61616161, buffer, offset], np.int32)
    for kind in (pa.string_view(), pa.binary_view()):
        buffers = [None, pa.py_buffer(views), pa.py_buffer(b"a" * 200)]
        array = pa.Array.from_buffers(kind, 2, buffers)
        with pytest.raises(InputError, match="view array lead outside its data"):
            tok.encode_arrow(array)
        assert tok.encode_arrow(array[:1]).to_pylist() == expected(tok, ["a"])


# ---- other producers ----


def test_extension_types_are_their_storage(tok: Tokenizer) -> None:
    if not hasattr(pa, "bool8"):
        pytest.skip("this pyarrow has no canonical extension types")
    array = pa.array(['{"a": 1}', None], pa.string())
    column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), array)
    for form in (column, pa.chunked_array([column, column[1:]]), pa.table({"j": column})):
        assert tok.encode_arrow(form).to_pylist()[:2] == expected(tok, array.to_pylist())
    assert tok.encode_arrow(pa.chunked_array([], column.type)).to_pylist() == []
    number = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
    with pytest.raises(InputError, match="is not text"):
        tok.encode_arrow(number)


def test_tables_of_one_column(tok: Tokenizer) -> None:
    array = as_type(ROWS, pa.string())
    want = expected(tok, ROWS)
    batch = pa.record_batch({"text": array})
    assert tok.encode_arrow(batch).to_pylist() == want
    assert isinstance(tok.encode_arrow(batch), pa.ListArray)
    table = pa.table({"text": pa.chunked_array([array, array[3:]])})
    out = tok.encode_arrow(table)
    assert isinstance(out, pa.ChunkedArray) and out.to_pylist() == want + want[3:]
    assert [len(chunk) for chunk in out.chunks] == [len(ROWS), len(ROWS) - 3]
    assert tok.encode_arrow(table.to_reader()).to_pylist() == want + want[3:]
    struct = pa.StructArray.from_arrays(
        [array], ["t"], mask=pa.array([True] + [False] * (len(ROWS) - 1))
    )
    assert tok.encode_arrow(struct).to_pylist() == [None, *want[1:]]
    assert tok.encode_arrow(struct[2:5]).to_pylist() == want[2:5]


def test_capsules_alone_are_enough(tok: Tokenizer) -> None:
    class Exported:
        def __init__(self, array: pa.Array) -> None:
            self.array = array

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return self.array.__arrow_c_array__(requested_schema)

    class Streamed:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            column = pa.chunked_array([as_type(ROWS, pa.string())] * 2)
            return column.__arrow_c_stream__(requested_schema)

    want = expected(tok, ROWS)
    for kind in TEXT_TYPES:
        out = tok.encode_arrow(Exported(as_type(ROWS, kind)[1:]))
        assert out.to_pylist() == want[1:]
    out = tok.encode_arrow(Streamed())
    assert isinstance(out, pa.ChunkedArray) and out.to_pylist() == want * 2


def test_polars(tok: Tokenizer) -> None:
    pl = pytest.importorskip("polars")
    series = pl.Series("text", ROWS)
    out = tok.encode_arrow(series)
    assert isinstance(out, pa.ChunkedArray) and out.to_pylist() == expected(tok, ROWS)
    assert tok.encode_arrow(pl.DataFrame({"text": series})).to_pylist() == expected(tok, ROWS)
    assert tok.encode_arrow(series.cast(pl.Categorical)).to_pylist() == expected(tok, ROWS)
    assert pl.Series(out).to_list() == expected(tok, ROWS)
    binary = pl.Series([b"a\xff", None])
    assert tok.encode_arrow(binary).to_pylist() == [tok.encode(b"a\xff").tolist(), None]


def test_pandas(tok: Tokenizer) -> None:
    pd = pytest.importorskip("pandas")
    for series in (
        pd.Series(ROWS),
        pd.Series(ROWS, dtype=object),
        pd.Series(ROWS, dtype="string[pyarrow]"),
        pd.Series(ROWS, dtype="category"),
        pd.Series(ROWS, dtype=pd.ArrowDtype(pa.large_string())),
    ):
        assert tok.encode_arrow(series).to_pylist() == expected(tok, ROWS), series.dtype
    assert tok.encode_arrow(pd.DataFrame({"t": ROWS})).to_pylist() == expected(tok, ROWS)


def test_duckdb(tok: Tokenizer) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = pa.table({"text": as_type(ROWS, pa.string())})
    with duckdb.connect() as connection:
        relation = connection.from_arrow(table)
        assert tok.encode_arrow(relation).to_pylist() == expected(tok, ROWS)
        with pytest.raises(InputError, match=r"this one has: text, n"):
            tok.encode_arrow(connection.sql("select text, 1 as n from relation"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, 2]), "type int64 is not text"),
        (pa.array([["a"]]), r"list<item: string> is not text"),
        (pa.array([1, 1]).dictionary_encode(), "dictionary<values=int64.* is not text"),
        (pa.chunked_array([pa.array([1.0])]), "type double is not text"),
        (pa.table({"a": ["x"], "b": ["y"]}), "this one has: a, b"),
        (pa.table({}), "this one has: "),
        (pa.table({"a": [1]}), "type int64 is not text"),
        (["a", "b"], "builtins.list is no Arrow column"),
        ("text", "builtins.str is no Arrow column"),
        (None, "NoneType is no Arrow column"),
        (np.array(["a"]), "numpy.ndarray is no Arrow column"),
    ],
)
def test_other_columns_are_refused_by_type(tok: Tokenizer, column: Any, message: str) -> None:
    for method in (tok.encode_arrow, tok.count_arrow):
        with pytest.raises(InputError, match=message):
            method(column)


# ---- zero copies ----


def test_text_is_read_where_it_lies() -> None:
    for kind in (pa.string(), pa.large_binary()):
        array = as_type(ROWS, kind)[3:]
        batch = Batch.from_arrow(array)
        assert batch.data.ctypes.data == array.buffers()[2].address
        width = batch.offsets.itemsize
        assert batch.offsets.ctypes.data == array.buffers()[1].address + 3 * width
        assert batch.validity is not None and batch.validity_offset == 3
        assert batch.validity.ctypes.data == array.buffers()[0].address


def test_ids_leave_without_a_copy(tok: Tokenizer) -> None:
    tokens = tok.encode_batch(["word " * 50_000])
    array = tokens.to_arrow()
    assert array.values.buffers()[1].address == tokens.ids.ctypes.data
    assert tokens[0] is not None and np.shares_memory(tokens[0], tokens.ids)


def test_memory_of_ids_is_used_again_only_when_free(tok: Tokenizer) -> None:
    text = "some words " * 20_000
    first = tok.encode_arrow(pa.array([text]))
    kept = first.to_pylist()
    others = [tok.encode_arrow(pa.array([text.upper()])) for _ in range(4)]
    assert first.to_pylist() == kept
    addresses = {out.values.buffers()[1].address for out in [first, *others]}
    assert len(addresses) == 5
    view = first.values.to_numpy()
    del first, others
    gc.collect()
    for _ in range(8):
        tok.encode_arrow(pa.array([text.upper()]))
    assert view.tolist() == kept[0]  # a view alone keeps the memory
    again = tok.encode_arrow(pa.array([text]))
    assert again.values.buffers()[1].address in addresses


def resident() -> int:
    """Bytes of memory that this process really has."""
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("needs /proc")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_a_result_keeps_resident(tok: Tokenizer) -> None:
    """The bound of one id per byte costs address space, not memory."""
    column = pa.array([" international" * 400_000] * 8)  # 45 MB, 3.2 M ids
    tok.encode_arrow(column[:1])
    before = resident()
    out = tok.encode_arrow(column, threads=2)
    assert out.values.nbytes == 4 * 3_200_000
    assert resident() - before < 3 * out.values.nbytes + (32 << 20)


def test_memory_used_again_is_trimmed(tok: Tokenizer) -> None:
    """A small result in the memory of a large one keeps no more than it needs."""
    dense = pa.array(["a1" * (1 << 23)])  # an id per byte: 64 MB of ids
    sparse = pa.array([" international" * (1 << 20)])  # 4 MB of ids, in the same memory
    out = tok.encode_arrow(dense, threads=1)
    address = out.values.buffers()[1].address
    del out
    before = resident()
    out = tok.encode_arrow(sparse, threads=1)
    assert out.values.buffers()[1].address == address and out.values.nbytes == 4 << 20
    assert before - resident() > 48 << 20


def test_pool_keeps_the_newest_memory() -> None:
    """The oldest maps make room; one over the bound is not kept, and pushes none out."""
    pool = Pool(cpu.ffi, limit=1 << 20)
    for n in (1 << 16, 1 << 17, 1 << 18, 1 << 19):  # 256 KB to 2 MB of ids
        output = pool.take(n)
        output.ids[:] = n
        ids = output.finish(n)
        del output, ids
        gc.collect()
    again = [pool.take(n).ids for n in (1 << 18, 1 << 16)]
    assert set(again[0].tolist()) == {1 << 18}  # the 1 MB that the bound allows
    assert not again[1].any()  # fresh


# ---- threads, instruction sets, policies ----


def many_rows(seed: int, n: int) -> list[str | None]:
    rng = random.Random(seed)
    pieces = [
        *(row for row in ROWS if row),
        "\u00a0",
        "'re",
        "\r\n",
        "é",
        "🙂",
        "<|endoftext|>",
        "0",
    ]
    return [
        None if rng.random() < 0.05 else "".join(rng.choices(pieces, k=rng.randint(0, 40)))
        for _ in range(n)
    ]


def test_threads_do_not_matter(tok: Tokenizer) -> None:
    column = pa.array(many_rows(1, 6000))
    for special in ("plain", "parse"):
        one = tok.encode_arrow(column, threads=1, special=special)
        for threads in (2, 3, 16):
            report = Report()
            assert tok.encode_arrow(column, threads=threads, special=special, report=report).equals(
                one
            )
            assert report.tokens == len(one.values)
            assert tok.count_arrow(column, threads=threads, special=special).equals(
                pa.compute.list_value_length(one).cast(pa.int64())
            )


def test_instruction_sets_do_not_matter(tok: Tokenizer, isa: str) -> None:
    rows = many_rows(2, 300)
    assert cpu.isa() == isa
    fresh = Tokenizer.load("gpt2", cache_bytes=0)
    assert fresh.encode_arrow(pa.array(rows)).to_pylist() == expected(tok, rows)


def test_python_threads_may_share_a_tokenizer(tok: Tokenizer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    columns = [pa.array(many_rows(seed, 800)) for seed in range(8)]
    want = [tok.encode_arrow(column, threads=1) for column in columns]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for out, one in zip(pool.map(tok.encode_arrow, columns), want, strict=True):
                assert out.equals(one)


INVALID: list[bytes | None] = [
    b"ok",
    b"bad\xff end",
    None,
    b"\xed\xa0\x80",
    b"",
    b"caf\xc3\xa9",
    b"\xc3",
]


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), "dictionary"], ids=str
)
def test_invalid_rows(tok: Tokenizer, kind: Any) -> None:
    array = (
        pa.array(INVALID).dictionary_encode() if kind == "dictionary" else pa.array(INVALID, kind)
    )
    for column, rows in (
        (array, INVALID),
        (array[1:], INVALID[1:]),
        (pa.chunked_array([array[:1], array[1:]]), INVALID),
    ):
        report = Report()
        out = tok.encode_arrow(column, report=report).to_pylist()
        assert out == [None if row is None else tok.encode(row).tolist() for row in rows]
        assert report.invalid_rows == 3
        out = tok.encode_arrow(column, invalid="replace", report=report).to_pylist()
        assert out == expected(
            tok, [None if r is None else r.decode("utf-8", "replace") for r in rows]
        )
        out = tok.encode_arrow(column, invalid="null", report=report).to_pylist()
        good = [row in (b"ok", b"", b"caf\xc3\xa9") for row in rows]
        assert [ids is not None for ids in out] == good
        assert tok.count_arrow(column, invalid="null").null_count == good.count(False)
        assert (report.invalid_rows, report.nulls, report.rows) == (9, 3, 3 * len(rows))
        with pytest.raises(InputError) as caught:
            tok.encode_arrow(column, invalid="error")
        bad = rows.index(b"bad\xff end")
        assert caught.value.row == bad
        assert str(caught.value) == f"row {bad}: not UTF-8 at byte 3: invalid start byte"


def test_rows_in_messages_count_through_chunks(tok: Tokenizer) -> None:
    column = pa.chunked_array([pa.array(["a", "b"]), pa.array(["c", "x<|endoftext|>"])])
    with pytest.raises(InputError) as caught:
        tok.encode_arrow(column, special="error")
    assert caught.value.row == 3
    assert str(caught.value) == "row 3: the text holds the added token '<|endoftext|>' at byte 1"
    bad = pa.chunked_array([pa.array([b"a", b"b"]), pa.array([b"c", b"x\xff"])])
    with pytest.raises(InputError, match="row 3: not UTF-8 at byte 1") as caught:
        tok.encode_arrow(bad, invalid="error")
    assert caught.value.row == 3


@pytest.mark.parametrize("normalized", [True, False])
def test_an_added_token_is_named_by_its_byte_in_the_row(tok: Tokenizer, normalized: bool) -> None:
    """A normalizer's text has other positions: e + acute becomes one character of two bytes."""
    token = AddedToken("<e>", 50256, normalized=normalized)
    steps = (Normalizer("nfc"),)
    spec = dataclasses.replace(tok.spec, normalizers=steps, added=(token,))
    with pytest.raises(InputError, match=r"row 1: the text holds the added token '<e>' at byte 7$"):
        Tokenizer.from_spec(spec).encode_batch(["e", "e\u0301 e\u0301<e> <e>"], special="error")


@pytest.mark.parametrize("form", ["plain", "chunked", "dictionary"])
def test_report(tok: Tokenizer, form: str) -> None:
    rows = [*ROWS, "<|endoftext|><|endoftext|>", ROWS[5]]
    column: Any = pa.array(rows)
    if form == "chunked":
        column = pa.chunked_array([column[:4], column[4:]])
    if form == "dictionary":
        column = column.dictionary_encode()
    for special in ("plain", "parse"):
        report = Report()
        out = tok.encode_arrow(column, special=special, report=report)
        want = expected(tok, rows, special=special)
        assert out.to_pylist() == want
        assert report == Report(
            rows=len(rows),
            nulls=2,
            bytes=sum(len(row.encode()) for row in rows if row),
            tokens=sum(len(ids) for ids in want if ids),
            added={"<|endoftext|>": 4},
            invalid_rows=0,
        )
        counted = Report()
        tok.count_arrow(column, special=special, report=counted)
        assert counted == report


def test_one_call_of_the_module(tok: Tokenizer) -> None:
    column = pa.array(ROWS)
    assert saphira_gpu.encode_arrow(column).equals(tok.encode_arrow(column))
    assert saphira_gpu.encode_arrow(column, tokenizer=tok, special="parse").equals(
        tok.encode_arrow(column, special="parse")
    )
    assert saphira_gpu.encode_arrow(column, tokenizer="r50k_base", threads=1).equals(
        tok.encode_arrow(column)
    )


@pytest.mark.long
def test_beyond_2_gib(tok: Tokenizer) -> None:
    row = " the" * (1 << 20)
    column = pa.array([row] * 600, pa.large_string())  # 2.3 GiB
    out = tok.encode_arrow(column)
    assert out.type == pa.large_list(pa.uint32()) and len(out.values) == 600 << 20
    assert pa.compute.min_max(out.values).as_py() == {"min": 262, "max": 262}
    assert tok.count_arrow(column).to_pylist() == [1 << 20] * 600


def test_lists_beyond_2_31_ids_have_wide_offsets() -> None:
    """The ids are one number seen again and again: nothing here is large but the offsets."""
    offsets = np.array([0, 2**31, 2**31 + 5], np.int64)
    ids = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint32), (2**31 + 5,), (0,))
    assert Tokens(ids, offsets).n_ids == 2**31 + 5
    from saphira_gpu.columns import Column, lists

    column = Column([], pa.string(), True)
    small = Tokens(np.zeros(3, np.uint32), np.array([0, 1, 3], np.int64))
    uint32 = np.dtype(np.uint32)
    assert lists(column, [small], uint32, False).type == pa.list_(pa.uint32())

    class Many(Tokens):
        @property
        def n_ids(self) -> int:
            return 2**31

    many = Many(small.ids, small.offsets)
    assert lists(column, [small, many], uint32, False).type == pa.large_list(pa.uint32())
    assert lists(column, [(many, pa.array([0, 1]))], uint32, False).type == pa.list_(pa.uint32())
    wide = Tokens(small.ids, np.array([0, 1, 3], np.int64)).to_arrow(large=True)
    assert wide.to_pylist() == [[0], [0, 0]]
