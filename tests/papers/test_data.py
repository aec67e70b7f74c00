"""Data sets by name: loaders give what is in the folder, and a person's own collection joins in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError
from fliprank.papers import PARTS, Setting
from fliprank.papers.data import data_path, letor_folds, other_collections, some_queries, stanford_web, text_collection

SHARED = Path(__file__).parents[3] / "shared" / "data"
WORDS = ["wing", "flow", "heat", "plate", "shock", "layer", "jet", "cone", "lift", "drag", "speed", "gas"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A collection in BEIR's layout, of forty documents and twelve queries, each with documents judged 1 and 0."""
    folder = tmp_path / "own"
    (folder / "qrels").mkdir(parents=True)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(40)]
    corpus = [{"_id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in corpus))
    queries = [{"_id": f"q{i}", "text": f"{WORDS[i]} {WORDS[(i + 1) % 12]}"} for i in range(12)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    lines = ["query-id\tcorpus-id\tscore"]
    for i in range(12):
        found = [n for n, text in enumerate(texts) if text.split().count(WORDS[i]) > 1]
        lines += [f"q{i}\td{n}\t{int(n in found)}" for n in (*found[:5], *range(3)) if n < 40]
    (folder / "qrels" / "test.tsv").write_text("\n".join(dict.fromkeys(lines)) + "\n")
    return folder


def test_a_collection_of_ones_own_is_read_and_joins_table_1(own: Path, tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"needs cranfield in {SHARED}")
    data = {"cranfield": SHARED / "text" / "cranfield", "own": own}
    setting = Setting(quick=True, data=data, cache=tmp_path / "cache")
    assert other_collections(setting, ["cranfield"]) == ["own"]
    task = text_collection(setting, "own", depth=20)
    assert task.train.rows.queries == 12
    assert task.test is None
    found = PARTS["metzler2007", "table1"].run(setting)
    assert found.columns == ("measure", "estimate", "cranfield", "own", "generated")


def test_a_folder_with_training_and_test_queries_keeps_them_apart(own: Path, tmp_path: Path) -> None:
    lines = (own / "qrels" / "test.tsv").read_text().splitlines()
    for part, queries in (("train", range(8)), ("test", range(8, 12))):
        some = [line for line in lines[1:] if int(line.split("\t")[0][1:]) in queries]
        (own / "qrels" / f"{part}.tsv").write_text("\n".join([lines[0], *some]) + "\n")
    task = text_collection(Setting(quick=True, data={"own": own}, cache=tmp_path / "cache"), "own")
    assert task.test is not None
    assert (task.train.rows.queries, task.test.rows.queries) == (8, 4)


def test_shared_data_are_found_by_name(tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"needs mq2008 and stanford-web in {SHARED}")
    data = {"mq2008": SHARED / "letor" / "MQ2008", "stanford-web": SHARED / "text" / "stanford-web"}
    setting = Setting(quick=True, data=data, cache=tmp_path)
    folds = letor_folds(setting)
    assert [task.name for task in folds] == [f"Fold{i}" for i in range(1, 6)]
    assert sum(task.test.rows.queries for task in folds if task.test is not None) == 784
    assert {name: rows.queries for name, rows in stanford_web(setting).items()} == {
        "2014-train": 295,
        "2014-dev": 97,
        "2013": 288,
    }
    with pytest.raises(InputError, match="--data npl=PATH"):
        data_path(setting, "npl")


def test_some_queries_are_drawn_by_the_seed_and_stay_in_order() -> None:
    rows = Candidates.of(np.arange(30) % 2, group=[3] * 10)
    assert some_queries(rows, 10) is rows
    few, again, other = (some_queries(rows, 4, seed).qids.tolist() for seed in (0, 0, 1))
    assert few == again != other
    places = [rows.qids.tolist().index(qid) for qid in few]
    assert places == sorted(places)
    assert len(few) == 4
