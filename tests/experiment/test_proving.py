"""What Python users get as `fit.proof` is what the command line writes."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_rows import judged_rows

from fliprank.errors import UsageError
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.task import Queries, Task
from fliprank.experiment.training import train
from fliprank.experiment.trials import Trial
from fliprank.experiment.tuning import tune
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F
from fliprank.objectives import RankNet
from fliprank.optimize.methods import Lbfgs

MEASURE = parse_measure("nDCG@10")
QUICK = [Trial(RankNet(), (Lbfgs(l2=0.1),))]


@contextmanager
def silent(name: str) -> Any:
    yield None


@pytest.mark.parametrize("tested", [True, False])
def test_the_proof_in_python_is_the_one_that_the_command_line_writes(tested: bool, tmp_path: Path) -> None:
    rows, test = judged_rows(40), judged_rows(30, seed=7) if tested else None
    task = Task(Queries(rows), test=None if test is None else Queries(test))
    options: dict[str, Any] = {"measure": MEASURE, "recipes": QUICK, "folds": 3}
    written = tune_and_write(BM25F(), task, tmp_path, silent, curve=False, **options).content()
    proof = tune(BM25F(), rows, test=test, **options).proof
    found = proof.content()
    assert {name: written[name] for name in found} == found
    assert proof.on == ("test" if tested else "cross_validated")
    main = found["proof"][proof.on]
    assert (proof.default, proof.tuned, proof.difference, proof.p, proof.queries, list(proof.interval)) == tuple(
        main[name] for name in ("default", "tuned", "difference", "p", "queries", "interval")
    )


def test_the_cross_validated_figures_are_those_of_scores_that_never_saw_the_query() -> None:
    rows = judged_rows(40)
    fit = tune(BM25F(), rows, measure=MEASURE, recipes=QUICK, folds=3)
    assert fit.held_out is not None
    assert fit.start is not None
    values = {"tuned": fit.held_out, "default": fit.start.score(rows)}
    means = {name: float(np.mean(MEASURE.per_query(scores, rows))) for name, scores in values.items()}
    assert (fit.proof.tuned, fit.proof.default) == pytest.approx((means["tuned"], means["default"]), abs=1e-12)
    assert fit.proof.difference == pytest.approx(means["tuned"] - means["default"], abs=1e-12)
    assert fit.proof is fit.proof  # computed once


@pytest.mark.parametrize(("adopt", "adopted"), [("proven", True), ("always", True), ("never", False)])
def test_the_model_of_a_proof_is_what_was_adopted(adopt: str, adopted: bool) -> None:
    fit = tune(BM25F(), judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3, adopt=adopt)
    assert (fit.proof.word, fit.proof.adopted) == ("adopt", adopted)
    assert fit.proof.model is (fit.model if adopted else fit.start)
    assert ("adopted" if adopted else "kept") in repr(fit.proof)


def test_without_held_out_queries_nothing_is_proven_and_the_defaults_are_kept() -> None:
    fit = tune(BM25F(), judged_rows(20), measure=MEASURE, recipes=QUICK, folds=None)
    assert (fit.proof.word, fit.proof.model, fit.proof.to_frame().height) == ("not proven", fit.start, 0)
    with pytest.raises(UsageError, match=r"nothing was held out.*folds=5, or give test="):
        _ = fit.proof.tuned


def test_a_choice_of_functions_has_the_proof_that_is_corrected_for_the_choice() -> None:
    fit = tune("auto", judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3)
    assert fit.held_out is not None
    assert fit.rows is not None
    assert fit.proof.tuned == pytest.approx(MEASURE.value(fit.held_out, fit.rows), abs=1e-12)


def test_the_frame_of_a_proof_has_every_set_and_measure() -> None:
    fit = tune(BM25F(), judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3, test=judged_rows(20, seed=7))
    frame = fit.proof.to_frame()
    assert frame.select("on", "measure").rows() == [
        (on, measure) for on in ("test", "cross_validated") for measure in ("nDCG@10", "AP", "RR")
    ]
    assert frame["tuned"][0] == fit.proof.tuned
    assert (frame["low"] <= frame["difference"]).all()
    assert (frame["difference"] <= frame["high"]).all()
    assert frame["queries"].to_list() == [20] * 3 + [40] * 3


def test_a_word_that_is_none_of_the_three_is_refused_before_anything_is_fitted() -> None:
    with pytest.raises(UsageError, match="adopt: one of proven, always, never, not 'perhaps'"):
        tune(BM25F(), judged_rows(4), adopt="perhaps")


def test_what_was_trained_has_no_proof_and_says_what_to_do() -> None:
    fit = train(BM25(), judged_rows(20), measure=MEASURE, epochs=2, restarts=1)
    with pytest.raises(UsageError, match=r"only what tune\(\) gives has a proof: .*fr\.compare"):
        _ = fit.proof


def test_parameters_before_and_after_with_the_ranges_that_are_as_good() -> None:
    fit = tune(BM25F(), judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3)
    frame, ranges = fit.parameters(), fit.ranges()
    assert fit.start is not None
    assert frame["parameter"].to_list() == list(fit.model.params.names)
    assert frame["before"].to_list() == fit.start.params.values.tolist()
    assert frame["after"].to_list() == fit.model.params.values.tolist()
    k, title = frame.row(0, named=True), frame.row(1, named=True)
    assert (k["low"], k["moves_with"]) == (None, None)  # k is fixed
    assert (title["low"], title["high"]) == ranges["title.w"][:2]
    assert fit.parameters(ranges=False)["low"].is_null().all()


def test_the_trail_as_a_frame_marks_the_kept_epoch() -> None:
    fit = train(BM25(), judged_rows(20), judged_rows(20, seed=3), measure=MEASURE, epochs=5, restarts=1, sweep=False)
    frame = fit.to_frame()
    assert frame["number"].to_list() == [epoch.number for epoch in fit.trail]
    assert frame["valid"].to_list() == [epoch.valid for epoch in fit.trail]
    assert frame.filter("kept")["number"].to_list() == [fit.best.number]


def test_a_fit_in_a_few_lines() -> None:
    fit = tune(BM25F(), judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3)
    assert "see .proof" in repr(fit)
    assert fit.proof.sentence in repr(fit)  # once it was asked for
    assert len(repr(fit).splitlines()) <= 5
    assert "array(" not in repr(fit)
