"""What tells rows in files from all others: what they are, not when they were written nor how files part them.

Each file has the CRC of each of its arrays. That of two arrays, one after the other, follows from theirs, so that no
row is read.

>>> import zlib
>>> sum_of_both(zlib.crc32(b"abc"), zlib.crc32(b"defg"), 4) == zlib.crc32(b"abcdefg")
True
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.row_file import RowFile

__all__ = ["digest_of", "sum_of_both"]

CONSECUTIVE = ("labels", "features", "qid", "qid_length", "docid", "docid_length", "missed_labels")
"""Arrays of which that of all rows is those of the files, one after the other."""

POLYNOMIAL = 0xEDB88320
"""That of CRC-32, the coefficient of x^0 in the highest bit, as in all numbers below."""

ONE, X = 1 << 31, 1 << 30


def digest_of(files: Sequence[RowFile], chosen: Ints | None = None) -> str:
    """The digest of the rows of these files, or of the chosen queries."""
    digest = blake2b(json.dumps(files[0].feature_names).encode(), digest_size=16)
    for name in CONSECUTIVE:
        total, size = 0, 0
        for file in files:
            own, length = file.sums.get(name, (0, 0))
            total, size = sum_of_both(total, own, length), size + length
        digest.update(f"{name} {total} {size} ".encode())
    for name in ("offsets", "missed_offsets"):
        for file in files:
            digest.update(np.diff(file.arrays.get(name, np.zeros(file.queries + 1, np.int64))).data)
    if chosen is not None:
        digest.update(b"chosen" + chosen.tobytes())
    return digest.hexdigest()


def sum_of_both(first: int, second: int, length: int) -> int:
    """The CRC of bytes whose beginning and whose last `length` bytes have these.

    A CRC is a polynomial modulo another: `length` more bytes multiply it by x^(8 length), and then theirs is added.
    """
    power, bits = ONE, 8 * length
    for place in range(bits.bit_length()):
        if bits >> place & 1:
            power = _product(power, _square(place))
    return _product(power, first) ^ second


@cache
def _square(place: int) -> int:
    """x^(2^place)."""
    return X if place == 0 else _product(_square(place - 1), _square(place - 1))


def _product(one: int, other: int) -> int:
    """The product of two polynomials over bits, modulo that of CRC-32."""
    out = 0
    while one:
        if one & ONE:
            out ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (POLYNOMIAL if other & 1 else 0)
    return out
