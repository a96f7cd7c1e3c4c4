"""Kernel files as one text: includes resolved and written out.

CuPy's cache looks at the text alone, so a changed header must change it; and NVRTC has no include
path here. `#line` keeps messages on the files as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from saphira_gpu._resources import resource
from saphira_gpu.errors import DeviceError

_DIRECTIVE = re.compile(r"^\s*#\s*(\w+)\b\s*(.*?)\s*$")
_NAME = re.compile(r'^"([^"]+)"\s*(?:/[/*].*)?$')


@dataclass(frozen=True, slots=True)
class Source:
    """path: the kernel file. text: it and its includes. files: all of them, as `#line` names
    them."""

    path: Path
    text: str
    files: tuple[str, ...]


def kernels_folder() -> Path:
    """Where kernels and their headers are."""
    return resource("kernels").resolve()


def flatten(file: str | Path) -> Source:
    """The text of a kernel file (under kernels/, or an absolute path) with its includes, each once.

    Raises DeviceError for an include that isn't under kernels/, isn't in quotes, or stands inside
    a condition (it would be left out where it comes a second time).
    """
    root = kernels_folder()
    path = (root / file).resolve()
    if not path.is_file():
        raise DeviceError(f"no kernel file {path}")
    seen: dict[Path, str] = {}
    return Source(path, "".join(_lines(path, root, seen)), tuple(seen.values()))


def _lines(path: Path, root: Path, seen: dict[Path, str]) -> list[str]:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    seen[path] = name
    lines = path.read_text(encoding="utf-8").splitlines()
    out = [f'#line 1 "{name}"\n']
    guarded = _has_guard(lines)
    depth = -1 if guarded else 0
    for number, line in enumerate(lines, 1):
        match = _DIRECTIVE.match(line)
        word = match[1] if match else ""
        depth += word.startswith("if")
        depth -= word == "endif"
        if match is None or word != "include":
            if word == "pragma" and match is not None and match[2].startswith("once"):
                line = ""
            out.append(line + "\n")
            continue
        where = f"{name}:{number}"
        target = _target(match[2], path, root, where)
        if depth > 0:
            raise DeviceError(f"{where}: an include inside a condition")
        if target in seen:
            out.append("\n")
        else:
            out += [*_lines(target, root, seen), f'#line {number + 1} "{name}"\n']
    return out


def _target(text: str, path: Path, root: Path, where: str) -> Path:
    quoted = _NAME.match(text)
    if not quoted:
        raise DeviceError(f"{where}: #include {text}: kernels include only the project's headers")
    for folder in (path.parent, root):
        target = (folder / quoted[1]).resolve()
        if target.is_file() and target.is_relative_to(root):
            return target
    raise DeviceError(f'{where}: no "{quoted[1]}" under {root}')


def _has_guard(lines: list[str]) -> bool:
    """Is the first directive `#ifndef X` and the second `#define X`?"""
    found = [match for line in lines if (match := _DIRECTIVE.match(line))][:2]
    return [match[1] for match in found] == ["ifndef", "define"] and (
        found[0][2].split()[:1] == found[1][2].split()[:1]
    )
