"""`fliprank plot`: what it draws from a folder is what Python draws from the result; a damaged folder is an error."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from person import call
from sandbox import make_sandbox

import fliprank as fr

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from charts import records

pytestmark = pytest.mark.long

pytest.importorskip("altair")
PAGE = Path(__file__).parents[2] / "docs" / "plots.md"
QUICKLY = {
    "tune": ["--method", "lbfgs", "--set", "epochs=2", "--folds", "2", "--no-curve"],
    "train": ["--epochs", "3", "--restarts", "1"],
    "curve": ["--repeats", "1", "--restarts", "1", "--set", "epochs=2"],
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="module")
def page_folder(sandbox: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the commands of the page were run, one after the other."""
    folder = tmp_path_factory.mktemp("page") / "here"
    shutil.copytree(sandbox, folder)
    lines = re.findall(r"^ {4}(fliprank (?:.*\\\n)*.*)$", PAGE.read_text(), re.MULTILINE)
    for line in lines:
        _, *arguments = shlex.split(re.sub(r"\\\n\s*", "", line).partition(" # ")[0])
        done = call(*arguments, *QUICKLY.get(arguments[0], []), folder=folder)
        assert done.code == 0, f"{line}: {done.err}"
    return folder


def drawn(folder: Path, *words: str) -> Any:
    """The chart of a command, as Vega-Lite."""
    done = call("plot", *words, "--out", "drawn.json", "--force", folder=folder)
    assert done.code == 0, done.err
    return json.loads((folder / "drawn.json").read_text())


def test_the_page_shows_every_plot_and_its_commands_write_what_they_say(page_folder: Path) -> None:
    text = PAGE.read_text()
    for name in fr.plots.PLOTS:
        assert f"fliprank plot {name} " in text
        assert f"fr.plots.{name.replace('-', '_')}(" in text
    written = set(re.findall(r"--out (\S+\.(?:svg|png|json))", text))
    assert len(written) >= len(fr.plots.PLOTS)
    assert all((page_folder / name).stat().st_size > 1000 for name in written)


