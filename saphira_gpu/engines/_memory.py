"""Memory for ids: mapped pages that go back to a pool when the last view of them dies.

An output is bounded at one id per byte of text, four times the text, but usually a quarter of that
or less is written. Pages of an anonymous map that nobody wrote are not resident, so the bound costs
address space only, and what was written past the end is handed back to the system before the ids
leave here. Fresh pages cost nearly as much as encoding into them; so maps are used again, up to a
bound.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Any

import numpy as np

from saphira_gpu._arrays import U32

# Below this, an exact copy is cheaper than a map of its own.
SMALL_BYTES = 1 << 16
# Memory the pool may keep while nobody uses it, counted in pages that ids were written to.
POOL_BYTES = 1 << 28

_PAGE = mmap.PAGESIZE
# Not to be counted against the machine's memory before it is written; Python < 3.13 has no name for
# it.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if hasattr(mmap, "MADV_HUGEPAGE") else 0)
_DONTNEED = getattr(mmap, "MADV_DONTNEED", None)


class _Map:
    """Anonymous memory. used: bytes of it that hold, or held, ids."""

    def __init__(self, capacity: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self.capacity = -(-capacity // _PAGE) * _PAGE
        try:
            self.memory = mmap.mmap(-1, self.capacity, flags=flags)
        except OSError as error:
            raise MemoryError(f"no room for {self.capacity} bytes of ids: {error}") from None
        self.used = 0

    def trim(self, used: int) -> None:
        """Gives the system back every whole page past `used` bytes."""
        self.used = used
        keep = -(-used // _PAGE) * _PAGE
        if _DONTNEED is not None and keep < self.capacity:
            self.memory.madvise(_DONTNEED, keep, self.capacity - keep)


class Pool:
    """Maps nobody uses at the moment. Needs no lock: a deque's pop and append are atomic, and a
    map's owner may die, and so give it back, at any moment of any thread."""

    def __init__(self, ffi: Any, limit: int = POOL_BYTES) -> None:
        self._ffi = ffi
        self._limit = limit
        self._free: deque[_Map] = deque()

    def take(self, n: int) -> Output:
        """Room for n ids."""
        need = 4 * n
        if need <= SMALL_BYTES:
            return Output(self, None, np.empty(n, np.uint32))
        candidates = []
        while True:
            try:
                candidates.append(self._free.popleft())
            except IndexError:
                break
        fitting = [free for free in candidates if free.capacity >= need]
        chosen = min(fitting, key=lambda free: free.capacity, default=None)
        self._free.extend(free for free in candidates if free is not chosen)
        taken = chosen or _Map(need)
        return Output(self, taken, np.frombuffer(taken.memory, np.uint32, n))

    def give_back(self, used: _Map) -> None:
        """Keeps a map for later, in place of the oldest ones where the bound asks for it."""
        if used.used > self._limit:
            return
        self._free.append(used)
        # A list is made without a collection midway, in which others could give maps back.
        while sum(free.used for free in list(self._free)) > self._limit:
            try:
                self._free.popleft()
            except IndexError:  # others have taken them
                return

    def adopt(self, used: _Map, n: int) -> U32:
        """uint32[n] over a map, which comes back when the last view of the array has died."""
        address = self._ffi.cast("char *", self._ffi.from_buffer(used.memory))
        owner = self._ffi.gc(address, lambda _: self.give_back(used))
        return np.frombuffer(self._ffi.buffer(owner, 4 * n), np.uint32)


class Output:
    """Room for ids that a call writes into; `finish` makes an array of what it wrote."""

    def __init__(self, pool: Pool, taken: _Map | None, ids: U32) -> None:
        self._pool = pool
        self._taken = taken
        self.ids = ids

    def finish(self, n: int) -> U32:
        """The first n ids, as an array that owns no more memory than they need."""
        ids = self.ids[:n]
        if self._taken is None:
            return ids if n == len(self.ids) else ids.copy()
        self._taken.trim(ids.nbytes)
        if ids.nbytes > SMALL_BYTES:
            return self._pool.adopt(self._taken, n)
        copy = ids.copy()
        self._pool.give_back(self._taken)
        return copy
