"""Precision at levels of recall is trec_eval's, digit for digit."""

from __future__ import annotations

import numpy as np
import pytest

import fliprank as fr
from fliprank.errors import UsageError

pytrec_eval = pytest.importorskip("pytrec_eval")


@pytest.mark.parametrize("rel", [1, 2])
def test_it_is_trec_evals(rel: int) -> None:
    rng = np.random.default_rng(rel)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(int(rng.integers(1, 30)))} for q in range(25)}
    qrels["q0"] = {"d0": 0}  # nothing is relevant
    run = {
        q: {f"d{d}": float(np.round(rng.normal(), 1)) for d in rng.permutation(40)[: int(rng.integers(1, 40))]}
        for q in qrels
    }
    measures = {f"iprec_at_recall.{','.join(f'{level / 10:.2f}' for level in range(11))}"}
    found = fr.precision_recall(qrels, {"run": run}, rel=rel)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=rel).evaluate(run)
    for level in range(11):
        mean = np.mean([values[f"iprec_at_recall_{level / 10:.2f}"] for values in theirs.values()])
        assert found.values["run"][level] == pytest.approx(mean, abs=1e-12)
    assert found.queries == 25


def test_it_takes_what_evaluate_takes_and_shows_itself_in_a_few_lines() -> None:
    rows = fr.Candidates.of([1, 0, 1, 0], group=[2, 2], features=[[1.0], [2.0], [3.0], [4.0]])
    model = fr.Linear().prepared(rows, 0).at([0, 1])
    found = fr.precision_recall(model, rows)
    np.testing.assert_allclose(found.values["model"], 0.5)
    np.testing.assert_allclose(fr.precision_recall(rows, [model.score(rows)]).values["run 1"], 0.5)
    assert "PrecisionRecall on 2 queries\n  model: 0.5000 at recall 0" in repr(found)
    assert found.to_frame().columns == ["run", "recall", "precision"]
    with pytest.raises(UsageError, match="rel=0: a relevant document has a label above 0"):
        fr.precision_recall(rows, np.zeros(4), rel=0)
