"""Ids → bytes → text: the way back."""

from __future__ import annotations

from typing import Any

import numpy as np

from saphira_gpu._arrays import Bools
from saphira_gpu.errors import InputError
from saphira_gpu.spec import Spec


class Decoder:
    """The bytes of every id: of the vocabulary's, and of the added tokens' content."""

    def __init__(self, spec: Spec) -> None:
        size = max(len(spec.bpe.tokens), max((token.id for token in spec.added), default=-1) + 1)
        self.table: list[bytes] = [token or b"" for token in spec.bpe.tokens]
        self.table += [b""] * (size - len(self.table))
        self.known: Bools = np.fromiter((token != b"" for token in self.table), np.bool_, size)
        self.special: Bools = np.zeros(size, np.bool_)
        for token in spec.added:
            self.table[token.id] = token.content.encode()
            self.known[token.id] = True
            self.special[token.id] |= token.special

    def decode(self, ids: Any, skip_special: bool) -> bytes:
        """The joined bytes. ids: integers in any one-dimensional sequence or array.

        Raises InputError, naming the position and the id, for an id that isn't known.
        """
        numbers = _integers(ids)
        if numbers.size:
            bad = (numbers < 0) | (numbers >= len(self.table))
            if not bad.any():
                bad = ~self.known[numbers]
            if bad.any():
                at = int(np.argmax(bad))
                raise InputError(
                    f"position {at}: {int(numbers[at])} is not an id of this tokenizer"
                )
            if skip_special:
                numbers = numbers[~self.special[numbers]]
        return b"".join(map(self.table.__getitem__, numbers.tolist()))


def _integers(ids: Any) -> np.ndarray[Any, Any]:
    """A one-dimensional integer array. Raises InputError for anything else."""
    if isinstance(ids, str | bytes):
        raise InputError(f"ids are integers, not {type(ids).__name__}")
    if hasattr(ids, "to_pylist") or hasattr(
        ids, "as_py"
    ):  # an Arrow array, or a list scalar of one
        ids = ids.to_pylist() if hasattr(ids, "to_pylist") else ids.as_py()
    if not isinstance(ids, np.ndarray):
        if ids is None:
            raise InputError("ids are integers, not None")
        ids = list(ids)
        for at, value in enumerate(ids):
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
                raise InputError(f"position {at}: {value!r} is not an integer")
            if not -(2**63) <= value < 2**63:
                raise InputError(f"position {at}: {value} is not an id of this tokenizer")
        ids = np.array(ids, np.int64)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InputError(
            f"ids are a one-dimensional array of integers, not {ids.ndim}-d {ids.dtype}"
        )
    return ids if ids.size else np.zeros(0, np.int64)
