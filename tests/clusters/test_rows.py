"""Rows from a cluster over HTTP, through the official clients: scores at its settings are its own answers."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from asking import TRAIN, pulled, reach
from cluster_server import ClusterServer

from fliprank.clusters.cluster import connect
from fliprank.clusters.pull import Pulled, pull
from fliprank.clusters.task import parity_note
from fliprank.data.trec import Qrels
from fliprank.export.functions import engine_model
from fliprank.models import EngineText

pytestmark = pytest.mark.long

READS = {
    "elasticsearch": {"GET /shop", "POST /_msearch", "POST /shop/_mtermvectors", "POST /shop/_analyze"},
    "opensearch": {"GET /shop", "POST /_msearch", "POST /shop/_mtermvectors", "POST /shop/_analyze"},
    "solr": {"GET /solr/shop/schema", "GET /solr/shop/analysis/field", "GET /solr/shop/select/"}
    | {"POST /solr/shop/select/"},  # what is too long for an address
    "vespa": {"POST /search/"},
}


def at_its_settings(found: Pulled, engine: str) -> EngineText:
    function = {"solr": "edismax", "vespa": "bm25"}.get(engine, "most_fields")
    model = engine_model(engine, function).prepared(found.rows, 0)
    return model.at(model.params.replace(found.start()))


def compared(found: Pulled, model: EngineText) -> tuple[list[float], list[float]]:
    """Our scores and the cluster's, of all documents that it answered with."""
    theirs, rows = found.run.to_dict(), found.rows
    qids, docids = rows.qids.take(rows.query_of_rows()).tolist(), rows.document_ids().tolist()
    pairs = zip(model.score(rows).tolist(), qids, docids, strict=True)
    ours = {(q, d): score for score, q, d in pairs}
    both = [(ours[q, d], score) for q, hits in theirs.items() for d, score in hits.items()]
    return [a for a, _ in both], [b for _, b in both]


def test_rows_score_as_the_cluster_does(server: ClusterServer, shop: Path, engine: str) -> None:
    found = pulled(reach(server, engine), shop, depth=50)
    assert found.rows.queries == TRAIN
    assert found.start() == pytest.approx({"title.k": 0.9, "title.b": 0.4, "body.k": 0.9, "body.b": 0.4}, rel=1e-5)
    own = at_its_settings(found, engine)
    ours, theirs = compared(found, own)
    assert len(ours) > 300
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert "are the cluster's own" in parity_note(own, found)
    assert "differ from the cluster's own" in parity_note(own.at(own.params.replace({"title.w": 3.0})), found)


def test_every_judged_document_has_the_counts_of_the_documents_themselves(
    server: ClusterServer, shop: Path, engine: str
) -> None:
    found = pulled(reach(server, engine), shop, depth=3)
    rows, statistics = found.rows, found.rows.terms
    words = {
        line.split("\t")[0]: line.split("\t")[1].split() for line in (shop / "queries.tsv").read_text().splitlines()
    }
    qids, docids = rows.qids.take(rows.query_of_rows()).tolist(), rows.document_ids().tolist()
    judged = {(q, d) for q, _, d, _ in (line.split() for line in (shop / "qrels.txt").read_text().splitlines())}
    assert judged - set(zip(qids, docids, strict=True)) == {(f"q{i}", f"goneq{i}") for i in range(TRAIN)}
    for row, (qid, docid) in enumerate(zip(qids, docids, strict=True)):
        text = [server.index.documents[docid][name].split() for name in statistics.fields]
        assert statistics.of_row(row).tolist() == [[each.count(word) for each in text] for word in words[qid]]


def test_only_reading_is_asked_for(server: ClusterServer, shop: Path, engine: str) -> None:
    pulled(reach(server, engine), shop)
    asked = {f"{method} {path}" for method, path in server.requests}
    assert asked <= READS[engine]
    assert len(asked) >= len(READS[engine]) - 1


