"""Sorting numbers within a kernel: by their leading bits, three passes of eleven, then by insertion.

Crossings of a query are some thousands of numbers spread wide: their leading 32 bits nearly always settle the order,
and to count digits is several times as quick as to compare.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.kernels import kernel

__all__ = ["sort_numbers"]

FEW = 48
"""Up to so many numbers are sorted by insertion alone."""


@kernel
def sort_numbers(x: Floats, count: int) -> Ints:
    """What sorts the first `count` of x, none of them NaN, fewer than 2^31.

    >>> sort_numbers(np.array([2.0, -1.0, 0.5, -3.0, -1.0, 9.0]), 5).tolist()
    [3, 1, 4, 2, 0]
    """
    words = np.empty(count, np.int64)
    bits = x.view(np.int64)
    for i in range(count):
        own = bits[i]
        # As whole numbers, bits of positive numbers rise with them, those of negative ones fall.
        rising = own ^ ((own >> 63) & 0x7FFFFFFFFFFFFFFF)
        words[i] = (((rising >> 32) + (1 << 31)) << 31) | i
    if count > FEW:
        _by_digits(words)
    for i in range(count):
        words[i] &= (1 << 31) - 1
    moves = 0
    for i in range(1, count):
        own, at = words[i], i
        while at > 0 and x[words[at - 1]] > x[own] and moves <= 8 * count + FEW * FEW:
            words[at] = words[at - 1]
            at, moves = at - 1, moves + 1
        words[at] = own
    if moves > 8 * count + FEW * FEW:  # many differ in their last bits only
        return np.argsort(x[:count], kind="mergesort")
    return words


@kernel
def _by_digits(words: Ints) -> None:
    """Sort words, of which bits 31 to 63 count: from the last digit to the first, each pass keeping the order."""
    counts = np.zeros((3, 2048), np.int64)
    for word in words:
        counts[0, (word >> 31) & 2047] += 1
        counts[1, (word >> 42) & 2047] += 1
        counts[2, (word >> 53) & 2047] += 1
    source, target = words, np.empty_like(words)
    for digit in range(3):
        count, shift, end = counts[digit], 31 + 11 * digit, 0
        for value in range(2048):
            size = count[value]
            count[value] = end
            end += size
        for word in source:
            value = (word >> shift) & 2047
            target[count[value]] = word
            count[value] += 1
        source, target = target, source
    words[:] = source
