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
from fliprank.papers.metzler2007.estimates import (
    GRID,
    Judged,
    best_possible,
    descend_ranknet,
    direct_search,
    halves,
)
from fliprank.papers.metzler2007.table1 import Cell, end_of
from fliprank.papers.part import Setting

pytestmark = pytest.mark.long


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
    found = descend_ranknet(rows, 0).model
    least = cost(found, rows)
    assert least < cost(start, rows)
    mixing, mu = found.params.values
    for other in ((mixing * 0.8, mu), (min(1.0, mixing * 1.2 + 0.01), mu), (mixing, mu * 0.8), (mixing, mu * 1.2)):
        assert cost(found.at(other), rows) > least * (1 - 1e-3)


def test_direct_search_is_at_least_as_good_as_every_point_of_its_grid(rows: Candidates) -> None:
    measure = parse_measure("AP")
    found = direct_search("AP", Judged.of(rows), 0)
    on_grid = [
        measure.value(found.at([mixing, mu]).score(rows), rows) for mixing in GRID["lambda"] for mu in GRID["mu"]
    ]
    assert measure.value(found.score(rows), rows) >= max(on_grid)


def test_the_best_possible_is_no_worse_than_any_rival(rows: Candidates) -> None:
    split, measure = halves(Judged.of(rows), 0), parse_measure("Bpref")
    rivals = [direct_search("Bpref", split.train, 0), descend_ranknet(split.train.rows, 0).model]
    best, test = best_possible("Bpref", split.test, 0, rivals), split.test.rows
    for rival in rivals:
        assert measure.value(best.score(test), test) >= measure.value(rival.score(test), test)


def test_the_grid_of_some_queries_is_that_of_these_queries_alone(rows: Candidates) -> None:
    few = np.array([1, 4, 5, 9])
    whole, alone = Judged.of(rows).select(few), Judged.of(rows.select(few))
    for measure, values in whole.grid.items():
        assert np.array_equal(values, alone.grid[measure])
        assert whole.best_point(measure) == alone.best_point(measure)
    mixing, mu = whole.best_point("AP").values()
    chosen, own = parse_measure("AP"), rows.select(few)
    model = TwoStageLM().prepared(own, 0)
    best = chosen.value(model.at([mixing, mu]).score(own), own)
    assert best == max(chosen.value(model.at([a, b]).score(own), own) for a in GRID["lambda"] for b in GRID["mu"])


def test_halves_share_no_query_and_lose_none(rows: Candidates) -> None:
    train, test = (set(part.rows.qids.tolist()) for part in halves(Judged.of(rows), 3))
    assert not train & test
    assert train | test == set(rows.qids.tolist())
    assert len(train) == len(test) == 6


def test_marks_say_what_is_significantly_better_and_ties_are_named() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.4, 40)
    values = {"direct": base + 0.1, "RankNet": base, "optimal": base + 0.1 + rng.normal(0, 1e-3, 40)}
    plain = [{"tied": 0.01, "parameters": {}}]
    cell = Cell.of(values, {"direct": plain, "RankNet": [{"tied": 1.0, "parameters": {}}], "optimal": plain})
    assert cell.shown("direct").endswith(" r")
    assert cell.shown("RankNet") == f"{base.mean():.4f} (all tied)"
    assert "r" in cell.shown("optimal")
    assert not cell.better("RankNet", "direct")


def test_all_documents_tie_where_the_collection_alone_counts(rows: Candidates) -> None:
    from fliprank.landscape import tied_share

    end = TwoStageLM().prepared(rows, 0).at([1.0, 2000.0])
    assert tied_share(end.score(rows), rows) == 1.0


@pytest.mark.parametrize(
    ("mixing", "mu", "tied", "word"),
    [(1.0, 50.0, 1.0, "tie"), (0.0, 50.0, 0.1, "Dirichlet"), (0.5, 0.0, 0.1, "Jelinek"), (0.5, 50.0, 0.1, "")],
)
def test_degenerate_ends_are_named(mixing: float, mu: float, tied: float, word: str) -> None:
    told = end_of({"parameters": {"lambda": mixing, "mu": mu}, "tied": tied})
    assert word in told
    assert bool(told) == bool(word)


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
