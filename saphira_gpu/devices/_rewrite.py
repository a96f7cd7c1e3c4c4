"""A CUDA kernel file as C++ for the host executor: shared variables and exports, nothing else.

`__shared__ T name[n];` becomes a reference to the block's own copy; each kernel gets an export at
the end of the text. Lines keep their numbers. All else that CUDA adds to C++ is supplied by names
in kernels/host/cuda_names.h.
"""

from __future__ import annotations

import re

from saphira_gpu.errors import DeviceError

_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_DEFINE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\)*", re.MULTILINE)
_LINE = re.compile(r'^#line (\d+) "([^"]*)"$', re.MULTILINE)
_SHARED = re.compile(
    r"(?P<lead>(?:\b(?:extern|static)\s+)*)__shared__\b(?P<rest>[^;{}]*)(?P<end>[;{])"
)
_ALIGN = re.compile(r"\b(?:__align__|alignas)\s*\(([^()]*)\)")
_DECLARATOR = re.compile(
    r"^(?P<type>.*?[\s*&>])(?P<name>[A-Za-z_]\w*)\s*(?P<dims>(?:\[[^\[\]]*\]\s*)*)$", re.DOTALL
)
_KERNEL = re.compile(
    r"__global__\s+(?P<attributes>(?:[^();{}]|\([^()]*\))*?)\b(?P<name>(?!__launch_bounds__)\w+)\s*\("
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*([^(),]+)")


def rewrite(text: str) -> tuple[str, tuple[str, ...]]:
    """C++ text and the names of its kernels.

    Raises DeviceError for a shared declaration with more than one name, an initialiser or a type
    of its own, and for kernels whose names C++ would decorate (templates too).
    """
    plain = _blank_comments(text)
    out: list[str] = []
    end = 0
    for number, match in enumerate(_SHARED.finditer(plain)):
        out += [text[end : match.start()], _shared(text, plain, match, number)]
        end = match.end()
    out.append(text[end:])
    exports: dict[str, str] = {}
    for match in _KERNEL.finditer(plain):
        if not re.search(r'extern\s+"C"\s*$', text[: match.start()]):
            where = _where(text, match.start())
            raise DeviceError(f'{where}: kernel {match["name"]} lacks extern "C" before __global__')
        bounds = _BOUNDS.search(match["attributes"])
        exports.setdefault(match["name"], bounds[1].strip() if bounds else "0")
    out.append('\n#line 1 "exports"\n')
    out += [f"HX_EXPORT({name}, {bounds})\n" for name, bounds in exports.items()]
    return "".join(out), tuple(exports)


def _shared(text: str, plain: str, match: re.Match[str], number: int) -> str:
    where = _where(text, match.start("rest"))
    rest = match["rest"]
    aligned = _ALIGN.search(rest)
    align = aligned[1].strip() if aligned else "1"
    declarator = _DECLARATOR.match(_ALIGN.sub(" ", rest).strip())
    if match["end"] == "{" or "=" in rest or not declarator or "," in _no_brackets(rest):
        raise DeviceError(f"{where}: write __shared__ as one `type name[size];` a statement")
    kind, name, sizes = (" ".join(declarator[part].split()) for part in ("type", "name", "dims"))
    lines = "\n" * match[0].count("\n")
    if "extern" in match["lead"]:
        if re.fullmatch(r"\[\s*\]", sizes) is None:
            raise DeviceError(f"{where}: extern __shared__ is an array without a size")
        return f"{kind} *{name} = hx_shared_pointer<{kind}, {align}>();{lines}"
    call = f'hx_shared_variable<{number}, {kind} {sizes}, {align}>("{name}", __LINE__)'
    return f"auto &{name} = {call};{lines}"


def _no_brackets(text: str) -> str:
    """The text without what stands in brackets of any kind."""
    depth = 0
    kept = []
    for char in text:
        depth += char in "([<"
        if depth == 0:
            kept.append(char)
        depth -= char in ")]>"
    return "".join(kept)


def _blank_comments(text: str) -> str:
    """Comments, strings and directives as spaces, so that nothing in them is taken for code."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _DEFINE.sub(blank, _TOKEN.sub(blank, text))


def _where(text: str, position: int) -> str:
    name, first, start = "kernel", 1, 0
    for match in _LINE.finditer(text, 0, position):
        name, first, start = match[2], int(match[1]), match.end() + 1
    return f"{name}:{first + text.count(chr(10), start, position)}"
