"""Remap rows and schemes against plain definitions and the references."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from definitions import (
    ASSIGNED,
    CATEGORY,
    LETTER,
    MARK,
    NUMBER,
    WHITE_SPACE,
    enum,
    generated,
    header,
    is_han,
    is_kana,
    is_numeric,
    is_punctuation,
    is_word,
    schemes,
)

# ---- remap rows ----

# The reference's class of each atom, atoms in their order (0..11).
ATOM_ROWS = {
    "cl100k": "L N N NL SP WS O O O AP O O",
    "bytelevel": "L N N WS SP WS O O O O O O",
    "starcoder": "L N N WS SP WS O O O AP O N",
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
    apart = [names[i] if i < len(names) else "" for i in arrays["sa_scheme_apart"]]
    assert apart == [scheme["apart"] for scheme in data["schemes"]]
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


# ---- the references themselves, on every assigned code point ----

# The class of the row, and what HF does to the character between two letters `a`: (a piece starts
# before it, a piece starts after it). A Regex is Isolated; one that matches `a` would isolate that
# too, so those are stated by their complement.
KEPT, DROPPED, APART = (False, False), (False, True), (True, True)
REFERENCES: dict[str, tuple[str, str, dict[str, tuple[bool, bool]]]] = {
    "Digits": ("digits", "Digits", {"N": APART}),
    "Punctuation": ("punctuation", "Punctuation", {"P": APART}),
    "WhitespaceSplit": ("whitespace_split", "WhitespaceSplit", {"WS": DROPPED}),
    "Whitespace": ("whitespace", "Whitespace", {"W": KEPT, "WS": DROPPED, "O": APART}),
    "Bert": ("bert", "BertPreTokenizer", {"WS": DROPPED, "P": APART}),
    "L": (
        "cl100k",
        r"[^\p{L}]",
        {"L": KEPT, **dict.fromkeys(("O", "N", "NL", "SP", "WS", "AP"), APART)},
    ),
    "N": ("cl100k", r"\p{N}", {"N": APART}),
    "s": ("cl100k", r"\s", dict.fromkeys(("NL", "SP", "WS"), APART)),
    "upper": ("o200k", r"[\p{Lu}\p{Lt}]", {"U": APART}),
    "lower": (
        "o200k",
        r"[^\p{Ll}]",
        {
            "D": KEPT,
            **dict.fromkeys(("O", "U", "X", "M", "N", "NL", "SP", "WS", "AP", "SL"), APART),
        },
    ),
    "no case": ("o200k", r"[\p{Lm}\p{Lo}]", {"X": APART}),
    "M": ("o200k", r"\p{M}", {"M": APART}),
    "Han": ("o200k_han", r"\p{Han}", {"H": APART}),
    "L or M": (
        "qwen35",
        r"[^\p{L}\p{M}]",
        {"L": KEPT, **dict.fromkeys(("O", "N", "NL", "SP", "WS", "AP"), APART)},
    ),
    "P or S": ("deepseek", r"[\p{P}\p{S}]", {"P": APART}),
    "CJK": ("deepseek_cjk", "[一-龥\u3040-ゟ゠-ヿ]", {"CJK": APART}),
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_row_is_what_the_reference_does(reference: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    row_name, how, outcomes = REFERENCES[reference]
    points = [c for c in ASSIGNED if not 0xD800 <= c <= 0xDFFF]
    text = "".join("aa" + chr(c) for c in points) + "aa"
    if how == "Digits":
        pretokenizer = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    elif how.isidentifier():
        pretokenizer = getattr(tokenizers.pre_tokenizers, how)()
    else:
        pretokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(how), "isolated")
    starts = bytearray(len(text) + 1)
    for _, (start, _) in pretokenizer.pre_tokenize_str(text):
        starts[start] = 1

    classes = list(schemes()["classes"])
    tags = generated("superatom")
    expected = [outcomes.get(classes[i], KEPT) for i in schemes()["remap"][row_name]]
    wrong = [
        f"{c:04X}"
        for i, c in enumerate(points)
        if (starts[3 * i + 2] == 1, starts[3 * i + 3] == 1) != expected[tags[c]]
    ]
    assert wrong == []


# ---- the shared tables, where they are at hand ----


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
    known = [family["pattern"] for family in families]
    for scheme in schemes()["schemes"]:
        assert all(pattern in known for pattern in scheme["patterns"].values())
