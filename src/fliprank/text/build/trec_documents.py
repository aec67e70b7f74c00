"""Documents in TREC's markup: <DOC><DOCNO>...</DOCNO><TITLE>...</TITLE><TEXT>...</TEXT></DOC>, one after the other.

Every element directly under DOC is a field with its name in lower case; tags inside it are dropped, their text stays.
Text outside of any element belongs to the field `text`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

from fliprank.data.files import read_chunks
from fliprank.data.json_limits import MOST_FIELDS, too_many_fields
from fliprank.data.markup import between, elements, without_tags
from fliprank.errors import InputError

__all__ = ["read_trec"]


def read_trec(path: Path) -> Iterator[dict[str, str]]:
    """The documents of a file, each with its `docno` and fields."""
    line, rest, names = 1, "", set[str]()
    for chunk in read_chunks(path):
        text, done = rest + chunk.decode(), 0
        for start, content, end in between(text, "DOC"):
            line += text.count("\n", done, start)
            document = _document(content, path, line)
            names |= document.keys()
            if len(names) > MOST_FIELDS:
                raise too_many_fields(path, line)
            yield document
            line += text.count("\n", start, end)
            done = end
        rest = text[done:]
    if without_tags(rest, "").strip():
        line += rest[: len(rest) - len(rest.lstrip())].count("\n")
        raise InputError("text outside of a document, or a document that does not end", path=path, line=line)


def _document(markup: str, path: Path, line: int) -> dict[str, str]:
    fields: dict[str, list[str]] = {}
    outside, done = list[str](), 0
    for start, name, content, end in [*elements(markup), (len(markup), "", "", len(markup))]:
        outside.append(markup[done:start])
        done = end
        if name:
            _add(fields, name, content)
    _add(fields, "text", " ".join(outside))
    if not fields.get("docno"):
        raise InputError("a document without a DOCNO", path=path, line=line)
    return {name: "\n".join(texts) for name, texts in fields.items()}


def _add(fields: dict[str, list[str]], name: str, content: str) -> None:
    if text := html.unescape(without_tags(content)).strip():
        fields.setdefault(name, []).append(text)
