"""Tables 1 to 3: four objectives on three corpora, on test and on training queries, with nets and linear models."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, alike, difference, interval, larger
from fliprank.papers.taylor2008.corpora import NEEDS, Corpus, corpus
from fliprank.papers.taylor2008.fits import OBJECTIVES, Trained, settings_of, trained

MSE, RANKNET, LAMBDARANK, SOFTRANK = OBJECTIVES


def _all(setting: Setting, data: Corpus) -> dict[str, Trained]:
    return {name: trained(setting, data, objective) for name, objective in OBJECTIVES.items()}


@part("taylor2008", "table1", "Four objectives on the test queries of three corpora", needs=NEEDS, minutes=6)
def table1(setting: Setting) -> Finding:
    """NDCG@3 and NDCG@10, with paired t-tests of NDCG@10 between all objectives."""
    rows, claims, chosen, every = (
        list[tuple[Any, ...]](),
        Claims(),
        dict[str, Any](),
        [corpus(setting, n) for n in NEEDS],
    )
    for data in every:
        found = _all(setting, data)
        chosen[data.name] = {name: list(each.chosen) for name, each in found.items()}
        for name, each in found.items():
            against = [_p(each.g10, other.g10) for other in found.values()]
            rows.append((data.name, name, float(each.test["G3"].mean()), *interval(each.g10), *against))
        _claims_of_table1(claims, data, found)
    return Finding(
        ("corpus", "objective", "NDCG@3", "NDCG@10", "low", "high", *(f"p against {name}" for name in OBJECTIVES)),
        tuple(rows),
        ".GOV: MSE is worst and SoftRank better than RankNet; Enterprise: SoftRank is better than MSE and no better "
        "than LambdaRank, and RankNet no better than MSE; Web: LambdaRank beats all others, which do not differ.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, *every) | {"chosen": chosen},
        None,
        claims.notes,
    )


def _p(one: Floats, other: Floats) -> float:
    """Of the paired t-test; NaN for a ranker and itself."""
    return float("nan") if one is other else difference(one, other).p


def _claims_of_table1(claims: Claims, data: Corpus, found: dict[str, Trained]) -> None:
    """What the paper says of the corpus that this one stands for (section 4.6)."""
    higher, same = {
        ".GOV": ([(RANKNET, MSE), (LAMBDARANK, MSE), (SOFTRANK, MSE), (SOFTRANK, RANKNET)], []),
        "Enterprise": ([(SOFTRANK, MSE)], [(SOFTRANK, LAMBDARANK), (RANKNET, MSE)]),
        "Web": (
            [(LAMBDARANK, other) for other in (MSE, RANKNET, SOFTRANK)],
            [*combinations((MSE, RANKNET, SOFTRANK), 2)],
        ),
    }[data.stands_for]
    for pairs, rule in ((higher, larger), (same, alike)):
        for one, other in pairs:
            claims.add(f"{data.name} ({data.stands_for}): {one} less {other}", rule, found[one].g10, found[other].g10)


@part("taylor2008", "table2", "Four objectives on the training queries", needs=NEEDS, minutes=0.2)
def table2(setting: Setting) -> Finding:
    """NDCG@10 on the queries that were trained on: which objective fits them best (the fits are those of Table 1)."""
    rows, claims, every = list[tuple[Any, ...]](), Claims(), [corpus(setting, name) for name in NEEDS]
    for data in every:
        found = _all(setting, data)
        for name, each in found.items():
            against = [_p(each.training, other.training) for other in found.values()]
            rows.append((data.name, name, *interval(each.training), float(np.mean(each.epochs)), *against))
        for name in (MSE, RANKNET, LAMBDARANK):
            values = (found[SOFTRANK].training, found[name].training)
            claims.add(f"{data.name}: {SOFTRANK} less {name}, on training queries", larger, *values)
    return Finding(
        (
            "corpus",
            "objective",
            "training NDCG@10",
            "low",
            "high",
            "epoch",
            *(f"p against {name}" for name in OBJECTIVES),
        ),
        tuple(rows),
        "SoftRank fits the training queries significantly better than the other three objectives, on all corpora.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, *every),
        None,
        (
            *claims.notes,
            "A query that was trained on in several folds counts once, with its mean over these. Epoch: the mean of"
            " those that validation queries chose; where it is early, as with the hundreds of features of cranfield, an"
            " objective had no more time than that to fit the training queries.",
        ),
    )


@part("taylor2008", "table3", "Linear models and two-layer nets", needs=("mq2008",), minutes=1)
def table3(setting: Setting) -> Finding:
    """LambdaRank and SoftRank on training and test queries, with a net and with a linear model."""
    data, claims = corpus(setting, "mq2008"), Claims()
    found = {
        (kind, name): trained(setting, data, OBJECTIVES[name], model)
        for kind, model in (("two-layer", data.model), ("linear", fr.Linear()))
        for name in (LAMBDARANK, SOFTRANK)
    }
    for kind in ("two-layer", "linear"):
        test = (found[kind, LAMBDARANK].g10, found[kind, SOFTRANK].g10)
        claims.add(f"{kind}, test queries: {LAMBDARANK} less {SOFTRANK}", larger, *test)
    for name in (LAMBDARANK, SOFTRANK):
        training = (found["two-layer", name].training, found["linear", name].training)
        claims.add(f"{name}, training queries: two-layer less linear", larger, *training)
    return Finding(
        ("model", "objective", "training NDCG@10", "test NDCG@10", "low", "high"),
        tuple((*key, float(each.training.mean()), *interval(each.g10)) for key, each in found.items()),
        "A linear model fits training queries worse than a net, and with it, too, LambdaRank is significantly better "
        "than SoftRank on test queries: overfitting is not the reason.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, data) | {"chosen": {" ".join(key): list(each.chosen) for key, each in found.items()}},
        None,
        claims.notes,
    )
