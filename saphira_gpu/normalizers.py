"""Stage `normalize` on its own: what a tokenizer makes of a text before it is split.

>>> program = Program.from_json({"type": "Sequence", "normalizers": [{"type": "NFC"}]})
>>> program.normalize_str("e\u0301")
'é'
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from saphira_gpu._arrays import I64
from saphira_gpu.batch import as_bytes
from saphira_gpu.engines.cpu import ffi, lib
from saphira_gpu.loaders import _normalizer
from saphira_gpu.loaders._document import Document
from saphira_gpu.spec import Normalizer

_KINDS = {
    "nfc": lib.SA_NORMALIZE_NFC,
    "nfd": lib.SA_NORMALIZE_NFD,
    "nfkc": lib.SA_NORMALIZE_NFKC,
    "nfkd": lib.SA_NORMALIZE_NFKD,
    "lowercase": lib.SA_NORMALIZE_LOWERCASE,
    "replace": lib.SA_NORMALIZE_REPLACE,
    "replace_spaces": lib.SA_NORMALIZE_REPLACE_SPACES,
    "strip_left": lib.SA_NORMALIZE_STRIP_LEFT,
    "strip_right": lib.SA_NORMALIZE_STRIP_RIGHT,
    "prepend": lib.SA_NORMALIZE_PREPEND,
}

Text = str | bytes | bytearray | memoryview


def struct(steps: Iterable[Normalizer]) -> tuple[Any, list[Any]]:
    """An `sa_normalizer_plan *`, and what must stay alive while it is used, itself included."""
    steps = tuple(steps)
    parts = [text.encode() for step in steps for text in (step.pattern, step.content)]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.array([len(part) for part in parts], np.int64), out=offsets[1:])
    kinds = np.array([_KINDS[step.kind] for step in steps], np.uint8)
    data = np.frombuffer(b"".join(parts), np.uint8)
    plan = ffi.new("sa_normalizer_plan *")
    plan.n_steps = len(steps)
    alive = [
        ffi.from_buffer("uint8_t[]", kinds),
        ffi.from_buffer("int64_t[]", offsets),
        ffi.from_buffer("uint8_t[]", data),
    ]
    plan.kinds, plan.offsets, plan.bytes = alive
    # A pointer that is read back from a struct of cffi keeps nothing alive; the plan itself does.
    return plan, [plan, *alive]


class Program:
    """The steps of a normalizer, ready to run. May be used from several threads.

    Each method takes one segment: a text without added tokens. Text that isn't UTF-8 is taken as
    it is: forms and lower case act on each run of valid characters, and other bytes pass through.
    """

    def __init__(self, steps: Iterable[Normalizer]) -> None:
        self.steps = tuple(steps)
        plan, alive = struct(self.steps)
        error = ffi.new("char[]", 256)
        handle = lib.sa_normalizer_new(plan, error, 256)
        del alive
        if handle == ffi.NULL:
            raise ValueError(ffi.string(error).decode())
        self._handle = ffi.gc(handle, lib.sa_normalizer_free)

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str | None) -> Program:
        """From the `normalizer` of a tokenizer.json, as JSON text or parsed; None: no steps.

        Raises TokenizerFileError where it is malformed, UnsupportedError for what isn't supported.
        """
        text = value if isinstance(value, str) else json.dumps(value)
        doc = Document(b'{"normalizer":' + text.encode() + b"}", "normalizer")
        doc.only(doc.root, {"normalizer"}, "")
        return cls(_normalizer.steps(doc, doc.root["normalizer"]))

    def __repr__(self) -> str:
        return f"Program({self.steps!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Program, (self.steps,)

    def quick(self, text: Text) -> bool:
        """True: this text is certainly left as it is. False: it may not be."""
        data = as_bytes(text)
        return bool(lib.sa_normalizer_quick(self._handle, ffi.from_buffer(data), len(data)))

    def normalize(self, text: Text) -> bytes:
        """The normalized bytes. Raises MemoryError."""
        return self._run(as_bytes(text), align=False)[0]

    def normalize_str(self, text: str) -> str:
        """The normalized text. A lone surrogate stays as it is."""
        return self.normalize(text).decode("utf-8", "surrogatepass")

    def align(self, text: Text) -> tuple[bytes, I64]:
        """The normalized bytes, and int64[n, 2]: for each of them where it comes from.

        A row is [start, end) in bytes of the text: of the character that stands behind the byte,
        which is the first where several were composed, and the one before where it was added.
        """
        return self._run(as_bytes(text), align=True)

    def _run(self, data: bytes, align: bool) -> tuple[bytes, I64]:
        out = ffi.new("sa_buffer *")
        spans = ffi.new("sa_alignment *")
        try:
            alignment = spans if align else ffi.NULL
            status = lib.sa_normalizer_run(
                self._handle, ffi.from_buffer(data), len(data), out, alignment
            )
            if status != lib.SA_OK:
                raise MemoryError
            made = bytes(ffi.buffer(out.data, out.n)) if out.n else b""
            rows = np.zeros((spans.n, 2), np.int64)
            if spans.n:
                ffi.memmove(ffi.from_buffer(rows), spans.spans, rows.nbytes)
            return made, rows
        finally:
            lib.sa_buffer_release(out)
            lib.sa_alignment_release(spans)
