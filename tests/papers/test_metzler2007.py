"""Metzler 2007: the estimates are what they claim to be, and marks and ends are told rightly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.data.generate import generate
from fliprank.measures import parse_measure
from fliprank.models import Model, TwoStageLM
from fliprank.papers.checkpoint import kept
from fliprank.papers.metzler2007 import GRID, Cell, best_possible, estimate, halves
from fliprank.papers.part import Setting


@pytest.fixture(scope="module")
def rows() -> Candidates:
    return generate(12, documents=40, seed=4).rows


def cost(model: Model, rows: Candidates) -> float:
    """RankNet's cost as the paper prints it: the sum of log(1 + e^Y) over relevant and other documents."""
    scores, total = model.score(rows), 0.0
    labels = np.nan_to_num(rows.labels)
    for q in range(rows.queries):
        own = slice(rows.offsets[q], rows.offsets[q + 1])
        for i, j in np.argwhere(labels[own][:, None] > labels[own]):
            total += np.logaddexp(0.0, scores[own][j] - scores[own][i])
    return total


def test_ranknet_ends_where_no_step_along_a_parameter_lowers_its_cost(rows: Candidates) -> None:
    start = TwoStageLM().prepared(rows, 0)
    found = estimate("RankNet", "AP", rows, 0)
    least = cost(found, rows)
    assert least < cost(start, rows)
    mixing, mu = found.params.values
    for other in ((mixing * 0.8, mu), (min(1.0, mixing * 1.2 + 0.01), mu), (mixing, mu * 0.8), (mixing, mu * 1.2)):
        assert cost(found.at(other), rows) > least * (1 - 1e-3)
    assert np.allclose(estimate("RankNet", "P@10", rows, 0).params.values, found.params.values)


def test_direct_search_is_at_least_as_good_as_every_point_of_its_grid(rows: Candidates) -> None:
    measure = parse_measure("AP")
    found = estimate("direct", "AP", rows, 0)
    on_grid = [
        measure.value(found.at([mixing, mu]).score(rows), rows) for mixing in GRID["lambda"] for mu in GRID["mu"]
    ]
    assert measure.value(found.score(rows), rows) >= max(on_grid)


def test_the_best_possible_is_no_worse_than_any_rival(rows: Candidates) -> None:
    split, measure = halves(rows, 0), parse_measure("Bpref")
    rivals = [estimate(way, "Bpref", split.train, 0) for way in ("direct", "RankNet")]
    best = best_possible("Bpref", split.test, 0, rivals)
    for rival in rivals:
        assert measure.value(best.score(split.test), split.test) >= measure.value(rival.score(split.test), split.test)


def test_halves_share_no_query_and_lose_none(rows: Candidates) -> None:
    split = halves(rows, 3)
    train, test = (set(part.qids.tolist()) for part in split)
    assert not train & test
    assert train | test == set(rows.qids.tolist())
    assert len(train) == len(test) == 6


def test_marks_say_what_is_significantly_better_and_ties_are_named() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.4, 40)
    values = {"direct": base + 0.1, "RankNet": base, "optimal": base + 0.1 + rng.normal(0, 1e-3, 40)}
    plain = [{"tied": 0.01, "parameters": {}}]
    cell = Cell(values, {"direct": plain, "RankNet": [{"tied": 1.0, "parameters": {}}], "optimal": plain})
    assert cell.shown("direct").endswith(" r")
    assert cell.shown("RankNet") == f"{base.mean():.4f} (all tied)"
    assert "r" in cell.shown("optimal")
    assert not cell.better("RankNet", "direct")


def test_all_documents_tie_where_the_collection_alone_counts(rows: Candidates) -> None:
    from fliprank.landscape import tied_share

    end = TwoStageLM().prepared(rows, 0).at([1.0, 2000.0])
    assert tied_share(end.score(rows), rows) == 1.0


def test_kept_results_are_computed_once_and_read_to_the_last_digit(tmp_path: Path) -> None:
    calls = []

    def make() -> dict[str, float]:
        calls.append(1)
        return {"third": 1 / 3}

    setting = Setting(quick=True, cache=tmp_path)
    assert kept(setting, "a third", make) == kept(setting, "a third", make) == {"third": 1 / 3}
    assert len(calls) == 1
    for file in tmp_path.iterdir():
        file.write_text('{"what": "a th')
    assert kept(setting, "a third", make) == {"third": 1 / 3}
    assert len(calls) == 2
