"""The arrays of an index: for each term, the documents that have it and how often, field by field.

Building makes these arrays, searching and features read them. A file of them is mapped, so that opening takes
milliseconds and nothing is read before it is needed. The file is written under another name and then renamed: it is
complete or absent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, locate
from fliprank.data.store import Arrays, read_arrays, write_arrays
from fliprank.errors import InputError, printable
from fliprank.kernels import kernel
from fliprank.text.analysis import Analyzer

__all__ = ["VERSION", "IndexArrays", "Postings", "Progress"]

KIND, VERSION = "fliprank index", 3
_ATTRIBUTES = {"rank": "i4 1", "starts": "i8 1", "docs": "i4 1", "tf": "u2 2", "field_df": "i4 2", "cf": "i8 2"}
_ATTRIBUTES |= {"length": "i4 2", "tokens": "i4 1", "token_offsets": "i8 2"}
_PACKED = {"docid": "u1 1", "docid_length": "i4 1", "term": "u1 1", "term_length": "i4 1", "columns": "f8 2"}
"""The arrays in the file, those that are attributes as they are and those that are not: dtype and dimensions."""

Progress = Callable[[str, int], None]
"""Is called with the name of the current step and the number of documents (or queries) done."""


class Postings(NamedTuple):
    """What kernels read: term t occurs in `docs[starts[t] : starts[t + 1]]`, `tf` times in each field."""

    starts: Ints
    docs: Int32s
    tf: NDArray[np.uint16]


@dataclass(frozen=True, eq=False, repr=False)
class IndexArrays:
    """Documents are numbered from 0 in the order given, terms in the order of their bytes.

    Term t owns postings `starts[t]:starts[t + 1]`: documents `docs`, ascending, and `tf` (postings x fields; at most
    65,535). `cf` and `field_df` (terms x fields) count its occurrences and documents per field; `length` (documents x
    fields) counts terms. `rank` puts documents in the order of their ids. `tokens` is the stream of terms: document d
    has `tokens[token_offsets[f, d] : token_offsets[f, d + 1]]` in field f; it is empty if the index was built without
    positions. `columns` are numbers per document. `notes` say what was left out.
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
        for name, kind in _ATTRIBUTES.items():
            object.__setattr__(self, name, frozen(getattr(self, name), kind.split()[0]))

    def save(self, path: StrPath) -> None:
        """Write the index to a file, completely or not at all."""
        header = {"kind": KIND, "version": VERSION, "fields": list(self.fields), "columns": list(self.columns)}
        header |= {"analyzer": self.analyzer.to_json(), "notes": list(self.notes)}
        docids, terms = self.docids.compact(), self.terms.compact()
        columns = np.array([*self.columns.values()], np.float64).reshape(len(self.columns), self.documents)
        arrays: Arrays = {"docid": docids.buffer, "docid_length": docids.length, "term": terms.buffer}
        arrays |= {"term_length": terms.length, "columns": columns}
        write_arrays(path, header, arrays | {name: getattr(self, name) for name in _ATTRIBUTES})

    @classmethod
    def open(cls, path: StrPath, *, check: bool = False) -> Self:
        """Map an index from its file; raises if the file is not an index, has another version, or is damaged.

        With `check`, every byte is compared with what was written: a file that was damaged later would rank wrongly.
        """
        header, arrays = read_arrays(path, check=check)
        if header.get("kind") != KIND:
            raise InputError("not an index", path=path)
        if header.get("version") != VERSION:
            message = f"this index has version {header.get('version')!r}, but version {VERSION} is needed"
            raise InputError(message, path=path, hint="build it again")
        try:
            return cls(**_checked(header, arrays))
        except (KeyError, TypeError, ValueError) as error:  # InputError is a ValueError
            raise InputError(f"a damaged index: {error}", path=path) from error

    def __len__(self) -> int:
        return self.documents

    def __repr__(self) -> str:
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        size = f"{self.documents:,} documents, {len(self.terms):,} terms"
        return printable(f"{type(self).__name__}: {size}, fields {', '.join(self.fields)}{columns}")

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.docids)

    @property
    def postings(self) -> Postings:
        """The postings, as kernels read them."""
        return Postings(self.starts, self.docs, self.tf)

    @property
    def df(self) -> Ints:
        """The number of documents in which each term occurs, in any field."""
        return np.diff(self.starts)

    @cached_property
    def is_consistent(self) -> bool:
        """Whether numbers are in range, postings rise, and lengths are those of the stream of terms.

        Checked once, before kernels rely on it.
        """
        numbers = ((self.docs, self.documents), (self.rank, self.documents), (self.tokens, len(self.terms)))
        if not all(array.min(initial=0) >= 0 and array.max(initial=-1) < end for array, end in numbers):
            return False
        rising = self.docs[1:] > self.docs[:-1]
        inner = self.starts[1:-1]
        rising[inner[(inner > 0) & (inner < len(self.docs))] - 1] = True  # where the postings of a term begin
        lengths = np.diff(self.token_offsets).T if self.positions else np.maximum(self.length, 0)
        return bool(rising.all()) and np.array_equal(self.length, lengths)

    @cached_property
    def field_tokens(self) -> Ints:
        """The number of terms in each field, over all documents."""
        tokens: Ints = self.length.sum(0, dtype=np.int64)
        return tokens

    @cached_property
    def field_documents(self) -> Ints:
        """The number of documents that have a term in each field."""
        filled: Ints = np.count_nonzero(self.length, axis=0)
        return filled

    @cached_property
    def distinct(self) -> Int32s:
        """The number of different terms that each document has in each field (documents x fields)."""
        counts = np.zeros((self.documents, len(self.fields)), np.int32)
        _count_terms(self.docs, self.tf, counts)
        return frozen(counts, np.int32)

    @property
    def positions(self) -> bool:
        """Whether the stream of terms was kept."""
        return self.token_offsets.size > 0

    @cached_property
    def column_matrix(self) -> Matrix | None:
        """The columns side by side (documents x columns), 0 where a document has no number; None without columns."""
        if not self.columns:
            return None
        return np.nan_to_num(np.stack([*self.columns.values()], axis=1).astype(np.float32))

    def numbers_of(self, docids: Ids) -> Ints:
        """The number of each document, given its id; -1 if the index does not have it."""
        return locate(docids, self.docids)


