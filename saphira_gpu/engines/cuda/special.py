"""Stage special on a device: added tokens, found as the core finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saphira_gpu._arrays import Offsets
from saphira_gpu.devices import Device
from saphira_gpu.engines.cpu import SPECIAL, Engine, Hit, core_table
from saphira_gpu.engines.cuda.rows import DeviceRows, Marks, counter_numbers

# A failed lead's tag, SA_TAG_OTHER.
_OTHER = 0
# Warps beyond these find no more room on any GPU; rows are handed out one by one.
_BLOCKS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class AddedTables:
    """A model's added tokens on a device, uploaded from the core's memory.

    shortest: bytes of the shortest content, 0 if there is none to search for. single: the first
    byte of all contents, 256 if they have several. any_blank: some token is white space alone.
    """

    offsets: Any
    bytes: Any
    ids: Any
    flags: Any
    blank: Any
    raw: Any
    normalized: Any
    all: Any
    tags: Any
    leaf: Any
    leaves: Any
    white: int
    word: int
    n_added: int
    shortest: int
    single: int
    any_blank: bool

    @classmethod
    def of(cls, device: Device, engine: Engine) -> AddedTables:
        """Uploads the tables of an engine's model.

        The model makes no new text: where it does, the core finds the tokens (`cpu.prepare`).
        """
        offsets = engine.table("added_offsets", np.int64)
        contents = engine.table("added_bytes", np.uint8)
        blank = engine.table("added_blank", np.uint8)
        order = engine.table("added_all", np.uint32)
        white, word = engine.table("added_sets", np.uint64).tolist()
        first = set(contents[offsets[order]].tolist())
        lengths = np.diff(offsets)[order]
        bytes_alone = core_table("sa_superatom_byte", np.uint8)[128:]
        parts = (core_table("sa_superatom_ascii", np.uint8), bytes_alone, [_OTHER])

        def up(array: np.ndarray[Any, Any]) -> Any:
            return device.to_device(array) if len(array) else device.zeros(1, array.dtype)

        return cls(
            offsets=up(offsets),
            bytes=up(contents),
            ids=up(engine.table("added_ids", np.uint32)),
            flags=up(engine.table("added_flags", np.uint8)),
            blank=up(blank),
            raw=_list(device, engine.table("added_raw", np.uint32)),
            normalized=_list(device, engine.table("added_normalized", np.uint32)),
            all=_list(device, order),
            tags=up(np.concatenate(parts).astype(np.uint8)),
            leaf=up(core_table("sa_superatom_four", np.uint16)),
            leaves=up(core_table("sa_superatom_leaves", np.uint8)),
            white=white,
            word=word,
            n_added=len(blank),
            shortest=int(lengths.min()) if len(order) else 0,
            single=first.pop() if len(first) == 1 else 256,
            any_blank=bool(blank.any()),
        )

    def searched(self, special: str, hits: bool) -> bool:
        """Whether text has to be searched: something may match, or its hits are wanted."""
        return self.shortest > 0 and (special != "plain" or self.any_blank or hits)

    def room(self, n_bytes: int) -> int:
        """Fixed pieces that `find` may add: matches don't overlap."""
        return n_bytes // self.shortest if self.shortest else 0


def _list(device: Device, order: np.ndarray[Any, Any]) -> tuple[Any, np.uint32]:
    """Indices of added tokens, on the device, and how many; there is always one to point at."""
    return device.to_device(order) if len(order) else None, np.uint32(len(order))


def find(
    device: Device,
    added: AddedTables,
    text: Any,
    n_bytes: int,
    rows: DeviceRows,
    marks: Marks,
    special: str,
    hits: Any = None,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> Any:
    """Marks added tokens as fixed pieces of their own: segments at their ends, `fixed`, `inside`.

    text: uint8[n_bytes and at least 64 more]. marks: with room for `AddedTables.room` more.
    special: as in `Tokenizer.encode`; with "error" see `hit`. hits: uint64 [n_added] or None.
    threads: of a block, at most 256. blocks: bound of a grid.
    Returns the bitmap of candidates, uint64[n_bytes // 64 + 1], for whoever looks at the stages.
    """
    words = n_bytes // 64 + 1
    candidates = device.empty(words, np.uint64)
    seen = device.zeros(rows.n_rows // 32 + 1, np.uint32)
    found = device.empty(max(min(rows.n_rows, n_bytes), 1), np.uint32)
    args: tuple[Any, ...] = (
        text, np.uint64(n_bytes), *rows.arguments,
        added.offsets, added.bytes, *added.all, np.uint32(added.single),
        candidates, seen, found, marks.counters,
    )  # fmt: skip
    grid = ((4 * words + threads - 1) // threads,)
    device.kernel("special.cu", "special_candidates")(grid, (threads,), args)
    offsets, width = rows.arguments[:2]
    args = (
        text, offsets, width, added.offsets, added.bytes, added.ids, added.flags, added.blank,
        *added.raw, *added.normalized, np.uint32(SPECIAL[special]), added.tags, added.leaf,
        added.leaves, np.uint32(added.white), np.uint32(added.word), candidates, found, hits,
        marks.segments, *marks.list_arguments,
    )  # fmt: skip
    warps = threads // 32
    grid = (max(1, min(blocks, (found.size + warps - 1) // warps)),)
    device.kernel("special.cu", "special_rows")(grid, (threads,), args)
    return candidates


def hit(counters: np.ndarray[Any, Any], offsets: Offsets) -> Hit | None:
    """special="error": the first added token of the text that isn't white space alone.

    counters: fetched from the device. offsets: of the rows, as in a Batch.
    """
    noted = int(counters[counter_numbers()["SPECIAL_ERROR"]])
    if noted == 0:
        return None
    key = noted ^ (1 << 64) - 1
    at, in_row, added = key >> 32, key >> 31 & 1, key & (1 << 31) - 1
    # A position at a row's end is the next row's too, unless it is in a row.
    position = int(offsets[0]) + at
    row = int(np.searchsorted(offsets, position, "right" if in_row else "left")) - 1
    return Hit(row, position - int(offsets[row]), added)
