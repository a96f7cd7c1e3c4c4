"""Decoding: single rows, batches, columns, streams; the vocabulary both ways; types of ids."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pyarrow as pa
import pytest
import tokenizers
from oracles import END_OF_TEXT, fuzz, small_spec
from tokenizers import decoders

from saphira_gpu import InputError, Tokenizer
from saphira_gpu.spec import AddedToken, Bpe, Decoder, Pretok, Spec

TEXTS = ["", "Hello world", None, "naïve ☃ 🙂", "a" + END_OF_TEXT + "b", " \n\n ", "日本語"]


def parsed(tok: Tokenizer, texts: list[str | None]) -> pa.Array:
    return tok.encode_arrow(pa.array(texts, pa.string()), special="parse")


def suffixed(word_end: str, last_word_end: str) -> Spec:
    """A tokenizer whose tokens say whether they end a word, as CLIP's."""
    plain: list[bytes] = [bytes([byte]) for byte in range(256)]
    tokens = (*plain, *plain, b"hi", b"hi")
    ends = (*[False] * 256, *[True] * 256, False, True)
    merges = ((ord("h"), ord("i"), 512), (ord("h"), 256 + ord("i"), 513))
    bpe = Bpe(tokens, merges, end_of_word_suffix="</w>", ends=ends)
    added = (AddedToken("<s>", 514),)
    return Spec(added, Pretok("gpt2"), bpe, decoder=Decoder(word_end, last_word_end))


# ---- columns ----


def test_column(gpt2: Tokenizer) -> None:
    text = gpt2.decode_arrow(parsed(gpt2, TEXTS))
    assert text.type == pa.string() and text.to_pylist() == TEXTS
    text.validate(full=True)
    raw = gpt2.decode_arrow(parsed(gpt2, TEXTS), binary=True)
    assert raw.type == pa.large_binary()
    assert raw.to_pylist() == [None if text is None else text.encode() for text in TEXTS]
    skipped = gpt2.decode_arrow(parsed(gpt2, TEXTS), skip_special=True)
    assert skipped.to_pylist() == [text and text.replace(END_OF_TEXT, "") for text in TEXTS]


@pytest.mark.parametrize(
    "kind", [pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.int16()]
)
def test_every_integer_type(gpt2: Tokenizer, kind: pa.DataType) -> None:
    rows = [[31373, 995], None, [], [220]]
    for shape in (pa.list_(kind), pa.large_list(kind), pa.list_(pa.field("x", kind))):
        assert gpt2.decode_arrow(pa.array(rows, shape)).to_pylist() == [
            "hello world",
            None,
            "",
            " ",
        ]
    fixed = pa.array([[31373, 995], None, [64, 65]], pa.list_(kind, 2))
    assert gpt2.decode_arrow(fixed).to_pylist() == ["hello world", None, "ab"]
    assert gpt2.decode_arrow(fixed[1:]).to_pylist() == [None, "ab"]


def test_shapes(gpt2: Tokenizer) -> None:
    column = parsed(gpt2, TEXTS)
    chunked = gpt2.decode_arrow(pa.chunked_array([column[:3], column[3:3], column[3:]]))
    assert isinstance(chunked, pa.ChunkedArray) and chunked.num_chunks == 3
    assert chunked.to_pylist() == TEXTS and chunked.type == pa.string()
    for first in range(len(TEXTS)):
        assert gpt2.decode_arrow(column[first:]).to_pylist() == TEXTS[first:]
        assert gpt2.decode_arrow(column[:first]).to_pylist() == TEXTS[:first]
    assert gpt2.decode_arrow(pa.array([], pa.list_(pa.uint32()))).to_pylist() == []
    none = gpt2.decode_arrow(pa.chunked_array([], pa.list_(pa.uint32())))
    assert none.type == pa.string() and len(none) == 0
    spans = gpt2.encode_arrow(pa.array(["a b"]), offsets=True)
    assert gpt2.decode_arrow(spans).to_pylist() == ["a b"]


