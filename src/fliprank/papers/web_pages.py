"""Stanford's judged web pages as the papers would have graded them, no query in two parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.papers.data import stanford_web
from fliprank.papers.part import Setting

__all__ = ["graded_web"]


def graded_web(setting: Setting) -> tuple[Candidates, Candidates]:
    """(2014-train and 2014-dev, 2013 without the queries that occur in 2014 too); none occurs twice in either.

    Queries of the same words, in any order, are the same. Labels there are means over judges, from -1 to 3.5: they are
    rounded to grades 0 to 4.
    """
    parts = stanford_web(setting)
    known = set[str]()
    return (
        _graded(_new(fr.concat(parts["2014-train"], parts["2014-dev"]), known)),
        _graded(_new(parts["2013"], known)),
    )


def _new(rows: Candidates, known: set[str]) -> Candidates:
    """The queries that are not known yet, which then are."""
    kept = []
    for number, text in enumerate(_texts(rows)):
        if text not in known:
            known.add(text)
            kept.append(number)
    return rows.select(kept)


def _graded(rows: Candidates) -> Candidates:
    return replace(rows, labels=np.clip(np.floor(rows.labels + 0.5), 0, 4))


def _texts(rows: Candidates) -> list[str]:
    """The terms of each query; its id may be another query's in another file."""
    assert rows.terms is not None
    terms, ends = rows.terms.terms.tolist(), rows.terms.offsets
    return [" ".join(sorted(terms[ends[q] : ends[q + 1]])) for q in range(rows.queries)]
