"""Tokenizer: text, lists of texts and Arrow columns → ids, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import pyarrow as pa

from saphira_gpu import columns, loaders
from saphira_gpu._arrays import I64, Ids
from saphira_gpu._lazy import cached_property
from saphira_gpu._options import Dtype, Invalid, Options, Unit, one_of, options, placement
from saphira_gpu.batch import Batch, Tokens, as_bytes
from saphira_gpu.decode import Decoder, DecodeStream
from saphira_gpu.engines import cpu
from saphira_gpu.engines.cpu import DEFAULT_CACHE_BYTES, SPECIAL, Special
from saphira_gpu.engines.cuda.output import DeviceTokens
from saphira_gpu.errors import InputError, TokenizerFileError, UnsupportedError
from saphira_gpu.plan import build
from saphira_gpu.report import Report
from saphira_gpu.rows import Rows
from saphira_gpu.spec import Spec
from saphira_gpu.stages import Piece, Stages, pieces, stages
from saphira_gpu.vocabulary import Vocabulary

if TYPE_CHECKING:
    from saphira_gpu.facades import hf, tiktoken

Text = str | bytes | bytearray | memoryview
Output = Literal["arrow", "device"]

# What a call for one short text leaves as it is. Looked for by identity: equality is slower, and
# takes True for 1 or a numpy dtype for its name, which are refused.
_ONE = 1
_CONTRACT: Invalid = "contract"
_UINT32: Dtype = "uint32"


class Tokenizer:
    """A tokenizer, ready to encode. Make one with `Tokenizer.load` or `Tokenizer.from_spec`.

    Options that the encoding methods share:

    special: what an added token in the text becomes. "plain": text (white space alone goes on
        matching). "parse": its id. "hf_plain": text if it is marked special, else its id. "error":
        InputError.
    invalid: what becomes of a row that isn't UTF-8. "contract": its bytes are encoded all the same
        (or InputError, by a tokenizer whose split runs through a regex library).
        "replace": U+FFFD as Python's errors="replace"; `offsets` then count in the text replaced.
        "error": InputError. "null": a null row.
    threads: native threads; None: SAPHIRA_THREADS, else the cores this process may use.
    dtype: of the ids. "auto": the narrower of uint16 and uint32 that holds every id of this
        tokenizer. InputError for one that doesn't.
    offsets: where each id comes from in its row: start and end, half-open, in bytes of UTF-8
        ("byte") or in characters ("char"), equal to Hugging Face's `offsets`. An id that cuts a
        character has all of it.
    template: put the ids around a text that the tokenizer's own post-processor puts there (Hugging
        Face's add_special_tokens); a tokenizer that has none leaves the text as it is. Their
        offsets are (0, 0).
    report: a Report to add counts to.

    Ids never depend on threads, instruction set or what was encoded before. A Tokenizer may be used
    from several threads, survives fork, and pickles as its name or its file's bytes.
    """

    def __init__(
        self, spec: Spec, source: loaders.Source | None = None, cache_bytes: int | None = None
    ) -> None:
        cache_bytes = DEFAULT_CACHE_BYTES if cache_bytes is None else cache_bytes
        whole = isinstance(cache_bytes, int) and not isinstance(cache_bytes, bool)
        if not whole or not 0 <= cache_bytes < 1 << 63:
            raise ValueError(f"cache_bytes={cache_bytes!r} is not a number of bytes")
        self._spec = spec
        self._source = source
        self._cache_bytes = cache_bytes
        try:
            self._engine = cpu.Engine(build(spec), cache_bytes)
        except UnsupportedError as error:
            raise UnsupportedError(f"{spec.name or 'this Spec'}: {error}") from None
        self._vocabulary = Vocabulary(spec)
        self._rows = Rows(self._engine, spec, self._vocabulary)

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        *,
        scheme: str | None = None,
        revision: str | None = None,
        cache_bytes: int | None = None,
    ) -> Tokenizer:
        """A tokenizer from an embedded name, a path (tokenizer.json, tekken.json, *.tiktoken,
        tiktoken.model, vocab.json beside merges.txt, or a folder) or a Hub id.

        scheme: the split scheme of a rank file whose name doesn't say it ("gpt2", "llama3", …).
        revision: of the Hub repository. cache_bytes: bound of each thread's pretoken cache; 0:
        none.

        Raises TokenizerFileError or UnsupportedError, naming the key; see `loaders.load`.
        """
        found = loaders.find(source, scheme=scheme, revision=revision)
        return cls(found.spec(warn=True), found, cache_bytes)

    @classmethod
    def from_spec(cls, spec: Spec, *, cache_bytes: int | None = None) -> Tokenizer:
        """A tokenizer from a Spec of your own. Raises UnsupportedError for a scheme not compiled
        in."""
        return cls(spec, None, cache_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._source or self._spec, self._cache_bytes)

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, vocab_size={self.vocab_size})"

    # ---- what it is ----

    @property
    def spec(self) -> Spec:
        """The definition: one dataclass a stage."""
        return self._spec

    @property
    def name(self) -> str:
        """The embedded name, or the path or id it was loaded from."""
        return self._spec.name

    @property
    def vocab_size(self) -> int:
        """The number of ids, added tokens included: one more than the highest."""
        return self._engine.plan.n_ids

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) over all that decides an id."""
        return self._spec.fingerprint

    @property
    def eos(self) -> str | None:
        """The end-of-text token that the tokenizer's own definition names, or None."""
        return self._spec.eos

    @property
    def eos_id(self) -> int | None:
        """Its id, or None. Raises TokenizerFileError if the definition names a token that isn't
        there."""
        return None if self.eos is None else self.token_id(self.eos)

    def token_id(self, token: str) -> int:
        """The id of an added token, or of a token by its text.

        Raises TokenizerFileError if there is none, TypeError for anything but a str.
        """
        if not isinstance(token, str):
            raise TypeError(f"a token is a str here, not {type(token).__name__}")
        for added in self._spec.added:
            if added.content == token:
                return added.id
        number = self._vocabulary.ids.get(token.encode("utf-8", "surrogatepass"))
        if number is not None:
            return number
        raise TokenizerFileError(f"{self.name}: {token!r} is no token of this tokenizer")

    def id_to_token(self, number: int) -> str | None:
        """The string of an id as Hugging Face shows it: in the byte alphabet ("Ġworld"), an added
        token's content as it is. None for a number that is no id."""
        index = self._vocabulary.index(number)
        return None if index is None else self._vocabulary.strings[index]

    def id_to_bytes(self, number: int) -> bytes | None:
        """The bytes that an id stands for in text (b" world"). None for a number that is no id."""
        index = self._vocabulary.index(number)
        return None if index is None else self._vocabulary.raw[index]

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token: a str is a string as of `id_to_token`, bytes are the bytes of a token.
        None if there is none. Raises TypeError for anything else."""
        return self._vocabulary.id(token)

    def vocab(self, added: bool = True) -> dict[str, int]:
        """The id of every token by its string. added: with the added tokens; False leaves in those
        of them that are in the vocabulary itself and that the byte alphabet can write."""
        found = self._vocabulary.ids_of_strings
        if added:
            return dict(found)
        own = self._spec.bpe.tokens
        return {token: i for token, i in found.items() if i < len(own) and own[i] is not None}

    # ---- encode ----

    @overload
    def encode(
        self,
        text: Text,
        *,
        special: Special = ...,
        invalid: Invalid = ...,
        threads: int | None = ...,
        dtype: Dtype = ...,
        offsets: None = ...,
        template: bool = ...,
        report: Report | None = ...,
    ) -> Ids: ...
    @overload
    def encode(
        self,
        text: Text,
        *,
        special: Special = ...,
        invalid: Invalid = ...,
        threads: int | None = ...,
        dtype: Dtype = ...,
        offsets: Unit,
        template: bool = ...,
        report: Report | None = ...,
    ) -> tuple[Ids, I64]: ...
    def encode(
        self,
        text: Text,
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = 1,
        dtype: Dtype = "uint32",
        offsets: Unit | None = None,
        template: bool = False,
        report: Report | None = None,
    ) -> Ids | tuple[Ids, I64]:
        """Ids of one text; with `offsets`, the ids and int64[n, 2], start and end of each.

        invalid="null" is for batches and raises ValueError here.
        """
        plain = report is None and offsets is None and template is False and threads is _ONE
        if plain and invalid is _CONTRACT and dtype is _UINT32:
            ids = self._engine.encode_short(text, special)
            if ids is not None:
                return ids
        options = self._options(
            special, invalid, threads, report, template, dtype=dtype, offsets=offsets, single=True
        )
        done = self._rows.run(Batch.from_text(text), options)
        return done.ids if done.spans is None else (done.ids, done.spans)

    def encode_batch(
        self,
        texts: Iterable[Text | None],
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = None,
        dtype: Dtype = "uint32",
        offsets: Unit | None = None,
        template: bool = False,
        report: Report | None = None,
    ) -> Tokens:
        """Ids of many texts, and their spans with `offsets`; None is a null row."""
        if isinstance(texts, str | bytes | bytearray | memoryview):
            raise InputError(f"encode_batch takes a list of texts, not {type(texts).__name__}")
        options = self._options(
            special, invalid, threads, report, template, dtype=dtype, offsets=offsets
        )
        batch = Batch.from_texts(cast("Iterable[str | bytes | None]", texts))
        return self._rows.run(batch, options)

    @overload
    def encode_arrow(
        self,
        column: Any,
        device: Any = ...,
        threads: int | None = ...,
        special: Special = ...,
        invalid: Invalid = ...,
        dtype: Dtype = ...,
        offsets: bool | Unit = ...,
        template: bool = ...,
        report: Report | None = ...,
        *,
        output: Literal["arrow"] = ...,
        verify: float | None = ...,
        device_memory: int | None = ...,
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray: ...
    @overload
    def encode_arrow(
        self,
        column: Any,
        device: Any = ...,
        threads: int | None = ...,
        special: Special = ...,
        invalid: Invalid = ...,
        dtype: Dtype = ...,
        offsets: bool | Unit = ...,
        template: bool = ...,
        report: Report | None = ...,
        *,
        output: Literal["device"],
        verify: float | None = ...,
        device_memory: int | None = ...,
    ) -> DeviceTokens: ...
    def encode_arrow(
        self,
        column: Any,
        device: Any = "auto",
        threads: int | None = None,
        special: Special = "plain",
        invalid: Invalid = "contract",
        dtype: Dtype = "uint32",
        offsets: bool | Unit = False,
        template: bool = False,
        report: Report | None = None,
        *,
        output: Output = "arrow",
        verify: float | None = None,
        device_memory: int | None = None,
    ) -> pa.ListArray | pa.LargeListArray | pa.ChunkedArray | DeviceTokens:
        """Ids of an Arrow column, as a column of lists.

        column: string, binary (any layout), a dictionary of those, or null: an Array, a
        ChunkedArray, or
            any object with `__arrow_c_array__` or `__arrow_c_stream__`. A table or struct of one
            column is that column. A null row gives a null list.
        device: "cpu"; "cuda", a GPU (DeviceError says what is missing); "auto", a GPU where there
            is one that takes this tokenizer and the text is a megabyte or more, else the CPU;
            "host", the kernels run one thread at a time on the CPU, an aid for debugging that needs
            g++ and is very slow; or a `saphira_gpu.devices.Device`.
        output: "arrow", or "device": a DeviceTokens, whose values and offsets stay on the device
            for torch, jax or cupy to take without a copy.
        verify: the share of rows that the CPU encodes too (0.01 on a device); a difference raises
            VerifyError, with the row and the first stage that differs. On the CPU it does nothing.
        device_memory: the bytes of a device's memory that this tokenizer may use (None: most of
            what is free); larger columns go through in batches.
        offsets: True (the same as "char") or "byte": the lists hold struct<id, start, end>, with
            the ids in one array underneath, as without; start and end are int32, or int64 in a
            LargeListArray.

        An Array gives a ListArray (LargeListArray for large_* columns, or beyond 2^31 - 1 ids); a
        ChunkedArray or stream gives a ChunkedArray of the same chunks. Text is read where it lies,
        views excepted; each distinct value of a dictionary is encoded once.

        Raises InputError for a column of another type, and where `special` or `invalid` says so,
        naming the row. On a device RowTooLarge names a row that finds no room on its own.
        """
        place = placement(device, verify, device_memory, output)
        options = self._options(
            special, invalid, threads, report, template, dtype=dtype, offsets=offsets,
            placement=place,
        )  # fmt: skip
        found = columns.read(column)
        if output == "device":
            if options.offsets is not None:
                raise ValueError("offsets= and output='device' don't go together")
            return self._rows.run_on_device(found, options)
        parts = self._rows.run_column(found, options)
        return columns.lists(found, parts, options.dtype, options.offsets is not None)

    def count_arrow(
        self,
        column: Any,
        device: Any = "auto",
        threads: int | None = None,
        special: Special = "plain",
        invalid: Invalid = "contract",
        template: bool = False,
        report: Report | None = None,
        *,
        verify: float | None = None,
        device_memory: int | None = None,
    ) -> pa.Int64Array | pa.ChunkedArray:
        """How many ids each row has: int64, null for a null row, chunked as the column is. device,
        verify and device_memory as in `encode_arrow`; verified are the counts."""
        place = placement(device, verify, device_memory)
        options = self._options(
            special, invalid, threads, report, template, count=True, placement=place
        )
        found = columns.read(column)
        return columns.counts(found, self._rows.run_column(found, options))

    def count(
        self,
        text: Text,
        *,
        special: Special = "plain",
        invalid: Invalid = "contract",
        threads: int | None = 1,
        template: bool = False,
        report: Report | None = None,
    ) -> int:
        """How many ids `encode` gives for a text."""
        if report is None and template is False and threads is _ONE and invalid is _CONTRACT:
            n = self._engine.count_short(text, special)
            if n is not None:
                return n
        options = self._options(
            special, invalid, threads, report, template, single=True, count=True
        )
        return self._rows.run(Batch.from_text(text), options).n_ids

    def _options(self, *args: Any, **more: Any) -> Options:
        return options(self.vocab_size, *args, **more)

    # ---- look inside ----

    def pre_tokenize(self, text: Text, *, special: Special = "plain") -> list[Piece]:
        """The pretokens of a text with their byte and character spans."""
        special = self._looked_at(text, special)
        return pieces(self._rows.segmenter, as_bytes(text), special)

    def stages(self, text: Text, *, special: Special = "plain") -> Stages:
        """What each stage made of a text."""
        special = self._looked_at(text, special)
        known, segmenter = self._vocabulary.ids, self._rows.segmenter
        return stages(self._engine, self._spec, segmenter, known, as_bytes(text), special)

    def _looked_at(self, text: Text, special: Special) -> Special:
        """`special`, after raising what "error" raises."""
        one_of("special", special, tuple(SPECIAL))
        if special == "error":
            self.count(text, special=special)
        return special

    # ---- decode ----

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(self._vocabulary, self._spec.decoder)

    def decode_bytes(self, ids: Any, *, skip_special: bool = False) -> bytes:
        """The bytes of some ids; those of all the ids of a text are the text's.

        skip_special: leave out added tokens marked special.
        Raises InputError, naming the position, for an id this tokenizer hasn't.
        """
        return self._decoder.decode(ids, skip_special)

    def decode(self, ids: Any, errors: str = "replace", skip_special: bool = False) -> str:
        """The text of some ids. errors: as in bytes.decode, for ids that cut a character."""
        return self.decode_bytes(ids, skip_special=skip_special).decode("utf-8", errors)

    def decode_batch(
        self, rows: Iterable[Any], errors: str = "replace", skip_special: bool = False
    ) -> list[str | None]:
        """The text of each row of ids; None is a null row. rows: as `decode` takes them, or Tokens.

        Raises InputError, naming the row and the position, for an id this tokenizer hasn't, and,
        naming the row, under errors="strict" for one that isn't UTF-8.
        """
        return self._decoder.decode_rows(rows, errors, skip_special)

    def decode_arrow(
        self,
        column: Any,
        errors: str = "replace",
        skip_special: bool = False,
        binary: bool = False,
    ) -> pa.Array | pa.ChunkedArray:
        """The text of a column of lists of ids, of any integer type, chunked as the column is.

        column: lists (of any layout: list, large_list, fixed_size_list, views) of integers, or of
            structs of which one field is `id`: an Array, a ChunkedArray, a table of one column, or
            any object with `__arrow_c_array__` or `__arrow_c_stream__`. A null row gives a null
            text.
        binary: False: string (large_string from 2 GiB of text on), where `errors` says what becomes
            of bytes that are no UTF-8. True: large_binary, the bytes as they are.

        Raises InputError for a column of another type and, naming row and position, for an id
        this tokenizer hasn't, a null one among them; InputError under errors="strict" for a row
        that isn't UTF-8.
        """
        return self._decoder.decode_column(column, errors, skip_special, binary)

    def decode_stream(self, errors: str = "replace", skip_special: bool = False) -> DecodeStream:
        """Text of ids that come one by one: see `DecodeStream`."""
        return DecodeStream(self._decoder, errors, skip_special)

    # ---- as other libraries are called ----

    def as_hf(self) -> hf.Tokenizer:
        """This tokenizer with the calls of Hugging Face `tokenizers`: see `facades.hf`."""
        from saphira_gpu.facades import hf

        return hf.Tokenizer(self, self._rows)

    def as_tiktoken(self) -> tiktoken.Encoding:
        """This tokenizer with the calls of `tiktoken`: see `facades.tiktoken`."""
        from saphira_gpu.facades import tiktoken

        return tiktoken.Encoding(self, self._vocabulary)


def _restored(source: loaders.Source | Spec, cache_bytes: int) -> Tokenizer:
    """Unpickles."""
    if isinstance(source, Spec):
        return Tokenizer(source, None, cache_bytes)
    return Tokenizer(source.spec(), source, cache_bytes)


def encode_arrow(
    column: Any, tokenizer: str | os.PathLike[str] | Tokenizer = "gpt2", **options: Any
) -> Any:
    """`Tokenizer.encode_arrow` with a tokenizer by name or path, loaded once. options: as there."""
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = _loaded(os.fspath(tokenizer), _stamp(tokenizer))
    return tokenizer.encode_arrow(column, **options)


@lru_cache(maxsize=4)
def _loaded(source: str, stamp: object) -> Tokenizer:
    return Tokenizer.load(source)


def _stamp(source: str | os.PathLike[str]) -> object:
    """Changes when a file, or one in a folder, changes."""
    path = Path(source)
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        stats = [(str(file.resolve()), file.stat()) for file in files]
    except OSError:
        return None
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
