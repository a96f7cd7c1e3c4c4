"""The compact form of a rank file: the bytes of every token by rank, a quarter of the text's size.

Nearly every token of a BPE vocabulary is two earlier tokens joined, so a token is stored as two
ranks; the others (the single bytes first of all) are stored as they are. Layout, little-endian:

    8   magic "SAVOCAB1"
    4   n, the number of tokens
    4   m, the number of tokens stored as they are
    8   the bytes of all tokens together
    32  sha256 of the rank file (the text that `rank_file` gives)
    32  sha256 of all the above and of the stream below
    ... a zlib stream of
        m * u32  their ranks, ascending          m * u32  their lengths          their bytes
        then for the n - m others, ascending: the left and right rank in planes of one byte each,
        the lowest byte first: left 0, left 1, left 2, right 0, right 1, right 2

Reading checks the second digest, for the first would cost more than all the rest of it; that the
tokens have the first is checked where the file is made, and by the tests.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from binascii import b2a_base64
from collections.abc import Sequence

import numpy as np

from saphira_gpu._arrays import I64
from saphira_gpu.errors import TokenizerFileError

MAGIC = b"SAVOCAB1"
_HEADER = struct.Struct("<8sIIQ32s")
_DIGEST = 32
_BODY = _HEADER.size + _DIGEST
_PLANES = 3
# Larger than any vocabulary in use; they bound what a hostile file can make `decode` allocate.
_MAX_TOKENS = 1 << 22
_MAX_BYTES = 1 << 28


def rank_file(tokens: Sequence[bytes]) -> bytes:
    """The text of a `.tiktoken` rank file: a line `base64 rank` for each token."""
    return b"".join(
        [b"%b %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens)]
    )


def encode(tokens: Sequence[bytes]) -> bytes:
    """The compact form of a vocabulary. tokens: the bytes of ranks 0, 1, 2, ...

    Raises ValueError for an empty token or more tokens or bytes than the format holds.
    """
    total = sum(map(len, tokens))
    if not all(tokens) or len(tokens) > _MAX_TOKENS or total > _MAX_BYTES:
        raise ValueError("a token is empty, or the vocabulary is too large")
    earlier: dict[bytes, int] = {}
    literals: list[int] = []
    pairs: list[tuple[int, int]] = []
    for rank, token in enumerate(tokens):
        for cut in range(len(token) - 1, 0, -1):
            left, right = earlier.get(token[:cut]), earlier.get(token[cut:])
            if left is not None and right is not None:
                pairs.append((left, right))
                break
        else:
            literals.append(rank)
        earlier[token] = rank
    stored = [tokens[rank] for rank in literals]
    sides = np.array(pairs, "<u4").reshape(-1, 2)
    planes = [
        (side >> 8 * place & 0xFF).astype(np.uint8) for side in sides.T for place in range(_PLANES)
    ]
    body = b"".join(
        [
            np.array(literals, "<u4").tobytes(),
            np.array([len(token) for token in stored], "<u4").tobytes(),
            *stored,
            *(plane.tobytes() for plane in planes),
        ]
    )
    digest = hashlib.sha256(rank_file(tokens)).digest()
    header = _HEADER.pack(MAGIC, len(tokens), len(literals), total, digest)
    stream = zlib.compress(body, 9)
    return header + hashlib.sha256(header + stream).digest() + stream


def sha256_of(data: bytes) -> str:
    """The sha256 (hex) of the rank file that a compact form holds. Raises TokenizerFileError."""
    _header(data)
    return str(_HEADER.unpack_from(data)[4].hex())


def decode(data: bytes) -> list[bytes]:
    """The bytes of every token by rank, found unchanged since `encode` wrote them.

    Raises TokenizerFileError for anything that `encode` did not write.
    """
    n, m, total = _header(data)
    if hashlib.sha256(data[: _HEADER.size] + data[_BODY:]).digest() != data[_HEADER.size : _BODY]:
        raise TokenizerFileError("compact vocabulary: damaged, its sha256 differs")
    literals, others, stored, left, right = _body(data, n, m, total)
    # A generation at a time: the tokens whose two parts are all there.
    tokens = np.empty(n, object)
    tokens[literals] = stored
    lengths = np.zeros(n, np.int64)
    lengths[literals] = [len(token) for token in stored]
    size = int(lengths.sum())
    while len(others):
        parts = lengths[left], lengths[right]
        ready = (parts[0] > 0) & (parts[1] > 0)
        made = others[ready]
        lengths[made] = parts[0][ready] + parts[1][ready]
        size += int(lengths[made].sum())
        if size > total:
            raise TokenizerFileError("compact vocabulary: more token bytes than its header says")
        tokens[made] = tokens[left[ready]] + tokens[right[ready]]
        others, left, right = others[~ready], left[~ready], right[~ready]
    if size != total:
        raise TokenizerFileError("compact vocabulary: fewer token bytes than its header says")
    found: list[bytes] = tokens.tolist()
    return found


def _header(data: bytes) -> tuple[int, int, int]:
    """(n, m, total bytes), within bounds."""
    if len(data) < _BODY:
        raise TokenizerFileError("compact vocabulary: truncated header")
    magic, n, m, total, _ = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise TokenizerFileError("compact vocabulary: not in this format, or a later version of it")
    if m > n or n > _MAX_TOKENS or total > _MAX_BYTES:
        raise TokenizerFileError("compact vocabulary: impossible sizes in the header")
    return n, m, total


def _body(data: bytes, n: int, m: int, total: int) -> tuple[I64, I64, list[bytes], I64, I64]:
    """(ranks stored as they are, the other ranks, the stored tokens, left ranks, right ranks).

    Ranks are below n and ascending, left and right ranks below the rank that they make.
    """
    bad = TokenizerFileError("compact vocabulary: damaged contents")
    limit = 8 * m + total + 2 * _PLANES * (n - m)
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data[_BODY:], limit + 1)
    except zlib.error as error:
        raise TokenizerFileError(f"compact vocabulary: {error}") from error
    if not stream.eof or stream.unused_data or len(body) > limit or len(body) < 8 * m:
        raise bad
    literals: I64 = np.frombuffer(body, "<u4", m).astype(np.int64)
    lengths: I64 = np.frombuffer(body, "<u4", m, 4 * m).astype(np.int64)
    stop = 8 * m + int(lengths.sum())
    if len(body) != stop + 2 * _PLANES * (n - m):
        raise bad
    if m and (literals[-1] >= n or (np.diff(literals) <= 0).any() or (lengths == 0).any()):
        raise bad
    ends = (8 * m + np.cumsum(lengths)).tolist()
    stored = [body[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
    planes = np.frombuffer(body, np.uint8, offset=stop).reshape(2, _PLANES, n - m).astype(np.int64)
    sides = planes[:, 0] | planes[:, 1] << 8 | planes[:, 2] << 16
    is_pair = np.ones(n, bool)
    is_pair[literals] = False
    others = np.flatnonzero(is_pair)
    if (sides >= others).any():
        raise bad
    return literals, others, stored, sides[0], sides[1]
