"""Plots by name: what is refused, in one sentence; what help lists; a new plot is one file and one line."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.errors import FliprankError, UsageError, WrongTypeError
from fliprank.optimize.fit import Epoch, Fit
from fliprank.report.plots import PLOTS

pytest.importorskip("altair")

ONE = Epoch(0, 1.0, 0.5, 0.25)
FIT = Fit(fr.Linear(), ONE, (ONE, Epoch(1, 0.5, 0.6, 0.2)), "")
NAMES = ["fusion", "learning-curve", "precision-recall", "queries", "rank-distribution", "ranges", "stages"]
NAMES += ["surface", "trail", "trajectory"]


class Strange:
    """Of no type that any plot takes."""


def test_all_plots_are_registered_and_are_functions_of_the_module() -> None:
    assert sorted(PLOTS) == sorted(NAMES)
    for name, each in PLOTS.items():
        assert getattr(fr.plots, name.replace("-", "_")) is each.draw
        assert each.summary
        assert each.draw.__doc__
        assert name.replace("-", "_") in fr.plots.__all__
    assert "plots" in dir(fr)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [Strange(), [Strange()], None, 7, "folder", []])
def test_what_a_plot_can_not_draw_is_refused_in_one_sentence(name: str, given: Any) -> None:
    with pytest.raises(FliprankError) as caught:
        PLOTS[name].draw(given)
    said = str(caught.value)
    assert said.startswith(("found", "fit"))
    assert "\n" not in said
    assert ". " not in said


@pytest.mark.parametrize("name", [*NAMES, "rank_distribution"])
def test_a_fit_that_has_not_what_a_plot_needs_is_told_so(name: str) -> None:
    if name == "trail":
        assert FIT.plot().to_dict() == fr.plots.trail(FIT).to_dict()
        return
    with pytest.raises(UsageError) as caught:
        FIT.plot(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: FIT.plot("trial"), "no plot is called 'trial'; did you mean trail?"),
        (lambda: FIT.plot("pie"), "no plot is called 'pie'; there are fusion, learning-curve, "),
        (lambda: FIT.plot(3), r"name must be a string; 3 was given"),
        (lambda: FIT.plot("trail", colour="red"), "got an unexpected keyword argument 'colour'"),
        (lambda: FIT.plot("fusion"), r"fusion is not drawn from a fit; fr\.plots\.fusion: found must be what fr\.fuse"),
        (lambda: fr.plots.rank_distribution([[0.5, 0.5]]), r"for each document, not the shape \(1, 2\)"),
        (lambda: fr.plots.rank_distribution([[0.9, 0.5], [0.5, 0.5]]), "probabilities that add up to 1"),
        (lambda: fr.plots.rank_distribution(np.eye(2), names=["a"]), "one per document: there are 2"),
        (lambda: fr.plots.rank_distribution(np.eye(2), most="3"), "most must be a whole number"),
        (lambda: fr.plots.queries({"q": 3}), "with two numbers per query"),
        (lambda: fr.plots.queries({"q": (0.5, float("nan"))}), "no query with two figures"),
        (lambda: fr.plots.save("trail", "x.svg"), "chart must be an Altair chart"),
        (lambda: fr.plots.save(FIT.plot(), 3), "path must be a path"),
        (lambda: fr.plots.save(FIT.plot(), "x.pdf"), r"x\.pdf: pictures are written as \.svg, \.png, \.json"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wrong(call: Any, said: str) -> None:
    with pytest.raises(FliprankError, match=said):
        call()


def test_evaluations_name_the_runs_and_measures_that_they_have() -> None:
    rows = fr.Candidates.of([1, 0, 1, 0], group=[2, 2])
    found = fr.evaluate(rows, {"a": np.zeros(4), "b": np.ones(4)}, "AP")
    with pytest.raises(UsageError, match="this evaluation has no RR; it has AP"):
        fr.plots.queries(found, "RR")
    with pytest.raises(UsageError, match="two runs are compared, of a, b; given were a and c"):
        fr.plots.queries(found, run="c")
    with pytest.raises(UsageError, match="measure, run and baseline go with an evaluation"):
        fr.plots.queries(FIT, "AP")


def chunks(png: bytes) -> dict[bytes, bytes]:
    """The chunks of a PNG by name; raises if one is damaged."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, found = 8, dict[bytes, bytes]()
    while at < len(png):
        size = int.from_bytes(png[at : at + 4])
        body = png[at + 4 : at + 8 + size]
        assert zlib.crc32(body) == int.from_bytes(png[at + 8 + size : at + 12 + size])
        found[body[:4]] = found.get(body[:4], b"") + body[4:]
        at += 12 + size
    return found


def test_files_are_valid_the_same_each_time_and_whole_or_not_there(tmp_path: Path) -> None:
    chart = FIT.plot()
    for ending in ("svg", "png", "json"):
        for name in ("one", "two"):
            fr.plots.save(chart, tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
    assert ET.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")
    parts = chunks((tmp_path / "one.png").read_bytes())
    width, height = (int.from_bytes(parts[b"IHDR"][at : at + 4]) for at in (0, 4))
    assert width > 1000
    assert len(zlib.decompress(parts[b"IDAT"])) == height * (1 + 4 * width)  # all rows of pixels are there
    content = json.loads((tmp_path / "one.json").read_text())
    assert content.pop("usermeta") == {"writer": "fliprank"}
    assert content == json.loads(json.dumps(chart.to_dict()))
    assert "vega-lite" in content["$schema"]
    with pytest.raises(OSError, match=r"x\.svg"):
        fr.plots.save(chart, tmp_path / "one.svg" / "x.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{ending}" for name in ("one", "two") for ending in ("svg", "png", "json")
    )


def test_series_differ_by_more_than_their_colour() -> None:
    encoding = FIT.plot().to_dict()["vconcat"][0]["layer"][0]["encoding"]
    assert len(set(encoding["color"]["scale"]["range"])) == 2
    assert len({tuple(dash) for dash in encoding["strokeDash"]["scale"]["range"]}) == 2


TOY = """
from fliprank.report.drawing import chart_of, framed, heading
from fliprank.report.plots.registry import plot

def _read(folder, *, measure=None):
    return epochs(folder.trail())

@plot("epochs", "how many epochs there were", _read)
def epochs(found):
    return framed(chart_of([{"epochs": len(found)}]).mark_bar().encode(x="epochs:Q"), heading(f"{len(found)} epochs"))
"""


def test_a_new_plot_is_one_file_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "toy_plot.py").write_text(TOY)
    rows = fr.Candidates.of([1, 0, 1, 0], group=[2, 2], features=[[1.0], [2.0], [3.0], [4.0]])
    fr.write_letor(tmp_path / "rows.txt", rows)
    code = """
import sys, fliprank.report.plots, toy_plot
from fliprank.cli import run
assert run("train rows.txt --epochs 2 --restarts 1 --quiet --out fit".split()) == 0
assert run("plot epochs fit --out epochs.svg --quiet".split()) == 0
sys.exit(run(["plot", "--help"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "epochs             how many epochs there were. --measure" in done.stdout
    for name in NAMES:
        assert f"\n  {name} " in done.stdout
    assert "epochs" in (tmp_path / "epochs.svg").read_text()


def test_without_altair_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['altair'] = None; import fliprank as fr; fr.plots.queries({'a': (0.1, 0.2)})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "altair is not installed: pip install 'fliprank[report]'" in done.stderr


def test_importing_plots_draws_in_no_extra() -> None:
    code = "import sys, fliprank as fr; fr.plots.PLOTS; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert issubclass(WrongTypeError, TypeError)
