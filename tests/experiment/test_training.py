"""train: the objective is fitted, validation queries choose, nothing is lost, and bad input says what is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.optimize.methods import METHODS

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "letor" / "MQ2008"


def rows(queries: int = 40, seed: int = 0, features: int = 4, noise: float = 0.5) -> fr.Candidates:
    """Queries of ten documents whose labels follow the first feature, less the second."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(10 * queries, features))
    labels = np.clip(np.round(x[:, 0] - x[:, 1] + noise * rng.normal(size=len(x))), 0, 2)
    ids = [f"d{i}" for i in range(len(x))]
    qid = np.repeat(np.arange(queries) + 1000 * seed, 10)
    return fr.Candidates.of(labels, qid=qid, docids=ids, features=x)


@pytest.mark.parametrize(
    "objective",
    ["mse", "ranknet", "lambdarank", "lambdarank@10", "softndcg(sigma=0.3)", "softap(sigma=0.3)"],
)
@pytest.mark.parametrize("model", [fr.Linear(), fr.Network(hidden=3)], ids=["linear", "network"])
def test_every_objective_teaches_every_model(objective: str, model: fr.Model) -> None:
    fit = fr.train(model, rows(), rows(20, seed=1), objective=objective, sweep=False)
    assert fit.best.valid > fit.trail[0].valid
    test, measure = rows(50, seed=2), fr.parse_measure("nDCG(dcg='exp-log2')@10")
    assert test.features is not None
    truth = measure.per_query(test.features[:, 0] - test.features[:, 1], test).mean()
    assert measure.per_query(fit.model.score(test), test).mean() > truth - 0.04


def test_the_epoch_is_chosen_by_the_measure_on_validation_queries() -> None:
    valid = rows(10, seed=1, noise=2)
    fit = fr.train(fr.Network(hidden=8), rows(15, noise=2), valid, objective="ranknet", measure="AP", patience=None)
    assert fit.best.valid == max(epoch.valid for epoch in fit.trail)
    assert fit.best.number < len(fit.trail) - 1
    values = fr.parse_measure("AP").per_query(fit.model.score(valid), valid)
    assert values.mean() == pytest.approx(fit.best.valid)


