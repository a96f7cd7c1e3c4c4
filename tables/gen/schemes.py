"""Reads `tables/schemes.toml`: profiles, the class alphabet, remap rows and schemes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tables.gen import atoms, superatoms
from tables.gen.superatoms import Profile

SCHEMES_TOML = Path(__file__).resolve().parent.parent / "schemes.toml"
MAX_CLASSES = 16
RULES = ("gpt2", "cl100k", "o200k", "deepseek")  # kernels/shared/rules_*.h
# What a scheme may set of its rules: the most characters of a number piece (0: no limit); whether
# white space that reaches the end of a segment is one piece; whether words take contractions;
# whether CLIP's literals are pieces.
OPTIONS = ("numbers", "whole_end", "suffixes", "literals")
BEHAVIORS = ("Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext")


@dataclass(frozen=True)
class Remap:
    """A row: the class id of each atom (12 values) or of each superatom (32 values)."""

    name: str
    doc: str
    row: tuple[int, ...]


@dataclass(frozen=True)
class Scheme:
    name: str
    doc: str
    remap: str
    apart: str  # a second row, whose H or CJK the rules treat apart; "": none
    rules: str
    options: dict[str, int]
    behavior: str
    invert: bool
    patterns: dict[str, str | list[str]]  # several: each splits the pieces of the one before


@dataclass(frozen=True)
class Schemes:
    profile: Profile
    classes: dict[str, str]
    remaps: tuple[Remap, ...]
    schemes: tuple[Scheme, ...]


class SchemeError(Exception):
    """A contradiction in schemes.toml; the message names the table and key."""


def load(profile: str | None = None) -> Schemes:
    """Reads and checks schemes.toml. profile: a name to use instead of the file's own."""
    data = tomllib.loads(SCHEMES_TOML.read_text("utf-8"))
    name = profile or data["profile"]
    if name not in data["profiles"]:
        raise SchemeError(f"no profile {name!r}; there are {sorted(data['profiles'])}")
    classes: dict[str, str] = data["classes"]
    if len(classes) > MAX_CLASSES:
        raise SchemeError(f"{len(classes)} classes do not fit four bits")
    remaps = tuple(_remap(key, table, list(classes)) for key, table in data["remap"].items())
    schemes = []
    for table in data["schemes"]:
        table = {"options": {}, "apart": "", **table}
        if table.pop("profile") not in data["profiles"]:
            raise SchemeError(f"scheme {table['name']}: unknown profile")
        keys = {field.name for field in fields(Scheme)}
        if set(table) != keys:
            raise SchemeError(f"scheme {table['name']}: its keys are not {sorted(keys)}")
        scheme = Scheme(**table)
        for row in {scheme.remap, scheme.apart or scheme.remap} - {remap.name for remap in remaps}:
            raise SchemeError(f"scheme {scheme.name}: no remap row {row!r}")
        if scheme.rules not in RULES:
            raise SchemeError(f"scheme {scheme.name}: no rules {scheme.rules!r}")
        for option in set(scheme.options) - set(OPTIONS):
            raise SchemeError(f"scheme {scheme.name}: no option {option!r}")
        if scheme.behavior not in BEHAVIORS:
            raise SchemeError(f"scheme {scheme.name}: no behavior {scheme.behavior!r}")
        schemes.append(scheme)
    return Schemes(Profile(name, **data["profiles"][name]), classes, remaps, tuple(schemes))


def _remap(name: str, table: dict[str, Any], classes: list[str]) -> Remap:
    """A row as schemes.toml has it, checked; `resolve` spreads rows by atom over the superatoms."""
    table = dict(table)
    doc, by, rest = table.pop("doc"), table.pop("by"), table.pop("rest")
    if by not in ("atom", "superatom"):
        raise SchemeError(f"remap {name}: by = {by!r} is neither 'atom' nor 'superatom'")
    members = atoms.NAMES if by == "atom" else superatoms.NAMES
    row = [classes.index(rest)] * len(members)
    seen: set[str] = set()
    for class_name, names in table.items():
        if class_name not in classes:
            raise SchemeError(f"remap {name}: no class {class_name!r}")
        for member in names:
            if member not in members or member in seen:
                raise SchemeError(
                    f"remap {name}.{class_name}: no {by} {member!r}, or it is twice there"
                )
            seen.add(member)
            row[members.index(member)] = classes.index(class_name)
    return Remap(name, doc, tuple(row))


def resolve(schemes: Schemes, superatom_atom: list[int]) -> dict[str, list[int]]:
    """Every remap row as 32 class ids by superatom."""
    rows = {}
    for remap in schemes.remaps:
        if len(remap.row) == len(atoms.NAMES):
            rows[remap.name] = [remap.row[atom] for atom in superatom_atom]
        else:
            rows[remap.name] = list(remap.row)
    return rows


def as_json(schemes: Schemes, superatom_atom: list[int], scripts: tuple[str, ...]) -> str:
    """What Python reads at run time: names, ids and rows as the C side has them."""
    rows = resolve(schemes, superatom_atom)
    return (
        "{\n"
        + ",\n".join(
            f"{json.dumps(key)}: {_compact(value)}"
            for key, value in {
                "profile": vars(schemes.profile),
                "superatoms": superatoms.NAMES,
                "atoms": atoms.NAMES,
                "scripts": scripts,
                "superatom_atom": superatom_atom,
                "classes": schemes.classes,
                "remap": rows,
                "schemes": [vars(scheme) for scheme in schemes.schemes],
            }.items()
        )
        + "\n}\n"
    )


def _compact(value: object) -> str:
    """JSON with one line a member where the members are collections."""
    if isinstance(value, dict) and not all(isinstance(v, str) for v in value.values()):
        lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        items = [" " + json.dumps(v, indent=1).replace("\n", "\n ") for v in value]
        return "[\n" + ",\n".join(items) + "]"
    if isinstance(value, dict):
        return json.dumps(value, indent=1)
    return json.dumps(value)
