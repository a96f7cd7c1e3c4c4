"""Typed access to a JSON document: every complaint names the file and the key."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from saphira_gpu.errors import TokenizerFileError, UnsupportedError

T = TypeVar("T")

_NAMES = {dict: "an object", list: "a list", str: "a string", int: "an integer", bool: "a boolean"}


def shown(value: object, limit: int = 80) -> str:
    """A value as JSON, cut to a length that fits a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[:limit] + "…"


class Document:
    """A JSON file whose top level is an object; `origin` is what messages call it."""

    def __init__(self, data: bytes, origin: str) -> None:
        self.origin = origin
        try:
            root = json.loads(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise TokenizerFileError(f"{origin}: not UTF-8 at byte {error.start}") from None
        except RecursionError:
            raise TokenizerFileError(f"{origin}: nested too deeply") from None
        except ValueError as error:
            raise TokenizerFileError(f"{origin}: not JSON: {str(error)[:200]}") from None
        if type(root) is not dict:
            self.bad("top level", f"is {shown(root)}, not an object")
        self.root: dict[str, Any] = root

    def bad(self, key: str, why: str) -> NoReturn:
        """The file is malformed."""
        raise TokenizerFileError(f"{self.origin}: {key} {why}")

    def unsupported(self, key: str, value: object, why: str = "is not supported") -> NoReturn:
        """The file is in order but asks for something that isn't offered."""
        raise UnsupportedError(f"{self.origin}: {key} = {shown(value)} {why}")

    def typed(self, value: object, kind: type[T], key: str) -> T:
        """`value`, if it is exactly of a kind (a boolean is no integer)."""
        if type(value) is not kind:
            self.bad(key, f"is {shown(value)}, not {_NAMES[kind]}")
        return value

    def member(self, parent: dict[str, Any], name: str, kind: type[T], path: str) -> T:
        """A key that must be there."""
        key = f"{path}.{name}" if path else name
        if name not in parent:
            self.bad(key, "is missing")
        return self.typed(parent[name], kind, key)

    def only(self, parent: dict[str, Any], names: set[str], path: str) -> None:
        """Refuses keys that nobody here has heard of: what they ask for can't be honoured."""
        for name, value in parent.items():
            if name not in names:
                self.unsupported(f"{path}.{name}" if path else name, value, "is an unknown key")
