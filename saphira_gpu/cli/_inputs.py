"""Files, folders, globs and fsspec URLs become a list of sources, each with its place in the
output.

The place of a file is its path relative to the folder argument (or to the part of a glob before its
first wildcard), or the file's own name. Folders are walked for the suffixes below; as in other
Arrow and Spark tools, names that start with `.` or `_` are skipped there, and so is the output
folder.
"""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from saphira_gpu.cli._errors import describe
from saphira_gpu.errors import InputError

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")


@dataclass(frozen=True)
class Source:
    """One input file.

    shown: the name messages use. path: a local path, or the path inside `fs`. relative: its place
    in the output, still with its own suffix. size: bytes, 0 if unknown. fs: an fsspec file system,
    or None for a local file.
    """

    shown: str
    path: str
    relative: str
    size: int
    fs: Any = None

    @property
    def is_parquet(self) -> bool:
        return self.path.lower().endswith(PARQUET)


def expand(arguments: list[str], out: Path) -> list[Source]:
    """All input files, in a fixed order: arguments as given, folders and globs sorted by name.

    Raises InputError for an argument that is empty or matches nothing, or a file that is neither
    Parquet nor Arrow IPC by its suffix.
    """
    sources: list[Source] = []
    for argument in arguments:
        if not argument:  # a shell variable that isn't set; as a path it would be this folder
            raise InputError("an input is an empty string: name a file, a folder or a URL")
        if "://" in argument and not Path(argument).exists():
            sources.extend(_from_url(argument))
        else:
            sources.extend(_from_path(argument, out))
    return sources


def _from_path(argument: str, out: Path) -> Iterator[Source]:
    path = Path(argument)
    if path.is_dir():
        found = list(_folder(path, path, out))
        if not found:
            raise InputError(
                f"{argument}: no {' or '.join((*PARQUET, *ARROW))} file in this folder"
            )
        yield from found
    elif path.exists():
        yield _local(path, path.name)
    elif glob.has_magic(argument):
        base = _before_magic(argument)
        # sorted by parts, so that a folder's files stay together
        names = glob.glob(argument, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute one)
        matches = sorted(map(Path, names), key=lambda p: p.parts)
        folders = {match: None for match in matches if match.is_dir()}
        chosen = [match for match in matches if match not in folders]
        if "**" not in argument:  # there a folder's files are matches themselves
            chosen += [Path(s.path) for folder in folders for s in _folder(folder, base, out)]
        output = out.resolve()
        if not base.resolve().is_relative_to(output):  # outputs of an earlier run are no inputs
            chosen = [match for match in chosen if not match.resolve().is_relative_to(output)]
        if not chosen:
            raise InputError(f"{argument}: no file matches")
        for match in dict.fromkeys(chosen):
            yield _local(match, match.relative_to(base).as_posix())
    else:
        raise InputError(f"{argument}: no such file or folder")


def _before_magic(pattern: str) -> Path:
    """The folder that a glob starts from: its parts before the first with a wildcard."""
    parts: list[str] = []
    for part in Path(pattern).parts:
        if glob.has_magic(part):
            break
        parts.append(part)
    return Path(*parts)


def _local(path: Path, relative: str) -> Source:
    _check_suffix(str(path), path.name)
    return Source(str(path), str(path), relative, path.stat().st_size)


def _folder(folder: Path, base: Path, out: Path) -> Iterator[Source]:
    """The data files below `folder`, placed relative to `base`."""
    skipped = out.resolve()
    top = folder.resolve()
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(
            name
            for name in folders
            if not _hidden(name) and ((Path(root) / name).resolve() != skipped or skipped == top)
        )
        for name in sorted(names):
            if not _hidden(name) and name.lower().endswith((*PARQUET, *ARROW)):
                path = Path(root) / name
                yield _local(path, path.relative_to(base).as_posix())


def _raise(error: OSError) -> None:
    raise error


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _check_suffix(shown: str, name: str) -> None:
    if not name.lower().endswith((*PARQUET, *ARROW)):
        kind = PurePosixPath(name).suffix
        what = f"{kind} files are" if kind else "a file without a suffix is"
        raise InputError(
            f"{shown}: {what} not supported; "
            f"Parquet ({', '.join(PARQUET)}) and Arrow IPC ({', '.join(ARROW)}) are"
        )


def _from_url(url: str) -> Iterator[Source]:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path):
            base, info = str(_before_magic(path)), fs.glob(path, detail=True)
            for name in sorted(info):
                if info[name]["type"] == "file":
                    yield _remote(fs, name, os.path.relpath(name, base), info[name])
            if not info:
                raise InputError(f"{url}: no file matches")
        elif fs.isdir(path):
            yield from _remote_folder(url, fs, path)
        else:
            yield _remote(fs, path, PurePosixPath(path).name, fs.info(path))
    except FileNotFoundError:
        raise InputError(f"{url}: no such file or folder") from None
    except InputError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise InputError(f"{url}: {describe(error)}") from None


def _remote_folder(url: str, fs: Any, path: str) -> Iterator[Source]:
    empty = True
    for name, info in sorted(fs.find(path, detail=True).items()):
        relative = os.path.relpath(name, path)
        hidden = any(map(_hidden, PurePosixPath(relative).parts))
        if not hidden and name.lower().endswith((*PARQUET, *ARROW)):
            empty = False
            yield _remote(fs, name, relative, info)
    if empty:
        raise InputError(f"{url}: no {' or '.join((*PARQUET, *ARROW))} file in this folder")


def _remote(fs: Any, path: str, relative: str, info: dict[str, Any]) -> Source:
    shown = fs.unstrip_protocol(path)
    _check_suffix(shown, PurePosixPath(path).name)
    return Source(shown, path, relative, int(info.get("size") or 0), fs)


def place(sources: list[Source], out: Path, overwrite: bool) -> list[Path]:
    """The target of every source, checked before any work.

    Raises InputError where two sources have one target, a target is one of the sources, or a target
    exists and `overwrite` is false.
    """
    taken: dict[Path, Source] = {}
    inputs: dict[tuple[int, int], str] = {}
    for source in sources:
        local = source.path if source.fs is None or _is_local(source.fs) else None
        if local is not None:
            stat = Path(local).stat()
            inputs[stat.st_dev, stat.st_ino] = source.shown
        target = out / PurePosixPath(source.relative).with_suffix(".parquet")
        if target in taken:
            raise InputError(f"{taken[target].shown} and {source.shown} would both become {target}")
        taken[target] = source
    for target in taken:
        blocked = next((p for p in target.parents if p.exists() and not p.is_dir()), None)
        if blocked is not None:
            raise InputError(f"{blocked} is a file, where a folder is to be")
        if not os.path.lexists(target):
            continue
        if target.exists():
            stat = target.stat()
            same = inputs.get((stat.st_dev, stat.st_ino))
            if same is not None:
                raise InputError(f"{target} is the input {same} itself; choose another --out")
        if target.is_dir():
            raise InputError(f"{target} is a folder, where a file is to be written")
        if not overwrite:
            raise InputError(f"{target} exists; give --overwrite to replace it")
    return list(taken)


def _is_local(fs: Any) -> bool:
    protocol = fs.protocol if isinstance(fs.protocol, tuple | list) else (fs.protocol,)
    return "file" in protocol or "local" in protocol
