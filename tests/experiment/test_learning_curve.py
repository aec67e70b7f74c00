"""Learning curves: what is drawn, what is measured, and that an interrupted curve goes on to the same digits."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fliprank as fr
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.learning_curve import Ranker, default_sizes, learning_curve
from fliprank.models import Model

DOCUMENTS, FEATURES = 12, 12
TRUE = np.random.default_rng(99).normal(size=FEATURES) / np.sqrt(FEATURES)
NDCG = "nDCG(dcg='exp-log2')@3"


def rows_of(queries: int, seed: int) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(queries * DOCUMENTS, FEATURES))
    labels = np.clip(np.round(1.2 * x @ TRUE + rng.normal(size=len(x)) + 0.3), 0, 3)
    return fr.Candidates.of(labels, group=[DOCUMENTS] * queries, features=x)


def least_squares(train: fr.Candidates, valid: fr.Candidates | None, seed: int) -> Model:
    """A fit in closed form, quick enough to find the true curve by brute force."""
    assert train.features is not None
    assert valid is None
    x = np.asarray(train.features, np.float64)
    weights = np.linalg.lstsq(x, train.labels - train.labels.mean(), rcond=None)[0]
    return fr.Linear().prepared(train, 0).at([0.0, *(weights * x.std(axis=0))])


least_squares.validate = False  # type: ignore[attr-defined]


class Watched:
    """Fits by least squares and remembers on what."""

    def __init__(self, validate: bool = True) -> None:
        self.validate, self.seen, self.lock = validate, list[tuple[set[str], set[str], int]](), threading.Lock()

    def __call__(self, train: fr.Candidates, valid: fr.Candidates | None, seed: int) -> Model:
        with self.lock:
            self.seen.append((set(train.qids.tolist()), set() if valid is None else set(valid.qids.tolist()), seed))
        return least_squares(train, None, seed)


@pytest.mark.parametrize("own_test", [True, False])
def test_larger_sets_contain_the_smaller_and_no_query_is_used_twice(own_test: bool) -> None:
    rows, ranker = rows_of(60, 0), Watched()
    test = rows_of(20, 1) if own_test else None
    curve = learning_curve({"one": ranker}, rows, [8, 16, 32], test, repeats=5, measure=NDCG, jobs=1)
    by_seed: dict[int, list[tuple[set[str], set[str]]]] = {}
    for train, valid, seed in ranker.seen:
        assert not train & valid
        assert len(valid) == len(train) // 4
        by_seed.setdefault(seed, []).append((train, valid))
    assert len(by_seed) == 5
    for sets in by_seed.values():
        small, middle, large = sorted(sets, key=lambda pair: len(pair[0]))
        assert small[0] < middle[0] < large[0]
        assert small[1] < middle[1] < large[1]
    tested = ~np.isnan(curve.values["one"][0])
    if own_test:
        assert tested.all()
    else:  # each query is held out once in five repeats, and never trained on there
        np.testing.assert_array_equal(tested.sum(axis=0), 1)
        for line, sets in zip(tested, _in_order(ranker, by_seed), strict=True):
            held = {rows.qids[int(q)] for q in np.flatnonzero(line)}
            assert all(not held & (train | valid) for train, valid in sets)


def _in_order(
    ranker: Watched, by_seed: dict[int, list[tuple[set[str], set[str]]]]
) -> list[list[tuple[set[str], set[str]]]]:
    """Sets of each repeat, in the order of the repeats (jobs=1 runs them so)."""
    return [by_seed[seed] for seed in dict.fromkeys(seed for *_, seed in ranker.seen)]


def test_values_are_those_of_the_models_fitted_by_hand() -> None:
    rows, test = rows_of(40, 0), rows_of(25, 1)
    kept: dict[tuple[int, int], Model] = {}

    def fit(train: fr.Candidates, valid: fr.Candidates | None, seed: int) -> Model:
        kept[train.queries, seed] = model = least_squares(train, None, seed)
        return model

    fit.validate = False  # type: ignore[attr-defined]
    curve = learning_curve({"ls": fit}, rows, [10, 20, 40], test, repeats=3, measure="AP", jobs=1)
    measure = fr.parse_measure("AP")
    for i, size in enumerate(curve.sizes):
        models = [model for (n, _), model in kept.items() if n == size]
        values = np.array([measure.per_query(model.score(test), test) for model in models])
        np.testing.assert_array_equal(curve.values["ls"][i], values)
        point = curve.points()[i]
        assert point.test == pytest.approx(values.mean())
        assert point.low < point.test < point.high
    queries = curve.by_query("ls")
    np.testing.assert_allclose(queries, curve.values["ls"].mean(axis=1))
    assert curve.points()[2].p_smallest == pytest.approx(stats.ttest_rel(queries[2], queries[0]).pvalue)
    np.testing.assert_allclose(curve.overlap[2], 1.0)  # all queries, in every repeat


def test_rankers_are_compared_by_query_at_each_size() -> None:
    rows, test = rows_of(60, 0), rows_of(80, 1)

    def blind(train: fr.Candidates, valid: fr.Candidates | None, seed: int) -> Model:
        return fr.Linear().prepared(train, 0).at([0.0, 1.0, *[0.0] * (FEATURES - 1)])

    blind.validate = False  # type: ignore[attr-defined]
    curve = learning_curve({"ls": least_squares, "blind": blind}, rows, [8, 60], test, repeats=3, measure=NDCG)
    found = curve.differences()
    assert [(each.size, each.ranker, each.other) for each in found] == [(8, "ls", "blind"), (60, "ls", "blind")]
    for i, each in enumerate(found):
        one, other = (curve.by_query(name)[i] for name in ("ls", "blind"))
        assert each.difference == pytest.approx(one.mean() - other.mean())
        assert each.p == pytest.approx(stats.ttest_rel(one, other).pvalue)
        assert each.p_holm >= each.p
    assert found[1].p_holm < 0.001
    assert curve.best == "ls"
    flat = [point for point in curve.points() if point.ranker == "blind"]
    assert flat[0].test == flat[1].test
    assert flat[1].p_smallest == 1.0


@pytest.mark.parametrize("own_test", [True, False])
def test_the_outlook_on_rows_agrees_with_brute_force(own_test: bool) -> None:
    """The true gain by fresh training sets, many of them, on many test queries."""
    measure, wide = fr.parse_measure(NDCG), rows_of(1500, 5)

    def truth(queries: int) -> float:
        fits = (least_squares(rows_of(queries, 1000 + seed), None, 0) for seed in range(60))
        return float(np.mean([measure.value(model.score(wide), wide) for model in fits]))

    gain = truth(96) - truth(48)
    hits = 0
    for seed in range(12):
        test = rows_of(200, 300 + seed) if own_test else None
        sizes = [4, 6, 8, 11, 16, 23, 32, 48 if own_test else 38]
        curve = learning_curve({"ls": least_squares}, rows_of(48, 200 + seed), sizes, test, measure=NDCG, seed=seed)
        first = curve.outlook().gains[0]
        assert (first.before, first.after) == (48, 96)
        hits += first.low <= gain <= first.high
    assert hits >= 10


class EndedError(Exception):
    """What ends a curve in the middle, like a kill."""


@pytest.mark.parametrize("validate", [True, False])
def test_a_curve_that_was_ended_goes_on_to_the_same_digits(tmp_path: Path, validate: bool) -> None:
    rows, test = rows_of(40, 0), rows_of(20, 1)
    ranker = Ranker(fr.Network(2), "adam", "ranknet", validate, {"epochs": 3, "restarts": 1, "sweep": False})
    whole = learning_curve({"net": ranker}, rows, [4, 8, 16], test, repeats=2, measure=NDCG)
    told = []

    def ending(what: str, done: int, total: int, epoch: object) -> None:
        told.append(done)
        if done >= 3:
            raise EndedError

    with pytest.raises(EndedError):
        learning_curve(
            {"net": ranker},
            rows,
            [4, 8, 16],
            test,
            repeats=2,
            measure=NDCG,
            checkpoint=tmp_path,
            progress=ending,
            jobs=1,
        )
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.point")}
    assert len(kept) == 3
    again = learning_curve({"net": ranker}, rows, [4, 8, 16], test, repeats=2, measure=NDCG, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.values["net"], whole.values["net"])
    np.testing.assert_array_equal(again.training["net"], whole.training["net"])
    assert json.dumps(again.content()) == json.dumps(whole.content())
    assert all((tmp_path / name).stat().st_mtime_ns == time for name, time in kept.items())
    other = learning_curve({"net": ranker}, rows, [4, 8, 16], test, repeats=2, measure="AP", checkpoint=tmp_path)
    assert (other.values["net"] != whole.values["net"]).any()  # another measure is another curve


def test_a_damaged_point_is_made_again(tmp_path: Path) -> None:
    rows, test = rows_of(40, 0), rows_of(20, 1)
    options: dict[str, object] = {"repeats": 1, "measure": NDCG, "checkpoint": tmp_path}
    whole = learning_curve({"ls": least_squares}, rows, [8, 16], test, **options)  # type: ignore[arg-type]
    one = sorted(tmp_path.glob("*.point"))[0]
    data = bytearray(one.read_bytes())
    data[-1] ^= 1
    one.write_bytes(bytes(data))
    again = learning_curve({"ls": least_squares}, rows, [8, 16], test, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(again.values["ls"], whole.values["ls"])


@pytest.fixture
def listens() -> Iterator[None]:
    """Ctrl-C counts, also where a shell that runs the tests in the background turned it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listens")
