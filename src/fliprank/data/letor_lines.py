"""The lines of a LETOR file, in kernels: where rows are, what each holds, what is wrong with it.

A chunk ends with a newline, so a scan that stops at one needs no other bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Bytes, Floats, Ints, Matrix
from fliprank.data.numbers import parse_float, parse_integer
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = [
    "CLAMPED",
    "CODE",
    "DEFECTS",
    "DOCID",
    "DOCID_STOP",
    "HASH",
    "MOST_FEATURES",
    "NEWLINE",
    "NULL",
    "QID",
    "QID_STOP",
    "RAGGED_DOCID",
    "RAGGED_QID",
    "SPOT",
    "USUAL_FEATURES",
    "WIDEST",
    "Options",
    "Parsed",
    "find_rows",
    "parse_row",
    "parse_rows",
    "widen",
    "word_end",
]

MOST_FEATURES, USUAL_FEATURES = 1_000_000, 20_000
"""How many there may be where `n_features` says so, and where it does not."""
LARGEST = np.finfo(np.float32).max
NEWLINE, SPACE, HASH, COLON, EQUALS = (np.uint8(ord(c)) for c in "\n #:=")
QID_MARK, DOCID_MARK, NULL, NAN = (np.frombuffer(word, np.uint8) for word in (b"qid:", b"docid", b"null", b"nan"))

DEFECTS = (
    "",
    "expected a number as label, found {token!r}",
    "an empty query id",
    "expected index:value, found {token!r}",
    "expected a number after the colon, found {token!r}; missing='min', 'zero' or 'nan' says what NULL stands for",
    "features are numbered from 1, found {token!r}",
    "expected at most {limit} features, found {token!r}; --n-features N, or read_letor(..., n_features=N), allows more",
    "this feature stands in the line twice: {token!r}",
    "lines with and without qid: this one differs from those before",
    "lines with and without a document id in a comment: this one differs from those before",
)
LABEL, EMPTY_QID, FEATURE, VALUE, INDEX_0, BEYOND, TWICE, RAGGED_QID, RAGGED_DOCID = range(1, 10)


CODE, SPOT, WIDEST, CLAMPED, QID, QID_STOP, DOCID, DOCID_STOP = range(8)
"""The columns of `facts`. CODE is that of the row's defect (0: none), which is at byte SPOT; WIDEST is its largest
index; CLAMPED counts values beyond float32; an id is the bytes up to its STOP."""


@kernel
def _is_space(byte: np.uint8) -> bool:
    return bool(byte == SPACE or (9 <= byte <= 13 and byte != NEWLINE))


@kernel
def _skip_space(buffer: Bytes, i: int) -> int:
    while _is_space(buffer[i]):
        i += 1
    return i


@kernel
def word_end(buffer: Bytes, i: int, mark: np.uint8) -> int:
    """Where the word at `i` ends: at a blank, a newline or a `mark` (none of them above #)."""
    while buffer[i] > HASH or not (buffer[i] == NEWLINE or buffer[i] == mark or _is_space(buffer[i])):
        i += 1
    return i


@kernel
def _begins(buffer: Bytes, i: int, word: Bytes) -> bool:
    """Whether `word` (lower case) stands at `i`, in any case; looks no further than the newline."""
    for k in range(len(word)):
        byte = buffer[i + k]
        if byte != word[k] and not (65 <= byte <= 90 and byte + 32 == word[k]):
            return False
    return True


@kernel
def find_rows(buffer: Bytes, ends: Ints) -> tuple[Ints, Ints]:
    """(first byte, number from 0) of each line that is more than blanks and a comment."""
    starts, lines, count, line_start = np.empty(len(ends), np.int64), np.empty(len(ends), np.int64), 0, 0
    for line in range(len(ends)):
        i = _skip_space(buffer, line_start)
        if buffer[i] != NEWLINE and buffer[i] != HASH:
            starts[count], lines[count] = i, line
            count += 1
        line_start = ends[line] + 1
    return starts[:count], lines[:count]


class Options(NamedTuple):
    """What NULL and nan stand for (`strict`: they are a defect), and the largest index that a feature may have."""

    absent: float
    strict: bool
    limit: int


class Parsed(NamedTuple):
    """What is learned of each row besides its features: its label, and the columns of `facts`."""

    labels: Floats
    facts: Ints


@parallel_kernel
def parse_rows(buffer: Bytes, starts: Ints, matrix: Matrix, options: Options, out: Parsed) -> None:
    facts = out.facts  # Numba drops what a parallel loop writes to a field of a tuple
    for r in prange(len(starts)):
        code, spot = parse_row(buffer, starts[r], matrix[r], options, out, r)
        facts[r, CODE], facts[r, SPOT] = code, spot


@kernel
def parse_row(buffer: Bytes, i: int, row: Matrix, options: Options, out: Parsed, r: int) -> tuple[int, int]:
    """Parse the line from `i` into `row`, as far as it is wide, and into `out` at r: (0, 0) or (defect, where)."""
    labels, facts = out.labels, out.facts
    stop = word_end(buffer, i, HASH)
    labels[r], valid = parse_float(buffer, i, stop)
    if not valid or np.isinf(labels[r]):
        return LABEL, i
    i = _skip_space(buffer, stop)
    if _begins(buffer, i, QID_MARK):
        facts[r, QID], facts[r, QID_STOP] = i + 4, word_end(buffer, i + 4, HASH)
        if facts[r, QID_STOP] == i + 4:
            return EMPTY_QID, i
        i = _skip_space(buffer, facts[r, QID_STOP])
    first, last, ascending = i, 0, True
    while buffer[i] != NEWLINE and buffer[i] != HASH:
        index, colon = _parse_index(buffer, i)
        stop = word_end(buffer, colon, HASH)
        if index <= 0 or index > options.limit:
            return (FEATURE if index < 0 else INDEX_0 if index == 0 else BEYOND), i
        value, valid = parse_float(buffer, colon + 1, stop)
        single = np.float32(value)
        if not valid:
            null = _begins(buffer, colon + 1, NULL) and stop == colon + 5
            if options.strict or not (null or (_begins(buffer, colon + 1, NAN) and stop == colon + 4)):
                return VALUE, i
            single = np.float32(options.absent)
        elif np.isinf(single):
            single = LARGEST if value > 0 else -LARGEST
            facts[r, CLAMPED] += 1
        ascending &= index > last
        last = index
        facts[r, WIDEST] = max(facts[r, WIDEST], index)
        if index <= len(row):
            row[index - 1] = single
        i = _skip_space(buffer, stop)
    if not ascending and facts[r, WIDEST] <= len(row):
        twice = _find_repeated(buffer, first, len(row))
        if twice >= 0:
            return TWICE, twice
    _find_docid(buffer, i, facts, r)
    return 0, 0


@kernel
def _parse_index(buffer: Bytes, i: int) -> tuple[int, int]:
    """(index, where its colon is); -1 where these are not digits and a colon."""
    colon = i
    while 48 <= buffer[colon] <= 57:
        colon += 1
    if buffer[colon] != COLON or colon == i:
        return -1, colon
    index, valid = parse_integer(buffer, i, colon)
    return (index if valid else MOST_FEATURES + 1), colon


@kernel
def _find_repeated(buffer: Bytes, i: int, width: int) -> int:
    """Where the first index stands that the features from `i` on have had already, or -1."""
    seen = np.zeros(width + 1, np.bool_)
    while buffer[i] != NEWLINE and buffer[i] != HASH:
        index, colon = _parse_index(buffer, i)
        if seen[index]:
            return i
        seen[index] = True
        i = _skip_space(buffer, word_end(buffer, colon, HASH))
    return -1


@kernel
def _find_docid(buffer: Bytes, i: int, facts: Ints, r: int) -> None:
    """The document id of the comment at `i`, if any: what follows `docid =`, or else its first word."""
    if buffer[i] == NEWLINE:
        return
    start = _skip_space(buffer, i + 1)
    if _begins(buffer, start, DOCID_MARK):
        equals = _skip_space(buffer, start + 5)
        if buffer[equals] == EQUALS:
            start = _skip_space(buffer, equals + 1)
    stop = word_end(buffer, start, SPACE)
    if stop > start:
        facts[r, DOCID], facts[r, DOCID_STOP] = start, stop


@kernel
def widen(flat: Matrix, rows: int, width: int, wider: int) -> None:
    """Give the first `rows` of `flat` more features, 0, in place: from the last row on, so that none is overwritten."""
    for r in range(rows - 1, -1, -1):
        for k in range(width - 1, -1, -1):
            flat[r * wider + k] = flat[r * width + k]
        flat[r * wider + width : (r + 1) * wider] = 0
    flat[rows * wider :] = 0
