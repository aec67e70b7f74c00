"""telescope: each stage learns from the top of the one before, sampled again; a resumed run is the same run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment import telescope as module
from fliprank.experiment.telescope import telescope
from fliprank.models.cascade import Cascade
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Trees

QUICK: dict[str, Any] = {"objective": "ranknet", "epochs": 4, "restarts": 1, "sweep": False}


def rows(seed: int, queries: int = 30, size: int = 60) -> fr.Candidates:
    """Sixty documents per query, a quarter of them labelled: the first feature finds the top, the second orders it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size * queries, 4))
    found = x[:, 0] > 0.8
    labels = np.where(found, np.clip(np.round(1.5 + x[:, 1]), 1, 4), 0.0)
    labels[rng.random(len(x)) > 0.25] = np.nan
    qid, ids = np.repeat(np.arange(queries) + 1000 * seed, size), [f"d{i}" for i in range(len(x))]
    return fr.Candidates.of(labels, qid=qid, docids=ids, features=x)


def test_stages_are_trained_on_the_top_of_the_stage_before(monkeypatch: pytest.MonkeyPatch) -> None:
    train, valid, seen = rows(1), rows(2), []
    real = module.train

    def noting(model: fr.Model, rows: fr.Candidates, valid: fr.Candidates, **options: Any) -> Any:
        fit = real(model, rows, valid, **options)
        seen.append((rows, valid, fit.model))
        return fit

    monkeypatch.setattr(module, "train", noting)
    cascade = Cascade([fr.Linear(), fr.Linear(), fr.Network(2)], [60, 20, 8])
    fit = telescope(cascade, train, valid, sample=3, **QUICK)
    assert [type(stage) for stage in fit.model.stages] == [fr.Linear, fr.Linear, fr.Network]
    whole, held = train, valid
    for s, (drawn, checked, model) in enumerate(seen):
        if s:
            last = seen[s - 1][2]
            whole, held = (part.top(last.score(part), cascade.sizes[s]) for part in (whole, held))
        np.testing.assert_array_equal(checked.labels, held.labels)
        assert checked.docids.tolist() == held.docids.tolist()
        assert set(drawn.docids.tolist()) <= set(whole.docids.tolist())
        assert not np.isnan(drawn.labels).any()
        labelled = int((~np.isnan(whole.labels)).sum())
        rated = np.bincount(whole.query_of_rows()[~np.isnan(whole.labels)], minlength=whole.queries)
        wanted = np.minimum(3 * rated, whole.sizes - rated)
        np.testing.assert_array_equal(drawn.sizes, rated + wanted)
        kept = set(np.array(whole.docids.tolist())[~np.isnan(whole.labels)])
        assert kept <= set(drawn.docids.tolist())
        assert len(kept) == labelled
        np.testing.assert_array_equal(fit.model.stages[s].params.values, model.params.values)


def test_a_stage_s_measure_is_that_of_the_whole_cascade_so_far() -> None:
    train, valid = rows(1), rows(2)
    fit = telescope(Cascade([fr.Linear(), fr.Linear(), fr.Network(2)], [60, 30, 10]), train, valid, **QUICK)
    measure = fr.parse_measure("nDCG(dcg='exp-log2')@10")
    for stage, scores in zip(fit.stages, fit.model.by_stage(valid), strict=True):
        assert measure.per_query(scores, valid).mean() == pytest.approx(stage.best.valid)
    assert fit.best == fit.stages[-1].best


def test_a_later_stage_may_be_of_other_features_and_other_objectives() -> None:
    cascade = Cascade([FeatureSubset(fr.Linear(), ["1"]), fr.Network(3)], [60, 20])
    options = [{"method": "exact"}, {"objective": "softndcg(sigma=0.5)", "epochs": 30}]
    common = {**QUICK, "objective": "mse"}
    del common["epochs"]
    fit = telescope(cascade, rows(1, 60), rows(2, 60), options=options, **common)
    assert [told["method"] for told in fit.settings["stages"]] == ["exact", "lbfgs"]
    assert fit.stages[1].settings["objective"].startswith("softndcg")
    assert fit.stages[1].best.valid > fit.stages[0].best.valid + 0.05


