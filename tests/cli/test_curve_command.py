"""`fliprank curve`: files, tables of 80 columns and an answer in words; started again it goes on."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.builtin import collection

pytestmark = pytest.mark.long

QUICK = ("--sizes", "4,8,16,24", "--repeats", "3", "--method", "lbfgs", "--objective", "ranknet", "--set", "epochs=5")


def fliprank_does(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fliprank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(480, 4))
    labels = np.clip(np.round(x[:, 0] - x[:, 1] + rng.normal(size=480)), 0, 2)
    path = tmp_path_factory.mktemp("rows") / "rows.txt"
    fr.write_letor(path, fr.Candidates.of(labels, group=[10] * 48, features=x))
    return path


def test_it_writes_the_curve_and_says_what_more_judgements_would_bring(features: Path, tmp_path: Path) -> None:
    out = tmp_path / "curve"
    given = (features, "--model", "linear", "--model", "network", "--hidden", "2", *QUICK, "--out", out)
    result = fliprank_does("curve", *given)
    assert result.returncode == 0, result.stderr
    table = [line for line in result.stdout.splitlines() if "95% interval" in line]
    assert table
    assert max(map(len, table)) <= 80
    content = json.loads((out / "curve.json").read_text())
    assert content["sizes"] == [4, 8, 16, 24]
    for ranker in ("linear", "network"):
        assert f"{ranker}: {content['outlook'][ranker]['sentence']}" in " ".join(result.stdout.split())
    with (out / "curve.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["ranker"], line["size"]) for line in lines] == [
        (ranker, size) for ranker in ("linear", "network") for size in ("4", "8", "16", "24")
    ]
    assert f"{float(lines[3]['test']):.4f}" in result.stdout
    ET.parse(out / "curve.svg")
    kept = {path: path.stat().st_mtime_ns for path in (out / "checkpoint").glob("*.point")}
    assert len(kept) == 2 * 4 * 3
    before = (out / "curve.json").read_bytes()
    again = fliprank_does("curve", *given)
    assert again.returncode == 0, again.stderr
    assert (out / "curve.json").read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in (out / "checkpoint").glob("*.point")} == kept


def test_documents_are_tuned_at_each_size(tmp_path: Path) -> None:
    given = ("--sizes", "4,8", "--repeats", "1", "--depth", "10", "--method", "tune", "--measure", "AP")
    result = fliprank_does("curve", "--beir", collection(), *given, "--out", tmp_path / "curve")
    assert result.returncode == 0, result.stderr
    assert "bm25f: AP, 1 repeat" in result.stdout
    assert "Too few queries to tell what more judgements would bring: 2 sizes and 1 repeats" in result.stdout


def test_ctrl_c_shows_the_repeats_that_are_complete(features: Path, tmp_path: Path) -> None:
    slow = ("--model", "network", "--hidden", "2", "--method", "lbfgs", "--objective", "ranknet", "--repeats", "500")
    command = [sys.executable, "-m", "fliprank", "curve", str(features), "--sizes", "8,16", *slow, "--out", "curve"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        for _ in range(1200):
            time.sleep(0.1)
            if len(list(tmp_path.glob("curve/checkpoint/*.point"))) >= 5:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "Interrupted: only the repeats that were complete are shown." in out
    content = json.loads((tmp_path / "curve" / "curve.json").read_text())
    assert content["interrupted"]
    assert 2 <= content["repeats"] < 500


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--sizes", "4,x"], "--sizes 4,x: expected whole numbers"),
        (["--sizes", "4,400"], "sizes go from 1 to 31 training queries here"),
        (["--hidden", "3"], "--hidden goes with network or stack, not with linear"),
        (["--valid", "x.txt"], "validation queries are drawn for each size"),
        (["--model", "bm25f"], "bm25f reads term statistics"),
        (["--set", "epochs"], "--set epochs: expected NAME=VALUE"),
    ],
)
def test_nonsense_is_one_line(features: Path, tmp_path: Path, given: list[str], words: str) -> None:
    result = fliprank_does("curve", features, *given, "--out", tmp_path / "curve")
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
