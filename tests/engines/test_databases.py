"""Qdrant (local mode), LanceDB and Milvus Lite themselves fuse the lists, and give the same scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lancedb.rerankers import LinearCombinationReranker, RRFReranker
from pymilvus import AnnSearchRequest, DataType, MilvusClient, RRFRanker, WeightedRanker
from qdrant_client import QdrantClient, models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion, reciprocal_rank_fusion
from real_lists import lists_of, names, ours, same

import fliprank as fr

SOURCES = pytest.mark.parametrize("source", ["random", "real"])
DOCUMENTS, WIDTH, DEPTH = 60, 8, 15


def points(found: list[tuple[str, float]]) -> list[models.ScoredPoint]:
    return [models.ScoredPoint(id=doc, version=0, score=score) for doc, score in found]


@SOURCES
@pytest.mark.parametrize(("k", "weights"), [(2, [1.0, 1.0, 1.0]), (60, [3.0, 1.0, 0.0])])
def test_qdrant_rrf_gives_the_same_scores(source: str, k: int, weights: list[float]) -> None:
    lists = lists_of(source, 3)
    mine = ours(lists, fr.Fusion("qdrant", names(3)).at([*weights, k]))
    for query, each in lists.items():
        theirs = reciprocal_rank_fusion([points(x) for x in each], 10**6, k, weights)
        same(mine[query], {point.id: point.score for point in theirs})


@SOURCES
def test_qdrant_dbsf_gives_the_same_scores(source: str) -> None:
    lists = lists_of(source, 3)
    mine = ours(lists, fr.Fusion("qdrant", names(3), method="dbsf"))
    for query, each in lists.items():
        theirs = distribution_based_score_fusion([points(x) for x in each], 10**6)
        same(mine[query], {point.id: point.score for point in theirs})


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    """Two vectors per document, and those of a query."""
    rng = np.random.default_rng(3)
    return {name: (rng.normal(size=(DOCUMENTS, WIDTH)), rng.normal(size=WIDTH)) for name in ("text", "vector")}


def test_qdrant_fuses_its_own_searches_as_we_do(vectors: dict[str, Any]) -> None:
    client = QdrantClient(":memory:")
    shape = models.VectorParams(size=WIDTH, distance=models.Distance.DOT)
    client.create_collection("rows", vectors_config=dict.fromkeys(vectors, shape))
    upsert = [
        models.PointStruct(id=i, vector={name: every[i].tolist() for name, (every, _) in vectors.items()})
        for i in range(DOCUMENTS)
    ]
    client.upsert("rows", upsert)
    lists = []
    for name, (_, query) in vectors.items():
        found = client.query_points("rows", query=query.tolist(), using=name, limit=DEPTH).points
        lists.append([(str(point.id), point.score) for point in found])
    prefetch = [models.Prefetch(query=q.tolist(), using=name, limit=DEPTH) for name, (_, q) in vectors.items()]
    for query, model in (
        (models.RrfQuery(rrf=models.Rrf(k=7, weights=[3.0, 1.0])), fr.Fusion("qdrant", names(2)).at([3, 1, 7])),
        (models.FusionQuery(fusion=models.Fusion.RRF), fr.Fusion("qdrant", names(2))),
        (models.FusionQuery(fusion=models.Fusion.DBSF), fr.Fusion("qdrant", names(2), method="dbsf")),
    ):
        theirs = client.query_points("rows", prefetch=prefetch, query=query, limit=2 * DEPTH).points
        same(ours({"q": lists}, model)["q"], {str(point.id): point.score for point in theirs}, rel=1e-6)


@SOURCES
def test_lancedb_gives_the_same_scores(source: str) -> None:
    lists = lists_of(source, 2)
    for text, vector in lists.values():
        numbers = {doc: i for i, (doc, _) in enumerate(dict(text + vector).items())}
        tables = [
            pa.table({"_rowid": pa.array([numbers[d] for d, _ in x], pa.uint64()),
                      column: pa.array([s for _, s in x], pa.float32())})
            for x, column in ((text, "_score"), (vector, "_distance"))
        ]  # fmt: skip
        back = {number: doc for doc, number in numbers.items()}
        both = {"q": [text, vector]}
        for reranker, model in (
            (RRFReranker(K=60), fr.Fusion("lancedb", names(2), method="rrf")),
            (LinearCombinationReranker(weight=0.6), fr.Fusion("lancedb", names(2)).at([0.6])),
        ):
            table = reranker.rerank_hybrid("query", tables[1], tables[0])
            rowids, scores = (table[name].to_pylist() for name in ("_rowid", "_relevance_score"))
            theirs = {back[number]: score for number, score in zip(rowids, scores, strict=True)}
            mine = ours(both, model)["q"]
            if isinstance(reranker, LinearCombinationReranker) and not (text and vector):
                # with one list empty, LanceDB leaves the weight out: the same for all documents
                weight = 0.4 if text else 0.6
                mine = {doc: score / weight for doc, score in mine.items()}
            same(mine, theirs, rel=2e-6)


def test_milvus_lite_fuses_its_own_searches_as_we_do(vectors: dict[str, Any], tmp_path: Path) -> None:
    client = MilvusClient(str(tmp_path / "milvus.db"))
    for metrics in (("COSINE", "IP"), ("L2", "COSINE"), ("IP", "L2")):
        schema, index = client.create_schema(auto_id=False), client.prepare_index_params()
        schema.add_field("id", DataType.INT64, is_primary=True)
        for name, metric in zip(vectors, metrics, strict=True):
            schema.add_field(name, DataType.FLOAT_VECTOR, dim=WIDTH)
            index.add_index(field_name=name, index_type="FLAT", metric_type=metric)
        client.create_collection("rows", schema=schema, index_params=index)
        client.insert(
            "rows", [{"id": i, **{n: v[i].tolist() for n, (v, _) in vectors.items()}} for i in range(DOCUMENTS)]
        )
        client.load_collection("rows")
        lists, requests = [], []
        for (name, (_, query)), metric in zip(vectors.items(), metrics, strict=True):
            asked = {"data": [query.tolist()], "anns_field": name, "limit": DEPTH}
            found = client.search("rows", search_params={"metric_type": metric}, **asked)[0]
            lists.append([(str(hit["id"]), float(hit["distance"])) for hit in found])
            requests.append(AnnSearchRequest(param={"metric_type": metric}, **asked))
        runs = {name: {"q": dict(found)} for name, found in zip(vectors, lists, strict=True)}
        turned = [name for name, metric in zip(vectors, metrics, strict=True) if metric == "L2"]
        rows = fr.fusion_rows(runs, ascending=turned)
        kinds = [metric.lower() for metric in metrics]
        for ranker, model in (
            (WeightedRanker(0.8, 0.3), fr.Fusion("milvus", names(2), normalise=kinds).at([0.8, 0.3])),
            (RRFRanker(60), fr.Fusion("milvus", names(2), method="rrf")),
            (RRFRanker(5), fr.Fusion("milvus", names(2), method="rrf").at([5])),
        ):
            theirs = client.hybrid_search("rows", requests, ranker=ranker, limit=2 * DEPTH)[0]
            mine = fr.fused_run(rows, model.score(rows)).to_dict()["q"]
            same(mine, {str(hit["id"]): float(hit["distance"]) for hit in theirs}, rel=1e-5)
        client.drop_collection("rows")
    client.close()