def test_python_on_the_page_runs(page_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page_folder)
    names: dict[str, Any] = {}
    parts = [part.split("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    assert len(parts) >= 2
    for part in parts:
        exec(part, names)  # our own page
    assert (page_folder / "trail.png").read_bytes().startswith(b"\x89PNG")


def test_figures_of_the_folder_are_drawn(page_folder: Path) -> None:
    result = json.loads((page_folder / "tuned" / "result.json").read_text())
    spec = drawn(page_folder, "ranges", "tuned")
    bands = {each["row"]: [each["x"], each["x2"]] for each in records(spec, "row", "x2")}
    assert bands == result["params"]["as_good"]
    marks = {(each["row"], each["mark"]): each["x"] for each in records(spec, "row", "mark")}
    assert {name: marks[name, "after"] for name in bands} == {n: result["params"]["fitted"][n] for n in bands}
    assert {name: marks[name, "before"] for name in bands} == {n: result["params"]["default"][n] for n in bands}
    spec = drawn(page_folder, "queries", "tuned")
    by_query = next(iter(result["proof"].values()))["by_query"]
    assert {each["query"]: each["difference"] for each in records(spec, "place", "difference")} == pytest.approx(
        {qid: after - before for qid, (before, after) in by_query.items()}
    )
    curve = json.loads((page_folder / "curve" / "curve.json").read_text())
    points = [each for each in records(drawn(page_folder, "learning-curve", "curve"), "on") if "test" in each["on"]]
    assert [each["value"] for each in points] == [point["test"] for point in curve["points"]]
    stages = json.loads((page_folder / "nested" / "result.json").read_text())["stages"]
    found = records(drawn(page_folder, "stages", "nested"), "stage", "value")
    assert [(each["value"], each["lost"]) for each in found] == [(each["value"], each["lost"]) for each in stages]


def test_a_fusion_is_drawn_whole_from_its_folder(page_folder: Path) -> None:
    spec, result = (
        drawn(page_folder, "fusion", "fused"),
        json.loads((page_folder / "fused" / "result.json").read_text()),
    )
    curve = [each for each in records(spec, "x", "value") if "mark" not in each]
    runs = {name: fr.read_run(page_folder / f"{name}.run") for name in ("bm25", "dense")}
    rows = fr.fusion_rows(runs, fr.read_qrels(page_folder / "qrels.txt"))
    model, measure = fr.load_model(page_folder / "fused" / "tuned-model"), fr.parse_measure(result["measure"])
    for one, two in pairwise(curve):
        x = (one["x"] + two["x"]) / 2
        if two["x"] - one["x"] > 1e-6:
            moved = model.at(model.params.replace({"weight.bm25": 1 - x, "weight.dense": x}))
            assert measure.value(moved.score(rows), rows) == pytest.approx(one["value"], abs=1e-12)
    (band,) = records(spec, "x", "x2")
    assert [band["x"], band["x2"]] == result["curve"]["as_good"]


def test_a_trail_and_a_surface_follow_trail_csv(page_folder: Path) -> None:
    lines = [line.split(",") for line in (page_folder / "fit" / "trail.csv").read_text().splitlines()]
    at = {name: place for place, name in enumerate(lines[0])}
    spec = drawn(page_folder, "surface", "fit", "-p", "w.1", "-p", "w.2", "--rows", "train.txt")
    steps = [[each["x"], each["y"]] for each in records(spec, "step")]
    assert steps == [[float(row[at["w.1"]]), float(row[at["w.2"]])] for row in lines[1:]]
    points = records(drawn(page_folder, "trail", "fit"), "epoch", "series")
    known = [point["value"] for point in points if point["series"] == "validation queries"]
    assert known == [float(row[at["valid"]]) for row in lines[1:]]


def test_a_rank_distribution_is_that_of_the_models_scores(page_folder: Path) -> None:
    spec = drawn(page_folder, "rank-distribution", "fit", "--rows", "test.txt", "--query", "3", "--sigma", "0.5")
    rows = fr.read_letor(page_folder / "test.txt")
    one = rows.select([rows.qids.tolist().index("3")])
    scores = fr.load_model(page_folder / "fit" / "model").score(one)
    p = fr.rank_distribution(scores, 0.5 * scores.std())
    cells = records(spec, "probability", "rank", "document")
    first = [each["probability"] for each in cells if each["rank"] == 1 and "left" in each]
    assert first == pytest.approx(p[np.argsort(p @ np.arange(len(p)), kind="stable"), 0])


def test_precision_and_recall_are_of_the_runs_in_the_folder(page_folder: Path) -> None:
    spec = drawn(page_folder, "precision-recall", "tuned")
    runs = {name: page_folder / "tuned" / f"{name}.run" for name in ("default", "tuned")}
    found = fr.precision_recall(page_folder / "test.qrels", runs)
    values = {(each["run"], each["recall"]): each["precision"] for each in records(spec, "precision")}
    for name, means in found.values.items():
        assert [values[name, level / 10] for level in range(11)] == pytest.approx(means.tolist())


def test_pictures_have_a_name_of_their_own_and_replace_no_file_of_others(sandbox: Path, tmp_path: Path) -> None:
    shutil.copytree(sandbox / "fit", tmp_path / "fit")
    assert call("plot", "trail", "fit", folder=tmp_path).code == 0
    assert (tmp_path / "trail.svg").read_text().startswith("<svg")
    for name in ("trail.svg", "trail.png", "trail.json"):
        assert call("plot", "trail", "fit", "--out", name, folder=tmp_path).code == 0
        assert call("plot", "trail", "fit", "--out", name, folder=tmp_path).code == 0
        (tmp_path / name).write_bytes(b'{"mine": 1}')
        done = call("plot", "trail", "fit", "--out", name, folder=tmp_path)
        assert (done.code, "none that this command wrote" in done.err) == (1, True)
        assert call("plot", "trail", "fit", "--out", name, "--force", folder=tmp_path).code == 0
    told = json.loads(call("plot", "trail", "fit", "--json", folder=tmp_path).out)
    assert told["title"].startswith("Epoch ")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("trial fit", 2, "no plot is called 'trial'; did you mean trail?"),
        ("trail nowhere", 1, "nowhere: no such folder"),
        ("trail train.txt", 1, "train.txt: is no folder"),
        ("trail fit --out x.pdf", 2, "--out x.pdf: the name must end in .svg, .png, .json"),
        ("trail fit --sigma 2", 2, "--sigma does not go with trail, which takes no options but --out"),
        ("surface fit --query 2", 2, "--query does not go with surface, which takes --rows, --parameter, --measure"),
        ("surface fit --rows train.txt", 2, "name 2 parameters of"),
        ("surface fit -p w.1 -p x --rows train.txt", 2, "no free parameter is called 'x'"),
        ("trajectory fit -p w.1", 1, "does not name the rows that were fitted to (give them by --rows)"),
        ("stages fit", 1, "only cascades have stages"),
        ("fusion fit", 1, "fit: has no weight.csv, which `fliprank fuse"),
        ("learning-curve fit", 1, "fit: has no curve.json, which `fliprank curve` writes"),
        ("ranges fit", 1, "has no params"),
        ("queries fit", 1, "only tune and fuse prove"),
        ("rank-distribution fit --rows test.txt --query nobody", 2, "no query is called 'nobody'"),
        ("rank-distribution fit --rows test.txt --sigma -1", 2, "must be above 0"),
        ("precision-recall fit --qrels qrels.txt", 1, "has no rankings"),
    ],
)
def test_what_can_not_be_drawn_is_said_in_one_line(words: str, code: int, said: str, sandbox: Path) -> None:
    done = call("plot", *words.split(), folder=sandbox)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.count("\n") == 1


DAMAGE: dict[str, Any] = {
    "nothing": b"",
    "a list": [],
    "no measure": {"settings": {}},
    "words for numbers": {
        "measure": "AP", "settings": {"epoch": 0}, "proof": {"test": {"by_query": {"q": ["a", "b"]}}},
        "params": {"fitted": {"a": "x"}, "as_good": {"a": [0, 1]}}, "stages": [{"stage": "one"}],
        "curve": {"value": []},
    },
    "other shapes": {
        "measure": "AP", "settings": [], "proof": [1], "params": [1], "stages": {"a": 1}, "curve": 7,
    },
    "too little": {
        "measure": "AP", "settings": {}, "proof": {"test": {}}, "params": {"fitted": {}}, "stages": [{}],
        "curve": {"a": 1},
    },
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["ranges", "queries", "stages", "fusion", "precision-recall", "learning-curve"])
def test_a_damaged_result_is_an_error_that_names_the_file(kind: str, damage: str, tmp_path: Path) -> None:
    content = DAMAGE[damage]
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    for name in ("result.json", "curve.json"):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "weight.csv").write_text("from,to,value\n0,1,0.5\n")
    done = call("plot", kind, tmp_path, "--out", tmp_path / "x.svg")
    assert done.code == 1, done.err
    assert str(tmp_path) in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "number,objective,train,valid,valid_objective,rate\n0,x,1,1,1,1\n"])
def test_a_damaged_trail_is_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "trail.csv").write_text(text)
    done = call("plot", "trail", tmp_path, "--out", tmp_path / "x.svg")
    assert done.code == 1
    assert "trail.csv" in done.err
