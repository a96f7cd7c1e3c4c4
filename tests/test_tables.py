"""The generated tables against plain definitions read off the Unicode range data.

The definitions here are decisions about one code point, written from what each reference documents;
the generator works by set algebra. They share the range data and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "tables" / "generated"
UNICODE = ROOT / "tables" / "unicode"
N = 0x110000

# ---- what the files say ----


@lru_cache
def ucd(version: str) -> tuple[list[str], list[str], dict[str, bytearray]]:
    """(category, script, binary properties), each indexed by code point."""
    category, script = ["?"] * N, ["?"] * N
    binary: dict[str, bytearray] = {}
    for line in (UNICODE / f"ucd-{version}.0.0.tsv").read_text().splitlines():
        name, value, first, last = line.split("\t")
        a, b = int(first), int(last) + 1
        if name == "Binary_Property":
            binary.setdefault(value, bytearray(N))[a:b] = b"\1" * (b - a)
        else:
            target = category if name == "General_Category" else script
            target[a:b] = [value] * (b - a)
    assert "?" not in category
    return category, script, binary


def ranges_of(path: Path, columns: int) -> list[Any]:
    """ids by code point, of a file of lines: first, last (hex), id, name."""
    ids: list[Any] = [None] * N
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        assert len(fields) == columns
        first, last = int(fields[0], 16), int(fields[1], 16) + 1
        assert ids[first] is None and ids[last - 1] is None
        ids[first:last] = [int(fields[2])] * (last - first)
    assert None not in ids
    return ids


@lru_cache
def header(name: str) -> dict[str, list[Any]]:
    """The arrays of a generated header: C name to values (numbers, or strings for names)."""
    text = re.sub(r"/\*.*?\*/", "", (GENERATED / name).read_text(), flags=re.S)
    arrays: dict[str, list[Any]] = {}
    for array, body in re.findall(r"(\w+)(?:\[\w+\])+ = \{(.*?)\n\};", text, flags=re.S):
        words = re.findall(r'"\w+"|-?\d+', body)
        arrays[array] = [word.strip('"') if '"' in word else int(word) for word in words]
    return arrays


@lru_cache
def schemes() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GENERATED / "schemes.json").read_text("utf-8"))
    return loaded


@lru_cache
def generated(alphabet: str) -> list[int]:
    return ranges_of(GENERATED / f"{alphabet}s.tsv", 4)


def enum(prefix: str) -> list[str]:
    """The names of an enum of ids.h, without their prefix, in the order of their values."""
    text = (GENERATED / "ids.h").read_text()
    found = re.findall(rf"^  {prefix}_(\w+) = (\d+),", text, flags=re.M)
    assert [int(value) for _, value in found] == list(range(len(found)))
    return [name for name, _ in found]


# ---- what they should say ----


def where(version: str, kind: str) -> bytes:
    """1 for each code point whose General_Category ends in kind, such as `_Letter`."""
    return bytes(map(kind.__eq__, ("_" + name.rsplit("_", 1)[-1] for name in ucd(version)[0])))


CATEGORY, SCRIPT, BINARY = ucd("16")
LETTER, MARK, NUMBER = (where("16", kind) for kind in ("_Letter", "_Mark", "_Number"))
PUNCTUATION_8 = where("8", "_Punctuation")
NUMBER_17 = where("17", "_Number")
ALPHABETIC, WHITE_SPACE = BINARY["Alphabetic"], BINARY["White_Space"]


def is_kana(point: int) -> bool:
    return 0x3040 <= point <= 0x30FF


def is_ascii_punctuation(point: int) -> bool:
    return point < 0x80 and chr(point) in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def is_punctuation(point: int) -> bool:
    """Punctuation and BertPreTokenizer: Unicode 8.0, or one of the 32 of ASCII."""
    return bool(PUNCTUATION_8[point]) or is_ascii_punctuation(point)


def is_numeric(point: int) -> bool:
    """Digits: Unicode 17.0."""
    return bool(NUMBER_17[point])


def is_word(point: int) -> bool:
    """\\w of HF's Whitespace."""
    return (
        bool(ALPHABETIC[point] or MARK[point])
        or CATEGORY[point] in ("Decimal_Number", "Connector_Punctuation")
        or point in (0x200C, 0x200D)
    )


def is_han(point: int) -> bool:
    return SCRIPT[point] == "Han"


