"""Examples 1 and 2 of Robertson & Zaragoza 2007: the experiment's checks hold, and would notice if they did not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fliprank.landscape.theorem import compare_optima


@pytest.fixture(scope="module")
def paper() -> ModuleType:
    path = Path(__file__).parents[2] / "experiments" / "robertson2007.py"
    spec = importlib.util.spec_from_file_location("robertson2007", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_1_has_the_optima_that_the_paper_says(paper: ModuleType) -> None:
    told = paper.check_1()
    assert told[0] == "local optima: AP 7, NDCG(1) 7, NDCG(3) 8, NDCG(10) 8"
    rows, features = paper.example_1()
    assert len(rows) == 102
    assert rows.labels.tolist() == [2.0, 1.0, *[0.0] * 100]
    # By brute force: the best AP on a fine grid of weights, from ranks alone.
    weights = np.linspace(*paper.WEIGHTS, 20_001)
    scores = features[:, :1] + features[:, 1:] * weights
    ranks = np.sort((scores[None] > scores[:2, None]).sum(axis=1) + 1, axis=0)
    precision = (1 / ranks[0] + 2 / ranks[1]) / 2
    assert paper.paths_1()["AP"].maximum.value == pytest.approx(precision.max())
    assert weights[precision.argmax()] == pytest.approx(0.8, abs=0.05)


def test_example_1_the_flip_of_a_and_b_is_all_that_divides_the_measures(paper: ModuleType) -> None:
    paths = paper.paths_1()
    same = compare_optima([paths["AP"], paths["NDCG(1)"]])
    assert same.same_flips
    assert same.share
    assert compare_optima([paths["NDCG(3)"], paths["NDCG(10)"]]).share
    parted = compare_optima([paths["AP"], paths["NDCG(3)"]])
    assert {round(d.x, 2) for d in parted.differences} == {2.82}
    assert parted.theorem_holds


def test_example_2_the_notes_are_true(paper: ModuleType) -> None:
    assert "3 and 1, 3 and 1, 1 and 4" in paper.check_2()[1]
    plain = paper.example_2({"a": 1, "b": 1}, "AP")
    assert len(plain.cells) == 18
    assert len(plain.boundaries) == 6
    assert {"".join("abcd"[row] for row in plain.ranking(cell)) for cell in range(18)} == {
        *("abdc", "badc"),
        *("abcd", "bacd", "adbc", "bdac", "cabd", "cbad", "acbd", "bcad"),
        *("acdb", "bcda", "adcb", "bdca", "dabc", "dbac", "dacb", "dbca"),
    }


def test_example_2_measures_that_ignore_flips_extend_the_optimum(paper: ModuleType) -> None:
    area = {name: paper.example_2({"a": 1, "b": 1}, name).best()[0].area for name in ("AP", "nDCG", "P@1", "RR", "P@2")}
    assert area["AP"] == pytest.approx(area["nDCG"])
    assert area["AP"] == pytest.approx(area["P@2"])
    assert area["P@1"] == pytest.approx(area["RR"])
    assert area["P@1"] > 10 * area["AP"]
