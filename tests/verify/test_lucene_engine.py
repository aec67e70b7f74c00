"""Lucene 8 itself computes what we compute; combined_fields is for Lucene 9, in tests/engines."""

from __future__ import annotations

import pytest
from engine_checks import check_help_centre, check_odd_texts, installed, model_of, odd_index
from lucene_places import use_lucene

from fliprank.engines.base import runner_of
from fliprank.engines.java import FOLDERS
from fliprank.errors import UsageError

FUNCTIONS = ("most_fields", "best_fields", "lm_dirichlet", "lm_jelinek_mercer")


@pytest.fixture(autouse=True)
def lucene8(monkeypatch: pytest.MonkeyPatch) -> None:
    use_lucene(monkeypatch, 8)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_of_odd_texts(function: str) -> None:
    check_odd_texts("lucene", function)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_and_measures_of_the_help_centre(function: str) -> None:
    check_help_centre("lucene", function)


def test_lucene_8_is_not_asked_for_what_it_computes_wrongly() -> None:
    model = model_of(odd_index(), "lucene", "combined_fields", 1)
    with pytest.raises(UsageError, match=r"combined_fields needs Lucene 9 or newer, here is Lucene 8\.\d"):
        runner_of("lucene")({}, model.fields or (), model)


def test_where_no_lucene_is_found_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv(FOLDERS, str(tmp_path))
    with pytest.raises(UsageError, match="name the folder of its jars in FLIPRANK_LUCENE"):
        installed("lucene")
