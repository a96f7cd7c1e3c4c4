"""The contenders: how each loads, what it makes of an Arrow column, and how it encodes that.

A contender is `name` or `name:path`; a path is one of the ways its API offers to do the same job.
The first path is the best one found (README.md has the figures and the reasons). All of them parse
special tokens in the text, and none adds a token of its own.

Four steps, timed apart: load(), convert(column), encode(input), and ids(output), which is never
timed: it turns whatever came out into flat uint32 ids and uint64 row lengths for the comparison.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _columns import data_view, offsets

Ids = tuple[np.ndarray, np.ndarray]  # (tokens,) uint32; (rows,) uint64


@dataclass(frozen=True)
class Files:
    """The published files of one tokenizer."""

    name: str  # as saphira_gpu knows it
    json: Path | None  # tokenizer.json, for tokenizers; None where none is published
    ranks: Path
    encoding: str  # its name in tiktoken_ext.openai_public, and as gigatoken's scheme
    special: dict[str, int]

    def to_json(self) -> str:
        return json.dumps(
            {
                **self.__dict__,
                "json": str(self.json) if self.json else None,
                "ranks": str(self.ranks),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Files:
        raw = json.loads(text)
        tokenizer = Path(raw["json"]) if raw["json"] else None
        return cls(**{**raw, "json": tokenizer, "ranks": Path(raw["ranks"])})


# name → (encoding, special tokens, as OpenAI publishes them); r50k_base's ranks are GPT-2's.
TOKENIZERS: dict[str, tuple[str, dict[str, int]]] = {
    "gpt2": ("r50k_base", {"<|endoftext|>": 50256}),
    "cl100k_base": (
        "cl100k_base",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": ("o200k_base", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
}


def tokenizer_files(name: str, vocabs: Path) -> Files:
    """A tokenizer's files in a folder laid out as `vocabs/<name>/<file>`.

    ValueError for a name that isn't in TOKENIZERS; FileNotFoundError where the ranks are missing.
    """
    if name not in TOKENIZERS:
        raise ValueError(f"no tokenizer {name!r}; there are {', '.join(TOKENIZERS)}")
    encoding, special = TOKENIZERS[name]
    ranks = vocabs / encoding / f"{encoding}.tiktoken"
    if not ranks.is_file():
        raise FileNotFoundError(f"no such file: {ranks}")
    tokenizer = vocabs / name / "tokenizer.json"
    return Files(name, tokenizer if tokenizer.is_file() else None, ranks, encoding, special)


class Contender:
    """One way to encode one column."""

    paths: tuple[str, ...] = ("default",)

    def __init__(self, files: Files, path: str, threads: int) -> None:
        if path not in self.paths:
            raise ValueError(
                f"{type(self).__name__} has the paths {', '.join(self.paths)}, not {path!r}"
            )
        self.files, self.path, self.threads = files, path, threads

    def load(self) -> None:
        raise NotImplementedError

    def convert(self, column: pa.StringArray) -> Any:
        """What the API wants in place of the column."""
        return column.to_pylist()

    def encode(self, given: Any) -> Any:
        raise NotImplementedError

    def ids(self, result: Any) -> Ids:
        raise NotImplementedError

    def details(self) -> dict[str, object]:
        """What else decides its speed; goes into the record."""
        return {}


def _flatten(rows: list[Any]) -> Ids:
    """Lists of ints (or arrays) to flat ids and row lengths."""
    lengths = np.fromiter(map(len, rows), np.uint64, len(rows))
    if rows and isinstance(rows[0], np.ndarray):
        return np.concatenate(rows).astype(np.uint32, copy=False), lengths
    return np.fromiter(chain.from_iterable(rows), np.uint32, int(lengths.sum())), lengths


class Ours(Contender):
    """saphira_gpu.Tokenizer.encode_arrow: the column itself in, an Arrow list array out."""

    paths = ("arrow",)

    def load(self) -> None:
        import saphira_gpu

        self.tokenizer = saphira_gpu.Tokenizer.load(self.files.name)

    def convert(self, column: pa.StringArray) -> pa.StringArray:
        return column

    def encode(self, given: pa.StringArray) -> pa.ListArray:
        return self.tokenizer.encode_arrow(given, threads=self.threads, special="parse")

    def ids(self, result: pa.ListArray) -> Ids:
        flat = result.flatten().to_numpy(zero_copy_only=True)
        lengths = np.diff(result.offsets.to_numpy()).astype(np.uint64)
        return flat.astype(np.uint32, copy=False), lengths

    def details(self) -> dict[str, object]:
        from saphira_gpu.engines import cpu

        forced = {key: value for key, value in os.environ.items() if key.startswith("SAPHIRA_")}
        forced.pop("SAPHIRA_TEST_DATA", None)
        return {"isa": cpu.isa(), "isas": cpu.isas(), "environment": forced}


class Gigatoken(Contender):
    """gigatoken's encode_batch; one thread is `parallel=False`, which leaves its pool alone.

    awkward    an awkward string array over the column's own buffers: no copy of the text. It takes
               64-bit offsets only, so an Arrow string column's offsets are widened.
    source     BytesSource over one bytes object a row
    separator  BytesSource over one buffer with 0xFF between rows (a byte no UTF-8 text has); it
               skips empty rows, which are put back afterwards
    bytes, str a list of Python objects
    parquet    encode_files on a Parquet file: reading and decompressing is part of the call
    """

    paths = ("awkward", "source", "separator", "bytes", "str", "parquet")

    def load(self) -> None:
        os.environ["RAYON_NUM_THREADS"] = str(self.threads)  # before its pool is first used
        import awkward  # noqa: F401  (its import is loading, not conversion)
        import gigatoken

        self.module = gigatoken
        scheme = {"r50k_base": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}
        self.tokenizer = gigatoken.Tokenizer.from_tiktoken(
            self.files.ranks, scheme[self.files.encoding], dict(self.files.special)
        )
        self.parquet: Path | None = None
        self.empty: np.ndarray | None = None

    def convert(self, column: pa.StringArray) -> Any:
        if self.path == "awkward":
            import awkward as ak

            chars = ak.contents.NumpyArray(data_view(column), parameters={"__array__": "char"})
            at = ak.index.Index64(offsets(column).astype(np.int64))
            return ak.Array(
                ak.contents.ListOffsetArray(at, chars, parameters={"__array__": "string"})
            )
        if self.path == "str":
            return column.to_pylist()
        if self.path == "parquet":
            if self.parquet is None:
                raise ValueError("the parquet path takes a whole file; leave --limit-mb out")
            return self.module.ParquetFileSource([self.parquet])
        rows = column.cast(pa.binary()).to_pylist()
        if self.path == "source":
            return self.module.BytesSource(rows)
        if self.path == "separator":
            self.empty = np.diff(offsets(column)) == 0
            return self.module.BytesSource(b"\xff".join(rows), separator=b"\xff")
        return rows

    def encode(self, given: Any) -> Any:
        parallel = self.threads > 1
        if self.path == "parquet":
            return self.tokenizer.encode_files(given, parallel=parallel)
        return self.tokenizer.encode_batch(given, parallel=parallel)

    def ids(self, result: Any) -> Ids:
        import awkward as ak

        lengths = ak.to_numpy(ak.num(result)).astype(np.uint64)
        if self.empty is not None and len(lengths) < len(self.empty):
            full = np.zeros(len(self.empty), np.uint64)
            full[~self.empty] = lengths
            lengths = full
        return ak.to_numpy(ak.flatten(result)).astype(np.uint32, copy=False), lengths


class Tokenizers(Contender):
    """tokenizers 0.x: encode_batch_fast leaves offsets out."""

    paths = ("encode_batch_fast", "encode_batch")

    def load(self) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if self.threads > 1 else "false"
        os.environ["RAYON_NUM_THREADS"] = str(self.threads)
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(self.files.json))
        self.call = partial(getattr(self.tokenizer, self.path), add_special_tokens=False)

    def encode(self, given: list[str]) -> Any:
        return self.call(given)

    def ids(self, result: Any) -> Ids:
        return _flatten([row.ids for row in result])


class Tokenizers1(Contender):
    """tokenizers 1.0 (another API). Its threads follow the cores it may use and nothing else, so
    the worker's affinity decides them.

    encode_batch  one call
    encode        a loop over rows: never starts a thread
    """

    paths = ("encode_batch", "encode")

    def load(self) -> None:
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(self.files.json))

    def encode(self, given: list[str]) -> Any:
        if self.path == "encode_batch":
            return self.tokenizer.encode_batch(given, add_special_tokens=False)
        return [self.tokenizer.encode(text, add_special_tokens=False) for text in given]

    def ids(self, result: Any) -> Ids:
        return _flatten([row.ids_array for row in result])


class Tiktoken(Contender):
    """tiktoken, its Encoding built from the rank file (its loader wants the network).

    numpy     encode_to_numpy over the rows: no Python int per token; threads as in encode_batch
    batch     encode_batch(allowed_special="all")
    ordinary  encode_ordinary_batch: no special tokens, so only for text without them
    """

    paths = ("numpy", "batch", "ordinary")

    def load(self) -> None:
        import tiktoken
        from tiktoken_ext import openai_public

        lines = (line.split() for line in self.files.ranks.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        # its own definition of the encoding, which would ask this function for the ranks
        openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
        definition = openai_public.ENCODING_CONSTRUCTORS[self.files.encoding]()
        self.encoding = tiktoken.Encoding(**definition)

    def encode(self, given: list[str]) -> Any:
        encoding, threads = self.encoding, self.threads
        if self.path == "ordinary":
            if threads == 1:
                return [encoding.encode_ordinary(text) for text in given]
            return encoding.encode_ordinary_batch(given, num_threads=threads)
        one: Callable[[str], Any]
        one = partial(encoding.encode_to_numpy, allowed_special="all")
        if self.path == "batch":
            if threads > 1:
                return encoding.encode_batch(given, num_threads=threads, allowed_special="all")
            one = partial(encoding.encode, allowed_special="all")
        if threads == 1:
            return [one(text) for text in given]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, given))

    def ids(self, result: Any) -> Ids:
        return _flatten(result)


CONTENDERS: dict[str, type[Contender]] = {
    "ours": Ours,
    "gigatoken": Gigatoken,
    "tokenizers": Tokenizers,
    "tokenizers1": Tokenizers1,
    "tiktoken": Tiktoken,
}


def lacking(name: str, files: Files) -> str | None:
    """Why a contender can't take part with these files; None where it can."""
    if name.partition(":")[0] in ("tokenizers", "tokenizers1") and files.json is None:
        return f"no tokenizer.json of {files.name} is published with these files"
    return None


def resolve(name: str) -> tuple[type[Contender], str]:
    """`name` or `name:path` → the class and the path. ValueError for a name that isn't one."""
    base, _, path = name.partition(":")
    if base not in CONTENDERS:
        raise ValueError(f"no contender {base!r}; there are {', '.join(CONTENDERS)}")
    kind = CONTENDERS[base]
    if path and path not in kind.paths:
        raise ValueError(f"{base} has the paths {', '.join(kind.paths)}, not {path!r}")
    return kind, path or kind.paths[0]
