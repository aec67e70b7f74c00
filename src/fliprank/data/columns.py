"""Lines of columns, parsed in kernels: pieces of a file in parallel, ids as places in its bytes, a number per line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.numbers import parse_float
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["Columns", "Layout", "count_lines", "cut_lines", "is_space", "line_end", "parse_columns"]


class Layout(NamedTuple):
    """How many columns a line may have, and which (from 0) hold the document and the number; the first is the query."""

    least: int
    most: int
    document: int
    number: int


class Columns(NamedTuple):
    """Where the bytes of the query id (0) and document id (1) of each row are, and its number."""

    starts: Ints
    lengths: Int32s
    numbers: Floats


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
def parse_columns(buffer: Bytes, cuts: Ints, limits: Ints, layout: Layout, out: Columns) -> tuple[Ints, Ints]:
    """Write the columns of piece p to `out`, from row `limits[p]` on.

    Returns for each piece how many rows it has, and where its first bad line begins (-1: nowhere).
    """
    used, bad = np.zeros(len(cuts) - 1, np.int64), np.full(len(cuts) - 1, -1, np.int64)
    starts, lengths, numbers = out  # Numba drops what a parallel loop writes to a field of a tuple
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
                if column == 0 or column == layout.document:
                    which = 0 if column == 0 else 1
                    starts[which, row], lengths[which, row] = start, i - start
                elif column == layout.number:
                    numbers[row], valid = parse_float(buffer, start, i)
                    valid = valid and np.isfinite(numbers[row])
                column += 1
            i += 1
            if column > 0:
                row += 1
                if not valid or column < layout.least or column > layout.most:
                    bad[p] = line
        used[p] = row - limits[p]
    return used, bad
