"""TREC files: relevance judgements (qrels) and ranked results (runs), and the join of the two.

A file is read whole and parsed by a kernel, in pieces cut at newlines, in parallel; ids stay views of the file's bytes.
Qrels in BEIR's TSV form, and tables of judgements, are known by their header. `judge` makes the candidates on which a
run is measured.

>>> qrels = Qrels.of({"q1": {"d1": 1, "d2": 0, "d3": 2}})
>>> judged = judge(qrels, Run.of({"q1": {"d2": 7.5, "d9": 3.0, "d1": 1.0}}))
>>> judged.candidates.labels.tolist(), judged.scores.tolist(), judged.candidates.missed_labels.tolist()
([0.0, nan, 1.0], [7.5, 3.0, 1.0], [2.0])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from fliprank.arrays import Bytes, Floats, Ints, frozen
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.columns import Columns, Layout, count_lines, cut_lines, line_end, parse_columns
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.files import StrPath, atomic_write, read_bytes
from fliprank.data.ids import Ids, factorize, match
from fliprank.data.judgement_json import read_judgement_json
from fliprank.data.judgement_table import is_judgement_table, read_judgement_table
from fliprank.data.order import order_rows
from fliprank.data.parquet import read_frame
from fliprank.data.query_doc_table import (
    check_shape,
    examples,
    first_unfit,
    from_frame,
    from_mapping,
    grouped,
    line_at,
    to_dict,
)
from fliprank.data.search_responses import is_score_table, read_responses, read_score_table
from fliprank.errors import InputError, UsageError, printable
from fliprank.forks import check_not_forked

__all__ = [
    "JudgedRun",
    "Qrels",
    "Run",
    "judge",
    "judge_rows",
    "read_qrels",
    "read_run",
    "write_qrels",
    "write_run",
    "write_runs",
]


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Judgements: query q owns `docids` and `labels` of rows `offsets[q]:offsets[q + 1]`.

    A negative label says "not judged", as in trec_eval: such rows are left out, and `unjudged` counts them. Their query
    stays, even if it has no rows left. `texts` are those of the queries, by id, where the file has them; `notes` say
    what else is to be known of the judgements.
    """

    offsets: Ints
    qids: Ids
    docids: Ids
    labels: Floats
    unjudged: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", frozen(self.offsets, np.int64))
        object.__setattr__(self, "labels", frozen(self.labels, np.float64))
        check_shape(self.offsets, self.qids, self.docids, self.labels)

    @classmethod
    def of(cls, mapping: Mapping[Any, Mapping[Any, float]]) -> Qrels:
        """From {query id: {document id: label}}."""
        return cls._judged(*from_mapping(mapping, "label"))

    @classmethod
    def from_frame(cls, frame: Any) -> Qrels:
        """From a polars or pandas frame with columns qid, docid and label (or query_id, doc_id, relevance)."""
        return cls._judged(*from_frame(frame, ("label", "relevance")))

    @classmethod
    def _judged(cls, offsets: Ints, qids: Ids, docids: Ids, labels: Floats) -> Qrels:
        judged = np.flatnonzero(labels >= 0)
        if len(judged) == len(labels):
            return cls(offsets, qids, docids, labels)
        kept = np.searchsorted(judged, offsets)
        return cls(kept, qids, docids.take(judged), labels[judged], len(labels) - len(judged))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Qrels: {len(self.qids):,} queries, {len(self):,} judgements"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """As {query id: {document id: label}}."""
        return to_dict(self.offsets, self.qids, self.docids, self.labels)

    def select(self, mask: ArrayLike) -> Qrels:
        """The queries where `mask` is true, with their judgements; what was left out as not judged is not counted."""
        chosen = np.flatnonzero(mask)
        rows = span_indices(self.offsets, chosen)
        sizes = np.diff(self.offsets)[chosen]
        texts = {qid: self.texts[qid] for qid in self.qids.take(chosen).tolist() if qid in self.texts}
        return Qrels(bounds(sizes), self.qids.take(chosen), self.docids.take(rows), self.labels[rows], texts=texts)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What a system retrieved: query q owns `docids` and `scores` of rows `offsets[q]:offsets[q + 1]`, in any order."""

    offsets: Ints
    qids: Ids
    docids: Ids
    scores: Floats
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", frozen(self.offsets, np.int64))
        object.__setattr__(self, "scores", frozen(self.scores, np.float64))
        check_shape(self.offsets, self.qids, self.docids, self.scores)

    @classmethod
    def of(cls, mapping: Mapping[Any, Mapping[Any, float]], name: str = "") -> Run:
        """From {query id: {document id: score}}."""
        return cls(*from_mapping(mapping, "score"), name)

    @classmethod
    def from_frame(cls, frame: Any, name: str = "") -> Run:
        """From a polars or pandas frame with columns qid, docid and score (or query_id, doc_id)."""
        return cls(*from_frame(frame, ("score",)), name)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return printable(f"Run{name}: {len(self.qids):,} queries, {len(self):,} documents")

    def to_dict(self) -> dict[str, dict[str, float]]:
        """As {query id: {document id: score}}."""
        return to_dict(self.offsets, self.qids, self.docids, self.scores)


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """A run's documents as candidates, with their scores.

    `unknown_queries` of the run are not in the qrels and were left out; `missing_queries` of the qrels are not in the
    run.
    """

    candidates: Candidates
    scores: Floats
    unknown_queries: int
    missing_queries: int


