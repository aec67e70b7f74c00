"""Cascades in words: what the command line is given becomes stages, or an error that shows the word."""

from __future__ import annotations

import pytest

from fliprank.errors import UsageError
from fliprank.models import Linear, Network
from fliprank.models.cascade_names import by_stage, parse_cascade
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Trees


def test_the_paper_s_cascade_with_richer_stages() -> None:
    nested = parse_cascade("2500,1000,100,10", "linear, linear,network:4,trees:15")
    assert nested.sizes == (2500, 1000, 100, 10)
    assert [type(stage) for stage in nested.stages] == [Linear, Linear, Network, Trees]
    assert (nested.stages[2].hidden, nested.stages[3].leaves) == (4, 15)


def test_one_word_is_for_all_stages() -> None:
    assert [stage.hidden for stage in parse_cascade("50,10", "network:3").stages] == [3, 3]
    assert [stage.kind for stage in parse_cascade("50,10").stages] == ["linear", "linear"]
    assert by_stage("exact", 3, "methods") == ["exact", "exact", "exact"]


def test_features_are_given_by_stage() -> None:
    first, second = parse_cascade("50,10", "linear", features="bm25*, clicks ;*").stages
    assert isinstance(first, FeatureSubset)
    assert first.features == ("bm25*", "clicks")
    assert isinstance(second, Linear)


def test_commas_in_brackets_do_not_part_stages() -> None:
    words = by_stage("softndcg(sigma=0.3,discount=0), ranknet", 2, "objectives")
    assert words == ["softndcg(sigma=0.3,discount=0)", "ranknet"]


@pytest.mark.parametrize(
    ("sizes", "models", "features", "said"),
    [
        ("2500,ten", "linear", None, "'ten' is not a number of documents"),
        ("2500,0", "linear", None, "'0' is not a number"),
        ("2500,99999999999999999999", "linear", None, "is not a number"),
        ("", "linear", None, "'' is not a number"),
        ("100,1000", "linear", None, "fewer documents than the last"),
        ("100,10", "linear,linear,linear", None, "3 for 2 stages"),
        ("100,10", "forest", None, "unknown model 'forest'"),
        ("100,10", "cascade", None, "unknown model 'cascade'"),
        ("100,10", "linear:4", None, "a number follows network:"),
        ("100,10", "network:many", None, "a number follows network:"),
        ("100,10", "network:0", None, "no hidden nodes"),
        ("100,10", "linear", "a;b;c", "3 for 2 stages"),
    ],
)
def test_a_wrong_word_is_shown(sizes: str, models: str, features: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_cascade(sizes, models, features)