def superatom_of(point: int) -> str:
    category = CATEGORY[point]
    kind = category.rsplit("_", 1)[-1]
    if point in (0x20, 0x27, 0x2F, 0x0A, 0x0D):
        return {0x20: "Space", 0x27: "Apostrophe", 0x2F: "Slash"}.get(point, "Newline")
    if WHITE_SPACE[point]:
        return "WsOther"
    kana, han = is_kana(point), is_han(point)
    if kind == "Letter":
        if han:
            return "HanURO" if 0x4E00 <= point <= 0x9FA5 else "HanLetter"
        if kana:
            return "KanaLetter"
        cases = {
            "Uppercase_Letter": "Upper",
            "Titlecase_Letter": "Upper",
            "Lowercase_Letter": "Lower",
        }
        return cases.get(category, "LetterOther")
    if kind == "Mark":
        if han or kana:
            return "HanMark" if han else "KanaMark"
        return "MarkPunct" if is_punctuation(point) else "Mark"
    if kind == "Number":
        if han:
            return "HanNum"
        return "NumOther" if category == "Other_Number" else "NumWord"
    if kind == "Punctuation":
        if han or kana:
            return "HanPunct" if han else "KanaPunct"
        if category == "Connector_Punctuation":
            return "Connector"
        return "Punct" if is_punctuation(point) else "PunctNew"
    if kind == "Symbol":
        if han or kana:
            return "SymHan" if han else "KanaSym"
        if is_word(point):
            return "SymWord"
        return "SymPunct" if is_punctuation(point) else "Sym"
    if kana:
        return "OtherKana"
    if point in (0x200C, 0x200D):
        return "JoinControl"
    return "NumericNew" if is_numeric(point) else "Other"


def atom_of(point: int) -> str:
    category = CATEGORY[point]
    if point in (0x27, 0x0A, 0x0D, 0x20):
        return {0x27: "Apostrophe", 0x20: "Space"}.get(point, "Newline")
    if WHITE_SPACE[point]:
        return "WsOther"
    if NUMBER[point]:
        return "NumOther" if category == "Other_Number" else "NumWord"
    if LETTER[point]:
        return "Letter"
    if is_word(point):
        return "Connector" if is_punctuation(point) else "Mark"
    if is_punctuation(point):
        return "Punct"
    return "NumericOther" if is_numeric(point) else "SymOther"


def script_of(point: int) -> str:
    category, script, _ = ucd("9")
    if point == 0x20 or category[point] == "Unassigned" or script[point] == "Unknown":
        return "Any"
    if point == 0x30FC or script[point] in ("Hiragana", "Katakana"):
        return "Han"
    return script[point]


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


# ---- remap rows ----

# The reference's class of each atom, atoms in their order (0..11).
ATOM_ROWS = {
    "cl100k": "L N N NL SP WS O O O AP O O",
    "bytelevel": "L N N WS SP WS O O O O O O",
    "whitespace": "W W O WS WS WS W W O O O O",
    "whitespace_split": "O O O WS WS WS O O O O O O",
    "punctuation": "O O O O O O O P P P O O",
    "digits": "O N N O O O O O O O O N",
    "bert": "O O O WS WS WS O P P P O O",
}


@pytest.mark.parametrize("name", ATOM_ROWS)
def test_rows_of_the_atoms_consumers(name: str) -> None:
    classes = list(schemes()["classes"])
    by_atom = ATOM_ROWS[name].split()
    expected = [by_atom[atom] for atom in schemes()["superatom_atom"]]
    assert [classes[i] for i in schemes()["remap"][name]] == expected


def white(point: int) -> str | None:
    if point in (0x0A, 0x0D):
        return "NL"
    if point == 0x20:
        return "SP"
    return "WS" if WHITE_SPACE[point] else None


def cased(point: int) -> str:
    """Letters, marks and numbers of the o200k family."""
    if LETTER[point]:
        cases = {"Uppercase_Letter": "U", "Titlecase_Letter": "U", "Lowercase_Letter": "D"}
        return cases.get(CATEGORY[point], "X")
    return "M" if MARK[point] else "N" if NUMBER[point] else "O"


def cl100k_class(point: int) -> str:
    letter = "L" if LETTER[point] else "N" if NUMBER[point] else "O"
    return white(point) or ("AP" if point == 0x27 else letter)


def gpt2_class(point: int) -> str:
    found = cl100k_class(point)
    return "WS" if found == "NL" else found


def o200k_class(point: int) -> str:
    return white(point) or {0x27: "AP", 0x2F: "SL"}.get(point) or cased(point)


