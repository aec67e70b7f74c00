"""Blends: the weighted sum of standardised scores, linear in the weights, whole in one folder."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.models.blend import Blend
from fliprank.models.trees import Forest, Trees
from fliprank.optimize.line import line_search


def rows(seed: int, queries: int = 20) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(10 * queries, 3)) * [1.0, 5.0, 0.2] + [3.0, 0.0, -1.0]
    labels = np.clip(np.round(x[:, 0] - 3 + 0.1 * x[:, 1] + rng.normal(size=len(x))), 0, 3)
    return fr.Candidates.of(labels, group=[10] * queries, features=x)


def parts(train: fr.Candidates) -> list[fr.Model]:
    grown = islice(Trees(leaves=4).sprouts(train), 6)
    return [
        fr.Linear().prepared(train, 0).at([40.0, 3.0, 1.0, -1.0]),
        fr.Network(300).prepared(train, 1),  # more than a thousand parameters
        Trees(forest=Forest.joined([sprout.tree for sprout in grown])),
    ]


def test_a_score_is_the_weighted_sum_of_standardised_scores() -> None:
    train, test = rows(0), rows(1)
    members = parts(train)
    blend = Blend(members).prepared(train, 0)
    weights = np.array([0.2, 0.7, 0.1])
    expected = np.zeros(len(test))
    for weight, part in zip(weights, members, strict=True):
        known = part.score(train)
        expected += weight * (part.score(test) - known.mean()) / known.std()
    np.testing.assert_allclose(blend.at(weights).score(test), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(blend.score(test), blend.at(np.full(3, 1 / 3)).score(test))
    assert blend.prepared(test, 0).spread is blend.spread, "what it knows of its training rows stays"
    assert blend.params.names == ("linear.weight", "network.weight", "trees.weight")
    assert blend.params.lower.tolist() == [0, 0, 0]


def test_the_gradient_is_that_of_finite_differences_and_lines_of_weights_are_exact() -> None:
    train, test = rows(0), rows(1)
    blend = Blend(parts(train)).prepared(train, 0).at([0.5, 0.2, 0.3])
    pull = np.random.default_rng(3).normal(size=len(test))
    ends = [
        [pull @ blend.at(blend.params.values + side * np.eye(3)[k]).score(test) for side in (1e-4, -1e-4)]
        for k in range(3)
    ]
    expected = [(high - low) / 2e-4 for high, low in ends]
    np.testing.assert_allclose(blend.pullback(test, pull), expected, rtol=1e-8, atol=1e-8)
    measure = fr.parse_measure("nDCG@10")
    found = line_search(blend, test, "trees.weight", measure)
    grid = [measure.value(blend.at([0.5, 0.2, w]).score(test), test) for w in np.linspace(0, 3, 400)]
    assert found.value >= max(grid)


def test_one_folder_has_all_parts_and_ranks_without_lightgbm(tmp_path: Path) -> None:
    train = rows(0)
    inner = Blend(parts(train)[:2]).prepared(train, 0).at([0.3, 0.7])
    blend = Blend([*parts(train), inner]).prepared(train, 0).at([0.1, 0.2, 0.3, 0.4])
    blend.save(tmp_path / "m")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["model.json"]
    fr.write_letor(tmp_path / "rows.txt", rows(1))
    code = (
        "import sys; sys.modules['lightgbm'] = None\n"
        "import fliprank as fr\n"
        "model = fr.load_model(sys.argv[1])\n"
        "print(model.kind, *map(repr, model.score(fr.read_letor(sys.argv[2])).tolist()))"
    )
    command = [sys.executable, "-c", code, tmp_path / "m", tmp_path / "rows.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kind, *scores = done.stdout.split()
    assert kind == "blend"
    expected = blend.score(fr.read_letor(tmp_path / "rows.txt"))
    np.testing.assert_array_equal([float(score) for score in scores], expected)


def test_parts_of_weight_0_are_left_out_and_a_single_one_is_itself() -> None:
    train, test = rows(0), rows(1)
    members = parts(train)
    blend = Blend(members).prepared(train, 0)
    assert blend.weighted([0, 2, 0]) is members[1]
    few = blend.weighted([3, 0, 1])
    assert isinstance(few, Blend)
    assert few.params.names == ("linear.weight", "trees.weight")
    assert few.params.values.tolist() == [0.75, 0.25]
    np.testing.assert_allclose(few.score(test), blend.at([0.75, 0, 0.25]).score(test), rtol=1e-12, atol=1e-12)
    for wrong in ([0, 0, 0], [1, -1, 0], [1, 1], [np.nan, 1, 1]):
        with pytest.raises(fr.UsageError, match="weights of a blend: 3 numbers from 0"):
            blend.weighted(wrong)


def test_a_part_whose_scores_are_all_equal_adds_nothing() -> None:
    train = rows(0)
    flat = fr.Linear().prepared(train, 0).at([0.1, 0, 0, 0])  # the mean of many 0.1 is not quite 0.1
    blend = Blend([flat, parts(train)[0]]).prepared(train, 0)
    np.testing.assert_array_equal(blend.at([0.5, 1.0]).score(train), blend.at([0.0, 1.0]).score(train))


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    train = rows(0)
    for wrong in ([], [3]):
        with pytest.raises(fr.UsageError, match="a blend is made of models"):
            Blend(wrong)  # type: ignore[arg-type]
    with pytest.raises(fr.UsageError, match=r"a part of this blend is not trained \(trees\)"):
        Blend([fr.Linear().prepared(train, 0), Trees()]).prepared(train, 0)
    with pytest.raises(fr.UsageError, match="not ready"):
        Blend(parts(train)).score(train)
    with pytest.raises(fr.UsageError, match="nothing to save"):
        Blend(parts(train)).save(tmp_path / "m")
    Blend(parts(train)).prepared(train, 0).save(tmp_path / "m")
    text = (tmp_path / "m" / "model.json").read_text()
    for old, new, said in (
        ('"scale": ', '"scale": -', "scale: expected a number that is not negative"),
        ('"name": "bias"', '"name": "bios"', "'bios' in place of 'bias'"),
        ('"kind": "trees"', '"kind": "bush"', "expected one of"),
    ):
        changed = text.replace(old, new, 1)
        assert changed != text
        (tmp_path / "m" / "model.json").write_text(changed)
        with pytest.raises(fr.InputError, match=said):
            fr.load_model(tmp_path / "m")
