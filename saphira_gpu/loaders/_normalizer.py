"""The `normalizer` of a tokenizer.json → steps of a Spec.

Names and arguments are those of `tokenizers` 0.23.3. Supported: NFC, NFD, NFKC, NFKD, Lowercase,
Strip, Prepend, Replace of a string, Replace of the regex \\s+, and Sequence of these; the rest is
refused by name.
"""

from __future__ import annotations

from typing import Any

from saphira_gpu.loaders._document import Document
from saphira_gpu.spec import Normalizer

_FORMS = {"NFC": "nfc", "NFD": "nfd", "NFKC": "nfkc", "NFKD": "nfkd", "Lowercase": "lowercase"}
_SPACES = ("\\s+",)
_DEPTH = 16  # of Sequences within Sequences


def steps(doc: Document, value: object, key: str = "normalizer") -> tuple[Normalizer, ...]:
    """The steps of a normalizer object, in order; () for null.

    Raises TokenizerFileError for a malformed one, UnsupportedError for one that isn't supported.
    """
    return () if value is None else tuple(_steps(doc, value, key, 0))


def _steps(doc: Document, value: object, key: str, depth: int) -> list[Normalizer]:
    stage = doc.typed(value, dict, key)
    kind = doc.member(stage, "type", str, key)
    if kind in _FORMS:
        doc.only(stage, {"type"}, key)
        return [Normalizer(_FORMS[kind])]
    if kind == "Sequence":
        return _sequence(doc, stage, key, depth)
    if kind == "Strip":
        doc.only(stage, {"type", "strip_left", "strip_right"}, key)
        sides = ("left", "right")
        return [
            Normalizer(f"strip_{side}")
            for side in sides
            if doc.member(stage, f"strip_{side}", bool, key)
        ]
    if kind == "Prepend":
        doc.only(stage, {"type", "prepend"}, key)
        content = _text(doc, stage, "prepend", key)
        if not content:
            doc.unsupported(f"{key}.prepend", content)
        return [Normalizer("prepend", content=content)]
    if kind == "Replace":
        return [_replace(doc, stage, key)]
    doc.unsupported(f"{key}.type", kind)


def _sequence(doc: Document, stage: dict[str, Any], key: str, depth: int) -> list[Normalizer]:
    doc.only(stage, {"type", "normalizers"}, key)
    if depth == _DEPTH:
        doc.unsupported(key, stage, f"is a Sequence within more than {_DEPTH} others")
    inner = doc.member(stage, "normalizers", list, key)
    return [
        step
        for i, value in enumerate(inner)
        for step in _steps(doc, value, f"{key}.normalizers[{i}]", depth + 1)
    ]


def _replace(doc: Document, stage: dict[str, Any], key: str) -> Normalizer:
    doc.only(stage, {"type", "pattern", "content"}, key)
    content = _text(doc, stage, "content", key)
    pattern = doc.member(stage, "pattern", dict, key)
    if len(pattern) != 1:
        doc.bad(f"{key}.pattern", "is not one String or one Regex")
    ((how, _),) = pattern.items()
    if how not in ("String", "Regex"):
        doc.unsupported(f"{key}.pattern", pattern)
    wanted = _text(doc, pattern, how, f"{key}.pattern")
    if how == "String":
        if not wanted:
            doc.unsupported(f"{key}.pattern.String", wanted)
        return Normalizer("replace", wanted, content)
    if wanted not in _SPACES:
        doc.unsupported(f"{key}.pattern.Regex", wanted)
    if "$" in content:  # a reference to a group
        doc.unsupported(f"{key}.content", content, "is not supported behind a Regex")
    return Normalizer("replace_spaces", content=content)


def _text(doc: Document, parent: dict[str, Any], name: str, key: str) -> str:
    text = doc.member(parent, name, str, key)
    try:
        text.encode()
    except UnicodeEncodeError:
        doc.bad(f"{key}.{name}", "is not valid text: it holds a lone surrogate")
    return text
