"""The `post_processor` and `decoder` of a tokenizer.json → what a Spec holds of them.

Post-processors: ByteLevel, RobertaProcessing, BertProcessing, TemplateProcessing (for one text;
what it does to a pair is not looked at), and Sequence of these with one template at most.
Decoders: ByteLevel, or a Sequence of it alone. The rest is refused by name.
"""

from __future__ import annotations

from typing import Any

from saphira_gpu.loaders._document import Document
from saphira_gpu.loaders._limits import MAX_ID
from saphira_gpu.spec import Decoder, PostProcessor

_BYTE_LEVEL = {"type", "add_prefix_space", "trim_offsets", "use_regex"}
_DEPTH = 16  # of Sequences within Sequences


def post_processor(doc: Document, value: object, key: str = "post_processor") -> PostProcessor:
    """Raises TokenizerFileError for a malformed one, UnsupportedError for one not supported."""
    return PostProcessor() if value is None else _post(doc, value, key, 0)


def decoder(doc: Document, value: object, suffix: str, key: str = "decoder") -> Decoder:
    """suffix: the model's end_of_word_suffix, which ByteLevel leaves in the text."""
    for depth in range(_DEPTH):
        if value is None:
            break
        stage = doc.typed(value, dict, key)
        kind = doc.member(stage, "type", str, key)
        if kind == "ByteLevel":
            _byte_level(doc, stage, key)
            break
        if kind != "Sequence" or depth == _DEPTH - 1:
            doc.unsupported(f"{key}.type", kind)
        doc.only(stage, {"type", "decoders"}, key)
        inner = doc.member(stage, "decoders", list, key)
        if len(inner) != 1:
            doc.unsupported(f"{key}.decoders", inner)
        value, key = inner[0], f"{key}.decoders[0]"
    return Decoder(suffix, suffix)


def _byte_level(doc: Document, stage: dict[str, Any], key: str) -> tuple[bool, ...]:
    doc.only(stage, _BYTE_LEVEL, key)
    doc.typed(stage.get("use_regex", True), bool, f"{key}.use_regex")
    return _trims(doc, stage, key)


def _trims(doc: Document, stage: dict[str, Any], key: str) -> tuple[bool, ...]:
    trims = doc.member(stage, "trim_offsets", bool, key)
    space = doc.member(stage, "add_prefix_space", bool, key)
    return (space,) if trims else ()


def _post(doc: Document, value: object, key: str, depth: int) -> PostProcessor:
    stage = doc.typed(value, dict, key)
    kind = doc.member(stage, "type", str, key)
    if kind == "ByteLevel":
        return PostProcessor(trims=_byte_level(doc, stage, key))
    if kind == "RobertaProcessing":
        doc.only(stage, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"}, key)
        trims = _trims(doc, stage, key)
        return PostProcessor(_pair(doc, stage, "cls", key), _pair(doc, stage, "sep", key), trims)
    if kind == "BertProcessing":
        doc.only(stage, {"type", "sep", "cls"}, key)
        return PostProcessor(_pair(doc, stage, "cls", key), _pair(doc, stage, "sep", key))
    if kind == "TemplateProcessing":
        return _template(doc, stage, key)
    if kind != "Sequence" or depth == _DEPTH:
        doc.unsupported(f"{key}.type", kind)
    doc.only(stage, {"type", "processors"}, key)
    whole = PostProcessor()
    for i, inner in enumerate(doc.member(stage, "processors", list, key)):
        part = _post(doc, inner, f"{key}.processors[{i}]", depth + 1)
        if (part.prefix or part.suffix) and (whole.prefix or whole.suffix):
            doc.unsupported(f"{key}.processors[{i}]", inner, "is a second template")
        whole = PostProcessor(
            whole.prefix + part.prefix, whole.suffix + part.suffix, whole.trims + part.trims
        )
    return whole


def _pair(doc: Document, stage: dict[str, Any], name: str, key: str) -> tuple[int, ...]:
    """The id of a [content, id]."""
    pair = doc.member(stage, name, list, key)
    if len(pair) != 2 or type(pair[0]) is not str:
        doc.bad(f"{key}.{name}", "is not a token and its id")
    return (_id(doc, pair[1], f"{key}.{name}[1]"),)


def _id(doc: Document, value: object, key: str) -> int:
    number = doc.typed(value, int, key)
    if not 0 <= number <= MAX_ID:
        doc.bad(key, f"is {number}, not an id from 0 to {MAX_ID}")
    return number


def _template(doc: Document, stage: dict[str, Any], key: str) -> PostProcessor:
    doc.only(stage, {"type", "single", "pair", "special_tokens"}, key)
    named = doc.member(stage, "special_tokens", dict, key)
    doc.member(stage, "pair", list, key)
    ids: list[int] = []
    before: list[int] | None = None
    for i, item in enumerate(doc.member(stage, "single", list, key)):
        where = f"{key}.single[{i}]"
        item = doc.typed(item, dict, where)
        if len(item) != 1:
            doc.bad(where, "is not one SpecialToken or one Sequence")
        ((kind, piece),) = item.items()
        piece = doc.typed(piece, dict, f"{where}.{kind}")
        name = doc.member(piece, "id", str, f"{where}.{kind}")
        if kind == "SpecialToken":
            if name not in named:
                doc.bad(where, f"names {name!r}, which is not in special_tokens")
            ids += _ids(doc, named[name], f"{key}.special_tokens[{name!r}]")
        elif kind == "Sequence" and name == "A" and before is None:
            before, ids = ids, []
        else:
            doc.unsupported(where, item)
    if before is None:
        doc.unsupported(f"{key}.single", stage["single"], "leaves the text out")
    return PostProcessor(tuple(before), tuple(ids))


def _ids(doc: Document, value: object, key: str) -> list[int]:
    token = doc.typed(value, dict, key)
    return [_id(doc, number, f"{key}.ids") for number in doc.member(token, "ids", list, key)]