def test_null_rows_hide_what_they_cover(gpt2: Tokenizer) -> None:
    ids = pa.array([31373, 2**31, 995], pa.uint32())
    rows = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), ids, mask=pa.array([False, True, False])
    )
    assert gpt2.decode_arrow(rows).to_pylist() == ["hello", None, " world"]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32())])
def test_lists_that_lead_outside(gpt2: Tokenizer, kind: pa.DataType) -> None:
    ids = pa.array([1, 2, 3], pa.int32())
    for bad in ([0, 900, 3], [-1, 2, 3], [0, 1, 9], [3, 2, 1]):
        offsets = np.array([0, 1, 3], np.int64 if pa.types.is_large_list(kind) else np.int32)
        array = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(offsets)], children=[ids])
        offsets[:] = bad
        with pytest.raises(InputError, match="outside its values"):
            gpt2.decode_arrow(array)


def test_null_structs_are_null_ids(gpt2: Tokenizer) -> None:
    column = pa.array([[{"id": 1}], [{"id": 2}, None]])
    for form in (column, column[1:]):
        with pytest.raises(InputError, match=r"position 1: null is not an id"):
            gpt2.decode_arrow(form)


def test_columns_of_other_producers(gpt2: Tokenizer) -> None:
    import polars as pl

    series = pl.Series([[31373, 995], None, [64]], dtype=pl.List(pl.UInt32))
    assert gpt2.decode_arrow(series).to_pylist() == ["hello world", None, "a"]


def test_text_that_is_cut(gpt2: Tokenizer) -> None:
    snow = gpt2.encode("☃").tolist()
    column = pa.array([[64], snow[:1], None, [*snow, *snow[:1], 65]], pa.list_(pa.int64()))
    cut = gpt2.id_to_bytes(snow[0]) or b""
    raw = [b"a", cut, None, "☃".encode() + cut + b"b"]
    assert gpt2.decode_arrow(column, binary=True).to_pylist() == raw
    for errors in ("replace", "ignore", "backslashreplace"):
        want = [data and data.decode("utf-8", errors) for data in raw]
        assert gpt2.decode_arrow(column, errors=errors).to_pylist() == want
        assert gpt2.decode_batch(column, errors=errors) == want
    for call in (gpt2.decode_arrow, gpt2.decode_batch):
        with pytest.raises(InputError, match="row 1: the text of these ids is not UTF-8") as got:
            call(column, errors="strict")
        assert got.value.row == 1
        with pytest.raises(InputError, match=r"row 1: .*'surrogateescape'"):
            call(column, errors="surrogateescape")
    with pytest.raises(LookupError, match="nonesuch"):
        gpt2.decode_arrow(column, errors="nonesuch")


BAD: list[tuple[list[Any], pa.DataType, str]] = [
    ([[1], [2, 50257]], pa.uint32(), "row 1, position 1: 50257 is not an id of this tokenizer"),
    ([[1], None, [-1]], pa.int64(), "row 2, position 0: -1 is not an id"),
    ([[-(2**63)]], pa.int64(), "row 0, position 0: -9223372036854775808 is not an id"),
    ([[2**32]], pa.int64(), "row 0, position 0: 4294967296 is not an id"),
    ([[], [2**64 - 1]], pa.uint64(), "row 1, position 0: 18446744073709551615 is not an id"),
    ([[1, 2], [3, None]], pa.uint32(), "row 1, position 1: null is not an id"),
    ([[1, 2], None, [], [None]], pa.uint16(), "row 3, position 0: null is not an id"),
    ([[-5]], pa.int8(), "row 0, position 0: -5 is not an id"),
]


@pytest.mark.parametrize(("rows", "kind", "message"), BAD)
def test_ids_that_are_none(
    gpt2: Tokenizer, rows: list[Any], kind: pa.DataType, message: str
) -> None:
    column = pa.array(rows, pa.list_(kind))
    for form in (column, pa.chunked_array([column[:1], column[1:]])):
        with pytest.raises(InputError, match=message) as got:
            gpt2.decode_arrow(form)
        assert got.value.row == int(message.split()[1].rstrip(","))
    spaced = pa.concat_arrays([pa.array([[9]], pa.list_(kind)), column])[1:]
    with pytest.raises(InputError, match=message):
        gpt2.decode_arrow(spaced)
    if "null" not in message:
        with pytest.raises(InputError, match=message.split(":")[0]):
            gpt2.decode_batch(rows)