@kernel
def _count_terms(docs: Int32s, tf: NDArray[np.uint16], counts: Int32s) -> None:
    """Add 1 to the document and field of every posting that has a frequency."""
    for i in range(len(docs)):
        for f in range(tf.shape[1]):
            counts[docs[i], f] += tf[i, f] > 0


def _checked(header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """The attributes of the index in a file, after checking that shapes fit together; postings are not read."""
    kinds = _ATTRIBUTES | _PACKED
    if arrays.keys() != kinds.keys() or any(f"{a.dtype.str[1:]} {a.ndim}" != kinds[n] for n, a in arrays.items()):
        raise InputError("these are not the arrays of an index")
    docids, terms = _ids(arrays["docid"], arrays["docid_length"]), _ids(arrays["term"], arrays["term_length"])
    fields, columns, notes = header["fields"], header["columns"], header["notes"]
    if not all(
        isinstance(names, list) and all(isinstance(n, str) for n in names) for names in (fields, columns, notes)
    ):
        raise InputError("fields, columns or notes are not lists of strings")
    documents, postings, width = len(docids), len(arrays["docs"]), len(fields)
    starts, offsets = arrays["starts"], arrays["token_offsets"]
    expected = {"rank": (documents,), "starts": (len(terms) + 1,), "docs": (postings,), "tf": (postings, width)}
    expected |= {"field_df": (len(terms), width), "cf": (len(terms), width), "length": (documents, width)}
    expected |= {"columns": (len(columns), documents)}
    if offsets.size or len(arrays["tokens"]):
        expected["token_offsets"] = (width, documents + 1)
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise InputError(f"{name} has shape {arrays[name].shape}, not {shape}")
    for limits, end in ((starts, postings), (offsets.reshape(-1), len(arrays["tokens"]))):
        if len(limits) and (limits[0] != 0 or limits[-1] != end or (limits[1:] < limits[:-1]).any()):
            raise InputError("offsets do not rise from 0 to the end of the array that they divide")
    named = {"docids": docids, "terms": terms, "fields": tuple(fields), "notes": tuple(notes)}
    named |= {"columns": dict(zip(columns, arrays["columns"], strict=True))}
    named |= {"analyzer": Analyzer.from_json(header["analyzer"])}
    return named | {name: arrays[name] for name in _ATTRIBUTES}


def _ids(buffer: NDArray[np.uint8], length: Int32s) -> Ids:
    if length.min(initial=0) < 0 or length.sum(dtype=np.int64) != len(buffer):
        raise InputError("the lengths of ids or terms do not add up to their bytes")
    return Ids(buffer, np.cumsum(length, dtype=np.int64) - length, length)