@checked
def judge(qrels: Qrels, run: Run, *, missing: Literal["zero", "skip"] = "zero") -> JudgedRun:
    """The run's documents with the qrels' labels, queries in the qrels' order.

    A query that the run lacks has no rows (`missing="zero"`: it counts as 0) or is left out (`"skip"`, as trec_eval
    does by default). Judged documents that the run did not retrieve go to `missed_labels`.
    """
    if missing not in ("zero", "skip"):
        raise UsageError(f"missing must be 'zero' or 'skip', not {missing!r}")
    all_qrels, all_run = np.array([0, len(qrels.qids)]), np.array([0, len(run.qids)])
    partner = match(qrels.qids, all_qrels, run.qids, all_run, np.zeros(1, np.int64))
    found = partner >= 0
    if not found.any():
        raise InputError(
            "the qrels and the run have no query in common",
            hint=f"the qrels have {examples(qrels.qids)}, the run {examples(run.qids)}",
        )
    kept = found | (missing == "zero")
    sizes = np.where(found, np.diff(run.offsets)[partner], 0)[kept]
    offsets, order = bounds(sizes), partner[found]
    same = len(order) == len(run.qids) and bool((np.diff(order) == 1).all())  # the usual case: no row moves
    docids, scores = run.docids, run.scores
    if not same:
        rows = span_indices(run.offsets, order)
        docids, scores = run.docids.take(rows), frozen(run.scores[rows], np.float64)
    row = match(docids, offsets, qrels.docids, qrels.offsets, np.flatnonzero(kept))
    judged = row >= 0
    labels = np.full(len(scores), np.nan)
    labels[judged] = qrels.labels[row[judged]]
    unseen = np.repeat(kept, np.diff(qrels.offsets))
    unseen[row[judged]] = False
    missed = np.flatnonzero(unseen)
    candidates = Candidates(
        offsets,
        labels,
        qrels.qids.take(kept),
        docids,
        missed_offsets=bounds(np.diff(np.searchsorted(missed, qrels.offsets))[kept]),
        missed_labels=qrels.labels[missed],
    )
    shared = int(found.sum())
    return JudgedRun(candidates, scores, len(run.qids) - shared, len(found) - shared)


def judge_rows(rows: Candidates, run: Run, name: str = "the run") -> JudgedRun:
    """The rows that the run retrieved, with its scores; queries as in `rows`, and all of them.

    Documents go by their ids, or as row1, row2, ... where the rows have none. Judged rows that the run lacks go to
    `missed_labels`. Raises if the run, called `name` in the message, has documents that are not among the rows.
    """
    queries = match(rows.qids, np.array([0, rows.queries]), run.qids, np.array([0, len(run.qids)]), np.zeros(1, int))
    found = np.flatnonzero(queries >= 0)
    if not len(found):
        hint = f"the rows have {examples(rows.qids)}, the run {examples(run.qids)}"
        raise InputError(f"the rows and {name} have no query in common", hint=hint)
    ids, order = rows.document_ids(), span_indices(run.offsets, queries[found])
    docids, scores = run.docids.take(order), run.scores[order]
    row = match(docids, bounds(np.diff(run.offsets)[queries[found]]), ids, rows.offsets, found)
    if (row < 0).any():
        first = int((row < 0).argmax())
        query = rows.qids[int(found[np.searchsorted(np.cumsum(np.diff(run.offsets)[queries[found]]), first, "right")])]
        count, hint = int((row < 0).sum()), f"the rows have {examples(ids)}"
        raise InputError(f"{count} documents of {name} are not among the rows: {docids[first]}", query=query, hint=hint)
    by_row = np.full(len(rows), np.nan)
    by_row[row] = scores
    kept = ~np.isnan(by_row)
    counts = len(run.qids) - len(found), rows.queries - len(found)
    return JudgedRun(rows if kept.all() else rows.take(kept), frozen(by_row[kept], np.float64), *counts)


