"""Exceptions of the package, one small hierarchy.

Every message says what is wrong and where: the file and key, or the row and byte.
"""


class SaphiraError(Exception):
    """Base class of every error raised on purpose by this package."""


class BuildError(SaphiraError, ImportError):
    """The compiled core is missing: the package was imported from a tree that was never built."""


class UnsupportedError(SaphiraError):
    """A tokenizer file asks for something that is not supported; the message names it."""


class TokenizerFileError(SaphiraError, ValueError):
    """A tokenizer file is missing, truncated or contradicts itself; the message names the key."""


class InputError(SaphiraError, ValueError):
    """Input that cannot be encoded: a column of the wrong type, a row the chosen policy refuses.

    `row` is the row in the whole column (an int), or None where no single row is at fault.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class DeviceError(SaphiraError, RuntimeError):
    """The device asked for is not there; the message says which piece is missing."""


class VerifyError(DeviceError):
    """A device made other ids of a row than the CPU does: neither's are returned.

    row: in the whole column. stage: the first one that differs: segments, tags, boundaries, pieces,
    values or ids. device_ids, cpu_ids: of that row. seed: of the choice of rows.
    """

    def __init__(
        self,
        row: int,
        stage: str,
        seed: int,
        device_ids: list[int],
        cpu_ids: list[int],
        detail: str,
    ) -> None:
        super().__init__(
            f"row {row}: the device differs from the CPU, first in stage {stage} ({detail}); "
            f"device: {_some(device_ids)}; CPU: {_some(cpu_ids)}; rows chosen by seed {seed}"
        )
        self.row, self.stage, self.seed = row, stage, seed
        self.device_ids, self.cpu_ids, self.detail = device_ids, cpu_ids, detail

    def named(self, row: int) -> "VerifyError":
        """The same of the row's number in the whole column."""
        return VerifyError(row, self.stage, self.seed, self.device_ids, self.cpu_ids, self.detail)


def _some(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:20]))
    return f"[{shown}, … {len(ids)} ids]" if len(ids) > 20 else f"[{shown}]"
