"""Exact batch tokenizer: text and Arrow columns in, token ids out."""

from saphira_gpu.batch import Tokens
from saphira_gpu.errors import (
    BuildError,
    DeviceError,
    InputError,
    SaphiraError,
    TokenizerFileError,
    UnsupportedError,
    VerifyError,
)
from saphira_gpu.pretokenizer import PreTokenizer, classify
from saphira_gpu.report import Report
from saphira_gpu.tokenizer import Tokenizer, encode_arrow

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "DeviceError",
    "InputError",
    "PreTokenizer",
    "Report",
    "SaphiraError",
    "Tokenizer",
    "TokenizerFileError",
    "Tokens",
    "UnsupportedError",
    "VerifyError",
    "__version__",
    "classify",
    "encode_arrow",
]
