"""Bounds on JSON lines before polars makes columns of them: how deep they nest, and how many fields they name.

Polars takes minutes and gigabytes for a small file that nests hundreds deep, or whose objects are keyed by ids, so that
each line names fields of its own. One look at the bytes tells; it need not know whether they are JSON.

>>> check_json_lines(b'{"_id": 1, "a": {"b": [2]}}', "docs.jsonl")
>>> check_json_lines(b'{"a":' * 100 + b"1" + b"}" * 100, "docs.jsonl")
Traceback (most recent call last):
fliprank.errors.InputError: docs.jsonl, line 1: nested more than 64 deep (fields are flattened to a depth of 8 at most)
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Bytes, Ints
from fliprank.data.files import StrPath
from fliprank.errors import InputError
from fliprank.kernels import kernel

__all__ = ["DEEPEST_JSON", "MOST_FIELDS", "check_json_lines", "too_many_fields"]

DEEPEST_JSON = 64
MOST_FIELDS = 2_000
"""Fields of the documents of one file; the same name in another object is another field."""

TABLE = 1 << 13
"""Slots of the set of fields that were seen: a power of 2, well above MOST_FIELDS."""
FINE, DEEP, MANY = range(3)
NEWLINE, QUOTE, BACKSLASH, COLON, SPACE = (ord(c) for c in '\n"\\: ')
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = (ord(c) for c in "[]{}")


def check_json_lines(data: bytes, path: StrPath, line: int = 1) -> None:
    """Raise an error that names the line with which `data`, which starts at `line`, nests too deep or has too many
    fields."""
    found, ended = _look(np.frombuffer(data, np.uint8), np.zeros(TABLE, np.int64))
    if found == DEEP:
        hint = "fields are flattened to a depth of 8 at most"
        raise InputError(f"nested more than {DEEPEST_JSON} deep", path=path, line=line + ended, hint=hint)
    if found == MANY:
        raise too_many_fields(path, line + ended)


def too_many_fields(path: StrPath, line: int) -> InputError:
    """The error for a file whose documents have too many fields."""
    hint = "objects keyed by ids? Write them as lists of objects that all have the same keys"
    return InputError(f"the documents have more than {MOST_FIELDS:,} fields", path=path, line=line, hint=hint)


@kernel
def _look(data: Bytes, seen: Ints) -> tuple[int, int]:
    """(what is wrong, number of the line, from 0); `seen` is a hash set of fields, which stand for their paths."""
    above = np.zeros(DEEPEST_JSON + 2, np.int64)  # the field that holds the object or list at each depth
    depth, line, count, i, field = 0, 0, 0, 0, 0
    while i < len(data):
        byte = data[i]
        i += 1
        if byte == NEWLINE:
            line, depth, field = line + 1, 0, 0
        elif byte in (OPEN_OBJECT, OPEN_LIST):
            depth += 1
            if depth > DEEPEST_JSON:
                return DEEP, line
            above[depth] = field
        elif byte in (CLOSE_OBJECT, CLOSE_LIST):
            field, depth = above[depth], max(0, depth - 1)
        elif byte == QUOTE:
            i, word = _string(data, i)
            if i < len(data) and data[i] == COLON:
                field = (word ^ above[depth]) * 1099511628211 + 1
                count += _new(seen, field)
                if count > MOST_FIELDS:
                    return MANY, line
    return FINE, line


@kernel
def _string(data: Bytes, i: int) -> tuple[int, int]:
    """Where the string that starts at `i` ends, with blanks after it, and its hash; strings end with their line."""
    word = 7
    while i < len(data) and data[i] != QUOTE and data[i] != NEWLINE:
        if data[i] == BACKSLASH and i + 1 < len(data) and data[i + 1] != NEWLINE:
            i += 1
        word = (word ^ data[i]) * 1099511628211
        i += 1
    if i < len(data) and data[i] == QUOTE:
        i += 1
    while i < len(data) and (data[i] == SPACE or data[i] == 9):
        i += 1
    return i, word


@kernel
def _new(seen: Ints, field: int) -> int:
    """1 if `field` was not in the set, to which it is added."""
    key = field if field != 0 else 1
    slot = (key ^ (key >> 29)) & (TABLE - 1)
    while seen[slot] != 0:
        if seen[slot] == key:
            return 0
        slot = (slot + 1) & (TABLE - 1)
    seen[slot] = key
    return 1
