"""Documents in shards on workers: candidates, searches and tunings to the last bit as of one index."""

from __future__ import annotations

import gc
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.index_shards import IndexShards
from fliprank.errors import InputError
from fliprank.experiment.tuning import tune
from fliprank.models import BM25, BM25F, BM25Sum, Dirichlet, Model, TwoStageLM
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

WORDS = [f"{a}{b}" for a in ("red", "blue", "tin", "fox", "sea", "map", "oak") for b in ("", "dle", "ster", "wood")]


def documents(many: int = 300, seed: int = 0) -> list[dict[str, Any]]:
    rng, out = np.random.default_rng(seed), []
    share = 1 / np.arange(1, len(WORDS) + 1)
    for number in range(many):
        title, body = (" ".join(rng.choice(WORDS, size, p=share / share.sum())) for size in (3, rng.integers(1, 60)))
        out.append({"_id": f"doc{number * 7919 % 1000}", "title": title, "body": body, "clicks": float(number % 9)})
    return out


DOCUMENTS = documents()
QUERIES = {f"q{i}": f"{WORDS[i]} {WORDS[(3 * i + 1) % len(WORDS)]} unheardof" for i in range(20)}


def judgements(seed: int = 1) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    found = Index.build(DOCUMENTS).search(QUERIES, BM25(), depth=30).to_dict()
    return {
        qid: {docid: float(rng.integers(0, 3)) for docid in rng.choice(list(own), min(8, len(own)), replace=False)}
        for qid, own in found.items()
    } | {"q0": {"doc0": 2.0, "absent": 1.0}}


@pytest.fixture(scope="module")
def shards(client: Any, tmp_path_factory: pytest.TempPathFactory) -> IndexShards:
    return IndexShards(Cluster(client), sources(tmp_path_factory.mktemp("shards"), [0, 20, 170, 300]))


def sources(folder: Path, ends: list[int], fields: list[str] | None = None) -> list[dict[str, Any]]:
    out = []
    for number, (a, b) in enumerate(pairwise(ends)):
        path = folder / f"docs-{number}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in DOCUMENTS[a:b]))
        how = {"fields": fields, "analyzer": Analyzer().to_json(), "positions": True, "folder": None, "index": False}
        out.append({"file": str(path), **how})
    return out


def same_rows(one: Candidates, other: Candidates) -> None:
    """Every array to the last bit."""
    assert one.qids == other.qids
    assert one.docids == other.docids
    for name in ("offsets", "labels", "features", "missed_offsets", "missed_labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.terms is not None
    assert other.terms is not None
    assert one.terms.terms == other.terms.terms
    for name in vars(other.terms).keys() - {"terms"}:
        np.testing.assert_array_equal(getattr(one.terms, name), getattr(other.terms, name), err_msg=name)


@pytest.mark.parametrize(
    "options", [{"depth": 25}, {"depth": 5, "sample": 4}, {"depth": 10, "ranker": [None, BM25F()]}]
)
def test_candidates_are_those_of_one_index(shards: IndexShards, options: dict[str, Any]) -> None:
    index = Index.build(DOCUMENTS)
    assert (shards.documents, shards.fields) == (index.documents, index.fields)
    far, here = (each.pool(QUERIES, judgements(), **options) for each in (shards, index))
    same_rows(far.candidates, here.candidates)
    assert far.notes == here.notes
    assert far.unmatched == here.unmatched


@pytest.mark.parametrize("model", [None, BM25(), BM25F(), BM25Sum(), TwoStageLM(), Dirichlet()])
@pytest.mark.parametrize("match", ["or", "and"])
def test_searches_are_those_of_one_index(shards: IndexShards, model: Model | None, match: Any) -> None:
    far, here = (each.search(QUERIES, model, depth=12, match=match) for each in (shards, Index.build(DOCUMENTS)))
    assert far.to_dict() == here.to_dict()
    assert far.docids == here.docids


def test_the_rows_of_named_documents_are_those_of_one_index(shards: IndexShards) -> None:
    named = {"q1": ["doc0", "doc919", "doc838"], "q3": ["doc757"]}
    same_rows(*(each.rows(QUERIES, named) for each in (shards, Index.build(DOCUMENTS))))
    with pytest.raises(InputError, match="document nobody is not in the index"):
        shards.rows(QUERIES, {"q1": ["nobody"]})


def test_a_tuning_on_documents_of_many_machines_is_that_on_one_index(shards: IndexShards) -> None:
    far, here = (
        tune("bm25f", each.candidates(QUERIES, judgements(), depth=20), measure="nDCG@10", folds=None, method="lbfgs")
        for each in (shards, Index.build(DOCUMENTS))
    )
    np.testing.assert_array_equal(far.model.params.values, here.model.params.values)


def test_shards_of_documents_that_do_not_fit_together_are_an_error(client: Any, tmp_path: Path) -> None:
    cluster = Cluster(client)
    (tmp_path / "twice").mkdir()
    with pytest.raises(InputError, match=r"document 'doc\d+' is in two shards, .*docs-0.* and .*twice.*docs-0"):
        IndexShards(cluster, [*sources(tmp_path, [0, 20]), *sources(tmp_path / "twice", [19, 30])])
    (tmp_path / "other.jsonl").write_text(json.dumps({"_id": "x", "name": "a tin"}) + "\n")
    other = {**sources(tmp_path, [0, 20])[0], "file": str(tmp_path / "other.jsonl")}
    with pytest.raises(InputError, match=r"other\.jsonl: shards with different fields .*name the fields"):
        IndexShards(cluster, [*sources(tmp_path, [0, 20]), other])
    with pytest.raises(InputError, match=r"absent\.jsonl.*a worker must see the file"):
        IndexShards(cluster, [{**other, "file": str(tmp_path / "absent.jsonl")}])


def test_indexes_are_removed_when_nobody_needs_them_unless_they_have_a_folder(client: Any, tmp_path: Path) -> None:
    before, cluster = temporary_indexes(client), Cluster(client)
    built = IndexShards(cluster, sources(tmp_path, [0, 150, 300]))
    made = temporary_indexes(client) - before
    assert len(made) == 2
    del built
    gc.collect()
    IndexShards(cluster, sources(tmp_path, [0, 5, 10])).search(QUERIES, depth=3)  # workers are told with a question
    assert not made & temporary_indexes(client)
    kept = tmp_path / "indexes"
    kept.mkdir()
    IndexShards(cluster, [{**each, "folder": str(kept)} for each in sources(tmp_path, [0, 150, 300])])
    gc.collect()
    IndexShards(cluster, sources(tmp_path, [0, 5, 10])).search(QUERIES, depth=3)
    assert len(list(kept.glob("shard-*.index"))) == 2


def temporary_indexes(client: Any) -> set[Path]:
    """Those in the workers' own folders, which Dask removes when a worker ends."""
    folders = client.run(lambda dask_worker: dask_worker.local_directory).values()
    return {path for folder in folders for path in Path(folder).glob("fliprank-*/shard.index")}