def test_holes_are_no_ids() -> None:
    tok = Tokenizer.from_spec(dataclasses.replace(small_spec(), added=(AddedToken("<x>", 260),)))
    assert tok.decode_arrow(pa.array([[97, 260]])).to_pylist() == ["a<x>"]
    with pytest.raises(InputError, match="row 0, position 1: 258 is not an id"):
        tok.decode_arrow(pa.array([[97, 258]]))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["a"]), "a column of type string holds no lists of ids"),
        (pa.array([["a"]]), "a column of type list<.*string> holds no lists of ids"),
        (pa.array([[1.5]]), "holds no lists of ids"),
        (pa.array([1]), "a column of type int64 holds no lists of ids"),
        ([[1]], "is no Arrow column"),
    ],
)
def test_columns_of_other_types(gpt2: Tokenizer, column: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        gpt2.decode_arrow(column)


@fuzz(oracles.any_bytes)
def test_any_bytes_come_back(data: bytes) -> None:
    tok = _gpt2()
    column = pa.array([data, b"", data + b"\xe2"], pa.binary())
    for special in ("plain", "parse"):
        ids = tok.encode_arrow(column, special=special, dtype="auto")
        assert tok.decode_arrow(ids, binary=True).to_pylist() == column.to_pylist()
        want = [row.decode("utf-8", "replace") for row in column.to_pylist()]
        assert tok.decode_arrow(ids).to_pylist() == want == tok.decode_batch(ids)


def test_random_ids_decode_as_the_references(gpt2: Tokenizer) -> None:
    source = oracles.rng("ids")
    rows = [
        [source.randrange(50257) for _ in range(source.randint(0, 30))]
        for _ in range(10 * oracles.FUZZ_SIZE)
    ]
    hf = oracles.hf_gpt2()
    column = pa.array(rows, pa.list_(pa.int64()))
    assert gpt2.decode_arrow(column).to_pylist() == hf.decode_batch(rows, skip_special_tokens=False)
    assert gpt2.decode_arrow(column, skip_special=True).to_pylist() == hf.decode_batch(rows)
    raw = oracles.tiktoken_gpt2().decode_bytes_batch(rows)
    assert gpt2.decode_arrow(column, binary=True).to_pylist() == raw
    assert [gpt2.decode_bytes(row) for row in rows] == raw


# ---- rows and batches ----


def test_batch(gpt2: Tokenizer) -> None:
    tokens = gpt2.encode_batch(TEXTS, special="parse")
    for form in (tokens, tokens.to_list(), iter(tokens), tokens.to_arrow()):
        assert gpt2.decode_batch(form) == TEXTS
    want = [text and text.replace(END_OF_TEXT, "") for text in TEXTS]
    assert gpt2.decode_batch(tokens, skip_special=True) == want
    assert gpt2.decode_batch([]) == []
    with pytest.raises(InputError, match="row 2, position 1: None is not an integer"):
        gpt2.decode_batch([[1], None, [1, None]])
    with pytest.raises(InputError, match="row 1, ids are integers, not str"):
        gpt2.decode_batch([[1], "ab"])
    with pytest.raises(InputError, match="rows of ids, not str"):
        gpt2.decode_batch("ab")
    with pytest.raises(InputError, match=f"row 1, position 1: {2**63} is not an id"):
        gpt2.decode_batch([[1], np.array([1, 2**63], np.uint64)])
    assert gpt2.decode_batch([np.array([995], np.uint64), [995]]) == [" world", " world"]


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list_view])
def test_views_and_tables_of_one_column(gpt2: Tokenizer, kind: Any) -> None:
    rows = [[0, 995], None, [], [995], None, [1]]
    views = pa.array(rows, kind(pa.int32()))
    want = [None if row is None else gpt2.decode(row) for row in rows]
    assert gpt2.decode_arrow(views).to_pylist() == want
    assert gpt2.decode_arrow(views[1:5]).to_pylist() == want[1:5]
    assert gpt2.decode_arrow(pa.table({"ids": views})).to_pylist() == want
    # views may stand in any order and overlap
    size = np.int32 if kind is pa.list_view else np.int64
    of = pa.ListViewArray if kind is pa.list_view else pa.LargeListViewArray
    odd = of.from_arrays(
        pa.array(np.array([2, 0, 1], size)),
        pa.array(np.array([1, 2, 2], size)),
        pa.array([5, 6, 7]),
    )
    assert gpt2.decode_arrow(odd).to_pylist() == [gpt2.decode(row) for row in ([7], [5, 6], [6, 7])]
    with pytest.raises(InputError, match="this one has: a, b"):
        gpt2.decode_arrow(pa.table({"a": views, "b": views}))


