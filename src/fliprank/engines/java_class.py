"""One small class of Java, written as bytes: Lucene wants a class of ours for similarities by field.

Python can't extend classes of Java, and whoever runs Lucene here may have no compiler. The class is

    public class FieldSimilarities extends PerFieldSimilarityWrapper {
        public java.util.HashMap table;
        public Similarity other;
        public FieldSimilarities(java.util.HashMap table, Similarity other) { this.table = table; this.other = other; }
        public Similarity get(String field) { return (Similarity) table.getOrDefault(field, other); }
    }

and the format that of chapter 4 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

import os
import struct
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["FIELD_SIMILARITIES", "class_folder"]

FIELD_SIMILARITIES = "FieldSimilarities"
SIMILARITY = "org/apache/lucene/search/similarities/Similarity"
WRAPPER = "org/apache/lucene/search/similarities/PerFieldSimilarityWrapper"
TABLE = "java/util/HashMap"
JAVA_8 = 52
A_FIELD, A_METHOD = 9, 10
LOAD_THIS, LOAD_1, LOAD_2 = b"\x2a", b"\x2b", b"\x2c"
GET_FIELD, PUT_FIELD, CALL, CALL_SUPER, CAST = b"\xb4", b"\xb5", b"\xb6", b"\xb7", b"\xc0"
RETURN, RETURN_OBJECT = b"\xb1", b"\xb0"
PUBLIC, PUBLIC_CLASS = b"\x00\x01", b"\x00\x21"


@cache
def class_folder() -> str:
    """A folder with the class file, as a class loader wants it named; it is there as long as this process."""
    folder = tempfile.TemporaryDirectory(prefix="fliprank-java-")
    _KEPT.append(folder)
    (Path(folder.name) / f"{FIELD_SIMILARITIES}.class").write_bytes(_field_similarities())
    return folder.name + os.sep


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _field_similarities() -> bytes:
    pool = _Pool()
    fields = {"table": f"L{TABLE};", "other": f"L{SIMILARITY};"}
    table, other = (pool.member(A_FIELD, FIELD_SIMILARITIES, name, kind) for name, kind in fields.items())
    start = LOAD_THIS + CALL_SUPER + pool.member(A_METHOD, WRAPPER, "<init>", "()V")
    start += LOAD_THIS + LOAD_1 + PUT_FIELD + table + LOAD_THIS + LOAD_2 + PUT_FIELD + other + RETURN
    look = pool.member(A_METHOD, TABLE, "getOrDefault", "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;")
    get = LOAD_THIS + GET_FIELD + table + LOAD_1 + LOAD_THIS + GET_FIELD + other + CALL + look
    get += CAST + pool.named(SIMILARITY) + RETURN_OBJECT
    members = b"".join(PUBLIC + pool.text(name) + pool.text(kind) + b"\0\0" for name, kind in fields.items())
    methods = _method(pool, "<init>", f"(L{TABLE};L{SIMILARITY};)V", start, 2, 3)
    methods += _method(pool, "get", f"(Ljava/lang/String;)L{SIMILARITY};", get, 3, 2)
    body = PUBLIC_CLASS + pool.named(FIELD_SIMILARITIES) + pool.named(WRAPPER) + _short(0)  # no interfaces
    body += _short(len(fields)) + members + _short(2) + methods + _short(0)
    head = b"\xca\xfe\xba\xbe" + _short(0) + _short(JAVA_8) + _short(len(pool.entries) + 1)
    return head + b"".join(pool.entries) + body


def _short(number: int) -> bytes:
    return struct.pack(">H", number)


class _Pool:
    """The constants of a class file; each method gives the place of a constant, as two bytes."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def _place(self, entry: bytes) -> bytes:
        if entry not in self.entries:
            self.entries.append(entry)
        return _short(self.entries.index(entry) + 1)

    def text(self, text: str) -> bytes:
        return self._place(b"\x01" + _short(len(text)) + text.encode())

    def named(self, name: str) -> bytes:
        """A class."""
        return self._place(b"\x07" + self.text(name))

    def member(self, tag: int, owner: str, name: str, kind: str) -> bytes:
        """A field or a method of a class."""
        told = self._place(b"\x0c" + self.text(name) + self.text(kind))
        return self._place(bytes([tag]) + self.named(owner) + told)


def _method(pool: _Pool, name: str, kind: str, code: bytes, stack: int, variables: int) -> bytes:
    """A public method with this code."""
    inside = struct.pack(">HHI", stack, variables, len(code)) + code + _short(0) + _short(0)
    attribute = pool.text("Code") + struct.pack(">I", len(inside)) + inside
    return PUBLIC + pool.text(name) + pool.text(kind) + _short(1) + attribute