def test_judged_documents_that_are_gone_are_counted_and_told(server: ClusterServer, shop: Path, engine: str) -> None:
    found = pulled(reach(server, engine), shop)
    assert found.notes == (f"{TRAIN} judged documents are not in shop",)
    assert len(found.rows.missed_labels) == TRAIN


def test_shards_are_told(server: ClusterServer, shop: Path, engine: str) -> None:
    cluster = reach(server, engine)
    server.state.shards = 3
    assert any("3 shards" in note for note in pulled(cluster, shop).notes)


def test_settings_of_vespa_are_those_of_each_field(server: ClusterServer, shop: Path) -> None:
    cluster = reach(server, "vespa")
    server.state.bm25 = {"title": (1.2, 0.3), "body": (2.0, 1.0)}
    found = pulled(cluster, shop, depth=50)
    assert found.start() == pytest.approx({"title.k": 1.2, "title.b": 0.3, "body.k": 2.0, "body.b": 1.0}, abs=1e-4)
    np.testing.assert_allclose(*compared(found, at_its_settings(found, "vespa")), rtol=1e-5)


def test_a_dynamic_field_of_solr_is_known_when_it_is_named(server: ClusterServer) -> None:
    known = reach(server, "solr").fields()
    assert list(known) == ["title", "body"]
    assert "notes_txt" in known
    assert known["notes_txt"] == known["body"]
    assert "colour_s" not in known


def test_words_that_edismax_takes_for_operators_are_words(server: ClusterServer) -> None:
    cluster = reach(server, "solr")
    texts = ["w1 OR w2", "w1 -w2 +w3", 'title:w1 "w2 w3"', "w1 && !w2", "(w1"]
    requests = [cluster.usual_request(text, {"title": 1.0, "body": 1.0}, 5) for text in texts]
    plain = cluster.search([cluster.usual_request("w1 or w2", {"title": 1.0, "body": 1.0}, 5)])
    assert cluster.search(requests)[0] == plain[0]
    assert r"\OR" in requests[0]["query"]
    assert requests[1]["query"] == r"w1 \-w2 \+w3"


def test_thousands_of_documents_are_asked_for_in_batches(engine: str) -> None:
    """10,000 term vectors of Elasticsearch; two words of a thousand documents each for the others."""
    number = 10 if engine == "elasticsearch" else 2
    words = [f"w{i}" for i in range(number)]
    pages = {f"d{i}": words[i % number] for i in range(1000 * number)}
    documents = {docid: {"title": word, "body": f"{word} filler filler"} for docid, word in pages.items()}
    server = ClusterServer(documents, ["title", "body"])
    try:
        queries = {f"q{i}": word for i, word in enumerate(words)}
        qrels = Qrels.of({qid: {f"d{i}": 1.0} for i, qid in enumerate(queries)})
        found = pull(reach(server, engine), queries, qrels, depth=1000)
        assert len(found.rows) == 1000 * number
        np.testing.assert_array_equal(found.rows.terms.tf, 1.0)
        paths = [path for _, path in server.requests]
        # For each term in each field three batches of 400; Vespa also counts documents, and gives 400 hits at most.
        batches = {"solr": 2 * 2 * 3, "vespa": 2 * 2 * (3 + 3) + 2 * 3}
        counted = batches.get(engine, sum(path == "/shop/_mtermvectors" for path in paths))
        assert counted == batches.get(engine, 10 * number)
        assert counted <= len(paths) <= counted + number + 5
    finally:
        server.close()


def test_the_clients_are_the_official_ones(server: ClusterServer) -> None:
    least = {"elasticsearch": (8, 15), "opensearch-py": (2, 7), "pysolr": (3, 10), "pyvespa": (1, 0)}
    for name, needed in least.items():
        assert tuple(map(int, version(name).split(".")[:2])) >= needed
    owners = {
        "elasticsearch": "elasticsearch",
        "opensearch": "opensearchpy",
        "solr": "pysolr",
        "vespa": "vespa.application",
    }
    for engine, module in owners.items():
        cluster = connect(engine, reach(server, engine).access)
        client = getattr(cluster, "_app" if engine == "vespa" else "_client")
        assert type(client).__module__.startswith(module)
