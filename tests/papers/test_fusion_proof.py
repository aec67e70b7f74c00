"""What the proof of fusions is made of: folds, peers that do what they say, and simulated worlds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_data import FOLDER, needs_data

from fliprank.data.fusion_rows import fusion_rows
from fliprank.data.trec import Qrels, Run
from fliprank.errors import MissingExtraError
from fliprank.experiment.evaluation import evaluate
from fliprank.measures import parse_measure
from fliprank.models.fusion import Fusion
from fliprank.papers.own import fusion_peers as peers
from fliprank.papers.own.fusion_calibration import WORLDS, world
from fliprank.papers.own.fusion_sets import fusion_set
from fliprank.papers.part import Setting

pytestmark = pytest.mark.long

MEASURE = parse_measure(peers.MEASURE)


def lists_of(seed: int) -> tuple[dict[str, Run], Qrels]:
    lists, judged = world((1.0, 1.5), seed)
    return {name: Run.of(each, name) for name, each in lists.items()}, Qrels.of(judged)


def value(fuser: peers.Fuser, qrels: Qrels) -> float:
    return evaluate(qrels, {"run": fuser(qrels)}, [peers.MEASURE]).mean("run", peers.MEASURE)


def test_the_grid_of_66_is_the_best_of_its_variants() -> None:
    lists, qrels = lists_of(1)
    rows, every = fusion_rows(lists, qrels), []
    for norm in ("min_max", "l2"):
        for mean in ("arithmetic_mean", "geometric_mean", "harmonic_mean"):
            for x in np.linspace(0, 1, 11):
                model = Fusion("opensearch", tuple(lists), normalise=norm, combine=mean).at([1 - x, x])
                every.append(MEASURE.value(model.score(rows), rows))
    assert len(every) == 66
    assert value(peers.opensearch_grid(lists, qrels, 0), qrels) == pytest.approx(max(every), abs=1e-9)


def test_ranx_finds_what_its_own_grid_has() -> None:
    """Min-max by ranx is ours: the best of all its norms is not below the best of eleven weights of min-max."""
    pytest.importorskip("ranx")
    lists, qrels = lists_of(2)
    rows = fusion_rows(lists, qrels)
    plain = Fusion("plain", tuple(lists), normalise="minmax")
    grid = [MEASURE.value(plain.at([1 - x, x]).score(rows), rows) for x in np.linspace(0, 1, 11)]
    assert value(peers.ranx_search(lists, qrels, 0), qrels) >= max(grid) - 1e-3  # ranx breaks ties by its own order


def test_trials_are_the_same_by_the_same_seed_and_better_than_equal_weights() -> None:
    pytest.importorskip("optuna")
    lists, qrels = lists_of(3)
    one, two = (peers.optuna_trials(lists, qrels, 5)(qrels).to_dict() for _ in range(2))
    assert one == two
    rows = fusion_rows(lists, qrels)
    equal = Fusion("plain", tuple(lists), normalise="minmax")
    assert value(peers.optuna_trials(lists, qrels, 5), qrels) >= MEASURE.value(equal.score(rows), rows)


@pytest.mark.parametrize(("peer", "package"), [(peers.ranx_search, "ranx"), (peers.optuna_trials, "optuna")])
def test_a_peer_that_is_not_installed_is_named_with_its_extra(
    peer: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is not installed.*peers"):
        peer(*lists_of(4), 0)


@needs_data
def test_every_query_is_tested_once_and_never_with_what_is_fitted_to_it(tmp_path: Path) -> None:
    data = fusion_set(Setting(False, {"dl19": FOLDER / "fusion" / "dl19"}, tmp_path), "dl19")
    tested = [query for _, test in data.splits for query in test.qids.tolist()]
    assert len(data.splits) == 5
    assert len(tested) == len(set(tested)) == 43
    for train, test in data.splits:
        assert set(train.qids.tolist()) == set(tested) - set(test.qids.tolist())


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_are_what_they_say(name: str) -> None:
    """Lists that see labels rank better than chance, and random ones as chance does; alike ones are as good."""
    lists, judged = world(WORLDS[name], 7)
    assert 20 <= len(judged) <= 60
    assert all(len(own) == 50 for each in lists.values() for own in each.values())
    means = [each["nDCG@10"] for each in evaluate(judged, lists, ["nDCG@10"]).means().values()]
    labels = [[int(label) for label in own.values()] for own in judged.values()]
    rng = np.random.default_rng(0)
    chance = np.mean([_ndcg(rng.permutation(own)) for own in labels for _ in range(50)])
    for sight, mean in zip(WORLDS[name], means, strict=True):
        assert abs(mean - chance) < 0.08 if sight == 0 else mean > 3 * chance
    if name in ("alike", "per query"):
        assert abs(means[0] - means[1]) < 0.1


def _ndcg(labels: np.ndarray) -> float:
    discount = 1 / np.log2(np.arange(2, 12))
    best = np.sort(labels)[::-1][:10] @ discount
    return float(labels[:10] @ discount / best) if best else 0.0