def test_a_stage_can_be_taken_as_it_is_and_another_be_trees() -> None:
    pytest.importorskip("lightgbm")
    train, valid = rows(1), rows(2)
    first = fr.Linear().prepared(train, 0).at([0, 1, 0, 0, 0])
    cascade = Cascade([first, Trees(rounds=30, leaves=7, patience=10)], [60, 20])
    fit = telescope(cascade, train, valid, options=[None, {"objective": "softndcg", "sweep": False}])
    assert fit.stages[0].stopped == "not trained"
    np.testing.assert_array_equal(fit.model.stages[0].params.values, first.params.values)
    assert fit.stages[1].best.valid > fit.stages[0].best.valid + 0.1
    assert fit.stages[1].best.number == fit.settings["stages"][1]["trees"] > 0
    assert fit.settings["stages"][1]["objective"] == "softndcg"


def test_the_same_seed_gives_the_same_cascade_and_another_another_one() -> None:
    cascade, train, valid = Cascade([fr.Linear(), fr.Network(2)], [60, 20]), rows(1), rows(2)
    a, b, c = (telescope(cascade, train, valid, seed=seed, **QUICK).model.params.values for seed in (4, 4, 5))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_unlabelled_rows_are_drawn_anew_at_each_stage_and_for_validation_once() -> None:
    train, valid = rows(1), rows(2)
    fit = telescope(Cascade([fr.Linear(), fr.Linear()], [60, 59]), train, valid, sample=0.5, valid_sample=5, **QUICK)
    # Nearly the same rows reach both stages: with the same draw they would have nearly the same scaler.
    first, second = (stage.model.scaler.mean for stage in fit.stages)
    assert np.abs(first - second).max() > 0.005
    for bad in ("many", "-1"):
        with pytest.raises(fr.UsageError):
            telescope(Cascade([fr.Linear()], [60]), train, valid, sample=bad, **QUICK)


def test_progress_is_by_stage() -> None:
    told: list[Any] = []

    @contextmanager
    def progress(name: str) -> Iterator[Any]:
        told.append(name)
        yield lambda what, done, total, epoch: told.append(epoch.number)
        told.append("done")

    telescope(Cascade([fr.Linear(), fr.Linear()], [60, 20]), rows(1), rows(2), progress=progress, **QUICK)
    names = [entry for entry in told if isinstance(entry, str)]
    assert names == ["stage 1 of 2, top 60", "done", "stage 2 of 2, top 20", "done"]
    assert told[1:3] == [0, 1]