def o200k_han_class(point: int) -> str:
    return "H" if is_han(point) else white(point) or ("AP" if point == 0x27 else cased(point))


def qwen35_class(point: int) -> str:
    return "L" if MARK[point] else cl100k_class(point)


def deepseek_class(point: int) -> str:
    if CATEGORY[point].endswith(("_Punctuation", "_Symbol")):
        return "P"
    return white(point) or ("M" if MARK[point] else cl100k_class(point))


def deepseek_cjk_class(point: int) -> str:
    return "CJK" if is_kana(point) or 0x4E00 <= point <= 0x9FA5 else "O"


def whitespace_class(point: int) -> str:
    return "W" if is_word(point) else "WS" if WHITE_SPACE[point] else "O"


def punctuation_class(point: int) -> str:
    return "P" if is_punctuation(point) else "O"


def digits_class(point: int) -> str:
    return "N" if is_numeric(point) else "O"


def bert_class(point: int) -> str:
    return "WS" if WHITE_SPACE[point] else punctuation_class(point)


CLASS_OF: dict[str, Callable[[int], str]] = {
    "cl100k": cl100k_class,
    "gpt2": gpt2_class,
    "o200k": o200k_class,
    "o200k_han": o200k_han_class,
    "qwen35": qwen35_class,
    "deepseek": deepseek_class,
    "deepseek_cjk": deepseek_cjk_class,
    "whitespace": whitespace_class,
    "punctuation": punctuation_class,
    "digits": digits_class,
    "bert": bert_class,
}


@pytest.mark.parametrize("name", CLASS_OF)
def test_row_gives_the_class_of_every_code_point(name: str) -> None:
    classes = list(schemes()["classes"])
    row = [classes[i] for i in schemes()["remap"][name]]
    tags, class_of = generated("superatom"), CLASS_OF[name]
    assert {(tags[c], class_of(c)) for c in ASSIGNED} == set(enumerate(row))


# Beyond these, code points are unassigned or private in every version.
ASSIGNED = [*range(0x33480), *range(0xE0000, 0xE1000)]


@pytest.mark.parametrize("version", ["8", "9", "16", "17"])
def test_no_other_code_point_is_assigned(version: str) -> None:
    others = set(range(N)) - set(ASSIGNED)
    assert {ucd(version)[0][c] for c in others} == {"Unassigned", "Private_Use"}
    assert {generated("superatom")[c] for c in others} == {0}


def test_every_row_is_tested() -> None:
    assert set(schemes()["remap"]) == set(CLASS_OF) | set(ATOM_ROWS)


def test_c_and_python_have_the_same_schemes() -> None:
    data = schemes()
    arrays = header("schemes.h")
    names = list(data["remap"])
    rows = [data["remap"][name] for name in names]
    assert arrays["sa_remap_row"] == [class_id for row in rows for class_id in row]
    assert arrays["sa_remap_names"] == names
    assert arrays["sa_class_names"] == list(data["classes"])
    assert arrays["sa_scheme_names"] == [scheme["name"] for scheme in data["schemes"]]
    assert [names[i] for i in arrays["sa_scheme_remap"]] == [s["remap"] for s in data["schemes"]]
    assert enum("SA_CLASS") == list(data["classes"]) and len(data["classes"]) <= 16
    assert enum("SA_REMAP") == [name.upper() for name in names]
    assert enum("SA_SCHEME") == [scheme["name"].upper() for scheme in data["schemes"]]
    assert [name.replace("_", "") for name in enum("SA_TAG")] == [
        name.upper() for name in data["superatoms"]
    ]
    assert [name.replace("_", "") for name in enum("SA_ATOM")] == [
        name.upper() for name in data["atoms"]
    ]
    assert len(enum("SA_SCRIPT")) == len(data["scripts"])


def test_gpt2_is_scheme_0_with_the_references_pattern() -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public")
    scheme = schemes()["schemes"][0]
    assert (scheme["name"], scheme["behavior"], scheme["invert"]) == ("gpt2", "Isolated", False)
    assert scheme["patterns"]["tiktoken"] == public.r50k_pat_str


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


