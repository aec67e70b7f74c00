"""What a fit is made on: training, validation and test queries, and the index that they come from, if there is one.

From files of rows (features or term statistics), or from documents, queries and judgements (files, or a folder in
BEIR's layout). With an index a ranking function can be run over all documents; without, over the rows of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.data.ids import Ids, match
from fliprank.data.query_doc_table import first_unfit
from fliprank.data.readers import read_candidates, read_or_open
from fliprank.data.store import content_digest
from fliprank.data.trec import Qrels, Run, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.experiment.splits import fold_queries
from fliprank.measures import Measure
from fliprank.models import BM25F, Model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import VERSION, Index, Progress, Searchable
from fliprank.text.search.candidates import LeftOut, list_some, under_ids_of
from fliprank.text.search.queries import read_queries

__all__ = [
    "DEPTH",
    "JudgedQueries",
    "Queries",
    "Task",
    "check_measure",
    "fold_tasks",
    "open_index",
    "pooled",
    "read_folds",
    "read_judged_queries",
    "task_of",
    "task_of_documents",
    "task_of_judged_queries",
    "task_of_rows",
    "task_of_shards",
]

DEPTH = 1000
"""Documents per query that are fitted to beside the judged ones: the top of BM25, later also of what was tuned."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with judgements: rows to score; with an index also their texts, and the judgements themselves.

    Of `task_of_shards`, the rows may be `ScatteredRows`, which only `train` asks for.
    """

    rows: Candidates
    texts: dict[str, str] = field(default_factory=dict)
    qrels: Qrels | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """Queries to fit to, perhaps others to choose by and to test on; `notes` say what was left out.

    `sources` are the files that it was read from, where that is known: rows, docs, queries, qrels, test. `runs` are
    the lists of other retrievers that a hybrid fuses with text.
    """

    train: Queries
    valid: Queries | None = None
    test: Queries | None = None
    index: Searchable | None = None
    notes: tuple[str, ...] = ()
    name: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Run] | None = None

    def read_from(self, **files: StrPath | None) -> Task:
        """The task with the files that it was read from."""
        return replace(self, sources={name: str(Path(path).resolve()) for name, path in files.items() if path})

    def parts(self) -> dict[str, Queries]:
        """The sets that there are, by name."""
        every = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: part for name, part in every.items() if part is not None}

    def run(self, queries: Queries, model: Model, depth: int = DEPTH) -> Run:
        """The ranking of a model: over the whole index, or of the rows where there is none."""
        if self.index is not None:
            return replace(self.index.search(queries.texts, model, depth=depth, runs=self.runs), name=model.kind)
        rows = _with_ids(queries.rows)
        assert rows.docids is not None
        return Run(rows.offsets, rows.qids, rows.docids, model.score(queries.rows), model.kind)


def task_of_rows(
    train: StrPath, valid: StrPath | None = None, test: StrPath | None = None, n_features: int | None = None
) -> Task:
    """A task from files of rows: LETOR (of `n_features`, if given), Parquet or term statistics."""
    return task_of(lambda path: read_candidates(path, n_features), train, valid, test)


def task_of_shards(
    train: StrPath,
    valid: StrPath | None = None,
    test: StrPath | None = None,
    n_features: int | None = None,
    memory: str | None = None,
) -> Task:
    """The same, where shards stay in their files, and with `memory` all rows do: for `train`."""
    return task_of(lambda path: read_or_open(path, n_features, memory), train, valid, test)


def task_of(read: Callable[[StrPath], Any], train: StrPath, valid: StrPath | None, test: StrPath | None) -> Task:
    """A task from files of rows that `read` reads."""
    rows, held_out = read(train), dict[str, Queries]()
    for part, path in (("valid", valid), ("test", test)):
        if path is not None:
            held = read(path)
            if held.terms is not None and rows.terms is not None:
                _check_apart(_words(rows), _words(held), path)
            held_out[part] = Queries(held)
    return Task(Queries(rows), held_out.get("valid"), held_out.get("test"))


def read_folds(folder: StrPath, n_features: int | None = None) -> Iterator[Task]:
    """Each Fold* in a folder with LETOR's layout (train, vali and test files), plain or gzipped."""
    folds = sorted(path for path in Path(folder).glob("Fold*") if path.is_dir())
    if not folds:
        raise InputError("no Fold1, Fold2, ... in this folder", path=folder)
    for fold in folds:
        files = (fold / f"{part}.txt" for part in ("train", "vali", "test"))
        train, valid, test = (Queries(read_candidates(path, n_features)) for path in files)
        yield Task(train, valid, test, name=fold.name)


def fold_tasks(task: Task, folds: int = 5, seed: int = 0) -> Iterator[Task]:
    """The training queries of a task as Fold1, Fold2, ... for cross-validation, each query tested on once.

    In each fold one part is for testing, another for validation, the others for training, as LETOR has it; of two folds
    none is for validation.
    """
    if not hasattr(task.train.rows, "select"):
        raise UsageError("rows on a cluster are not parted into folds: give training and validation rows of your own")
    shares = (max(1, folds - 2), min(1, folds - 2), 1)
    for number, parts in enumerate(fold_queries(task.train.rows.queries, shares, folds, seed), 1):
        train, valid, test = (_some(task.train, queries) for queries in parts)
        notes = task.notes if number == 1 else ()
        yield Task(train, valid if len(parts[1]) else None, test, task.index, notes, f"Fold{number}", runs=task.runs)