def test_ctrl_c_ends_with_the_repeats_that_are_complete() -> None:
    calls = []

    def fit(train: fr.Candidates, valid: fr.Candidates | None, seed: int) -> Model:
        calls.append(train.queries)
        if len(calls) == 4:  # in the second repeat
            threading.Event().wait(0.2)  # until the main thread does nothing but wait
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            threading.Event().wait(0.2)
        return least_squares(train, None, seed)

    fit.validate = False  # type: ignore[attr-defined]
    rows, test = rows_of(40, 0), rows_of(20, 1)
    curve = learning_curve({"ls": fit}, rows, [8, 16], test, repeats=5, measure=NDCG, jobs=1)
    assert curve.interrupted
    assert 1 <= curve.repeats < 5
    whole = learning_curve({"ls": least_squares}, rows, [8, 16], test, repeats=5, measure=NDCG)
    np.testing.assert_array_equal(curve.values["ls"], whole.values["ls"][:, : curve.repeats])


def test_tuning_is_a_ranker_without_validation() -> None:
    rows, test = rows_of(60, 0), rows_of(30, 1)
    ranker = Ranker(fr.Linear(), "tune", options={"recipes": None, "folds": 2, "restarts": 1})
    assert not ranker.validate
    curve = learning_curve(ranker, rows, [8, 60], test, repeats=1, measure=NDCG)
    assert list(curve.values) == ["linear"]
    assert curve.points()[1].test > 0.6


