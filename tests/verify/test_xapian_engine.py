"""Xapian itself computes what we compute, and the program that is exported ranks as the model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_checks import QUERIES, check, check_help_centre, check_odd_texts, model_of, odd_index
from exported_program import check_ranking, imported

from fliprank.data.trec import Qrels
from fliprank.engines.coded_texts import coded_documents
from fliprank.engines.verify import verify
from fliprank.export import engine_model, write_export
from fliprank.models import EngineText
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

xapian = pytest.importorskip("xapian", reason="no wheel for this Python: xapian-bindings-binary has it for Linux")
FUNCTIONS = pytest.mark.parametrize("function", ["bm25", "two-stage"])


@FUNCTIONS
def test_scores_of_odd_texts(function: str) -> None:
    check_odd_texts("xapian", function)


@FUNCTIONS
def test_scores_and_measures_of_the_help_centre(function: str) -> None:
    check_help_centre("xapian", function)


@pytest.mark.parametrize(("mu", "rate", "scale"), [(20.0, 0.3, 60.0), (150.0, 0.05, 60.0), (3.0, 0.8, 1e6)])
def test_two_stage_smoothing_with_and_without_words_that_count_for_nothing(
    mu: float, rate: float, scale: float
) -> None:
    index = odd_index()
    model = engine_model("xapian", "two-stage", index.fields).prepared(index.rows({}, {}), 0)
    model = model.at([2.0, 1.0, 0.5, mu, rate, scale])
    qrels = Qrels.of({qid: {"d1": 1.0} for qid in QUERIES})
    check(verify(model, index, QUERIES, qrels, depth=len(index)), least=200)
    scores = model.score(index.rows(QUERIES, {"c": [f"d{i}" for i in range(150)]}))
    assert len(np.unique(scores)) > 50


@pytest.mark.parametrize("rate", [0.0, 0.7, 1.0])
def test_a_lambda_that_xapian_takes_for_unset(rate: float) -> None:
    """One field and one word: there it would be 0.1."""
    pages = [{"_id": docid, "body": texts["body"]} for docid, texts in coded_documents(odd_index(), ["body"]).items()]
    index = Index.build(pages, fields=["body"], analyzer=Analyzer(stopwords=None, stemmer=None))
    model = engine_model("xapian", "two-stage", ["body"]).prepared(index.rows({}, {}), 0)
    assert model.params.names == ("body.w", "mu", "lambda", "scale")
    model = model.at([1.0, 30.0, rate, 1000.0])
    check(verify(model, index, {"q": "xc"}, Qrels.of({"q": {"d1": 1.0}}), depth=len(index)), least=50)


@FUNCTIONS
def test_the_exported_program_ranks_as_the_model_does(function: str, tmp_path: Path) -> None:
    index, model = odd_index(), model_of(odd_index(), "xapian", function, 3)
    program = imported(write_export(tmp_path / "out", model, "xapian") / "xapian_search.py")
    program.STEMMER = ""  # the words of the tests are codes
    database = xapian.WritableDatabase(str(tmp_path / "database"), xapian.DB_CREATE)
    for docid, texts in coded_documents(index, index.fields).items():
        program.add(database, docid, texts)
    check_ranking(index, model, lambda text: program.search(database, text, len(index)))


def test_names_of_fields_are_literals(tmp_path: Path) -> None:
    names = ("title", "TITLE", 'x"); import os #', "ü\n", "42")
    model = engine_model("xapian", "bm25", names)
    made = EngineText(model.formula, names, tokens=np.ones(5), counted=np.ones(5))
    program = imported(write_export(tmp_path / "out", made, "xapian") / "xapian_search.py")
    assert tuple(program.PREFIXES) == tuple(program.WEIGHTS) == names
    assert len(set(program.PREFIXES.values())) == 5