def _some(queries: Queries, numbers: Ints) -> Queries:
    """The queries with these numbers, with what is known of them."""
    rows = queries.rows.select(numbers)
    known = set(rows.qids.tolist())
    texts = {qid: text for qid, text in queries.texts.items() if qid in known}
    judged = (
        None if queries.qrels is None else queries.qrels.select([qid in known for qid in queries.qrels.qids.tolist()])
    )
    return Queries(rows, texts, judged)


def _words(rows: Candidates) -> dict[str, str]:
    """The terms of each query; files may number their queries alike, so that ids alone do not tell them apart."""
    assert rows.terms is not None
    terms, ends = rows.terms.terms.tolist(), rows.terms.offsets
    return {qid: " ".join(terms[ends[q] : ends[q + 1]]) for q, qid in enumerate(rows.qids.tolist())}


def _check_apart(train: dict[str, str], test: dict[str, str], path: StrPath) -> None:
    """Raise an error if held-out queries were trained on."""
    if both := dict(train.items() & test.items()):
        hint = "a test must be of other queries"
        raise InputError(f"{len(both)} test queries are training queries too", path=path, query=min(both), hint=hint)


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """The texts of queries, and the judgements of each part (train, valid, test) with the name of their file."""

    texts: dict[str, str]
    judged: dict[str, tuple[str, Qrels]]


def read_judged_queries(
    queries: StrPath | None, qrels: StrPath, valid: StrPath | None = None, test: StrPath | None = None
) -> JudgedQueries:
    """Queries and judgements, checked against each other: before documents are indexed, which may take long.

    Without `queries`, their texts are those that the judgements have; with them, judgements that have texts are matched
    by these.
    """
    texts = {} if queries is None else read_queries(queries)
    paths = {"train": qrels, "valid": valid, "test": test}
    judged = {part: (Path(path), read_qrels(path)) for part, path in paths.items() if path is not None}
    if queries is None:
        texts = _own_texts(judged.values())
    judged = {part: (path, under_ids_of(texts, each)) for part, (path, each) in judged.items()}
    for part, (path, each) in judged.items():
        _check_judgements(path, each, texts)
        if part != "train":
            _check_apart(_known(judged["train"][1], texts), _known(each, texts), path)
    return JudgedQueries(texts, {part: (path.name, each) for part, (path, each) in judged.items()})


def _own_texts(judged: Iterable[tuple[Path, Qrels]]) -> dict[str, str]:
    """The texts of queries in files of judgements; raises at one that has none."""
    texts: dict[str, str] = {}
    for path, each in judged:
        if not each.texts:
            hint = "give the queries, too; or judgements with the texts of queries: a CSV with query,docid,rating"
            raise InputError("these judgements have no texts of queries", path=path, hint=hint)
        texts |= each.texts
    return texts


def _known(qrels: Qrels, texts: dict[str, str]) -> dict[str, str]:
    """The judged queries that have a text."""
    return {qid: texts[qid] for qid in qrels.qids.tolist() if qid in texts}


def _check_judgements(path: Path, qrels: Qrels, texts: dict[str, str]) -> None:
    """An error where there is nothing to learn from."""
    if not len(qrels):
        raise InputError("all labels are negative, which says: not judged", path=path)
    if not _known(qrels, texts):
        have, want = (", ".join(list(ids)[:3]) for ids in (texts, qrels.qids.tolist()))
        raise InputError("no query has judgements", path=path, hint=f"queries: {have}; judged: {want}")
    if not (qrels.labels > 0).any():
        raise InputError("no label is above 0: no document is relevant to any query", path=path)


def task_of_documents(
    index: Index,
    queries: StrPath | None,
    qrels: StrPath,
    test: StrPath | None = None,
    valid: StrPath | None = None,
    depth: int = DEPTH,
    runs: dict[str, Run] | None = None,
) -> Task:
    """Fit to the queries that `qrels` judges; test on those that `test`, other qrels, judges."""
    return task_of_judged_queries(index, read_judged_queries(queries, qrels, valid, test), depth, runs)


def task_of_judged_queries(
    index: Searchable, given: JudgedQueries, depth: int = DEPTH, runs: dict[str, Run] | None = None
) -> Task:
    """The same, where queries and judgements were read before; with the first `depth` of each of `runs`, too."""
    notes, parts = list[str](), dict[str, Queries]()
    for part, (name, judged) in given.judged.items():
        try:
            pool = index.pool(given.texts, judged, depth=depth, ranker=_basic_ranker(runs), runs=runs)
        except InputError as error:
            raise InputError(error.message, path=name, query=error.query, hint=error.hint) from error
        if pool.unmatched == pool.candidates.queries:
            qid, text = next(iter(_known(judged, given.texts).items()))
            hint = f"{qid} is {text[:60]!r}; are stemmer and stop words those of its language?"
            raise InputError("no query has a term that some document has", path=name, hint=hint)
        about = [note for kind, note in pool.left_out.items() if kind is not LeftOut.UNJUDGED_QUERIES]
        notes += [f"{name}: {note}" for note in (*about, *pool.run_notes, *_remarks(judged, pool.candidates))]
        parts[part] = Queries(pool.candidates, _known(judged, given.texts), judged)
    return Task(parts["train"], parts.get("valid"), parts.get("test"), index, (*index.notes, *notes), runs=runs)