@dataclass(frozen=True)
class _Format:
    """A kind of file: the layout of its lines, what its number is, and what to say of a line that does not fit."""

    layout: Layout
    kind: str
    hint: str


_QRELS = _Format(
    Layout(4, 4, 2, 3),
    "label",
    "a line is: qid iteration docno label; other files need a header, such as query,docid,rating",
)
_BEIR = _Format(Layout(3, 3, 1, 2), "label", "a line is: query-id corpus-id score")
_RUN = _Format(Layout(5, 6, 2, 4), "score", "a line is: qid Q0 docno rank score tag")
_BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]
_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")
_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"\]])")


@checked
def read_qrels(path: StrPath) -> Qrels:
    """Judgements from lines `qid iteration docno label`, from BEIR's TSV with its header, or from a table; or gzipped.

    A CSV has the columns query, docid and rating, or one rating per rater: see `read_judgement_table`. JSON is that of
    the Search Relevance Workbench: see `read_judgement_json`.
    """
    buffer, begin = _open(path)
    end = line_end(buffer, begin)
    first = buffer[begin:end].tobytes()
    json = _is_json(path, buffer, begin, _QRELS.layout)
    if json or is_judgement_table(first):
        table = read_judgement_json(path) if json else read_judgement_table(path)
        return replace(Qrels.of(table.labels), texts=table.texts, notes=table.notes)
    if first.split() == _BEIR_HEADER:
        return Qrels._judged(*_read(path, buffer, end + 1, _BEIR))
    return Qrels._judged(*_read(path, buffer, begin, _QRELS))


@checked
def read_run(path: StrPath) -> Run:
    """A run from lines `qid Q0 docno rank score tag`, from a table with query, docid and score, or from JSON responses.

    A table is CSV, TSV or Parquet; responses may be a folder of files (`read_responses`). The rank is ignored, as
    trec_eval does: scores decide. The tag of the first line names the run; where there is none, the file's name does.
    """
    source, name = Path(path), Path(path).name.split(".")[0]
    if source.is_dir():
        return Run.of(read_responses(source), name)
    if source.suffix == ".parquet":
        return Run.from_frame(read_frame(source), name)
    buffer, begin = _open(path)
    if _is_json(path, buffer, begin, _RUN.layout):
        return Run.of(read_responses(path), name)
    if is_score_table(buffer[begin : line_end(buffer, begin)].tobytes()):
        return Run.of(read_score_table(path), name)
    offsets, qids, docids, scores = _read(path, buffer, begin, _RUN)
    return Run(offsets, qids, docids, scores, _tag(buffer, int(docids.start[0])))


def _is_json(path: StrPath, buffer: Bytes, begin: int, layout: Layout) -> bool:
    """Whether this is JSON: by its name, or by its content. An id may begin with a bracket, too."""
    if Path(path).name.removesuffix(".gz").endswith((".json", ".jsonl")):
        return True
    if _JSON.match(buffer[begin : begin + 64].tobytes()) is None:
        return False
    columns = buffer[begin : line_end(buffer, begin)].tobytes().split()
    return not (layout.least <= len(columns) <= layout.most and _NUMBER.fullmatch(columns[layout.number]))


@checked
def write_qrels(path: StrPath, qrels: Qrels) -> None:
    """Write lines `qid 0 docno label`; gzipped for a name in .gz."""
    levels, level = np.unique(qrels.labels, return_inverse=True)
    words = [f"{int(label) if label.is_integer() else label}" for label in levels.tolist()]
    _write(path, qrels, np.arange(len(qrels)), "0", {"label": pl.Series(words, dtype=pl.String).gather(level)})


@checked
def write_run(path: StrPath, run: Run) -> None:
    """Write lines `qid Q0 docno rank score tag` in ranked order: score, then docno, both descending; ranks from 1.

    Scores are written with the fewest digits that read back as the same number; gzipped for a name in .gz.
    """
    write_runs(path, [run])


