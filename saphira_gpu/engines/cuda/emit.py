"""Stage emit on a device: ids of all pieces in order, and where the ids of each row start."""

from __future__ import annotations

from typing import Any

import numpy as np

from saphira_gpu.devices import Device
from saphira_gpu.engines.cuda.bpe import grid
from saphira_gpu.engines.cuda.rows import DeviceRows

_PIECES = 4  # of a thread: PIECES of kernels/emit.cu
_BLOCKS = 2048


def emit(
    device: Device,
    values: Any,
    bound: int,
    spill: Any,
    ids: Any,
    counters: Any,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> Any:
    """Writes the ids of all pieces to `ids`: uint16 or uint32, as many as there are bytes of text.

    values: uint64, of counters[SA_COUNTER_PIECES] <= bound pieces. threads: at most 256.
    counters[SA_COUNTER_IDS] says how many there are. Returns uint64[bound // 32 + 1], the ids
    before each 32 pieces.
    """
    group_ids = device.empty(bound // 32 + 1, np.uint64)
    tile = _PIECES * threads
    states = device.zeros(bound // tile + 1, np.uint64)
    kernel = device.kernel("emit.cu", f"emit_u{8 * ids.dtype.itemsize}")
    args = (values, spill, ids, group_ids, states, counters)
    kernel(grid(bound + 1, tile, blocks), (threads,), args)
    return group_ids


def row_ids(
    device: Device,
    rows: DeviceRows,
    starts: Any,
    ranks: Any,
    values: Any,
    group_ids: Any,
    *,
    threads: int = 256,
    blocks: int = _BLOCKS,
) -> Any:
    """int64[n_rows + 1]: where the ids of each row start, and their end.

    starts, ranks: bitmap of piece starts, and its ranks by words. group_ids: from `emit`.
    """
    offsets = device.empty(rows.n_rows + 1, np.int64)
    args = (*rows.arguments, starts, ranks, values, group_ids, offsets)
    shape = grid(rows.n_rows + 1, threads, blocks)
    device.kernel("emit.cu", "row_ids")(shape, (threads,), args)
    return offsets
