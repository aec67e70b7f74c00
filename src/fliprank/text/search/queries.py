"""Queries as an index sees them: their distinct terms, how often each occurs in its query, its number in the index.

>>> read_queries({"q1": "red shoes"})
{'q1': 'red shoes'}
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.csr import bounds
from fliprank.data.files import StrPath, open_bytes, read_bytes, resolve
from fliprank.data.ids import Ids, factorize
from fliprank.data.json_files import json_objects
from fliprank.data.judgement_table import is_judgement_table, read_judgement_table
from fliprank.data.markup import between
from fliprank.errors import InputError
from fliprank.kernels import kernel
from fliprank.text.index_arrays import IndexArrays
from fliprank.text.words import cut_texts

__all__ = ["Queries", "QueriesLike", "Whole", "analyse", "idf_of", "look_up", "read_queries"]

QueriesLike = Mapping[str, str] | StrPath
"""Query texts by id; or a file: JSON lines (`_id`, `text`), tab-separated lines (id, text), TREC topics (title),
or a table of judgements (query, docid, rating)."""


@dataclass(frozen=True, eq=False)
class Whole:
    """What is known of a whole collection where an index has a part of it only (see `IndexShards`).

    Per field: the number of terms (`tokens`), of documents that have any, and of different terms summed over documents;
    per query term and field: occurrences (`collection`) and documents.
    """

    documents: int
    tokens: Ints
    field_documents: Ints
    distinct_tokens: Floats
    collection: Ints
    field_df: Ints

    def span(self, first: int, end: int) -> Whole:
        """The same of the query terms `first:end`."""
        return replace(self, collection=self.collection[first:end], field_df=self.field_df[first:end])


@dataclass(frozen=True, eq=False)
class Queries:
    """Query q owns the distinct terms `offsets[q]:offsets[q + 1]` and the words `word_offsets[q]:word_offsets[q + 1]`.

    Per term: `number` in the index (-1 if no document has it), `count` in the query, `df` and `idf` over all fields.
    Per word, in the order of the text: `sequence` says which of the query's terms it is, counted from 0. Where the
    index has a part of the collection only, `df`, `idf` and `whole` are of all of it.
    """

    qids: Ids
    offsets: Ints
    terms: Ids
    number: Ints
    count: Floats
    df: Ints
    idf: Floats
    word_offsets: Ints
    sequence: Ints
    whole: Whole | None = None

    def __len__(self) -> int:
        return len(self.qids)

    @property
    def sizes(self) -> Ints:
        """The number of distinct terms of each query."""
        return np.diff(self.offsets)

    @property
    def postings(self) -> Ints:
        """The number of postings of each query, all terms together."""
        return np.diff(bounds(self.df)[self.offsets])

    def span(self, first: int, end: int) -> Queries:
        """The queries `first:end`."""
        (a, b), (c, d) = self.offsets[[first, end]], self.word_offsets[[first, end]]
        offsets, words = self.offsets[first : end + 1] - a, self.word_offsets[first : end + 1] - c
        per_term = self.number[a:b], self.count[a:b], self.df[a:b], self.idf[a:b]
        qids, terms = self.qids.take(np.arange(first, end)), self.terms.take(np.arange(a, b))
        whole = None if self.whole is None else self.whole.span(int(a), int(b))
        return Queries(qids, offsets, terms, *per_term, words, self.sequence[c:d], whole)


def idf_of(df: Any, documents: int) -> Any:
    """Lucene's idf, ln(1 + (N - df + 0.5) / (df + 0.5)): never negative, and largest for a term that no document has.

    >>> round(float(idf_of(1, 3)), 4)
    0.9808
    """
    return np.log1p((documents - df + 0.5) / (df + 0.5))


def read_queries(queries: QueriesLike) -> dict[str, str]:
    """The text of each query by its id; from a mapping, a file, or a folder in BEIR's layout."""
    if isinstance(queries, Mapping):
        if bad := next((qid for qid, text in queries.items() if not isinstance(text, str)), None):
            raise InputError(f"the query's text is {queries[bad]!r:.60}, not a string", query=str(bad))
        for qid, text in queries.items():
            _check_text(str(qid), text)
        return {str(qid): text for qid, text in queries.items()}
    path = resolve(Path(queries) / "queries.jsonl" if Path(queries).is_dir() else queries)
    with open_bytes(path) as file:
        given = file.read(1 << 12)
    start = given.removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_judgement_table(given.partition(b"\n")[0]):
        return _queries_of_judgements(path)
    found: dict[str, str] = {}
    kinds = {b"{": _json_queries, b"<": _topics}
    for line, qid, text in kinds.get(start[:1], _table_queries)(path):
        if qid in found:
            raise InputError("the query occurs twice", path=path, line=line, query=qid)
        _check_text(qid, text, path=path, line=line)
        found[qid] = text
    return found


