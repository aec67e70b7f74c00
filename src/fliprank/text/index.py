"""An index: for each term the documents that have it and how often, field by field, in flat arrays that are mapped.

`Index.build` makes one of documents, `Index.open` maps one in milliseconds; nothing is read before it is needed. The
file is written under another name and renamed, so an index is whole or not there.

>>> index = Index.build([{"_id": "a", "title": "Red shoes"}, {"_id": "b", "title": "Blue shoes", "text": "A shoe."}])
>>> index.fields, index.terms.tolist(), index.df.tolist()
(('title', 'text'), ['blue', 'red', 'shoe'], [1, 1, 2])
>>> index.search({"q": "blue shoe"}).to_dict()["q"].keys()
dict_keys(['b', 'a'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, match
from fliprank.data.store import Arrays, read_arrays, write_arrays
from fliprank.errors import InputError
from fliprank.text.analysis import Analyzer

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.data.term_statistics import TermStatistics
    from fliprank.data.trec import Run
    from fliprank.text.build.documents import Source
    from fliprank.text.search.candidates import Pool, QrelsLike, Ranker
    from fliprank.text.search.queries import QueriesLike

__all__ = ["VERSION", "Index", "Progress"]

KIND, VERSION = "fliprank index", 2
KINDS = {"docid": "u1 1", "docid_length": "i4 1", "rank": "i4 1", "term": "u1 1", "term_length": "i4 1"}
KINDS |= {"starts": "i8 1", "docs": "i4 1", "tf": "u2 2", "field_df": "i4 2", "cf": "i8 2", "length": "i4 2"}
KINDS |= {"tokens": "i4 1", "token_offsets": "i8 2", "columns": "f8 2"}
"""Of the arrays in the file: dtype and number of dimensions."""
_OWN = ("rank", "starts", "docs", "tf", "field_df", "cf", "length", "tokens", "token_offsets")

Progress = Callable[[str, int], None]
"""Is told what is going on, and how many documents are done."""


@dataclass(frozen=True, eq=False)
class Index:
    """Documents are numbered from 0 in the order given, terms in the order of their bytes.

    Term t owns postings `starts[t]:starts[t + 1]`: documents `docs`, ascending, and `tf` (postings x fields; at most
    65,535). `cf` and `field_df` (terms x fields) count its occurrences and documents by field; `length` (documents x
    fields) counts terms. `rank` puts documents in the order of their ids. `tokens` is the stream of terms: document d
    has `tokens[token_offsets[f, d] : token_offsets[f, d + 1]]` in field f; empty if built without positions. `columns`
    are numbers by document.
    """

    docids: Ids
    rank: Int32s
    terms: Ids
    fields: tuple[str, ...]
    starts: Ints
    docs: Int32s
    tf: NDArray[np.uint16]
    field_df: Int32s
    cf: Ints
    length: Int32s
    tokens: Int32s
    token_offsets: Ints
    analyzer: Analyzer
    columns: dict[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in KINDS.items():
            if name in _OWN:
                object.__setattr__(self, name, frozen(getattr(self, name), kind.split()[0]))

    @classmethod
    def build(
        cls,
        source: Source,
        path: StrPath | None = None,
        *,
        fields: Sequence[str] | None = None,
        analyzer: Analyzer | None = None,
        anchors: StrPath | None = None,
        links: StrPath | None = None,
        positions: bool = True,
        progress: Progress | None = None,
    ) -> Index:
        """Index documents; with a `path` the index is written there, and opened.

        `fields`, in order: by default all text but the id and the url. Links of the documents (`links`: a list of
        `target` and `text`), a file `anchors` (target, text) and a file `links` (source, target) give the field
        `anchor` and the column `pagerank`; see `read_links`.
        """
        from fliprank.text.build.build import make

        index = make(
            source, fields, analyzer or Analyzer(), anchors, links, positions, progress or (lambda what, n: None)
        )
        if path is None:
            return index
        index.save(path)
        return cls.open(path)

    def save(self, path: StrPath) -> None:
        """Write the index to a file: whole or not at all."""
        header = {"kind": KIND, "version": VERSION, "fields": list(self.fields), "columns": list(self.columns)}
        header |= {"analyzer": self.analyzer.to_json(), "notes": list(self.notes)}
        docids, terms = self.docids.compact(), self.terms.compact()
        columns = np.array([*self.columns.values()], np.float64).reshape(len(self.columns), self.documents)
        arrays: Arrays = {
            "docid": docids.buffer,
            "docid_length": docids.length,
            "rank": self.rank,
            "term": terms.buffer,
        }
        arrays |= {"term_length": terms.length, "columns": columns}
        write_arrays(path, header, arrays | {name: getattr(self, name) for name in _OWN})

    @classmethod
    def open(cls, path: StrPath, *, check: bool = False) -> Index:
        """Map an index from its file; an error if it is another file, of another version, or damaged.

        With `check` every byte is compared with what was written: a file that was damaged later would rank wrongly.
        """
        header, arrays = read_arrays(path, check=check)
        if header.get("kind") != KIND:
            raise InputError("not an index", path=path)
        if header.get("version") != VERSION:
            raise InputError(
                f"an index of version {header.get('version')!r}; this is {VERSION}: build it again", path=path
            )
        try:
            return _opened(header, arrays)
        except (KeyError, TypeError, ValueError) as error:  # InputError is a ValueError
            raise InputError(f"a damaged index: {error}", path=path) from error

    def __len__(self) -> int:
        return self.documents

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.docids)

    @property
    def df(self) -> Ints:
        """In how many documents each term occurs, in any field."""
        return np.diff(self.starts)

    @cached_property
    def is_consistent(self) -> bool:
        """Whether all numbers of documents and terms are of some: looked at once, before kernels go by them."""
        numbers = ((self.docs, self.documents), (self.rank, self.documents), (self.tokens, len(self.terms)))
        return all(array.min(initial=0) >= 0 and array.max(initial=-1) < end for array, end in numbers)

    @cached_property
    def field_tokens(self) -> Ints:
        """How many terms each field has, all documents together."""
        tokens: Ints = self.length.sum(0, dtype=np.int64)
        return tokens

    @property
    def positions(self) -> bool:
        """Whether the stream of terms was kept."""
        return self.token_offsets.size > 0

    @cached_property
    def column_matrix(self) -> NDArray[np.float32] | None:
        """The columns side by side, documents x columns, 0 where a document has no number; None without columns."""
        if not self.columns:
            return None
        return np.nan_to_num(np.stack([*self.columns.values()], axis=1).astype(np.float32))

    def search(
        self,
        queries: QueriesLike,
        model: Ranker = None,
        *,
        depth: int = 1000,
        match: Literal["or", "and"] = "or",
        progress: Progress | None = None,
    ) -> Run:
        """The best `depth` of all documents that have some (`or`) or all (`and`) terms of a query, by any model.

        By default BM25 over all fields taken as one text (`Bm25`), which has a kernel of its own.
        """
        from fliprank.text.search.retrieve import search

        return search(self, queries, model, depth=depth, match=match, progress=progress)

    def numbers_of(self, docids: Ids) -> Ints:
        """The number of each document by its id, or -1."""
        everything = np.array([0, self.documents])
        return match(docids, np.array([0, len(docids)]), self.docids, everything, np.zeros(1, np.int64))

    def rows(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates:
        """Candidates of these documents (ids by query id), unjudged, with statistics and columns."""
        from fliprank.text.search.retrieve import named_rows

        return named_rows(self, queries, documents)

    def statistics(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> TermStatistics:
        """Term statistics of these documents (ids by query id), rows in this order; queries as in `queries`."""
        return self.rows(queries, documents).terms  # type: ignore[return-value]

    def candidates(self, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any) -> Candidates:
        """Candidates to tune on: the top of a basic ranker, all judged documents, a sample; see `pool`.

        What was left out is told in `memo["notes"]` of the candidates.
        """
        pool = self.pool(queries, qrels, **options)
        pool.candidates.memo["notes"] = pool.notes
        return pool.candidates

    def pool(
        self,
        queries: QueriesLike,
        qrels: QrelsLike | None = None,
        *,
        depth: int = 2500,
        sample: int = 0,
        seed: int = 0,
        ranker: Ranker | Sequence[Ranker] = None,
    ) -> Pool:
        """The `depth` best documents of a query by `ranker` (or by each of several), its judged ones, and a `sample` of
        those with all terms.
        """
        from fliprank.text.search.candidates import pool

        return pool(self, queries, qrels, depth=depth, sample=sample, seed=seed, ranker=ranker)


def _opened(header: dict[str, Any], arrays: Arrays) -> Index:
    """The index of these arrays, after checking that they fit together; postings are not looked at."""
    if arrays.keys() != KINDS.keys() or any(f"{a.dtype.str[1:]} {a.ndim}" != KINDS[n] for n, a in arrays.items()):
        raise InputError("these are not the arrays of an index")
    docids, terms = _ids(arrays["docid"], arrays["docid_length"]), _ids(arrays["term"], arrays["term_length"])
    fields, columns = header["fields"], header["columns"]
    if not all(
        isinstance(names, list) and all(isinstance(n, str) for n in names)
        for names in (fields, columns, header["notes"])
    ):
        raise InputError("names that are no text")
    documents, postings, width = len(docids), len(arrays["docs"]), len(fields)
    starts, offsets = arrays["starts"], arrays["token_offsets"]
    expected = {"rank": (documents,), "starts": (len(terms) + 1,), "docs": (postings,), "tf": (postings, width)}
    expected |= {"field_df": (len(terms), width), "cf": (len(terms), width), "length": (documents, width)}
    expected |= {"columns": (len(columns), documents)}
    if offsets.size or len(arrays["tokens"]):
        expected["token_offsets"] = (width, documents + 1)
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise InputError(f"{name} of shape {arrays[name].shape}, not {shape}")
    for limits, end in ((starts, postings), (offsets.reshape(-1), len(arrays["tokens"]))):
        if len(limits) and (limits[0] != 0 or limits[-1] != end or (limits[1:] < limits[:-1]).any()):
            raise InputError("bounds that do not rise to the end of what they part")
    return Index(
        docids,
        terms=terms,
        fields=tuple(fields),
        analyzer=Analyzer.from_json(header["analyzer"]),
        columns=dict(zip(columns, arrays["columns"], strict=True)),
        notes=tuple(header["notes"]),
        **{name: arrays[name] for name in _OWN},
    )


def _ids(buffer: NDArray[np.uint8], length: Int32s) -> Ids:
    if length.min(initial=0) < 0 or length.sum(dtype=np.int64) != len(buffer):
        raise InputError("lengths that don't fill their buffer")
    return Ids(buffer, np.cumsum(length, dtype=np.int64) - length, length)
