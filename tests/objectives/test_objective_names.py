"""Names of objectives round-trip, and errors say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.errors import UsageError
from fliprank.objectives import (
    MSE,
    REGISTRY,
    LambdaRank,
    Logistic,
    RankNet,
    SoftAP,
    SoftNDCG,
    SoftP,
    SoftRank,
    SoftRecall,
    SoftRR,
    parse_objective,
)

EXAMPLES = [
    MSE(),
    MSE(target="gain"),
    RankNet(target=0.9, normalise="none"),
    RankNet(target={(2, 0): 0.95, (1, 0): 0.8, (1.5, 0.5): 0.7}),
    Logistic(rel=2),
    LambdaRank(),
    LambdaRank(measure="nDCG(dcg='exp-log2')@10", sigma=2.0),
    LambdaRank(measure="AP", cutoff=5),
    SoftNDCG(sigma=0.3) @ 10,
    SoftNDCG(discount=-0.4, gain="exp0"),
    SoftNDCG(discount=(1.0, 0.5, 0.25)),
    SoftNDCG(sigma=0.1, tol=1e-4),
    SoftNDCG(sigma=1.0, anneal=0.01) @ 10,
    SoftRank(method="sinkhorn") @ 10,
    SoftAP(rel=2),
    SoftRR(sigma=1e-3),
    SoftP(5),
    SoftRecall(100, sigma=2),
]


@pytest.mark.parametrize("objective", EXAMPLES, ids=str)
def test_a_name_round_trips(objective):
    again = parse_objective(str(objective))
    assert again == objective
    assert hash(again) == hash(objective)
    assert str(again) == str(objective)
    assert parse_objective(objective) is objective


def test_different_objectives_differ():
    assert len({*EXAMPLES}) == len(EXAMPLES)
    assert SoftNDCG(sigma=[0.1, 0.2]) == SoftNDCG(sigma=np.array([0.1, 0.2]))
    assert SoftNDCG(sigma=[0.1, 0.2]) != SoftNDCG(sigma=[0.1, 0.3])
    assert SoftNDCG() != SoftAP()


def test_every_objective_has_an_example_a_meaning_and_a_direction():
    assert {type(example) for example in EXAMPLES} == set(REGISTRY.values())
    for objective in REGISTRY.values():
        assert objective.maximise == objective.name.startswith("soft")
    assert "expected NDCG" in SoftNDCG().meaning()


def test_short_forms_are_read():
    assert parse_objective("SoftNDCG( sigma = 0.3 )@10") == SoftNDCG(cutoff=10, sigma=0.3)
    assert parse_objective("lambdarank@10") == LambdaRank(cutoff=10)
    assert parse_objective("softndcg(discount=0)") == SoftNDCG(discount=0.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("softnddg", "did you mean"),
        ("xyz!", "can't read"),
        ("qqq", "there are"),
        ("softndcg(sigma)", "can't read"),
        ("softndcg(sigma=__import__('os'))", "can't read"),
        ("softndcg(sigma=1)(2)", "can't read"),
        ("softndcg(speed=3)", "has no speed"),
        ("softap@10", "has no cutoff"),
        ("softndcg(sigma='big')", "is not float"),
        ("softndcg(gain=2)", "is not str"),
        ("softndcg(method='generating')", "has no method"),
        ("ranknet(target=[0.9,0.8])", "probability above 0.5"),
        ("ranknet(target={(0,1):0.9})", "higher label, lower label"),
        ("ranknet(target={1:0.9})", "a table looks like"),
        ("softndcg(sigma=-1)", "above 0"),
        ("softndcg@0", "rank from 1"),
        ("softp", "needs a cut-off"),
        ("ranknet(pairs=<array of 3>)", "can't read"),
        ("lambdarank(measure='nonsense')", "nonsense"),
    ],
)
def test_errors_say_what_is_wrong(name, message):
    with pytest.raises(UsageError, match=message):
        parse_objective(name)


def test_a_cut_off_where_there_is_none_is_refused():
    with pytest.raises(UsageError, match="no cut-off"):
        MSE() @ 10
