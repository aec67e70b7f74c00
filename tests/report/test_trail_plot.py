"""The chart of a fit draws every known figure of its trail and marks the epoch that is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.training import train
from fliprank.models import Linear
from fliprank.optimize.fit import Epoch, Fit
from fliprank.report.saving import save

pytest.importorskip("altair")


def fitted(valid: bool) -> Fit:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    rows = Candidates.of(x[:, 0] + rng.normal(size=600) > 0.5, group=[20] * 30, features=x)
    parts = rows.split(0.7, 0.3) if valid else (rows, None)
    return train(Linear(), *parts, objective="ranknet", measure="AP", restarts=1, sweep=False, epochs=6)


@pytest.mark.parametrize("valid", [True, False])
def test_every_known_figure_is_drawn_and_the_kept_epoch_is_marked(valid: bool, tmp_path: Path) -> None:
    fit = fitted(valid)
    chart = fit.plot()
    above, below = chart.to_dict()["vconcat"]
    lines, _, marked, rule, _ = (layer["data"]["values"] for layer in above["layer"])
    wanted = {("training queries", e.number): e.train for e in fit.trail}
    wanted |= {("validation queries", e.number): e.valid for e in fit.trail if valid}
    assert {(p["series"], p["epoch"]): p["value"] for p in lines} == wanted
    assert rule == [{"x": fit.best.number, "text": "kept"}]
    assert [(p["epoch"], p["value"]) for p in marked] == [
        (fit.best.number, wanted[name, fit.best.number]) for name in dict.fromkeys(name for name, _ in wanted)
    ]
    assert [p["value"] for p in below["layer"][0]["data"]["values"]] == [e.objective for e in fit.trail]
    save(chart, tmp_path / "trail.svg")
    assert f"Epoch {fit.best.number} of {fit.trail[-1].number} is kept" in (tmp_path / "trail.svg").read_text()


def test_a_trail_without_figures_is_not_drawn() -> None:
    nothing = Epoch(0, float("nan"), float("nan"), float("nan"))
    with pytest.raises(UsageError, match="no trail to draw"):
        Fit(Linear(), nothing, (nothing,), "").plot()


def test_without_altair_the_error_names_the_extra() -> None:
    code = """
import sys
sys.modules["altair"] = None
from fliprank.models import Linear
from fliprank.optimize.fit import Epoch, Fit
one = Epoch(0, 1.0, 0.5, 0.5)
Fit(Linear(), one, (one,), "").plot()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "altair is not installed: pip install 'fliprank[report]'" in done.stderr
