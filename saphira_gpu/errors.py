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
