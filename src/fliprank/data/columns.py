"""Lines of columns, parsed in kernels: pieces of a file in parallel, ids as places in its bytes, one number a line."""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.numbers import parse_float
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["count_lines", "cut_lines", "is_space", "line_end", "parse_columns"]


@kernel
def is_space(byte: int) -> bool:
    return byte <= 32 and (byte == 32 or 9 <= byte <= 13)


@kernel
def line_end(buffer: Bytes, begin: int) -> int:
    """Where the newline of the line at `begin` is."""
    while buffer[begin] != 10:
        begin += 1
    return begin


@kernel
def cut_lines(buffer: Bytes, begin: int, pieces: int) -> Ints:
    """Cut `buffer[begin:]`, which ends with a newline, after newlines into pieces of about one size."""
    cuts = np.full(pieces + 1, len(buffer), np.int64)
    cuts[0] = begin
    for p in range(1, pieces):
        i = max(cuts[p - 1], begin + (len(buffer) - begin) // pieces * p)
        while i < len(buffer) and i > begin and buffer[i - 1] != 10:
            i += 1
        cuts[p] = i
    return cuts


@parallel_kernel
def count_lines(buffer: Bytes, cuts: Ints) -> Ints:
    out = np.zeros(len(cuts) - 1, np.int64)
    for p in prange(len(cuts) - 1):
        count = 0
        for i in range(cuts[p], cuts[p + 1]):
            count += buffer[i] == 10
        out[p] = count
    return out


@parallel_kernel
def parse_columns(
    buffer: Bytes,
    cuts: Ints,
    limits: Ints,
    least: int,
    most: int,
    document: int,
    number: int,
    starts: Ints,
    lengths: Int32s,
    numbers: Floats,
) -> tuple[Ints, Ints]:
    """Write the columns of piece p from row `limits[p]` on; (rows written, where the first bad line begins or -1)."""
    used, bad = np.zeros(len(cuts) - 1, np.int64), np.full(len(cuts) - 1, -1, np.int64)
    for p in prange(len(cuts) - 1):
        i, row = cuts[p], limits[p]
        while i < cuts[p + 1] and bad[p] < 0:
            line, column, valid = i, 0, True
            while buffer[i] != 10:
                if is_space(buffer[i]):
                    i += 1
                    continue
                start = i
                while not is_space(buffer[i]):
                    i += 1
                if column == 0 or column == document:
                    which = 0 if column == 0 else 1
                    starts[which, row], lengths[which, row] = start, i - start
                elif column == number:
                    numbers[row], valid = parse_float(buffer, start, i)
                    valid = valid and np.isfinite(numbers[row])
                column += 1
            i += 1
            if column > 0:
                row += 1
                if not valid or column < least or column > most:
                    bad[p] = line
        used[p] = row - limits[p]
    return used, bad