def test_long_rows_take_the_same_way(gpt2: Tokenizer) -> None:
    text = "naïve ☃ 🙂 " * 400 + END_OF_TEXT
    ids = gpt2.encode(text, special="parse")
    assert len(ids) > 1000
    assert gpt2.decode(ids) == text and gpt2.decode_bytes(ids.tolist()) == text.encode()
    assert gpt2.decode(ids, skip_special=True) == text.removesuffix(END_OF_TEXT)
    with pytest.raises(InputError, match=f"position {len(ids)}: 50257 is not an id"):
        gpt2.decode([*ids.tolist(), 50257])


# ---- streams ----


@fuzz(oracles.any_bytes)
def test_streams_add_up(data: bytes) -> None:
    tok = _gpt2()
    ids = tok.encode(data, special="parse").tolist()
    stream = tok.decode_stream()
    whole = "".join(map(stream.push, ids)) + stream.finish()
    assert whole == data.decode("utf-8", "replace") == tok.decode(ids)
    assert stream.push(ids) + stream.finish() == whole  # used again, all at once


def test_a_stream_holds_back_half_characters(gpt2: Tokenizer) -> None:
    stream = gpt2.decode_stream()
    ids = gpt2.encode("a☃").tolist()
    assert len(ids) == 3
    assert [stream.push(i) for i in ids] == ["a", "", "☃"]
    assert stream.push(np.uint32(ids[1])) == "" and stream.finish() == "\ufffd"
    assert stream.push(ids[1:2]) == "" and stream.push([]) == "" and stream.push(64) == "\ufffda"
    with pytest.raises(InputError, match="position 1: 50257 is not an id"):
        stream.push([64, 50257])
    assert stream.finish() == ""
    strict = gpt2.decode_stream(errors="strict")
    strict.push(ids[1])
    with pytest.raises(UnicodeDecodeError):
        strict.finish()
    skipping = gpt2.decode_stream(skip_special=True)
    assert skipping.push([64, 50256, 65]) == "ab"


# ---- ends of words ----


@pytest.mark.parametrize(("end", "last"), [(" ", ""), ("</w>", "</w>"), ("", "")])
def test_ends_of_words(end: str, last: str) -> None:
    tok = Tokenizer.from_spec(suffixed(end, last))
    rows = [[513, 514], [514, 513], [513, 512, 513], [], [512, 512], [513]]
    pieces = {512: "hi", 513: "hi" + end, 514: "<s>"}
    want = []
    for row in rows:
        text = "".join(pieces[i] for i in row)
        want.append(text.removesuffix(end) + last if row and row[-1] == 513 else text)
    assert tok.decode_batch(rows) == want
    assert tok.decode_arrow(pa.array(rows)).to_pylist() == want
    assert [tok.decode(row) for row in rows] == want
    for row, text in zip(rows, want, strict=True):
        stream = tok.decode_stream()
        assert "".join(map(stream.push, row)) + stream.finish() == text
    # a special token that is left out doesn't count as the last one
    assert tok.decode([513, 514], skip_special=True) == "hi" + last
    column = pa.array([[513, 514], [514], [514, 513, 514, 514]])
    assert tok.decode_arrow(column, skip_special=True).to_pylist() == ["hi" + last, "", "hi" + last]
    with pytest.raises(InputError, match="row 0, position 1: 515 is not an id"):
        tok.decode_arrow(pa.array([[513, 515]]))
    assert tok.decode(np.array([513] * 300)) == ("hi" + end) * 299 + "hi" + last