@pytest.mark.parametrize("method", ["lbfgs", "adam", "taylor2008", "exact"])
def test_a_training_killed_in_several_stages_is_the_same_run(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightgbm")
    last = fr.Linear() if method == "exact" else fr.Network(2)  # a net has no exact lines: they are slow to bracket
    cascade = Cascade([fr.Linear(), Trees(rounds=5, leaves=7, rate=0.1, leaf_rows=20), last], [60, 30, 10])
    train, valid, options = rows(1, 15), rows(2, 15), {**QUICK, "method": method}
    whole = telescope(cascade, train, valid, **options)
    seen: list[tuple[str, int]] = []

    def killed_at(stage: str, number: int) -> Any:
        @contextmanager
        def progress(name: str) -> Iterator[Any]:
            def report(what: str, done: int, total: int, epoch: fr.Epoch) -> None:
                seen.append((name[:7], epoch.number))
                if (name[:7], epoch.number) == (stage, number):
                    raise RuntimeError("killed")

            yield report

        return progress

    for stage, number in (("stage 1", 1), ("stage 1", 2), ("stage 3", 1)):
        with pytest.raises(RuntimeError, match="killed"):
            telescope(
                cascade, train, valid, checkpoint=tmp_path, resume=True, progress=killed_at(stage, number), **options
            )
    monkeypatch.setattr(Trees, "sprouts", lambda *_: pytest.fail("the trees were there"))
    fit = telescope(cascade, train, valid, checkpoint=tmp_path, resume=True, progress=killed_at("", 0), **options)
    assert len(seen) == len(set(seen)), "no epoch is done twice"
    np.testing.assert_array_equal(fit.model.params.values, whole.model.params.values)
    assert fit.model.score(valid).tolist() == whole.model.score(valid).tolist()
    for mine, theirs in zip(fit.stages, whole.stages, strict=True):
        np.testing.assert_equal([astuple(e) for e in mine.trail], [astuple(e) for e in theirs.trail])
        assert (mine.best.number, mine.stopped) == (theirs.best.number, theirs.stopped)
    with pytest.raises(fr.InputError, match="of another run"):
        telescope(cascade, rows(3), valid, checkpoint=tmp_path, resume=True, **options)


def test_an_interrupted_training_keeps_the_stages_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.train

    def interrupted(model: fr.Model, *args: Any, **options: Any) -> Any:
        fit = real(model, *args, **options)
        return fit if isinstance(model, fr.Linear) else module.replace(fit, stopped="interrupted")

    monkeypatch.setattr(module, "train", interrupted)
    cascade = Cascade([fr.Linear(), fr.Network(2), fr.Linear()], [60, 20, 10])
    fit = telescope(cascade, rows(1), rows(2), **QUICK)
    assert (fit.stopped, fit.model.sizes) == ("interrupted", (60, 20))


def test_errors_say_which_stage() -> None:
    cascade = Cascade([fr.Linear(), FeatureSubset(fr.Linear(), ["nothing"])], [60, 20])
    with pytest.raises(fr.InputError, match="stage 2 of 2, top 20: no feature is called 'nothing'"):
        telescope(cascade, rows(1), rows(2), **QUICK)
    with pytest.raises(fr.UsageError, match="options for 1 stages"):
        telescope(cascade, rows(1), rows(2), options=[{}], **QUICK)


def test_a_warm_stage_starts_where_the_one_before_ended_and_is_never_worse_on_validation_queries() -> None:
    train, valid = rows(1), rows(2)
    stages = [fr.Network(3), fr.Network(3), FeatureSubset(fr.Linear(), ["1"]), FeatureSubset(fr.Linear(), ["1"])]
    fit = telescope(Cascade(stages, [60, 30, 12, 10]), train, valid, warm=True, **QUICK)
    found = [stage.best.valid for stage in fit.stages]
    first = [stage.trail[0].valid for stage in fit.stages]
    assert first[1] == pytest.approx(found[0])
    assert first[3] == pytest.approx(found[2])
    assert found[1] >= found[0]
    assert found[3] >= found[2]
    other = telescope(Cascade([fr.Network(3), fr.Network(2)], [60, 30]), train, valid, warm=True, **QUICK)
    assert other.stages[1].trail[0].valid != pytest.approx(other.stages[0].best.valid)  # no model like the one before


def test_only_stages_that_help_are_kept_if_so_asked() -> None:
    train, valid = rows(1), rows(2)
    bad = fr.Linear().prepared(train, 0).at([0, -1, -1, 0, 0])
    cascade = Cascade([fr.Linear(), bad, FeatureSubset(fr.Linear(), ["2"])], [60, 30, 15])
    fit = telescope(cascade, train, valid, options=[{}, None, {}], only_better=True, **QUICK)
    assert fit.model.sizes == (60, 15) or fit.model.sizes == (60,)
    assert all(after.best.valid > before.best.valid for before, after in zip(fit.stages, fit.stages[1:], strict=False))
    assert len(telescope(cascade, train, valid, options=[{}, None, {}], **QUICK).stages) == 3


def test_blocks_give_the_same_cascade_as_all_rows_at_once() -> None:
    train, valid = rows(1), rows(2)
    cascade = Cascade([fr.Linear(), fr.Linear(), fr.Network(2)], [60, 20, 8])
    whole = telescope(cascade, train, valid, sample=None, **QUICK)

    def blocks() -> Iterator[fr.Candidates]:
        for first in range(0, train.queries, 7):
            yield train.select(np.arange(first, min(first + 7, train.queries)))

    parts = telescope(cascade, blocks, valid, sample=None, **QUICK)
    np.testing.assert_array_equal(parts.model.params.values, whole.model.params.values)
    drawn = telescope(cascade, blocks, valid, sample=3, **QUICK)
    assert drawn.model.params.values.tolist() != whole.model.params.values.tolist()
    again = telescope(cascade, blocks, valid, sample=3, **QUICK)
    np.testing.assert_array_equal(drawn.model.params.values, again.model.params.values)
    with pytest.raises(fr.InputError, match="no blocks"):
        telescope(cascade, list, valid, **QUICK)
    ready = Cascade([whole.model.stages[0], *cascade.stages[1:]], cascade.sizes)
    later = telescope(ready, blocks, valid, options=[None, {}, {}], sample=None, **QUICK)
    np.testing.assert_array_equal(later.model.params.values, whole.model.params.values)


def test_in_blocks_a_stage_scores_only_what_reached_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    train, scored = rows(1), list[int]()
    score = fr.Linear.score

    def counted(self: fr.Linear, candidates: fr.Candidates) -> fr.Floats:
        scored.append(len(candidates))
        return score(self, candidates)

    first = fr.Linear().prepared(train, 0)
    cascade = Cascade([first, first, first, first], [60, 20, 8, 4])
    monkeypatch.setattr(fr.Linear, "score", counted)
    telescope(cascade, lambda: [train], options=[None, None, None, {}], sample=None, **QUICK)
    assert [len(train), 20 * train.queries, 8 * train.queries] == scored[:3]
