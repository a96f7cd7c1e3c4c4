"""The generated tables on every code point: as plain definitions, references and the core say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from definitions import (
    ASSIGNED,
    UNICODE,
    N,
    atom_of,
    generated,
    header,
    ranges_of,
    schemes,
    script_of,
    superatom_of,
    ucd,
)

# ---- the definitions themselves, at a few points known from the references ----


@pytest.mark.parametrize(
    ("point", "superatom", "atom"),
    [
        (0x85, "WsOther", "WsOther"),
        (0x180E, "Other", "SymOther"),
        (0x166D, "SymPunct", "Punct"),
        (0x111C9, "MarkPunct", "Connector"),
        (0x200D, "JoinControl", "Mark"),
        (0xD800, "Other", "SymOther"),
        (0x24B6, "SymWord", "Mark"),
        (0x10FFFF, "Other", "SymOther"),
    ],
)
def test_known_points(point: int, superatom: str, atom: str) -> None:
    assert (superatom_of(point), atom_of(point)) == (superatom, atom)
    tag = generated("superatom")[point]
    assert schemes()["superatoms"][tag] == superatom
    assert schemes()["atoms"][schemes()["superatom_atom"][tag]] == atom


# ---- every code point ----


def test_superatom_of_every_code_point() -> None:
    names = schemes()["superatoms"]
    assert len(names) == 32
    ids = generated("superatom")
    wrong = [f"{c:04X}" for c in range(N) if names[ids[c]] != superatom_of(c)]
    assert wrong == []


def test_atom_of_every_code_point() -> None:
    names = schemes()["atoms"]
    atom = [names[i] for i in schemes()["superatom_atom"]]
    ids = generated("superatom")
    wrong = [f"{c:04X}" for c in range(N) if atom[ids[c]] != atom_of(c)]
    assert wrong == []
    assert header("superatoms.h")["sa_superatom_atom"] == schemes()["superatom_atom"]


def test_script_of_every_code_point() -> None:
    names = schemes()["scripts"]
    assert len(names) == 136 and names[0] == "Any" and sorted(names[1:]) == names[1:]
    ids = generated("script")
    wrong = [f"{c:04X}" for c in range(N) if names[ids[c]] != script_of(c)]
    assert wrong == []


@pytest.mark.parametrize("alphabet", ["superatom", "script"])
def test_c_tables_say_what_the_ranges_say(alphabet: str) -> None:
    arrays = header(f"{alphabet}s.h")
    ids = generated(alphabet)
    prefix = f"sa_{alphabet}_"
    index, leaf = arrays[prefix + "index"], bytes(arrays[prefix + "leaf"])
    assert len(index) == N // 64 and len(leaf) == 64 * (max(index) + 1)
    assert b"".join(leaf[64 * i : 64 * i + 64] for i in index) == bytes(ids)
    # by first use, each leaf once
    assert list(dict.fromkeys(index)) == list(range(max(index) + 1))
    assert len({leaf[i : i + 64] for i in range(0, len(leaf), 64)}) == max(index) + 1

    assert arrays[prefix + "ascii"] == ids[:128]
    first, tag = arrays[prefix + "first"], arrays[prefix + "tag"]
    assert len(first) == len(tag) and first[0] == 0
    spread = b"".join(
        bytes([t]) * (end - start)
        for start, end, t in zip(first, [*first[1:], N], tag, strict=True)
    )
    assert spread == bytes(ids)
    assert all(a != b for a, b in pairwise(tag))
    assert arrays[f"sa_{alphabet}_names"] == schemes()[f"{alphabet}s"]


@pytest.mark.parametrize("alphabet", ["superatom", "script"])
def test_bytes_outside_characters_have_their_symbols_tag(alphabet: str) -> None:
    """The byte contract: ASCII by its byte, others by the byte-alphabet symbol."""
    ids = generated(alphabet)
    expected = [ids[b if b < 0x80 else ord(SYMBOLS[b])] for b in range(256)]
    assert header(f"{alphabet}s.h")[f"sa_{alphabet}_byte"] == expected


@pytest.mark.parametrize("version", ["8", "9", "16", "17"])
def test_no_other_code_point_is_assigned(version: str) -> None:
    others = set(range(N)) - set(ASSIGNED)
    assert {ucd(version)[0][c] for c in others} == {"Unassigned", "Private_Use"}
    assert {generated("superatom")[c] for c in others} == {0}


# ---- the byte alphabet ----

# What GPT-2's vocabulary uses for each byte, in byte order, written out.
SYMBOLS = (
    "ĀāĂăĄąĆćĈĉĊċČčĎďĐđĒēĔĕĖėĘęĚěĜĝĞğĠ"
    "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
    "ġĢģĤĥĦħĨĩĪīĬĭĮįİıĲĳĴĵĶķĸĹĺĻļĽľĿŀŁł"
    "¡¢£¤¥¦§¨©ª«¬Ń®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"
)


def test_byte_alphabet() -> None:
    arrays = header("bytemap.h")
    symbols = arrays["sa_bytemap_symbol"]
    assert "".join(map(chr, symbols)) == SYMBOLS
    back = arrays["sa_bytemap_byte"]
    assert len(back) == max(symbols) + 1 == 324
    assert [back[s] for s in symbols] == list(range(256))
    assert sum(b == -1 for b in back) == 324 - 256


def test_byte_alphabet_is_the_reference_vocabularys() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    assert sorted(SYMBOLS) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "".join(map(chr, range(0x21, 0x800)))
    ((piece, _),) = level.pre_tokenize_str(text)
    assert piece == "".join(SYMBOLS[byte] for byte in text.encode())


def test_scripts_are_what_the_reference_sees() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    split = tokenizers.pre_tokenizers.UnicodeScripts().pre_tokenize_str
    ids = generated("script")
    points = [c for c in ASSIGNED if not 0xD800 <= c <= 0xDFFF]
    # In the order of their scripts, characters make one piece a script.
    named = sorted((c for c in points if ids[c]), key=ids.__getitem__)
    pieces = [{ids[ord(c)] for c in piece} for piece, _ in split("".join(map(chr, named)))]
    assert pieces == [{i} for i in range(1, 136)]
    # Any is transparent: it stays with what is before it.
    ((piece, _),) = split("a" + "".join(chr(c) for c in points if not ids[c]) + "a")
    assert len(piece) == len(points) - len(named) + 2


# ---- the compiled core ----

# Every array that the core publishes: its name, the header it is in and struct code of its values.
LEVELS = {"index": "H", "leaf": "B", "ascii": "B", "byte": "B", "first": "I", "tag": "B"}
COMPILED = {
    **{f"sa_superatom_{part}": ("superatoms.h", code) for part, code in LEVELS.items()},
    **{f"sa_script_{part}": ("scripts.h", code) for part, code in LEVELS.items()},
    "sa_superatom_atom": ("superatoms.h", "B"),
    "sa_bytemap_symbol": ("bytemap.h", "H"),
    "sa_bytemap_byte": ("bytemap.h", "h"),
    "sa_remap_row": ("schemes.h", "B"),
    "sa_scheme_remap": ("schemes.h", "B"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_core_was_compiled_with_these_tables(name: str) -> None:
    from saphira_gpu._core import ffi, lib

    file, code = COMPILED[name]
    size = ffi.new("int64_t *")
    pointer = lib.sa_table(name.encode(), size)
    assert pointer != ffi.NULL
    values = memoryview(bytes(ffi.buffer(pointer, size[0]))).cast(code).tolist()
    assert values == header(file)[name]


def test_core_names_the_schemes() -> None:
    from saphira_gpu._core import ffi, lib

    names = [ffi.string(lib.sa_scheme_name(i)).decode() for i in range(lib.sa_scheme_count())]
    assert names == [scheme["name"] for scheme in schemes()["schemes"]]
    assert lib.sa_table(b"sa_superatom", ffi.NULL) == ffi.NULL


# ---- against the tables of the references, where they are at hand ----


def test_same_as_the_shared_ranges(test_data: Path) -> None:
    folder = test_data / "semantics"
    assert ranges_of(folder / "superatoms32.tsv", 4) == generated("superatom")
    assert ranges_of(folder / "scripts_hf.tsv", 4) == generated("script")
    atom = schemes()["superatom_atom"]
    assert ranges_of(folder / "atoms12.tsv", 4) == [atom[i] for i in generated("superatom")]


def test_range_data_is_the_shared_data(test_data: Path) -> None:
    for path in UNICODE.glob("*.tsv"):
        assert path.read_bytes() == (test_data / "unicode" / path.name).read_bytes(), path.name