def test_the_same_seed_gives_the_same_model_whatever_the_number_of_jobs() -> None:
    fits = [fr.train(fr.Network(hidden=2), rows(), rows(20, seed=1), epochs=5, jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_array_equal(fits[0].model.params.values, fits[1].model.params.values)
    assert fits[0].settings == fits[1].settings
    other = fr.train(fr.Network(hidden=2), rows(), rows(20, seed=1), epochs=5, seed=3)
    assert not np.array_equal(other.model.params.values, fits[0].model.params.values)


def test_what_the_user_gives_is_not_swept() -> None:
    fit = fr.train(fr.Linear(), rows(), rows(20, seed=1), objective="softndcg(sigma=0.7)", l2=0.5, restarts=1)
    assert fit.settings["trials"] == 1
    assert (fit.settings["l2"], fit.settings["objective"]) == (0.5, "softndcg(sigma=0.7)")
    swept = fr.train(fr.Linear(), rows(), rows(20, seed=1), objective="softndcg", restarts=1, epochs=3)
    assert swept.settings["trials"] == 9


def test_unlabelled_rows_are_drawn_as_asked() -> None:
    full = rows()
    hidden = np.array(full.labels)
    hidden[::2] = np.nan
    part = fr.Candidates.of(hidden, qid=full.query_of_rows(), features=full.features)
    for sample in ("rated", "1", 0.5):
        assert fr.train(fr.Linear(), part, sweep=False, sample=sample, epochs=3).best.train > 0
    with pytest.raises(fr.UsageError, match="expected 'rated', 'average', or a number"):
        fr.train(fr.Linear(), part, sample="many")


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_training_goes_on_to_the_same_end(tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {"objective": "ranknet", "method": method, "sweep": False, "patience": None}
    options |= {"steps": 6} if method == "grid" else {"epochs": 6}
    sets = rows(features=2), rows(20, seed=1, features=2)
    last = 1 if METHODS[method].direct else 3  # searches of the measure itself may be done soon
    whole = fr.train(fr.Linear(), *sets, **options)

    def stop(what: str, run: int, runs: int, epoch: object) -> None:
        if epoch.number == last:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fr.train(fr.Linear(), *sets, **options, checkpoint=tmp_path, progress=stop)
    again = fr.train(fr.Linear(), *sets, **options, checkpoint=tmp_path, resume=True)
    assert repr(again.trail[: last + 1]) == repr(whole.trail[: last + 1])
    assert len(again.trail) > last + 1
    assert repr(again.trail) == repr(whole.trail)
    assert again.model.params.values.tolist() == whole.model.params.values.tolist()
    done = fr.train(fr.Linear(), *sets, **options, checkpoint=tmp_path, resume=True)
    assert repr(done.trail) == repr(again.trail)


def test_ascents_of_the_measure_start_several_times_and_are_averaged_or_the_best_is_taken() -> None:
    sets = rows(20, noise=2), rows(20, seed=1, noise=2)
    options: dict[str, Any] = {"method": "exact", "measure": "AP", "epochs": 2, "restarts": 3}
    mean, best = (fr.train(fr.Linear(), *sets, **options, average=average) for average in (True, False))
    assert (mean.settings["restarts"], mean.settings["averaged"]) == (3, True)
    assert (best.settings["restarts"], best.settings["averaged"]) == (3, False)
    assert not np.array_equal(mean.model.params.values, best.model.params.values)
    for fit in (mean, best):
        assert fr.parse_measure("AP").per_query(fit.model.score(sets[1]), sets[1]).mean() == pytest.approx(
            fit.best.valid
        )
    alone = fr.train(fr.Linear(), *sets, **{**options, "restarts": 1})
    assert best.best.valid >= alone.best.valid
    assert fr.train(fr.Linear(), sets[0], **options).settings["restarts"] == 3
    assert fr.train(fr.Linear(), sets[0], **options, sweep=False).settings["restarts"] == 1


def test_polish_climbs_the_measure_after_the_gradient_as_far_as_validation_queries_approve(tmp_path: Path) -> None:
    sets = rows(20, noise=2), rows(20, seed=1, noise=2)
    options: dict[str, Any] = {"objective": "ranknet", "measure": "AP", "sweep": False}
    plain, fit = fr.train(fr.Linear(), *sets, **options), fr.train(fr.Linear(), *sets, **options, polish=True)
    assert (fit.settings["polished"], plain.settings["polished"]) == (True, False)
    assert fit.best.train >= plain.best.train
    assert fit.best.valid >= plain.best.valid
    assert len(fit.trail) > len(plain.trail)
    assert fit.trail[fit.best.number] == fit.best
    alone = fr.train(fr.Linear(), sets[0], **options, polish=True, checkpoint=tmp_path)
    assert alone.best.train > fr.train(fr.Linear(), sets[0], **options).best.train
    again = fr.train(fr.Linear(), sets[0], **options, polish=True, checkpoint=tmp_path, resume=True)
    assert repr(again.trail) == repr(alone.trail)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    fr.train(fr.Linear(), rows(), sweep=False, epochs=2, checkpoint=tmp_path)
    with pytest.raises(fr.InputError, match="checkpoint is of another run"):
        fr.train(fr.Linear(), rows(seed=5), sweep=False, epochs=2, checkpoint=tmp_path, resume=True)


def test_bad_input_says_what_is_wrong() -> None:
    good = rows()
    flat = fr.Candidates.of(np.zeros(len(good)), qid=good.query_of_rows(), features=good.features)
    with pytest.raises(fr.InputError, match="nothing to learn"):
        fr.train(fr.Linear(), flat)
    with pytest.raises(fr.InputError, match="features"):
        fr.train(fr.Linear(), good, rows(5, seed=1, features=3))
    with pytest.raises(fr.InputError, match="features"):
        fr.train(fr.Linear(), fr.Candidates.of([1, 0]))
    broken = np.array(good.features)
    broken[3, 1] = np.nan
    with pytest.raises(fr.InputError, match="2"):
        fr.train(fr.Linear(), fr.Candidates.of(good.labels, qid=good.query_of_rows(), features=broken))
    with pytest.raises(fr.UsageError, match="unknown objective"):
        fr.train(fr.Linear(), good, objective="softdcg")
    with pytest.raises(fr.UsageError, match="unknown method 'xyz'; there are adam, auto"):
        fr.train(fr.Linear(), good, method="xyz")
    with pytest.raises(fr.UsageError, match="lbfgs has no setting rate"):
        fr.train(fr.Linear(), good, objective="ranknet", rate=0.1)
    with pytest.raises(fr.UsageError, match="epochs of exact is a whole number, not 'many'"):
        fr.train(fr.Linear(), good, method="exact", epochs="many")
    with pytest.raises(fr.UsageError, match="directions of exact is a word, not 3"):
        fr.train(fr.Linear(), good, method="exact", directions=3)
    with pytest.raises(fr.UsageError, match="a full grid is for 1 to 3 free parameters, not 5"):
        fr.train(fr.Linear(), good, method="grid")


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_constant_and_huge_features_do_no_harm(scale: float) -> None:
    good = rows()
    wild = np.column_stack([good.features, np.full(len(good), 7.0), scale * good.features[:, 2]])  # type: ignore[index]
    part = fr.Candidates.of(good.labels, qid=good.query_of_rows(), features=wild)
    assert fr.train(fr.Linear(), part, sweep=False, epochs=20).best.train > 0.85


def test_a_single_query_can_be_learnt() -> None:
    assert fr.train(fr.Linear(), rows(1), sweep=False, objective="ranknet").best.train == pytest.approx(1)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fliprank", *arguments], capture_output=True, text=True, check=False)


def test_the_command_line_trains_ranks_and_evaluates(tmp_path: Path) -> None:
    for name, part in (("train", rows()), ("vali", rows(20, seed=1)), ("test", rows(20, seed=2))):
        fr.write_letor(tmp_path / f"{name}.txt", part)
    paths = {name: str(tmp_path / f"{name}.txt") for name in ("train", "vali", "test")}
    out = tmp_path / "fit"
    done = command("train", paths["train"], "--valid", paths["vali"], "--test", paths["test"], "--out", str(out),
                   "--model", "network", "--hidden", "3", "--epochs", "8", "--restarts", "1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads((out / "result.json").read_text())
    measure = "nDCG(dcg='exp-log2')@10"
    assert {"measure", "train", "valid", "test", "params", "tried", "settings", "proof"} <= set(told)
    assert told["settings"]["method"] == "adam"
    test = fr.read_letor(paths["test"])
    model = fr.load_model(out / "model")
    assert fr.evaluate(model, test, measure).mean("model", measure) == pytest.approx(told["test"][measure])
    assert command("rank", str(out / "model"), paths["test"], "--out", str(tmp_path / "run.trec")).returncode == 0
    qrels = fr.Qrels(test.offsets, test.qids, test.docids, test.labels)
    again = fr.evaluate(qrels, tmp_path / "run.trec", measure).means()
    assert again[str(tmp_path / "run.trec")][measure] == pytest.approx(told["test"][measure])


def test_the_command_line_climbs_the_measure_itself(tmp_path: Path) -> None:
    fr.write_letor(tmp_path / "train.txt", rows())
    fr.write_letor(tmp_path / "vali.txt", rows(20, seed=1))
    sets = [str(tmp_path / "train.txt"), "--valid", str(tmp_path / "vali.txt"), "--measure", "AP"]
    for name, more in (
        ("exact", ["--set", "bag=0.5", "--restarts", "2"]),
        ("line", ["--set", "samples=5", "--polish"]),
    ):
        done = command("train", *sets, "--method", name, "--epochs", "2", *more, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        told = json.loads((tmp_path / name / "result.json").read_text())
        assert told["settings"]["method"] == name
        assert told["settings"]["polished"] == ("--polish" in more)
        assert told["valid"]["AP"] > 0.8
    assert "exact" in command("train", "--help").stdout


def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    fr.write_letor(tmp_path / "train.txt", rows(200))
    fr.write_letor(tmp_path / "vali.txt", rows(50, seed=1))
    arguments = ["train", "train.txt", "--valid", "vali.txt", "--out", "fit", "--model", "network", "--epochs", "5000"]
    command = [sys.executable, "-m", "fliprank", *arguments, "--restarts", "9"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(600):
            time.sleep(0.1)
            if list(tmp_path.glob("fit/checkpoint/run-002*")):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "fliprank: interrupted: fit/model is the best so far" in err
    assert f"to go on: fliprank {' '.join(arguments)} --restarts 9 --resume" in err
    assert "Traceback" not in err
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert told["settings"]["stopped"] == "interrupted"
    model = fr.load_model(tmp_path / "fit" / "model")
    assert model.score(fr.read_letor(tmp_path / "vali.txt")).std() > 0
    assert "written: fit/result.json" in out


def test_folds_are_trained_one_by_one(tmp_path: Path) -> None:
    for fold in (1, 2):
        for i, name in enumerate(("train", "vali", "test")):
            fr.write_letor(tmp_path / "data" / f"Fold{fold}" / f"{name}.txt.gz", rows(20, seed=10 * fold + i))
    done = command("train", "--folds", str(tmp_path / "data"), "--out", str(tmp_path / "fit"), "--epochs", "3")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert [fold["fold"] for fold in told["folds"]] == ["Fold1", "Fold2"]
    assert told["test"]["AP"] == pytest.approx(np.mean([fold["test"]["AP"] for fold in told["folds"]]))
    assert fr.load_model(tmp_path / "fit" / "Fold2" / "model").params.names[0] == "bias"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train"], 2, "give a file of rows, or --docs"),
        (["train", "nowhere.txt", "--set", "shrink"], 2, "expected NAME=VALUE"),
        (["train", "nowhere.txt"], 1, "nowhere.txt: no such file"),
        (["train", "--folds", "nowhere"], 1, "no Fold1, Fold2"),
        (["rank", "nowhere", "x.txt"], 1, "nowhere"),
    ],
)
def test_wrong_commands_are_one_line(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    done = command(*arguments, *(["--out", str(tmp_path / "fit")] if arguments[0] == "train" else []))
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert words in done.stderr


def test_someone_elses_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not touch")
    fr.write_letor(tmp_path / "data" / "train.txt", rows())
    done = command("train", str(tmp_path / "data" / "train.txt"), "--out", str(tmp_path))
    assert done.returncode == 1
    assert "holds other things" in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.skipif(not DATA.exists(), reason="MQ2008 is not beside the project")
def test_mq2008_fold_1_is_learnt() -> None:
    train, valid, test = (fr.read_letor(DATA / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali", "test"))
    fit = fr.train(fr.Linear(), train, valid)
    single = max(
        fr.parse_measure("nDCG(dcg='exp-log2')@10").per_query(valid.features[:, f], valid).mean()  # type: ignore[index]
        for f in range(46)
    )
    assert fit.best.valid > single
    assert fr.evaluate(fit.model, test, "AP").mean("model", "AP") > 0.4


OTHERS = [fr.FeatureSubset(fr.Linear(), ["2", "3"]), fr.FeatureSubset(fr.Network(2), ["1", "2"])]


@pytest.mark.parametrize("other", OTHERS, ids=["features", "model"])
def test_a_checkpoint_of_another_model_or_other_features_is_refused(other: fr.Model, tmp_path: Path) -> None:
    first, given = fr.FeatureSubset(fr.Linear(), ["1", "2"]), rows()
    how: dict[str, Any] = {"epochs": 3, "sweep": False, "checkpoint": tmp_path / "checkpoint"}
    fr.train(first, given, **how)
    fr.train(first, given, resume=True, **how)
    with pytest.raises(fr.InputError, match="another run"):
        fr.train(other, given, resume=True, **how)
