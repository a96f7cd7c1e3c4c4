"""Split patterns without a compiled scheme: Oniguruma, the library that HF uses, finds their
matches.

It is an extra, `pip install saphira-gpu[regex]` (onigurumacffi; no wheel for Linux on aarch64). It
reads UTF-8 only, so rows that are not are refused; and it backtracks, so time is the pattern's
affair.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import numpy as np

from saphira_gpu._arrays import U8, U64
from saphira_gpu.engines.cpu import ffi, lib
from saphira_gpu.errors import InputError, UnsupportedError
from saphira_gpu.loaders._document import Document

# Texts that show up most patterns that can match nothing: every kind of character, alone and next
# to the others. Patterns that get past them are found out by the first such match.
_PROBES = ("", "a", "A1 b2\n", "'s x-y_z  \t\r\n..", "é中あ\u0301٣²€\u200d!", "aa bb 11 22 ")


def check(document: Document, key: str, pattern: str) -> None:
    """Refuses, naming the key, a pattern that doesn't compile or that can match the empty text, and
    any pattern where Oniguruma is not installed."""
    try:
        compiled = _compiled(pattern)
    except ImportError:
        document.unsupported(
            key, pattern, "is no compiled scheme; other patterns need the extra saphira-gpu[regex]"
        )
    except UnsupportedError as error:
        document.bad(key, str(error))
    for probe in _PROBES:
        raw = probe.encode()
        if any(start == end for start, end in compiled.matches(raw)):
            document.unsupported(key, pattern, "can match the empty text")


class Pattern:
    """A compiled pattern, HF's syntax and options (Ruby's syntax, UTF-8)."""

    def __init__(self, pattern: str) -> None:
        import onigurumacffi

        self._onig: Any = onigurumacffi
        self.pattern = pattern
        try:
            self._compiled = onigurumacffi.compile(pattern)
        except onigurumacffi.OnigError as error:
            raise UnsupportedError(f"is no regular expression: {error}") from None

    def matches(self, text: bytes) -> list[tuple[int, int]]:
        """(start, end) of every match in a text of its own, leftmost first, none inside another; an
        empty match is the last one listed."""
        library, region = self._onig._lib, self._onig._region()
        found: list[tuple[int, int]] = []
        at = 0
        while at < len(text) or not found:
            status = library.onigcffi_search(
                self._compiled._regex_t, text, len(text), at, region, 0
            )
            if status == library.ONIG_MISMATCH:
                break
            if status < 0:
                raise InputError(
                    f"Oniguruma gave up on {self.pattern!r}: {self._onig._err(status)}"
                )
            start, end = int(region[0].beg[0]), int(region[0].end[0])
            found.append((start, end))
            if start == end:
                break
            at = end
        return found


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Pattern:
    return Pattern(pattern)


class Matcher:
    """A pattern as the core calls it (`sa_match`). An exception in a call can't pass through C: it
    is kept for the thread, until `raise_error`."""

    def __init__(self, pattern: str) -> None:
        self._pattern = _compiled(pattern)
        self._errors = threading.local()
        self.callback = ffi.callback("sa_match", self._call, error=lib.SA_ERR_ARGUMENT)

    def _call(
        self, context: Any, text: Any, n: int, pieces: Any, dropped: Any, starts: Any, matched: Any
    ) -> int:
        try:
            self._find(text, n, pieces, dropped, starts, matched)
        except BaseException as error:
            self._errors.kept = error
            return int(lib.SA_ERR_ARGUMENT)
        return int(lib.SA_OK)

    def raise_error(self) -> None:
        """Raises what a call on this thread raised, if one did."""
        error, self._errors.kept = getattr(self._errors, "kept", None), None
        if error is not None:
            raise error

    def _find(
        self, text: Any, n: int, pieces: Any, dropped: Any, starts: Any, matched: Any
    ) -> None:
        words = n // 64 + 1
        data = bytes(ffi.buffer(text, n))
        cuts = np.flatnonzero(_bits(pieces, words)).astype(np.int64)
        skip = _bits(dropped, words)
        first: list[int] = []
        behind: list[int] = []
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if skip[start]:
                continue
            for a, b in self._pattern.matches(data[start:end]):
                if a == b:
                    raise InputError(f"{self._pattern.pattern!r} matched the empty text")
                first.append(start + a)
                behind.append(start + b)
        _store(starts, words, _marks(first, 64 * words))
        steps = np.zeros(64 * words, np.int8)
        steps[first] += 1
        steps[behind] -= 1
        _store(matched, words, np.cumsum(steps, dtype=np.int8).view(np.uint8))


def _bits(pointer: Any, words: int) -> U8:
    raw: U8 = np.frombuffer(ffi.buffer(pointer, 8 * words), np.uint8)
    return np.unpackbits(raw, bitorder="little")


def _marks(places: list[int], n: int) -> U8:
    marks = np.zeros(n, np.uint8)
    marks[np.array(places, np.int64)] = 1
    return marks


def _store(pointer: Any, words: int, bits: U8) -> None:
    target: U64 = np.frombuffer(ffi.buffer(pointer, 8 * words), np.uint64)
    target[:] = np.packbits(bits, bitorder="little").view(np.uint64)
