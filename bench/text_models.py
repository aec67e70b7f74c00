"""Text ranking functions: settings of the parameters scored per second, the price of the gradient, and plain NumPy.

    python bench/text_models.py

A million candidate rows, each with 3 query terms in 4 fields. Times are warm, the least of several, in one process.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from timing import Row, show, timed

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.models import BM25F, BM25Sum, Feature, Model, Stack, TwoStageLM

QUERIES, DOCUMENTS, TERMS = 1000, 1000, 3
FIELDS, LENGTHS = ("title", "body", "anchor", "url"), (8.0, 400.0, 30.0, 6.0)
TRIES = 15


def candidates() -> Candidates:
    """Random statistics: a term is in the body of 2 documents of 3, in other fields of fewer."""
    rng, rows = np.random.default_rng(0), QUERIES * DOCUMENTS
    share = np.array([0.2, 0.67, 0.15, 0.1])
    tf = rng.geometric(0.4, (rows * TERMS, 4)) * (rng.random((rows * TERMS, 4)) < share)
    length = 1 + rng.poisson(rng.gamma(2.0, 0.5, (rows, 4)) * LENGTHS) + tf.reshape(rows, TERMS, 4).sum(axis=1)
    terms = TermStatistics(
        FIELDS,
        bounds(np.full(QUERIES, TERMS)),
        Ids.of(["term"] * (QUERIES * TERMS)),
        rng.uniform(1, 8, QUERIES * TERMS),
        bounds(np.full(rows, TERMS)),
        tf,
        length,
        collection=rng.integers(1, 10**5, (QUERIES * TERMS, 4)),
        tokens=np.array(LENGTHS) * 1e6,
        documents=1_000_000,
    )
    sizes, features = np.full(QUERIES, DOCUMENTS), rng.exponential(size=(rows, 1))
    labels = rng.integers(0, 3, rows)
    return Candidates(bounds(sizes), labels, Ids.of(range(QUERIES)), None, features, ("pagerank",), terms)


def plain_bm25f(model: BM25F, rows: Candidates) -> Callable[[], Floats]:
    """The formula in NumPy: whole arrays of rows x terms x fields, in single precision."""
    terms, average, values = rows.terms, model.average, model.params.values
    assert terms is not None
    assert average is not None
    tf, idf = terms.tf.reshape(-1, TERMS, 4), np.repeat(terms.idf.reshape(-1, TERMS), DOCUMENTS, axis=0)
    mean, idf = average.astype(np.float32), idf.astype(np.float32)

    def score() -> Floats:
        k, w, b = np.float32(values[0]), values[1::2].astype(np.float32), values[2::2].astype(np.float32)
        beta = 1 - b + b * terms.length / mean
        f = (tf * (w / beta)[:, None, :]).sum(axis=2)
        scores: Floats = (idf * f / (k + f)).sum(axis=1)
        return scores

    return score


def plain_sum(model: BM25Sum, rows: Candidates) -> Callable[[], Floats]:
    terms, average = rows.terms, model.average
    assert terms is not None
    assert average is not None
    tf, idf = terms.tf.reshape(-1, TERMS, 4), np.repeat(terms.idf.reshape(-1, TERMS), DOCUMENTS, axis=0)
    mean, idf = average.astype(np.float32), idf.astype(np.float32)

    def score() -> Floats:
        w, k, b, _ = model.params.values.astype(np.float32).reshape(-1, 4).T
        norm = k * (1 - b + b * terms.length / mean)
        scores: Floats = (idf * (w * tf / (tf + norm[:, None, :])).sum(axis=2)).sum(axis=1)
        return scores

    return score


def plain_language_model(model: TwoStageLM, rows: Candidates) -> Callable[[], Floats]:
    terms, values = rows.terms, model.params.values
    assert terms is not None
    assert terms.collection is not None
    assert terms.tokens is not None
    tf, length = terms.tf.sum(axis=1).reshape(-1, TERMS), terms.length.sum(axis=1)[:, None]
    share = (terms.collection.sum(axis=1) / terms.tokens.sum()).reshape(-1, TERMS)
    background = np.repeat(share, DOCUMENTS, axis=0).astype(np.float32)

    def score() -> Floats:
        smooth, mu = (np.float32(value) for value in values)
        p = (1 - smooth) * (tf + mu * background) / (mu + length) + smooth * background
        scores: Floats = np.log(p).sum(axis=1)
        return scores

    return score


def rows() -> list[Row]:
    data = candidates()
    dscores = np.random.default_rng(1).normal(size=len(data))
    bm25f, summed, language = (model.prepared(data, 0) for model in (BM25F(), BM25Sum(), TwoStageLM()))
    stack = Stack(BM25F(), Feature("pagerank", transform="log")).prepared(data, 0)
    plain: dict[str, Callable[[], Floats]] = {
        "BM25F": plain_bm25f(bm25f, data),
        "sum of BM25": plain_sum(summed, data),
        "two-stage LM": plain_language_model(language, data),
    }
    curved = BM25Sum(curves=True).prepared(data, 0).at([1.0, 1.2, 0.75, 0.7] * len(FIELDS))
    models: dict[str, Model] = {
        "BM25F": bm25f,
        "sum of BM25": summed,
        "sum of BM25 of tf^0.7": curved,
        "two-stage LM": language,
        "BM25F + log(PageRank)": stack,
    }
    out, where = [], f"{len(data):,} rows x {TERMS} terms x {len(FIELDS)} fields"
    for name, model in models.items():
        peer = plain.get(name)
        if peer is not None:
            assert np.abs(peer() - model.score(data)).max() < 1e-3
        values = model.params.values

        def score() -> Floats:
            return model.at(values).score(data)  # noqa: B023

        def both() -> Floats:
            there = model.at(values)  # noqa: B023
            return there.score(data)[:1] + there.pullback(data, dscores)[:1]

        times = {"score": np.inf, "both": np.inf, "plain": np.inf}
        both()
        for _ in range(TRIES):  # in turn, so that other work on the machine slows all
            times["score"] = min(times["score"], timed(score, 1)[0])
            times["both"] = min(times["both"], timed(both, 1)[0])
            if peer is not None:
                times["plain"] = min(times["plain"], timed(peer, 1)[0])
        out.append(Row(f"{name}: settings scored per second, {where}", "1 second", 1 / times["score"], "at least 10"))
        out.append(Row(f"{name}: score and gradient", "one score", times["both"] / times["score"], "at most 4"))
        if peer is not None:
            out.append(Row(f"{name}: score", "NumPy, float32", times["plain"] / times["score"], "above 1"))
    return out


if __name__ == "__main__":
    show(rows())
