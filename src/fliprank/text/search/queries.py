"""Queries as an index sees them: distinct terms, how often each stands in its query, its number in the index.

>>> read_queries({"q1": "red shoes"})
{'q1': 'red shoes'}
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.beir import json_objects
from fliprank.data.csr import bounds
from fliprank.data.files import StrPath, open_bytes, read_bytes, resolve
from fliprank.data.ids import Ids, factorize
from fliprank.errors import InputError
from fliprank.kernels import kernel
from fliprank.text.build.builder import pack
from fliprank.text.words import WordCounter

if TYPE_CHECKING:
    from fliprank.text.index import Index

__all__ = ["Queries", "QueriesLike", "analyse", "read_queries"]

QueriesLike = Mapping[str, str] | StrPath
"""Queries by id; or a file of them: JSON lines (`_id`, `text`), tab-separated (id, text), or TREC's topics (title)."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Query q owns `terms`, `number` (-1: in no document) and `count` of `offsets[q]:offsets[q + 1]`."""

    qids: Ids
    offsets: Ints
    terms: Ids
    number: Ints
    count: Floats

    def __len__(self) -> int:
        return len(self.qids)

    @property
    def sizes(self) -> Ints:
        """Distinct terms of each query."""
        return np.diff(self.offsets)


def read_queries(asked: QueriesLike) -> dict[str, str]:
    """The text of each query by its id; from a mapping, a file, or a folder in BEIR's layout."""
    if isinstance(asked, Mapping):
        if bad := next((qid for qid, text in asked.items() if not isinstance(text, str)), None):
            raise InputError(f"the query's text is {asked[bad]!r:.60}, not a string", query=str(bad))
        return {str(qid): text for qid, text in asked.items()}
    path = resolve(Path(asked) / "queries.jsonl" if Path(asked).is_dir() else asked)
    with open_bytes(path) as file:
        start = file.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()
    found: dict[str, str] = {}
    kinds = {b"{": _json_queries, b"<": _topics}
    for line, qid, text in kinds.get(start[:1], _table_queries)(path):
        if qid in found:
            raise InputError("the query occurs twice", path=path, line=line, query=qid)
        found[qid] = text
    return found


def _json_queries(path: Path) -> list[tuple[int, str, str]]:
    out = []
    for line, record in json_objects(path):
        qid = next((record[name] for name in ("_id", "id", "qid", "query_id") if name in record), None)
        text = next((record[name] for name in ("text", "query") if name in record), None)
        if isinstance(qid, bool) or not isinstance(qid, str | int) or not isinstance(text, str):
            hint = 'a line is a JSON object such as {"_id": "q1", "text": "..."}'
            raise InputError("a query without an _id or a text", path=path, line=line, hint=hint)
        out.append((line, str(qid), text))
    return out


_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:topic\s*:)?([^<]*)", re.IGNORECASE)


def _topics(path: Path) -> list[tuple[int, str, str]]:
    """Queries of a TREC file of topics: the number and the title of each."""
    text, out = read_bytes(path).tobytes().decode(), []
    for topic in _TOPIC.finditer(text):
        line = 1 + text.count("\n", 0, topic.start())
        number, title = _NUMBER.search(topic[1]), _TITLE.search(topic[1])
        if number is None or title is None:
            raise InputError("a topic without a number or a title", path=path, line=line, hint=_TOPIC_HINT)
        out.append((line, number[1], " ".join(html.unescape(title[1]).split())))
    if not out:
        raise InputError("no topics", path=path, hint=_TOPIC_HINT)
    return out


_TOPIC_HINT = "a topic is: <top> <num> Number: 301 <title> red shoes ... </top>"


def _table_queries(path: Path) -> list[tuple[int, str, str]]:
    out = []
    for line, row in enumerate(read_bytes(path).tobytes().decode().removeprefix("\ufeff").split("\n"), 1):
        qid, tab, text = row.rstrip("\r").partition("\t")
        if not row.strip():
            continue
        if not tab or not qid.strip():
            hint = "a line is: id, tab, text; or a JSON object; or the file is of TREC's topics"
            raise InputError("a line without an id and a tab", path=path, line=line, hint=hint)
        out.append((line, qid.strip(), text))
    return out


def analyse(index: Index, texts: Mapping[str, str]) -> Queries:
    """Cut the queries into terms as the index did its documents, and look the terms up."""
    if not index.is_consistent:
        raise InputError("a damaged index: it has postings of documents or terms that are not there; build it again")
    counter = WordCounter(index.analyzer, 1)
    buffer, _, length = pack(pl.Series(index.analyzer.plain(texts.values()), dtype=pl.String))
    [chunk] = counter.count(buffer, bounds(length.astype(np.int64)))
    counter.close()
    words, [numbers] = counter.unite()
    stems = Ids.of(index.analyzer.stems(words.tolist()))
    same, first = factorize(stems)
    stem = same[numbers[chunk.stream]]
    query = np.repeat(np.arange(len(texts)), chunk.counts)
    # Terms of a query in the order in which they stand in it; the first of equal ones counts them all.
    key, at, count = np.unique(query * len(first) + stem, return_index=True, return_counts=True)
    order = np.argsort(at)
    owner, term = np.divmod(key[order], max(len(first), 1))
    terms = stems.take(first[term])
    number = _look_up(*terms.arrays, *index.terms.arrays)
    sizes = np.bincount(owner, minlength=len(texts))
    return Queries(Ids.of(texts), bounds(sizes), terms, number, count[order].astype(np.float64))


@kernel
def _look_up(buffer: Bytes, start: Ints, length: Int32s, by: Bytes, by_start: Ints, by_length: Int32s) -> Ints:
    """For each id its place among the sorted ids `by`, or -1."""
    out = np.full(len(start), -1, np.int64)
    for i in range(len(start)):
        low, high = 0, len(by_start)
        while low < high:
            middle = (low + high) // 2
            difference = np.int64(0)
            for b in range(min(length[i], by_length[middle])):
                difference = np.int64(buffer[start[i] + b]) - np.int64(by[by_start[middle] + b])
                if difference != 0:
                    break
            if difference == 0:
                difference = np.int64(length[i]) - np.int64(by_length[middle])
            if difference == 0:
                out[i] = middle
                break
            if difference < 0:
                high = middle
            else:
                low = middle + 1
    return out
