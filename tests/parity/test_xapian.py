"""Xapian: its LMWeight is our two-stage language model, its BM25Weight our BM25, up to what each test says."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from token_texts import documents, index_of, queries

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics import TermStatistics
from fliprank.models import BM25, TwoStageLM

xapian = pytest.importorskip("xapian", reason="no Xapian for this Python: xapian-bindings-binary has it for Linux")

SHIFT = 1e12
"""Xapian takes the logarithm of a probability times this, and 0 where that is negative: so large, it never is."""
SMOOTHINGS = [(0.1, 2000.0), (0.3, 50.0), (0.0, 300.0), (0.5, 0.0), (0.9, 10.0)]


@pytest.fixture(scope="module")
def base() -> Any:
    """The texts of the collection; document numbers are ours plus 1."""
    made = xapian.WritableDatabase("", xapian.DB_BACKEND_INMEMORY)
    for page in documents():
        document = xapian.Document()
        for term in page["text"].split():
            document.add_term(term)
        made.add_document(document)
    return made


def found(base: Any, query: str, weight: Any, every_term: bool = False) -> dict[str, float]:
    """The documents with some (or all) terms of a query, best first, with their weights."""
    enquire = xapian.Enquire(base)
    operator = xapian.Query.OP_AND if every_term else xapian.Query.OP_OR
    enquire.set_query(xapian.Query(operator, [xapian.Query(term) for term in query.split()]))
    enquire.set_weighting_scheme(weight)
    return {documents()[hit.docid - 1]["_id"]: hit.weight for hit in enquire.get_mset(0, len(documents()))}


def two_stage(jelinek: float, mu: float) -> Any:
    return xapian.LMWeight(SHIFT, xapian.Weight.TWO_STAGE_SMOOTHING, jelinek, mu)


def rows_of(hits: dict[str, dict[str, float]]) -> tuple[Candidates, TermStatistics, Floats]:
    """Our rows for what Xapian found, in its order: with their statistics, and Xapian's weights."""
    rows = index_of("text").rows(queries(), {qid: list(docs) for qid, docs in hits.items()})
    assert rows.terms is not None
    return rows, rows.terms, np.array([weight for docs in hits.values() for weight in docs.values()])


@pytest.mark.parametrize(("jelinek", "mu"), SMOOTHINGS)
def test_the_language_model_is_xapians_where_a_document_has_every_term(base: Any, jelinek: float, mu: float) -> None:
    """A constant apart, the same for all documents of a query: how many terms it has, times log(SHIFT)."""
    model = TwoStageLM("text").at([jelinek, mu])
    ours = index_of("text").search(queries(), model, match="and").to_dict()
    compared = 0
    for qid, query in queries().items():
        theirs = found(base, query, two_stage(jelinek, mu), every_term=True)
        scores = ours.get(qid, {})
        assert scores.keys() == theirs.keys()
        shift = len(query.split()) * log(SHIFT)
        assert scores == pytest.approx({docid: weight - shift for docid, weight in theirs.items()}, rel=1e-11)
        assert np.all(np.diff([scores[docid] for docid in theirs]) < 1e-11)  # Xapian's order is ours
        compared += len(theirs)
    assert compared > 100


@pytest.mark.parametrize(("jelinek", "mu"), SMOOTHINGS)
def test_xapian_leaves_out_the_terms_that_a_document_lacks(base: Any, jelinek: float, mu: float) -> None:
    """Query likelihood charges them, log P(t|D) at tf = 0, and so do we."""
    rows, terms, theirs = rows_of({qid: found(base, query, two_stage(jelinek, mu)) for qid, query in queries().items()})
    owner = np.repeat(np.arange(len(rows)), np.diff(terms.starts))
    term = terms.offsets[rows.query_of_rows()][owner] + np.arange(len(owner)) - terms.starts[owner]
    assert terms.collection is not None
    assert terms.tokens is not None
    background = terms.collection[term, 0] / terms.tokens[0]
    known, lacks = background > 0, terms.tf[:, 0] == 0
    absent = (1 - jelinek) * mu * background / (mu + terms.length[owner, 0]) + jelinek * background
    charged = terms.count[term] * np.log(np.where(known & lacks, absent, 1.0))
    shift = np.bincount(owner, terms.count[term] * ~lacks, len(rows)) * log(SHIFT)
    expected = theirs - shift + np.bincount(owner, charged, len(rows))
    assert np.bincount(owner, lacks, len(rows)).max() > 2
    np.testing.assert_allclose(TwoStageLM("text").at([jelinek, mu]).score(rows), expected, 1e-11)


def test_a_lambda_of_0_7_is_0_1_to_xapian_in_queries_of_one_or_two_terms(base: Any) -> None:
    """It takes the value for unset: who sets a tuned 0.7 there had better write 0.7000001."""
    for query, as_given in (("mailbox", False), ("mailbox email", False), ("mailbox email rule", True)):
        odd, given, short = (found(base, query, two_stage(jelinek, 100.0)) for jelinek in (0.7, 0.7000001, 0.1))
        assert given != pytest.approx(short, rel=1e-3)
        assert odd == pytest.approx(given if as_given else short, rel=1e-6)


@pytest.mark.parametrize(("k", "b"), [(1.2, 0.75), (0.9, 0.4), (2.0, 0.0), (3.0, 1.0), (0.0, 0.5)])
def test_bm25_is_xapians_but_for_idf_and_a_factor(base: Any, k: float, b: float) -> None:
    """Its idf is log w, w = (N - df + .5) / (df + .5), but log(1 + w / 2) where w < 2; it has the factor k + 1.

    With its own settings k2 = 0 and no least length (min_normlen = 0, by default 0.5).
    """
    weight = xapian.BM25Weight(k, 0.0, 0.0, b, 0.0)
    rows, terms, theirs = rows_of({qid: found(base, query, weight) for qid, query in queries().items()})
    df = np.array([base.get_termfreq(term) for term in terms.terms.tolist()])
    w = (len(documents()) - df + 0.5) / (df + 0.5)
    assert (w < 2).any()
    idf = np.log(np.where(w < 2, 1 + w / 2, w))
    rows = replace(rows, terms=replace(terms, idf=idf))
    np.testing.assert_allclose((k + 1) * BM25("text").prepared(rows, 0).at([k, b]).score(rows), theirs, 1e-11)
