"""Data sets by name: loaders give what is in the folder, and a person's own collection joins in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, MissingExtraError
from fliprank.papers import PARTS, Setting
from fliprank.papers.data import (
    data_path,
    letor_folds,
    other_collections,
    parse_data,
    some_queries,
    stanford_web,
    text_collection,
)

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


def write_rows(path: Path, queries: range, features: int, labels: int) -> None:
    """A file of features as LETOR, MSLR and Istella have it."""
    rng = np.random.default_rng([features, queries.start])
    lines = []
    for query in queries:
        for number in range(8):
            x = rng.normal(size=features)
            label = int(np.clip(round(labels / 2 + x[0] + 0.3 * rng.normal()), 0, labels))
            cells = " ".join(f"{i}:{value:.5f}" for i, value in enumerate(x, 1))
            lines.append(f"{label} qid:{query} {cells} #docid = D{query}-{number}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


LAYOUTS = {
    "LETOR 3": ("QueryLevelNorm/Fold{fold}/{part}.txt", ("trainingset", "validationset", "testset"), 5, 25, 2),
    "LETOR 4": ("Fold{fold}/{part}.txt", ("train", "vali", "test"), 5, 46, 2),
    "MSLR": ("Fold{fold}/{part}.txt", ("train", "vali", "test"), 5, 136, 4),
    "Istella": ("{part}.txt", ("train", "test"), 1, 220, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_of_features_are_read_and_parts_run_on_them(layout: str, tmp_path: Path) -> None:
    pattern, parts, folds, features, labels = LAYOUTS[layout]
    for fold in range(1, folds + 1):
        for number, part in enumerate(parts):
            first = 1000 * fold + 100 * number
            write_rows(
                tmp_path / "data" / pattern.format(fold=fold, part=part), range(first, first + 20), features, labels
            )
    setting = Setting(quick=True, data={"mq2008": tmp_path / "data"}, cache=tmp_path / "cache")
    read = letor_folds(setting)
    assert [task.name for task in read] == [f"Fold{i}" for i in range(1, folds + 1)]
    for task in read:
        assert task.valid is not None
        assert task.test is not None
        every = [part.rows for part in (task.train, task.valid, task.test)]
        assert [rows.queries for rows in every] == ([20] * 3 if len(parts) == 3 else [16, 4, 20])
        assert all(len(rows.feature_names) == features for rows in every)
        ids = [qid for rows in every for qid in rows.qids.tolist()]
        assert len(ids) == len(set(ids))
    for name in (("taylor2008", "table3"), ("robertson2007", "shared-lines")):
        found = PARTS[name].run(setting)
        assert found.rows
        assert all(np.isfinite(cell) for row in found.rows for cell in row if isinstance(cell, float))


def test_a_folder_without_rows_says_what_it_should_have(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no training and test rows .*trainingset\.txt"):
        letor_folds(Setting(quick=True, data={"mq2008": tmp_path}, cache=tmp_path))


def test_an_ir_dataset_becomes_a_folder_in_beirs_layout(tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
    from ir_datasets.util import LocalDownload

    texts = {
        "docs": "d1\twing and flow\nd2\theat <plate>\n",
        "queries": "q1\twing\n",
        "qrels": "q1 0 d1 2\nq1 0 d2 0\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    docs, queries, qrels = (LocalDownload(tmp_path / name) for name in texts)
    made = ir_datasets.Dataset(TsvDocs(docs), TsvQueries(queries), TrecQrels(qrels, {}))
    ir_datasets.registry.register("fliprank-test/tiny", made)
    try:
        [(name, folder)] = parse_data(["tiny=ir_datasets:fliprank-test/tiny"], tmp_path / "out").items()
        again = parse_data(["tiny=ir_datasets:fliprank-test/tiny"], tmp_path / "out")
    finally:
        del ir_datasets.registry._registered["fliprank-test/tiny"]
    assert (name, again) == ("tiny", {"tiny": folder})
    setting = Setting(quick=True, data={"tiny": folder}, cache=tmp_path / "cache")
    task = text_collection(setting, "tiny")
    assert task.train.texts == {"q1": "wing"}
    assert task.train.rows.docids is not None
    assert dict(zip(task.train.rows.docids.tolist(), task.train.rows.labels.tolist(), strict=True))["d1"] == 2.0
    assert other_collections(setting, []) == ["tiny"]
    with pytest.raises(InputError, match="knows no data set"):
        parse_data(["tiny=ir_datasets:fliprank-test/none"], tmp_path / "out")


def test_without_ir_datasets_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"fliprank\[ir_datasets\]"):
        parse_data(["tiny=ir_datasets:antique/test"], tmp_path)
