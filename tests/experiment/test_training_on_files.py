"""train, telescope, evaluate and the commands on rows in files do what they do on the same rows in memory."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.cli import run
from fliprank.cli.options import ModelOptions
from fliprank.data.file_rows import FileRows
from fliprank.data.ids import Ids
from fliprank.data.memory import AT_ONCE
from fliprank.data.scattered import ScatteredRows
from fliprank.errors import UsageError
from fliprank.experiment.cascade_analysis import after_stages
from fliprank.experiment.cutoffs import check_for_cutoffs
from fliprank.experiment.task import Queries, Task, fold_tasks
from fliprank.models.registry import model_names
from fliprank.optimize.anywhere import score_deviation

pytestmark = pytest.mark.long


def made(seed: int, queries: int = 40) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * 12, 4))
    hidden = matrix @ [2.0, -1.0, 0.5, 0.0] + matrix[:, 0] * matrix[:, 1] + rng.normal(size=len(matrix))
    labels = np.where(rng.random(len(matrix)) < 0.3, np.nan, np.digitize(hidden, [0.5, 2.0]))
    ids = [f"d{i}" for i in range(len(matrix))]
    qids = np.repeat([f"{seed}.{i}" for i in range(queries)], 12)
    return fr.Candidates.of(labels, qid=qids, docids=ids, features=matrix)


TRAIN, VALID = made(1), made(2, 20)


@pytest.fixture
def files(tmp_path: Path) -> tuple[FileRows, FileRows]:
    """The same rows in files, in windows of one or two queries."""
    for name, rows in (("train", TRAIN), ("valid", VALID)):
        fr.convert(rows, tmp_path / name, shard=2000)
    train, valid = (fr.open_rows(tmp_path / name, memory=20_000) for name in ("train", "valid"))
    assert min(len(train.windows), len(valid.windows)) > 10
    return train, valid


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "ranknet", "restarts": 3},
        {"objective": "softndcg(sigma=0.3)", "model": fr.Network(2), "epochs": 4, "restarts": 2},
        {"objective": "lambdarank@5", "epochs": 3, "restarts": 2, "sample": "rated"},
        {"method": "exact", "directions": "axes", "epochs": 2, "restarts": 2},
        {"objective": "ranknet", "polish": True, "restarts": 1, "model": fr.FeatureSubset(fr.Linear(), ["1", "3"])},
        {"method": "taylor2006", "objective": "ranknet", "epochs": 2, "rate": 0.01, "restarts": 1},
    ],
)
def test_a_training_is_the_same(files: tuple[FileRows, FileRows], given: dict[str, Any]) -> None:
    model = given.get("model", fr.Linear())
    options = {name: value for name, value in given.items() if name != "model"}
    whole, parts = (fr.train(model, *rows, measure="nDCG@5", **options) for rows in ((TRAIN, VALID), files))
    assert len(parts.trail) == len(whole.trail)
    assert parts.settings == whole.settings
    np.testing.assert_allclose(parts.model.params.values, whole.model.params.values, rtol=1e-7, atol=1e-9)
    assert parts.best.valid == pytest.approx(whole.best.valid, abs=1e-9)
    if given.get("method") == "exact":
        assert parts.model.params.values.tolist() == whole.model.params.values.tolist()
        assert repr(parts.trail) == repr(whole.trail)


def test_a_cascade_is_the_same(files: tuple[FileRows, FileRows]) -> None:
    cascade = fr.Cascade([fr.FeatureSubset(fr.Linear(), "1"), fr.Linear(), fr.Network(2)], sizes=[12, 8, 4])
    how: dict[str, Any] = {"restarts": 1, "epochs": 3, "objective": "ranknet", "measure": "nDCG@4", "seed": 5}
    for more in ({}, {"valid_sample": 3, "only_better": True}):
        whole, parts = (fr.telescope(cascade, *rows, **how, **more) for rows in ((TRAIN, VALID), files))
        np.testing.assert_allclose(parts.model.params.values, whole.model.params.values, rtol=1e-8, atol=1e-10)
        assert [fit.best.valid for fit in parts.stages] == pytest.approx([fit.best.valid for fit in whole.stages])
    assert isinstance(whole.model, fr.Cascade)
    near, far = (after_stages(whole.model, rows, "nDCG@4") for rows in (VALID, files[1]))
    for one, other in zip(near, far, strict=True):
        assert (other.value, other.interval, other.p, other.lost) == (one.value, one.interval, one.p, one.lost)


def test_measures_are_identical(files: tuple[FileRows, FileRows]) -> None:
    model = fr.Linear().prepared(TRAIN, 1)
    measures = ["AP", "nDCG@10", "RR", "GMAP", "Bpref"]
    for how in ({}, {"convention": "trec_eval"}, {"convention": "lightgbm"}, {"ties": "average"}):
        one, other = (fr.evaluate(model, rows, measures[1:2] if how else measures, **how) for rows in (VALID, files[1]))
        assert one.means() == other.means()
        assert other.to_frame().equals(one.to_frame())
    run_of = {"r": fr.Run(VALID.offsets, VALID.qids, VALID.document_ids(), model.score(VALID))}
    assert fr.evaluate(files[1], run_of, measures).means() == fr.evaluate(VALID, run_of, measures).means()
    with pytest.raises(UsageError, match="random order"):
        fr.evaluate(model, files[1], "AP", ties="random")
    assert score_deviation(model, files[0]) == score_deviation(model, TRAIN)


def test_what_needs_rows_in_memory_says_so(files: tuple[FileRows, FileRows]) -> None:
    for model in (fr.Trees(), "auto", fr.Stack(fr.Linear())):
        with pytest.raises(UsageError, match="rows in memory only"):
            fr.train(model, *files)
    with pytest.raises(UsageError, match="rows in memory only"):
        fr.train(fr.Trees(), TRAIN, files[1])
    fit = fr.train(fr.Linear(), *files, epochs=1, restarts=1)
    with pytest.raises(UsageError, match="does not know its rows"):
        fit.ranges()


IN_OTHER_WAYS = ("cascade", "trees", "auto")
"""Models that can be made without looking at rows, and are refused, if at all, when they are trained."""


@pytest.mark.parametrize("name", model_names())
def test_a_model_of_any_name_is_trained_on_files_or_refused_at_once(
    files: tuple[FileRows, FileRows], name: str
) -> None:
    """They have few features: a stack would look at them one by one."""
    taken = name in ("linear", "network")
    with nullcontext() if taken else pytest.raises(UsageError):
        fr.train(name, files[0], objective="ranknet", epochs=1, restarts=1)
    with nullcontext() if taken or name in IN_OTHER_WAYS else pytest.raises(UsageError):
        ModelOptions(model=name).make(files[0], "linear")  # type: ignore[arg-type]


def test_what_a_later_stage_can_not_be_trained_on_is_refused_before_the_first(files: tuple[FileRows, FileRows]) -> None:
    cascade, told = fr.Cascade([fr.Linear(), fr.Trees(leaves=3)], sizes=[12, 4]), list[str]()

    def progress(name: str) -> Any:
        told.append(name)
        return nullcontext()

    for rows in (files, (TRAIN, files[1]), (lambda: [TRAIN], files[1])):
        with pytest.raises(UsageError, match="trees is fitted to rows in memory only"):
            fr.telescope(cascade, *rows, progress=progress)
    assert told == []


class Elsewhere(ScatteredRows):
    """Rows that are neither in memory nor in files, of which nothing but what all such rows have can be asked."""

    def __init__(self, rows: FileRows) -> None:
        self.rows, self.feature_names, self.digest = rows, rows.feature_names, rows.digest
        self.row_counts, self.query_counts = rows.row_counts, rows.query_counts

    @property
    def qids(self) -> Ids:
        return self.rows.qids

    def each(self, function: Any, *given: Any, own: Any = ()) -> Any:
        raise AssertionError("nothing is to be read")

    rewritten = each


def test_cutoffs_and_folds_of_rows_elsewhere_are_refused_before_training(files: tuple[FileRows, FileRows]) -> None:
    near = Queries(VALID)
    for far in (files[0], Elsewhere(files[0])):
        rows = Queries(far)  # type: ignore[arg-type]
        for task, which in ((Task(rows), "training"), (Task(near, rows), "validation")):
            with pytest.raises(UsageError, match=rf"the {which} rows are in files or on a cluster: give --valid"):
                check_for_cutoffs(task)
        assert check_for_cutoffs(Task(rows, near)).valid is near
    with pytest.raises(UsageError, match="rows on a cluster are not parted into folds"):
        next(fold_tasks(Task(rows), 3))
    assert [fold.train.rows.queries for fold in fold_tasks(Task(Queries(files[0])), 4)] == [20] * 4  # type: ignore


@pytest.mark.parametrize("rows", [(TRAIN, "valid"), ("train", VALID), ("train", "valid")])
def test_no_more_trials_than_windows_side_by_side(files: tuple[FileRows, FileRows], rows: Any) -> None:
    both = [files[k] if isinstance(each, str) else each for k, each in enumerate(rows)]
    threads = set[int]()

    def progress(*told: Any) -> None:
        threads.add(threading.get_ident())

    how: dict[str, Any] = {"objective": "ranknet", "epochs": 1, "restarts": 12, "l2": 0.1, "jobs": 12}
    fr.train(fr.Linear(), *both, progress=progress, **how)
    assert 1 <= len(threads) <= AT_ONCE


def test_a_training_on_files_resumes_bit_for_bit(files: tuple[FileRows, FileRows], tmp_path: Path) -> None:
    how: dict[str, Any] = {"objective": "lambdarank@5", "epochs": 6, "restarts": 1, "sweep": False, "seed": 3}
    whole = fr.train(fr.Linear(), *files, **how)
    seen = threading.Event()

    def stop(*told: Any) -> None:
        if told[3] is not None and told[3].number == 2 and not seen.is_set():
            seen.set()
            raise ValueError("killed")

    with pytest.raises(ValueError, match="killed"):
        fr.train(fr.Linear(), *files, checkpoint=tmp_path / "c", progress=stop, **how)
    again = fr.train(fr.Linear(), *files, checkpoint=tmp_path / "c", resume=True, **how)
    assert again.model.params.values.tolist() == whole.model.params.values.tolist()
    assert repr(again.trail) == repr(whole.trail)


def test_a_training_is_resumed_in_other_windows_of_other_files(
    files: tuple[FileRows, FileRows], tmp_path: Path
) -> None:
    """Rows that were drawn, too: what tells them from others is what they hold."""
    how: dict[str, Any] = {"objective": "ranknet", "restarts": 1, "sweep": False, "sample": "rated", "seed": 3}
    fr.train(fr.Linear(), *files, checkpoint=tmp_path / "c", epochs=4, **how)
    fr.convert(TRAIN, tmp_path / "again", shard=3000)
    train, valid = fr.open_rows(tmp_path / "again", memory=400_000), fr.open_rows(tmp_path / "valid", memory=10**9)
    assert len(train.windows) != len(files[0].windows)
    fit = fr.train(fr.Linear(), train, valid, checkpoint=tmp_path / "c", resume=True, epochs=4, **how)
    assert repr(fit.trail) == repr(fr.train(fr.Linear(), *files, epochs=4, **how).trail)


def test_the_commands_take_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fr.write_letor("train.txt", TRAIN)
    fr.write_letor("valid.txt", VALID)
    assert run(["convert", "train.txt", "--out", "shards", "--shard", "1kB", "--quiet"]) == 0
    assert run(["convert", "valid.txt", "--out", "valid-shards", "--to", "parquet", "--quiet"]) == 0
    common = ["--objective", "ranknet", "--epochs", "3", "--restarts", "1", "--quiet"]
    assert run(["train", "train.txt", "--valid", "valid.txt", "--out", "near", *common]) == 0
    assert run(["train", "shards", "--valid", "valid-shards", "--memory", "1MB", "--out", "far", *common]) == 0
    near, far = (json.loads(Path(name, "result.json").read_text()) for name in ("near", "far"))
    assert (far["train"], far["valid"]) == (near["train"], near["valid"])
    for rows, out in (("train.txt", "a.run"), ("shards", "b.run"), ("shards/*.rows", "c.run")):
        assert run(["rank", "near", rows, "--out", out, "--quiet"]) == 0
        assert Path(out).read_bytes() == Path("a.run").read_bytes()
    assert run(["rank", "near", "train.txt", "--memory", "1MB", "--out", "d.run", "--quiet"]) == 0
    assert Path("d.run").read_bytes() == Path("a.run").read_bytes()
    assert run(["evaluate", "shards", "a.run", "-m", "AP", "--quiet"]) == 0
    assert run(["train", "shards", "--model", "trees", "--out", "no", "--quiet"]) == 2
    cascade = ["--model", "cascade", "--stages", "12,6"]
    for refused in (
        ["--model", "stack"],
        ["--model", "taylor2006-2"],
        [*cascade, "--stage-model", "linear,trees"],
        [*cascade, "--choose-cutoffs"],
        [*cascade, "--choose-cutoffs", "--valid", "valid-shards"],
        [*cascade, "--choose-cutoffs", "--valid", "valid.txt", "--memory", "1GB"],
    ):
        assert run(["train", "shards", *refused, "--out", "no", *common]) == 2
        assert not list(Path("no").rglob("*.checkpoint"))
    assert run(["train", "shards", *cascade, "--choose-cutoffs", "--valid", "valid.txt", "--out", "cut", *common]) == 0
