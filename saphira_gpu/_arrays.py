"""Names of the array types that the package passes around."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# Ids of whichever integer type was asked for.
Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32] | npt.NDArray[np.int32]