def _basic_ranker(runs: dict[str, Run] | None) -> Model | None:
    """What finds the first rows: BM25; where text is fused with runs, BM25F, whose window they must hold."""
    return None if runs is None else BM25F()


def _remarks(judged: Qrels, rows: Candidates) -> Iterator[str]:
    """What is odd about judgements, though they can be used."""
    yield from judged.notes
    if judged.unjudged:
        yield f"{judged.unjudged:,} labels are negative, which says: not judged"
    relevant = np.zeros(rows.queries, bool)
    relevant[rows.query_of_rows()[rows.labels > 0]] = True
    missed = np.repeat(np.arange(rows.queries), np.diff(rows.missed_offsets))
    relevant[missed[rows.missed_labels > 0]] = True
    if not relevant.all():
        yield list_some(rows.queries, "queries have no relevant document", rows.qids.take(np.flatnonzero(~relevant)))


def check_measure(task: Task, measure: Measure) -> None:
    """An error where the measure of even the best ranking is 0 or no number: nothing could be tuned for it."""
    for part, queries in task.parts().items():
        rows = queries.rows
        with np.errstate(over="ignore", invalid="ignore"):
            best = measure.per_query(np.nan_to_num(rows.labels), rows)
        if np.isnan(best).any():
            query, most = int(np.isnan(best).argmax()), float(np.nanmax(rows.labels))
            hint = f"the largest label is {most:g}; nDCG@10 takes labels as gains, where exp-log2 takes 2^label - 1"
            raise InputError(f"{measure} is not a number", query=rows.qids[query], hint=hint)
        if not best.any() and not measure.smaller_is_better:
            raise InputError(
                f"{measure} is 0 on all {part} queries even for the best ranking: are labels, or relevant documents, "
                "missing?"
            )


def open_index(
    docs: StrPath,
    folder: Path,
    fields: Sequence[str] | None,
    analyzer: Analyzer,
    progress: Progress | None = None,
    *,
    anchors: StrPath | None = None,
    links: StrPath | None = None,
) -> Index:
    """The index of these documents in `folder`: as it is there, or built. Its name tells of which documents it is."""
    source = resolve(Path(docs) / "corpus.jsonl" if Path(docs).is_dir() else docs)
    files = [None if path is None else content_digest(resolve(path)) for path in (source, anchors, links)]
    made_of = f"{VERSION} {files} {fields} {analyzer}"
    place = folder / f"documents-{blake2b(made_of.encode(), digest_size=6).hexdigest()}.index"
    index = _opened(place)
    if index is None:
        folder.mkdir(parents=True, exist_ok=True)
        how: dict[str, Any] = {"fields": fields, "analyzer": analyzer, "anchors": anchors, "links": links}
        index = Index.build(source, place, progress=progress, **how)
    if (bad := first_unfit(*index.docids.arrays)) >= 0:
        hint = "runs and qrels are parted by it: give the document another id"
        raise InputError(f"the id {index.docids[bad]!r} has white space", path=source, hint=hint)
    return index


def _opened(place: Path) -> Index | None:
    """The index that was built before; None where there is none, or it is damaged or of another version."""
    try:
        return Index.open(place, check=True) if place.exists() else None
    except InputError:
        return None


def pooled(task: Task, model: Model, depth: int = DEPTH, watch: int = 10) -> tuple[Task, int]:
    """The task with the top of a tuned model among its training rows, and how many of its first `watch` are new there.

    Where nothing is new, the task stays as it is.
    """
    if task.index is None:
        return task, 0
    before, texts = task.train.rows, task.train.texts
    top = task.index.search(texts, model, depth=watch, runs=task.runs)
    places = {qid: place for place, qid in enumerate(before.qids.tolist())}
    queries = np.array([places[qid] for qid in top.qids.tolist()], np.int64)
    assert before.docids is not None
    new = int((match(top.docids, top.offsets, before.docids, before.offsets, queries) < 0).sum())
    if not new:
        return task, 0
    rankers = [_basic_ranker(task.runs), model]
    rows = task.index.candidates(texts, task.train.qrels, depth=depth, ranker=rankers, runs=task.runs)
    return replace(task, train=replace(task.train, rows=rows)), new


def _with_ids(rows: Candidates) -> Candidates:
    """The rows with ids of documents: their numbers where they have none."""
    if rows.docids is not None:
        return rows
    return replace(rows, docids=Ids.of([f"row{i + 1}" for i in np.arange(len(rows))]))