def test_default_sizes_go_in_steps_of_the_root_of_two() -> None:
    sizes = default_sizes(5000)
    assert (sizes[0], sizes[-1], len(sizes)) == (16, 2048, 15)
    np.testing.assert_allclose(np.divide(sizes[1:], sizes[:-1]), np.sqrt(2), atol=0.06)
    assert default_sizes(10) == []


def test_a_geometric_mean_is_shown_on_its_own_scale() -> None:
    rows, test = rows_of(40, 0), rows_of(20, 1)
    curve = learning_curve({"ls": least_squares}, rows, [8, 40], test, repeats=1, measure="GMAP")
    draw = least_squares(rows, None, 0)
    assert curve.points()[1].test == pytest.approx(fr.parse_measure("GMAP").value(draw.score(test), test))


def test_nonsense_is_told_before_any_fit() -> None:
    rows = rows_of(30, 0)
    with pytest.raises(fr.UsageError, match="sizes go from 1 to 24 training queries here; got 4 to 99"):
        learning_curve({"ls": least_squares}, rows, [4, 99])
    with pytest.raises(fr.UsageError, match="at least one ranker"):
        learning_curve({}, rows)
    with pytest.raises(fr.InputError, match="at most 8 queries can be trained on"):
        learning_curve({"ls": least_squares}, rows_of(10, 0))
    with pytest.raises(fr.UsageError, match="repeats must be at least 1"):
        learning_curve({"ls": least_squares}, rows, repeats=0)


def test_an_error_of_a_fit_says_where() -> None:
    rows = fr.Candidates.of([0.0] * 60, group=[3] * 20, features=np.random.default_rng(0).normal(size=(60, 2)))
    with pytest.raises(fr.InputError, match=r"linear, 4 queries, repeat \d: no training query has documents"):
        learning_curve(Ranker(fr.Linear(), "lbfgs", "ranknet"), rows, [4])


def test_curves_that_were_drawn_alike_can_be_joined_and_cut() -> None:
    rows, test = rows_of(60, 0), rows_of(20, 1)
    rankers = {"one": Watched(), "two": Watched()}

    def of(names: list[str], sizes: list[int], seed: int = 0) -> LearningCurve:
        some = {name: rankers[name] for name in names}
        return learning_curve(some, rows, sizes, test, repeats=2, measure=NDCG, jobs=1, seed=seed)

    whole, one, two = of(["one", "two"], [8, 16, 32]), of(["one"], [8, 16, 32]), of(["two"], [16, 32])
    joined = one.beside(two)
    assert joined.sizes == (16, 32)
    assert str(joined.records()) == str(whole.at([32, 16]).records())  # of which NaN is a part
    assert joined.differences() == whole.at([16, 32]).differences()
    assert [point.gain for point in joined.points() if point.size == 16] == [0.0, 0.0]
    with pytest.raises(fr.UsageError, match="no size 64"):
        one.at([64])
    with pytest.raises(fr.UsageError, match="can't be compared"):
        one.beside(of(["two"], [8], seed=1))
    with pytest.raises(fr.UsageError, match="no size in common"):
        one.at([8]).beside(two)
