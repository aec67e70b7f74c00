"""Documents on workers: each has the indexes of its shards, and scores with the statistics of the whole collection.

The questions are functions of an index and of a few small things, as those about rows are. Documents go by their
numbers within the shard.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.ids import Ids, hashes_of
from fliprank.data.store import content_digest
from fliprank.distributed.messages import unpack
from fliprank.distributed.worker import Session, scratch_folder
from fliprank.errors import InputError
from fliprank.models.base import Model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import VERSION, Index
from fliprank.text.search.gather_statistics import whole_of
from fliprank.text.search.queries import Queries, analyse, look_up
from fliprank.text.search.retrieve import matching, rows_of, top

__all__ = ["answer_documents"]


def answer_documents(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask each of these shards of documents a question, with what is common and what is its own."""
    question, out = QUESTIONS[request["question"]], list[dict[str, Any]]()
    session.needs(own["name"] for own in request["shards"])
    for own in request["shards"]:
        begun = time.perf_counter()
        index = session.once(own["name"], lambda name=own["name"]: _index(unpack(session.message(name))))  # type: ignore[misc]
        told = question(index, *request["given"], *own["own"])
        out.append({"told": told, "seconds": time.perf_counter() - begun})
    return out


def _index(source: dict[str, Any]) -> Index:
    """The index of a shard: opened, or built from a file of documents in a file, which is mapped.

    Unless the user named a folder for it, it is removed when nobody needs it.
    """
    try:
        if source["index"]:
            return Index.open(source["file"], check=True)
        if source["folder"] is not None:
            return _kept_index(source)
        folder = mkdtemp(prefix="fliprank-", dir=scratch_folder())
        try:
            index = _built(source, Path(folder, "shard.index"))
        except BaseException:
            rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(index, rmtree, folder, ignore_errors=True)
        return index
    except InputError as error:
        raise InputError(f"{error}; a worker must see the file under the same name") from error


def _kept_index(source: dict[str, Any]) -> Index:
    """The index of a shard in the folder that the user named, built if it is not there yet."""
    made_of = content_digest(Path(source["file"]))
    key = f"{VERSION} {source['file']} {made_of} {source['fields']} {source['analyzer']} {source['positions']}"
    place = Path(source["folder"], f"shard-{blake2b(key.encode(), digest_size=8).hexdigest()}.index")
    return Index.open(place, check=True) if place.exists() else _built(source, place)


def _built(source: dict[str, Any], place: Path) -> Index:
    analyzer, positions = Analyzer.from_json(source["analyzer"]), source["positions"]
    return Index.build(source["file"], place, fields=source["fields"], analyzer=analyzer, positions=positions)


def _described(index: Index) -> dict[str, Any]:
    told = {"documents": index.documents, "fields": list(index.fields), "columns": list(index.columns)}
    return {**told, "notes": list(index.notes), "analyzer": index.analyzer.to_json(), "positions": index.positions}


def _analysed(index: Index, texts: dict[str, str]) -> tuple[Queries, dict[str, Any]]:
    """The queries as this shard sees them, with what it knows of their terms."""
    queries = analyse(index, texts)
    return queries, vars(whole_of(index, queries))


def _here(index: Index, given: Queries) -> Queries:
    """The queries with the numbers that terms have in this shard, and the statistics of the whole."""
    return replace(given, number=look_up(index, given.terms))


def _top(
    index: Index, given: Queries, model: Model, depth: int, match: Literal["or", "and"]
) -> tuple[Ints, Ints, Any, Ids]:
    offsets, documents, scores = top(index, _here(index, given), model, depth, match)
    return offsets, documents, scores, index.docids.take(documents).compact()


def _matching(index: Index, given: Queries) -> tuple[Ints, Ints]:
    return matching(index, _here(index, given), "and")


def _numbers(index: Index, docids: Ids) -> Ints:
    return index.numbers_of(docids)


def _ids(index: Index, documents: Ints) -> Ids:
    return index.docids.take(documents).compact()


def _rows(index: Index, given: Queries, offsets: Ints, documents: Ints) -> Any:
    """Candidates of these documents, with the statistics of the whole."""
    rows = rows_of(index, _here(index, given), offsets, documents)
    assert rows.docids is not None
    return replace(rows, docids=rows.docids.compact())


def _hashes(index: Index, part: int, parts: int) -> NDArray[np.uint64]:
    """Hashes of those ids that fall to one of `parts`, to see that no document is in two shards."""
    found = hashes_of(index.docids)
    own: NDArray[np.uint64] = found[found % np.uint64(parts) == part]
    return own


def _with_hashes(index: Index, hashes: NDArray[np.uint64]) -> Ids:
    """The ids that have one of these hashes."""
    return index.docids.take(np.flatnonzero(np.isin(hashes_of(index.docids), hashes))).compact()


QUESTIONS: dict[str, Callable[..., Any]] = {
    "describe": _described,
    "analyse": _analysed,
    "top": _top,
    "match": _matching,
    "numbers": _numbers,
    "ids": _ids,
    "rows": _rows,
    "hashes": _hashes,
    "with hashes": _with_hashes,
}
