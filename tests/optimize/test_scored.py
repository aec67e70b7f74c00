"""What a fit cost, counted in documents scored, against a count by hand."""

from __future__ import annotations

import numpy as np
from runs import MEASURE, followed_rows, random_rows, record, run, text_rows

from fliprank.experiment.training import train
from fliprank.measures import parse_measure
from fliprank.models import BM25F, Linear
from fliprank.objectives import RankNet
from fliprank.optimize.methods import Lbfgs, Line, Taylor2006, Taylor2008
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem


def test_descent_by_pairs_scores_two_documents_per_pair_and_all_once_for_cost_and_trail():
    rows, epochs = random_rows(), 3
    fit = run(Taylor2006(epochs=epochs), record(Linear().prepared(rows, 0), rows, objective="ranknet")).fit()
    assert fit.documents_scored == epochs * 2 * len(pairs_of(RankNet(), rows)) + 2 * (epochs + 1) * len(rows)


def test_descent_by_queries_scores_every_document_once_per_epoch_and_once_for_the_trail():
    rows, epochs = random_rows(), 3
    fit = run(Taylor2008(epochs=epochs), record(Linear().prepared(rows, 0), rows, objective="ranknet")).fit()
    assert fit.documents_scored == 2 * (epochs + 1) * len(rows)


class Told(type(parse_measure("AP"))):  # type: ignore[misc]
    """A measure that counts for how many documents it was asked."""

    asked = 0

    def per_query(self, scores, candidates):
        Told.asked += len(candidates)
        return super().per_query(scores, candidates)


def test_a_sampled_line_search_scores_as_often_as_the_measure_is_asked():
    for model, rows in ((BM25F(), text_rows()), (Linear(), random_rows())):
        Told.asked = 0
        fit = run(Line(epochs=3), record(model.prepared(rows, 0), rows, measure=Told())).fit()
        values = fit.documents_scored - Told.asked
        # Along a line on which scores are linear, the scores at its start are computed too, for no value.
        assert values == 0 if model.kind == "bm25f" else 0 < values < 0.1 * Told.asked


def test_an_evaluation_of_some_queries_counts_theirs_only():
    rows = random_rows(queries=6, rows=10)
    problem = Problem.of(Linear().prepared(rows, 0), rows, MEASURE, RankNet())
    problem.value_and_grad(problem.params.free_values, np.array([1, 4]))
    assert problem.scored.documents == 20
    problem.measure_at(problem.params.free_values)
    assert problem.scored.documents == 80


def test_a_resumed_fit_cost_what_the_whole_one_did(tmp_path):
    rows = followed_rows(0)
    model, place = Linear().prepared(rows, 1), tmp_path / "it"
    whole = run(Taylor2008(epochs=6), record(model, rows, objective="ranknet", checkpoint=tmp_path / "whole")).fit()
    run(Taylor2008(epochs=3), record(model, rows, objective="ranknet", checkpoint=place))
    again = record(model, rows, objective="ranknet", checkpoint=place)
    assert again.resume()
    assert run(Taylor2008(epochs=6), again).fit().documents_scored == whole.documents_scored


def test_methods_in_a_row_cost_what_they_cost_together():
    rows, valid = followed_rows(0), followed_rows(1)
    options = {"objective": "ranknet", "sweep": False, "restarts": 1}
    plain = train(Linear(), rows, valid, method=Lbfgs(epochs=5), **options)
    assert (
        0
        < plain.documents_scored
        < train(Linear(), rows, valid, method=Lbfgs(epochs=5), polish=True, **options).documents_scored
    )
