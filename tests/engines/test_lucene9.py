"""Lucene 9 itself computes what we compute; its combined_fields, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from column_pages import column_index, stacked
from elastic_checks import check_elastic_files
from engine_checks import check_help_centre, check_odd_texts, installed, model_of
from lucene_places import use_lucene

from fliprank.export import write_export
from fliprank.models import Feature

FUNCTIONS = ("most_fields", "best_fields", "combined_fields", "lm_dirichlet", "lm_jelinek_mercer")


@pytest.fixture(autouse=True)
def lucene9(monkeypatch: pytest.MonkeyPatch) -> None:
    use_lucene(monkeypatch, 9)


def test_it_is_lucene_9() -> None:
    assert installed("lucene").startswith("Lucene 9.")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_of_odd_texts(function: str) -> None:
    check_odd_texts("lucene", function)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_and_measures_of_the_help_centre(function: str) -> None:
    check_help_centre("lucene", function)


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_engines_that_score_with_it(engine: str, function: str) -> None:
    check_odd_texts(engine, function, seeds=1)


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_the_files_of_combined_fields_rank_as_the_model_does(engine: str, tmp_path: Path) -> None:
    model = model_of(column_index(), engine, "combined_fields", 1)
    check_elastic_files(write_export(tmp_path / "text", model, engine), model, engine)
    both = stacked(engine, "combined_fields", (Feature("stars", transform="saturate", k=20.0), 0.9))
    check_elastic_files(write_export(tmp_path / "both", both, engine), both, engine)


def test_a_column_as_it_is(tmp_path: Path) -> None:
    model = stacked("elasticsearch", "best_fields", (Feature("stars"), 0.02))
    check_elastic_files(write_export(tmp_path, model, "elasticsearch"), model, "elasticsearch")
