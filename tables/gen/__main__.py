"""`python -m tables.gen`: writes every file of tables/generated; with `--check`, compares instead.

The exit status is 0, or 1 where --check finds a file missing, different or unknown (each is named).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tables.gen import atoms, bytemap, emit, normalization, ranges, schemes, scripts, superatoms

GENERATED_DIR = Path(__file__).resolve().parent.parent / "generated"


def generate(profile_name: str | None = None) -> dict[str, str]:
    """The text of every generated file by its name."""
    data = schemes.load(profile_name)
    profile = data.profile
    superatom = superatoms.superatoms(profile)
    superatom_atom = atoms.atom_of_superatom(superatom, atoms.atoms(profile))
    script = scripts.scripts(profile)
    script_names = scripts.names(profile)
    source = f"profile {profile.name}"

    return {
        "ids.h": _ids_header(data, script_names),
        "superatoms.h": emit.header(
            "SUPERATOMS",
            source,
            "Superatoms: the tag of a character.",
            [
                emit.INCLUDES,
                emit.strings("sa_superatom_names", superatoms.NAMES, "names of superatoms"),
                emit.strings("sa_atom_names", atoms.NAMES, "names of atoms"),
                emit.array("uint8_t", "sa_superatom_atom", superatom_atom, "atom of a superatom"),
                *emit.two_level("sa_superatom", superatom),
            ],
        ),
        "scripts.h": emit.header(
            "SCRIPTS",
            source,
            "Scripts: the script of a character as the reference's UnicodeScripts sees it.",
            [
                emit.INCLUDES,
                emit.strings("sa_script_names", script_names, "names of scripts"),
                *emit.two_level("sa_script", script),
            ],
        ),
        "bytemap.h": emit.header(
            "BYTEMAP",
            "the three-run rule",
            "The byte alphabet of ByteLevel: one visible character for each byte.",
            [
                emit.INCLUDES,
                f"#define SA_BYTEMAP_CODE_POINTS {bytemap.CODE_POINTS}",
                "",
                emit.array(
                    "uint16_t", "sa_bytemap_symbol", bytemap.symbols(), "code point of a byte"
                ),
                emit.array(
                    "int16_t",
                    "sa_bytemap_byte",
                    bytemap.bytes_of_symbols(),
                    "byte of a code point below SA_BYTEMAP_CODE_POINTS; -1: no symbol",
                ),
            ],
        ),
        "normalization.h": emit.header(
            "NORMALIZATION",
            f"{normalization.NORMALIZATION}, {normalization.LOWERCASE}",
            "Normalization forms and lower case.",
            normalization.header_body(normalization.load()),
        ),
        "schemes.h": _schemes_header(data, superatom_atom),
        "schemes.json": schemes.as_json(data, superatom_atom, script_names),
        "superatoms.tsv": emit.range_text(superatom, superatoms.NAMES, source),
        "scripts.tsv": emit.range_text(script, script_names, source),
    }


def _ids_header(data: schemes.Schemes, script_names: tuple[str, ...]) -> str:
    """Numbers and no arrays: for every C, C++ and CUDA unit that names a tag or a class."""
    sizes = {
        "SUPERATOM": len(superatoms.NAMES),
        "ATOM": len(atoms.NAMES),
        "SCRIPT": len(script_names),
        "CLASS": len(data.classes),
        "REMAP": len(data.remaps),
        "SCHEME": len(data.schemes),
    }
    return emit.header(
        "IDS",
        "tables/schemes.toml",
        "Ids of tags, atoms, scripts, classes, remap rows and schemes.",
        [
            *(f"#define SA_{name}_COUNT {size}" for name, size in sizes.items()),
            "",
            emit.constants("SA_TAG", superatoms.NAMES, "superatoms: the tags of characters"),
            emit.constants("SA_ATOM", atoms.NAMES, "atoms: unions of superatoms"),
            emit.constants("SA_CLASS", data.classes, "classes: what remap rows give", data.classes),
            emit.constants("SA_REMAP", [r.name for r in data.remaps], "remap rows"),
            emit.constants("SA_SCHEME", [s.name for s in data.schemes], "schemes"),
            emit.constants("SA_RULES", schemes.RULES, "boundary rules: kernels/shared/rules_*.h"),
            emit.constants("SA_SCRIPT", script_names, "scripts"),
        ],
    )


def _schemes_header(data: schemes.Schemes, superatom_atom: list[int]) -> str:
    remap = schemes.resolve(data, superatom_atom)
    names = list(remap)
    return emit.header(
        "SCHEMES",
        "tables/schemes.toml",
        "Schemes and remap rows.",
        [
            emit.INCLUDES,
            emit.strings("sa_class_names", list(data.classes), "names of classes"),
            emit.strings("sa_remap_names", names, "names of remap rows"),
            emit.strings("sa_scheme_names", [s.name for s in data.schemes], "names of schemes"),
            emit.rows(
                "uint8_t", "sa_remap_row", remap, "SA_REMAP_COUNT", "class of each superatom"
            ),
            emit.array(
                "uint8_t",
                "sa_scheme_remap",
                [names.index(s.remap) for s in data.schemes],
                "remap row of a scheme",
            ),
            emit.array(
                "uint8_t",
                "sa_scheme_apart",
                [names.index(s.apart) if s.apart else 255 for s in data.schemes],
                "the row whose H or CJK the rules treat apart; 255: none",
            ),
            emit.array(
                "uint8_t",
                "sa_scheme_rules",
                [schemes.RULES.index(s.rules) for s in data.schemes],
                "boundary rules of a scheme, SA_RULES_*",
            ),
            *(
                emit.array(
                    "uint8_t",
                    f"sa_scheme_{option}",
                    [s.options.get(option, 0) for s in data.schemes],
                    f"the option `{option}` of the rules",
                )
                for option in schemes.OPTIONS
            ),
        ],
    )


def differences(files: dict[str, str]) -> list[str]:
    """What in tables/generated is not as generated, one line each."""
    found = []
    for name, text in files.items():
        path = GENERATED_DIR / name
        if not path.is_file():
            found.append(f"tables/generated/{name} is missing")
        elif path.read_text("utf-8") != text:
            found.append(f"tables/generated/{name} differs from what its sources give")
    found += [
        f"tables/generated/{path.name} is not generated by tables.gen"
        for path in sorted(GENERATED_DIR.iterdir())
        if path.name not in files
    ]
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tables.gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--profile", help="a profile of schemes.toml other than its default")
    options = parser.parse_args(argv)
    try:
        files = generate(options.profile)
    except (
        ranges.PinError,
        schemes.SchemeError,
        superatoms.UnknownCombination,
    ) as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        found = differences(files)
        for line in found:
            print(line, file=sys.stderr)
        print(f"{len(files)} tables checked, {len(found)} wrong")
        return 1 if found else 0
    GENERATED_DIR.mkdir(exist_ok=True)
    for name, text in files.items():
        (GENERATED_DIR / name).write_text(text, "utf-8")
        print(f"tables/generated/{name}: {len(text):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
