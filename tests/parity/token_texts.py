"""The built-in collection as other engines are given it: the terms that our analyzer made, with spaces between them.

So all engines cut text alike, and only their scoring is compared.
"""

from __future__ import annotations

import json
from functools import cache

from fliprank.data.builtin import collection
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index
from fliprank.text.search.queries import read_queries

FIELDS = ("title", "headings", "text")
TERMS = Analyzer(lowercase=False, stopwords=None, stemmer=None)
"""Takes terms as they are."""


@cache
def documents() -> list[dict[str, str]]:
    """In the order of the file; every field of each has a term."""
    lines = (collection() / "corpus.jsonl").read_text().splitlines()
    return [{"_id": page["_id"]} | {name: _terms(page[name]) for name in FIELDS} for page in map(json.loads, lines)]


@cache
def queries() -> dict[str, str]:
    """Every third query that comes with the collection, and one that says a word twice."""
    texts = [*read_queries(collection()).items()][::3]
    return {qid: _terms(text) for qid, text in [*texts, ("twice", "email mailbox email")]}


@cache
def index_of(*fields: str) -> Index:
    """Our index of these fields."""
    return Index.build(documents(), fields=fields, analyzer=TERMS)


def _terms(text: str) -> str:
    return " ".join(Analyzer().terms(text))
