"""Documents in TREC's markup: <DOC><DOCNO>...</DOCNO><TITLE>...</TITLE><TEXT>...</TEXT></DOC>, one after the other.

Every element directly under DOC is a field with its name in lower case; tags inside it are dropped, their text stays.
Text outside of any element belongs to the field `text`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from fliprank.data.files import read_chunks
from fliprank.errors import InputError

__all__ = ["read_trec"]

_DOCUMENT = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL | re.IGNORECASE)
_ELEMENT = re.compile(r"<(\w+)(?:\s[^>]*)?>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?\w[^>]*>|<!--.*?-->", re.DOTALL)


def read_trec(path: Path) -> Iterator[dict[str, str]]:
    """The documents of a file, each with its `docno` and fields."""
    line, rest = 1, ""
    for chunk in read_chunks(path):
        text, done = rest + chunk.decode(), 0
        for found in _DOCUMENT.finditer(text):
            line += text.count("\n", done, found.start())
            yield _document(found[1], path, line)
            line += text.count("\n", found.start(), found.end())
            done = found.end()
        rest = text[done:]
    if _TAG.sub("", rest).strip():
        line += rest[: len(rest) - len(rest.lstrip())].count("\n")
        raise InputError("text outside of a document, or a document that does not end", path=path, line=line)


def _document(markup: str, path: Path, line: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, content in [*_ELEMENT.findall(markup), ("text", _ELEMENT.sub(" ", markup))]:
        text = html.unescape(_TAG.sub(" ", content)).strip()
        key = name.lower()
        if text:
            fields[key] = f"{fields[key]}\n{text}" if key in fields else text
    if not fields.get("docno"):
        raise InputError("a document without a DOCNO", path=path, line=line)
    return fields