def _queries_of_judgements(path: Path) -> dict[str, str]:
    texts = read_judgement_table(path).texts
    if not texts:
        raise InputError("these judgements have no texts of queries", path=path, hint="a column is called query")
    return texts


def _check_text(qid: str, text: str, **where: Any) -> None:
    """Raise if id or text can't be written as UTF-8: JSON can escape halves of surrogate pairs."""
    try:
        f"{qid}{text}".encode()
    except UnicodeEncodeError:
        message = f"not valid text: half of a surrogate pair in {qid!r}, {text!r:.60}"
        raise InputError(message, **where) from None


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


_NUMBER = re.compile(r"<num>\s*(?:number\s*:\s*)?([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:topic\s*:)?([^<]*)", re.IGNORECASE)


def _topics(path: Path) -> list[tuple[int, str, str]]:
    """The number and the title of each topic in a TREC topics file."""
    text, out, line, done = read_bytes(path).tobytes().decode(), [], 1, 0
    for start, topic, _ in between(text, "top"):
        line, done = line + text.count("\n", done, start), start
        number, title = _NUMBER.search(topic), _TITLE.search(topic)
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
            hint = "a line is: id, tab, text; or a JSON object; or the file has TREC topics"
            raise InputError("a line without an id and a tab", path=path, line=line, hint=hint)
        out.append((line, qid.strip(), text))
    return out


def analyse(index: IndexArrays, texts: Mapping[str, str]) -> Queries:
    """Cut the queries into terms as the index did its documents, and look the terms up."""
    if not index.is_consistent:
        raise InputError("a damaged index: it has postings of documents or terms that are not there; build it again")
    [chunk], words, [numbers] = cut_texts(texts.values(), index.analyzer)
    stems = Ids.of(index.analyzer.stems(words.tolist()))
    same, first = factorize(stems)
    stem = same[numbers[chunk.stream]]
    query = np.repeat(np.arange(len(texts)), chunk.counts)
    # Terms of a query are in the order in which they first occur in it.
    key, at, which, count = np.unique(
        query * len(first) + stem, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(at)
    owner, term = np.divmod(key[order], max(len(first), 1))
    offsets = bounds(np.bincount(owner, minlength=len(texts)))
    terms = stems.take(first[term])
    number = look_up(index, terms)
    df = np.where(number < 0, 0, index.starts[number + 1] - index.starts[number])
    sequence = np.argsort(order)[which] - offsets[query]
    each = number, count[order].astype(np.float64), df, idf_of(df, index.documents)
    return Queries(Ids.of(texts), offsets, terms, *each, bounds(chunk.counts.astype(np.int64)), sequence)


def look_up(index: IndexArrays, terms: Ids) -> Ints:
    """The number of each term in an index, or -1."""
    return _look_up(*terms.arrays, *index.terms.arrays)


@kernel
def _look_up(buffer: Bytes, start: Ints, length: Int32s, by: Bytes, by_start: Ints, by_length: Int32s) -> Ints:
    """For each id, its place among the sorted ids `by`, or -1."""
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