def test_same_as_the_shared_legend(test_data: Path) -> None:
    legend = json.loads((test_data / "semantics/superatoms32_legend.json").read_text("utf-8"))
    data = schemes()
    classes = list(data["classes"])
    assert [entry["name"] for entry in legend] == data["superatoms"]
    assert [entry["atom12"] for entry in legend] == [[atom] for atom in data["superatom_atom"]]
    # The rows here tell the apostrophe and the slash from their neighbours; the legend does not.
    columns = {
        "cl100k": ("gpt2_cl100k", {"AP": "O"}),
        "o200k": ("o200k", {"AP": "O", "SL": "O"}),
        "o200k_han": ("o200k_han", {"AP": "O", "H": "Han"}),
        "qwen35": ("qwen35", {"AP": "O"}),
        "deepseek": ("deepseek", {}),
        "deepseek_cjk": ("ds_cjk", {"CJK": True, "O": False}),
        "whitespace": ("whitespace", {"W": "Wrd", "O": "Sym", "WS": "ws"}),
        "punctuation": ("punct", {"P": True, "O": False}),
        "digits": ("numeric", {"N": True, "O": False}),
        "bert": ("bert", {}),
    }
    for name, (column, same) in columns.items():
        row = [classes[i] for i in data["remap"][name]]
        assert [same.get(c, c) for c in row] == [entry[column] for entry in legend], name


def test_patterns_are_the_shared_ones(test_data: Path) -> None:
    families = json.loads((test_data / "semantics/patterns.json").read_text("utf-8"))
    known = {family["pattern"] for family in families if isinstance(family["pattern"], str)}
    for scheme in schemes()["schemes"]:
        assert set(scheme["patterns"].values()) <= known


def test_range_data_is_the_shared_data(test_data: Path) -> None:
    for path in UNICODE.glob("*.tsv"):
        assert path.read_bytes() == (test_data / "unicode" / path.name).read_bytes(), path.name


# ---- the generator ----


def run_check(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tables.gen", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of tables/ that a test may damage, if it mends it afterwards."""
    folder = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "vocabs")
    shutil.copytree(ROOT / "tables", folder / "tables", ignore=ignore)
    return folder


def test_generated_files_are_up_to_date() -> None:
    status, output = run_check(ROOT, "--check")
    assert status == 0, output


def test_check_names_what_differs(copy: Path) -> None:
    folder = copy / "tables/generated"
    changed, gone, extra = folder / "superatoms.h", folder / "scripts.tsv", folder / "old.h"
    before = changed.read_text(), gone.read_text()
    changed.write_text(before[0].replace("10,", "11,", 1))
    gone.unlink()
    extra.write_text("")
    status, output = run_check(copy, "--check")
    assert status == 1
    for path in (changed, gone, extra):
        assert f"tables/generated/{path.name}" in output
    assert "3 wrong" in output
    # Writing mends what it writes; the file nobody generates stays, and --check still names it.
    assert run_check(copy)[0] == 0
    assert (changed.read_text(), gone.read_text()) == before
    status, output = run_check(copy, "--check")
    assert status == 1 and "1 wrong" in output
    extra.unlink()
    assert run_check(copy, "--check")[0] == 0


def test_range_data_is_pinned(copy: Path) -> None:
    path = copy / "tables/unicode/ucd-16.0.0.tsv"
    before = path.read_text()
    path.write_text(before.replace("\t65\t90\n", "\t65\t91\n", 1))
    try:
        status, output = run_check(copy, "--check")
    finally:
        path.write_text(before)
    assert status == 1 and "ucd-16.0.0.tsv" in output and "sha256" in output


def test_every_range_file_is_listed() -> None:
    lines = (UNICODE / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in UNICODE.glob("*.tsv")
    }
    assert listed == files


def test_another_profile_is_data(copy: Path) -> None:
    path = copy / "tables/schemes.toml"
    before = path.read_text()
    versions = "".join(f'{key} = "17.0.0"\n' for key in ("regex", "numeric", "norm", "scripts"))
    path.write_text(
        f'{before}\n[profiles.next]\n{versions}punct = "8.0.0"\n'
        f'[profiles.unfit]\n{versions}punct = "17.0.0"\n'
    )
    try:
        status, output = run_check(copy, "--profile", "next", "--check")
        assert status == 1 and "superatoms.tsv differs" in output and "scripts.tsv" in output
        # Punctuation that is also Han is no superatom: said, not guessed.
        status, output = run_check(copy, "--profile", "unfit", "--check")
        assert status == 1 and "U+16FE2 of unfit: no superatom is ['P', 'punct', 'han']" in output
        status, output = run_check(copy, "--profile", "none", "--check")
        assert status == 1 and "no profile 'none'" in output
    finally:
        path.write_text(before)