def write_runs(path: StrPath, runs: Iterable[Run]) -> None:
    """The same of a run that comes in parts, each of other queries: one after the other, whole or not at all."""
    with atomic_write(path) as file:
        for run in runs:
            rows = order_rows(run.scores, run.offsets, run.docids)
            tag = "_".join(run.name.split()) or "run"
            rest = {"rank": positions(run.offsets) + 1, "score": run.scores[rows], "tag": pl.lit(tag)}
            _write_table(file, path, run, rows, "Q0", rest)


def _write(path: StrPath, table: Qrels | Run, rows: Ints, second: str, rest: dict[str, Any]) -> None:
    """Write these rows of the table: query id, `second`, document id and the `rest` of the columns."""
    with atomic_write(path) as file:
        _write_table(file, path, table, rows, second, rest)


def _write_table(
    file: IO[bytes], path: StrPath, table: Qrels | Run, rows: Ints, second: str, rest: dict[str, Any]
) -> None:
    check_not_forked()
    for kind, ids in (("query", table.qids), ("document", table.docids)):
        if (bad := first_unfit(*ids.arrays)) >= 0:
            raise InputError(
                f"{kind} id {ids[bad]!r} is empty or has white space: a TREC file can't hold it", path=path
            )
    number, first = factorize(table.docids)  # a document is in the lists of many queries: each id is decoded once
    qids, docids = (
        pl.Series(ids.compact().tolist(), dtype=pl.String) for ids in (table.qids, table.docids.take(first))
    )
    query = np.repeat(np.arange(len(table.qids)), np.diff(table.offsets))
    columns = {"qid": qids.gather(query), "second": pl.lit(second), "docno": docids.gather(number[rows]), **rest}
    pl.select(**columns).write_csv(file, include_header=False, separator=" ", quote_style="never")


def _open(path: StrPath) -> tuple[Bytes, int]:
    """The bytes of a file and where its first line begins: after a byte order mark."""
    buffer = read_bytes(path)
    return buffer, len(_BOM) if buffer[:3].tobytes() == _BOM else 0


def _read(path: StrPath, buffer: Bytes, begin: int, kind: _Format) -> tuple[Ints, Ids, Ids, Floats]:
    """Offsets, query ids, document ids and numbers of the lines from `begin` on, grouped by query."""
    cuts = cut_lines(buffer, begin, 1 + (len(buffer) >> 20))
    limits = bounds(count_lines(buffer, cuts))
    lines = int(limits[-1])
    out = Columns(np.empty((2, lines), np.int64), np.empty((2, lines), np.int32), np.empty(lines))
    used, bad = parse_columns(buffer, cuts, limits, kind.layout, out)
    if (bad >= 0).any():
        _complain(path, buffer, int(bad[bad >= 0][0]), kind)
    starts, lengths, numbers = out
    if used.sum() < lines:  # blank lines left gaps at the ends of pieces
        rows = np.repeat(limits[:-1] - bounds(used)[:-1], used) + np.arange(used.sum())
        starts, lengths, numbers = starts[:, rows], lengths[:, rows], numbers[rows]
    if not len(numbers):
        raise InputError("the file has no lines of data", path=path, hint=kind.hint)
    qid, docid = (Ids(buffer, starts[i], lengths[i]) for i in (0, 1))
    return grouped(qid, docid, numbers, path)


def _complain(path: StrPath, buffer: Bytes, begin: int, kind: _Format) -> NoReturn:
    """Say what is wrong with the line that begins at `begin`."""
    columns = [column.decode() for column in buffer[begin : line_end(buffer, begin)].tobytes().split()]
    line, query = line_at(buffer, begin), None
    layout = kind.layout
    if layout.least <= len(columns) <= layout.most:
        query = columns[0]
        message = f"{kind.kind} {columns[layout.number][:60]!r} is not a finite number"
    else:
        wanted = f"{layout.least} or {layout.most}" if layout.least < layout.most else f"{layout.least}"
        message = f"expected {wanted} columns, found {len(columns)}"
    raise InputError(message, path=path, line=line, query=query, hint=kind.hint)


def _tag(buffer: Bytes, position: int) -> str:
    """The last of six columns of the line whose third column begins at `position`."""
    rest = buffer[position : line_end(buffer, position)].tobytes().split()
    return rest[3].decode() if len(rest) > 3 else ""