def test_ends_of_words_as_the_reference() -> None:
    spec = suffixed(" ", "")
    tok = Tokenizer.from_spec(spec)
    model = tokenizers.models.BPE(
        vocab=tok.vocab(added=False), merges=[], end_of_word_suffix="</w>"
    )
    hf = tokenizers.Tokenizer(model)
    hf.decoder = decoders.BPEDecoder(suffix="</w>")
    letters = [*range(ord("a"), ord("z")), *range(256 + ord("a"), 256 + ord("z")), 512, 513]
    source = oracles.rng("ends")
    rows = [source.choices(letters, k=source.randint(0, 12)) for _ in range(oracles.FUZZ_SIZE)]
    assert tok.decode_batch(rows) == hf.decode_batch(rows)


# ---- the vocabulary ----


def test_vocabulary(gpt2: Tokenizer) -> None:
    hf = oracles.hf_gpt2()
    assert gpt2.vocab() == hf.get_vocab()
    assert len(gpt2.vocab(added=False)) == 50256
    for number in [*range(0, 50257, 97), 50256]:
        token = hf.id_to_token(number)
        assert gpt2.id_to_token(number) == token and gpt2.token_to_id(token) == number
        raw = oracles.tiktoken_gpt2().decode_single_token_bytes(number)
        assert gpt2.id_to_bytes(number) == raw and gpt2.token_to_id(raw) == number
    assert gpt2.id_to_token(995) == "Ġworld" and gpt2.id_to_bytes(995) == b" world"
    for number in (-1, 50257, 2**70):
        assert gpt2.id_to_token(number) is None and gpt2.id_to_bytes(number) is None
    for token in (" world", "", b"", b"\xff\xff\xff", "nonesuch token"):
        assert gpt2.token_to_id(token) is None
    assert gpt2.id_to_token(np.uint32(995)) == "Ġworld"  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gpt2.id_to_token(1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a token is str or bytes, not int"):
        gpt2.token_to_id(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a token is a str here, not bytes"):
        gpt2.token_id(b" world")  # type: ignore[arg-type]


def test_added_tokens_in_the_vocabulary() -> None:
    tok = Tokenizer.from_spec(small_spec(added=[("é", ""), ("a", "s"), ("日本", "s")]))
    assert tok.token_to_id("日本") == tok.token_to_id("日本".encode()) == 256
    assert tok.id_to_token(256) == "日本" and tok.id_to_bytes(256) == "日本".encode()
    assert tok.token_to_id("a") == 97 and tok.token_to_id("é") == 0xE9  # the symbol of that byte
    assert tok.vocab()["日本"] == 256 and "日本" not in tok.vocab(added=False)
    suffix = Tokenizer.from_spec(suffixed("</w>", "</w>"))
    assert suffix.id_to_token(513) == "hi</w>" and suffix.token_to_id("hi</w>") == 513
    assert suffix.token_to_id("hi") == suffix.token_to_id(b"hi") == 512


# ---- types of ids ----


def test_dtypes(gpt2: Tokenizer) -> None:
    want = gpt2.encode("Hello world")
    kinds = {"auto": np.uint16, "uint16": np.uint16, "uint32": np.uint32, "int32": np.int32}
    for name, kind in kinds.items():
        dtype: Any = name
        ids = gpt2.encode("Hello world", dtype=dtype)
        assert ids.dtype == kind and ids.tolist() == want.tolist()
        tokens = gpt2.encode_batch(["Hello world", None], dtype=dtype)
        assert tokens.ids.dtype == kind and tokens.to_list() == [want.tolist(), None]
        for column in (pa.array(["Hello world", None]), pa.array(["a", "a"]).dictionary_encode()):
            lists = gpt2.encode_arrow(column, dtype=dtype)
            assert lists.type == pa.list_(pa.from_numpy_dtype(kind))
            assert lists.to_pylist() == gpt2.encode_arrow(column).to_pylist()
        none = gpt2.encode_arrow(pa.chunked_array([], pa.string()), dtype=dtype)
        assert none.type == pa.list_(pa.from_numpy_dtype(kind))


@pytest.mark.parametrize(("largest", "fits"), [(65535, True), (65536, False)])
def test_the_largest_id_decides(largest: int, fits: bool) -> None:
    spec = dataclasses.replace(small_spec(), added=(AddedToken("<x>", largest),))
    tok = Tokenizer.from_spec(spec)
    ids = tok.encode("a<x>", special="parse", dtype="auto")
    assert ids.dtype == (np.uint16 if fits else np.uint32) and ids.tolist() == [97, largest]
    if fits:
        assert tok.encode("a<x>", special="parse", dtype="uint16").tolist() == [97, largest]
        return
    # refused whether or not this text has such an id
    for call in (tok.encode, lambda text, **more: tok.encode_arrow(pa.array([text]), **more)):
        with pytest.raises(
            InputError, match=r"dtype='uint16' holds ids up to 65535, .* up to 65536"
        ):
            call("a", dtype="uint16")


def test_command_line(tmp_path: Path, gpt2: Tokenizer) -> None:
    import pyarrow.parquet as pq
    from typer.testing import CliRunner

    from saphira_gpu.cli import app

    pq.write_table(pa.table({"text": ["Hello world", None]}), tmp_path / "a.parquet")
    for name, kind in {"auto": pa.uint16(), "int32": pa.int32(), "uint32": pa.uint32()}.items():
        arguments = ["tokenize", str(tmp_path / "a.parquet"), "-o", str(tmp_path / name)]
        for more in ([], ["--append-eos", "--overwrite"]):
            result = CliRunner().invoke(app, [*arguments, "--dtype", name, "-q", *more])
            assert result.exit_code == 0, result.output
            table = pq.read_table(tmp_path / name / "a.parquet")
            assert table.schema.field("input_ids").type.value_type == kind
            eos = [50256] if more else []
            assert table["input_ids"].to_pylist() == [[15496, 995, *eos], None]


# ---- tokenizers that are not part of the project ----

NAMES = ["gpt2", "roberta_base", "qwen3", "llama3", "gpt_neox", "starcoder", "falcon"]
NAMES += ["clip", "whisper", "deepseek_v3"]


@pytest.mark.parametrize("name", NAMES)
def test_published_tokenizers(test_data: Path, name: str) -> None:
    path = test_data / "vocabs" / name / "tokenizer.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tok = Tokenizer.load(path)
    hf = tokenizers.Tokenizer.from_file(str(path))
    assert tok.vocab() == hf.get_vocab()
    want = hf.get_vocab(with_added_tokens=False)
    symbols = set(oracles.byte_symbols().values())
    written = {token: i for token, i in want.items() if set(token) <= symbols}
    assert tok.vocab(added=False) == written and len(written) > len(want) - 1000
    known = sorted(tok.vocab().values())
    source = oracles.rng(f"decode {name}")
    rows = [source.choices(known, k=source.randint(0, 30)) for _ in range(10 * oracles.FUZZ_SIZE)]
    column = pa.array(rows, pa.list_(pa.uint32()))
    for skip in (False, True):
        texts = hf.decode_batch(rows, skip_special_tokens=skip)
        assert tok.decode_arrow(column, skip_special=skip).to_pylist() == texts


def _gpt2() -> Tokenizer:
    if not _kept:
        _kept.append(Tokenizer.load("gpt2"))
    return _kept[0]


_kept: list[Tokenizer] = []
