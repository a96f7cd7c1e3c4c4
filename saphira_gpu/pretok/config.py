"""HF's pre_tokenizer JSON → steps. Every complaint names the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from saphira_gpu.errors import TokenizerFileError
from saphira_gpu.loaders._document import Document
from saphira_gpu.pretok import regex, schemes
from saphira_gpu.pretok.steps import (
    AFTER,
    BEFORE,
    BEHAVIORS,
    DROP,
    RUN,
    Bytemap,
    Classes,
    Digits3,
    Length,
    Literal,
    Prefix,
    Regex,
    Replace,
    Scheme,
    Scripts,
    Step,
    cuts_of_class,
    cuts_of_match,
)

Node = dict[str, Any]

# Sequences may nest; deeper than this is no pretokenizer that anyone uses.
_DEPTH = 32
# Characters that mean something in a regular expression; text without them matches itself.
_META = set("\\.[](){}*+?|^$")
# Patterns for one character of a class, as (remap row, class); with + behind them, for a run of it.
_CLASSES = {
    r"\s": ("whitespace_split", "WS"),
    r"\p{L}": ("gpt2", "L"),
    r"\p{N}": ("gpt2", "N"),
    "[一-龥぀-ゟ゠-ヿ]": ("deepseek_cjk", "CJK"),
}
# Steps that make new text may double it, so their number is bounded.
_NEW_TEXTS = 8


def parse(config: Mapping[str, Any] | str | bytes, engine: str) -> tuple[Node, tuple[Step, ...]]:
    """The configuration as plain JSON, and its steps in order.

    config: the `pre_tokenizer` of a tokenizer.json, as a dict or as JSON text. engine: whose
    regular expressions the patterns are, "hf" or "tiktoken".
    Raises TokenizerFileError for a configuration that is malformed, UnsupportedError for a pattern
    that can't be honoured; both name the key.
    """
    if isinstance(config, Mapping):
        try:
            config = json.dumps(config, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise TokenizerFileError(f"pre_tokenizer: is no JSON: {error}") from None
    if isinstance(config, str):
        config = config.encode("utf-8", "surrogatepass")
    document = Document(bytes(config), "pre_tokenizer")
    return document.root, steps(document, document.root, "", engine)


def steps(document: Document, node: Node, path: str, engine: str) -> tuple[Step, ...]:
    """The steps of an object within a document, at the key `path`. Errors as for `parse`."""
    found = tuple(_Parser(document, engine).steps(node, path, 0))
    if sum(isinstance(step, Prefix | Replace | Bytemap) for step in found) > _NEW_TEXTS:
        document.unsupported(path or "pretokenizers", len(found), "change the text too often")
    return found


class _Parser:
    def __init__(self, document: Document, engine: str) -> None:
        self.document = document
        self.engine = engine
        self.types: dict[str, Callable[[Node, str], list[Step]]] = {
            "BertPreTokenizer": self.bert,
            "ByteLevel": self.byte_level,
            "CharDelimiterSplit": self.char_delimiter_split,
            "Digits": self.digits,
            "FixedLength": self.fixed_length,
            "Metaspace": self.metaspace,
            "Punctuation": self.punctuation,
            "Split": self.split,
            "UnicodeScripts": self.unicode_scripts,
            "Whitespace": self.whitespace,
            "WhitespaceSplit": self.whitespace_split,
        }

    def steps(self, node: Node, path: str, depth: int) -> list[Step]:
        kind = self.document.member(node, "type", str, path)
        if kind != "Sequence":
            if kind not in self.types:
                self.document.unsupported(_key(path, "type"), kind, "is no pretokenizer")
            return self.types[kind](node, path)
        self.only(node, path, "pretokenizers")
        if depth == _DEPTH:
            self.document.unsupported(_key(path, "pretokenizers"), depth, "levels are too many")
        key = _key(path, "pretokenizers")
        steps: list[Step] = []
        parts = self.document.member(node, "pretokenizers", list, path)
        skip = 0
        for i, part in enumerate(parts):
            if i < skip:
                continue
            known = schemes.find_sequence(_isolated_patterns(parts[i:]), self.engine)
            if known is not None:
                steps.append(Scheme(known[0]))
                skip = i + known[1]
                continue
            part = self.document.typed(part, dict, f"{key}[{i}]")
            steps += self.steps(part, f"{key}[{i}]", depth + 1)
        return steps

    # ---- one method a type; the defaults are HF's ----

    def whitespace(self, node: Node, path: str) -> list[Step]:
        self.only(node, path)
        return [Classes("whitespace", (("WS", DROP), ("W", RUN)))]

    def whitespace_split(self, node: Node, path: str) -> list[Step]:
        self.only(node, path)
        return [Classes("whitespace_split", (("WS", DROP),))]

    def bert(self, node: Node, path: str) -> list[Step]:
        self.only(node, path)
        return [Classes("bert", (("WS", DROP), ("P", BEFORE | AFTER)))]

    def punctuation(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "behavior")
        behavior = self.behavior(node, path) if "behavior" in node else "Isolated"
        return [Classes("punctuation", (("P", cuts_of_class(behavior)),))]

    def digits(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "individual_digits")
        individual = self.document.member(node, "individual_digits", bool, path)
        behavior = "Isolated" if individual else "Contiguous"
        return [Classes("digits", (("N", cuts_of_class(behavior)),))]

    def unicode_scripts(self, node: Node, path: str) -> list[Step]:
        self.only(node, path)
        return [Scripts()]

    def char_delimiter_split(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "delimiter")
        return [Literal(self.char(node, "delimiter", path), DROP)]

    def fixed_length(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "length")
        length = self.document.member(node, "length", int, path) if "length" in node else 5
        if not 1 <= length < 1 << 63:
            self.document.bad(_key(path, "length"), f"is {length}, not a number of characters")
        return [Length(length)]

    def byte_level(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "add_prefix_space", "trim_offsets", "use_regex")
        steps: list[Step] = []
        if self.document.member(node, "add_prefix_space", bool, path):
            steps.append(Prefix(" "))
        self.document.member(node, "trim_offsets", bool, path)  # of the post-processor
        if self.flag(node, "use_regex", path, default=True):
            steps.append(Scheme("gpt2"))
        return [*steps, Bytemap()]

    def metaspace(self, node: Node, path: str) -> list[Step]:
        self.only(
            node, path, "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"
        )
        replacement = self.char(node, "replacement", path)
        scheme = "always"
        if "prepend_scheme" in node:
            scheme = self.document.member(node, "prepend_scheme", str, path)
            if scheme not in ("always", "first", "never"):
                self.document.bad(
                    _key(path, "prepend_scheme"), f"is {scheme!r}, none of always, first, never"
                )
        if not self.flag(node, "add_prefix_space", path, default=True) and scheme != "never":
            self.document.bad(
                _key(path, "add_prefix_space"), f"is false, but prepend_scheme is {scheme!r}"
            )
        split = node.get("split") is None or self.document.member(node, "split", bool, path)
        steps: list[Step] = [Replace(replacement, scheme)]
        return [*steps, Literal(replacement, BEFORE)] if split else steps

    def split(self, node: Node, path: str) -> list[Step]:
        self.only(node, path, "pattern", "behavior", "invert")
        pattern = self.document.member(node, "pattern", dict, path)
        behavior = self.behavior(node, path)
        invert = self.document.member(node, "invert", bool, path)
        key = _key(path, "pattern")
        if len(pattern) != 1 or next(iter(pattern)) not in ("String", "Regex"):
            self.document.bad(key, "is not an object with one key, String or Regex")
        kind = next(iter(pattern))
        text = self.document.member(pattern, kind, str, key)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.document.bad(f"{key}.{kind}", "holds half of a surrogate pair")
        if not text:
            self.document.unsupported(f"{key}.{kind}", text, "matches the empty text")
        cuts = cuts_of_match(behavior, invert)
        if kind == "String":
            return [Literal(text, cuts)]
        scheme = schemes.find(text, self.engine, behavior, invert)
        if scheme is not None:
            # No match holds white space, so what lies between matches can go first.
            drops = behavior == "Removed" and schemes.has_gaps(scheme)
            first = [Classes("whitespace_split", (("WS", DROP),))] if drops else []
            return [*first, Scheme(scheme)]
        if text == "[0-9][0-9][0-9]":
            return [Digits3(cuts)]
        step = _class_step(text, behavior, invert)
        if step is not None:
            return [step]
        if not set(text) & _META and text.isprintable():
            return [Literal(text, cuts)]
        if self.engine != "hf":
            self.document.unsupported(
                f"{key}.Regex", text, f"is no compiled scheme of engine {self.engine!r}"
            )
        regex.check(self.document, f"{key}.Regex", text)
        return [Regex(text, cuts)]

    # ---- keys ----

    def only(self, node: Node, path: str, *keys: str) -> None:
        self.document.only(node, {"type", *keys}, path)

    def flag(self, node: Node, name: str, path: str, *, default: bool) -> bool:
        return self.document.member(node, name, bool, path) if name in node else default

    def behavior(self, node: Node, path: str) -> str:
        behavior = self.document.member(node, "behavior", str, path)
        if behavior not in BEHAVIORS:
            self.document.bad(
                _key(path, "behavior"), f"is {behavior!r}, none of {', '.join(BEHAVIORS)}"
            )
        return behavior

    def char(self, node: Node, name: str, path: str) -> str:
        text = self.document.member(node, name, str, path)
        if len(text) != 1 or 0xD800 <= ord(text) < 0xE000:
            self.document.bad(_key(path, name), f"is {text!r}, not one character")
        return text


def _isolated_patterns(parts: list[Any]) -> list[str]:
    """The patterns of the Splits(Regex, Isolated) that a list of pretokenizers starts with."""
    patterns = []
    for part in parts:
        match part:
            case {
                "type": "Split",
                "pattern": {"Regex": str(pattern), **rest},
                "behavior": "Isolated",
            } if not rest and len(part) == 4 and isinstance(part.get("invert"), bool):
                patterns.append(pattern)
            case _:
                break
    return patterns


def _class_step(pattern: str, behavior: str, invert: bool) -> Step | None:
    """The step of a pattern in _CLASSES, where cuts by class can do what the behaviour says."""
    one = pattern.removesuffix("+")
    if one not in _CLASSES:
        return None
    symmetric = behavior in ("Isolated", "Contiguous")  # under these, invert changes nothing
    if one == pattern:
        cuts = cuts_of_class(behavior) if symmetric or not invert else None
    else:
        cuts = RUN if symmetric else DROP if behavior == "Removed" and not invert else None
    row, name = _CLASSES[one]
    return None if cuts is None else Classes(row, ((name, cuts),))


def _key(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
