"""Clusters over HTTP, through the official clients: rows, scores, commands; and all that may go wrong there."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from lucene_server import PASSWORD, USER, LuceneServer

from fliprank.cli import run
from fliprank.clusters.access import Access
from fliprank.clusters.cluster import connect
from fliprank.clusters.pull import pull
from fliprank.clusters.task import parity_note
from fliprank.clusters.template import Template, read_template
from fliprank.data.trec import read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.export.functions import engine_model
from fliprank.text.search.queries import read_queries

ENGINES = ("elasticsearch", "opensearch")


def reach(server: LuceneServer, engine: str = "elasticsearch", index: str = "shop", **options: float):
    server.engine = engine
    return connect(engine, Access.of(server.url, index, **options))


def pulled(server: LuceneServer, shop: Path, engine: str = "elasticsearch", **options: object):
    queries = read_queries(shop / "queries.tsv")
    return pull(reach(server, engine), queries, read_qrels(shop / "qrels.txt"), **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_score_as_the_cluster_does(server: LuceneServer, shop: Path, engine: str) -> None:
    found = pulled(server, shop, engine, depth=50)
    assert found.rows.queries == 16
    assert found.start() == {"title.k": 0.9, "title.b": 0.4, "body.k": 0.9, "body.b": 0.4}
    model = engine_model(engine, "most_fields").prepared(found.rows, 0)
    own = model.at(model.params.replace(found.start()))
    ours, theirs = own.score(found.rows), found.run.to_dict()
    qids, docids = found.rows.qids.take(found.rows.query_of_rows()).tolist(), found.rows.document_ids().tolist()
    compared = [(o, theirs[q][d]) for o, q, d in zip(ours, qids, docids, strict=True) if d in theirs[q]]
    assert len(compared) > 500
    np.testing.assert_allclose(*np.array(compared).T, rtol=1e-5)
    assert "are the cluster's own" in parity_note(own, found)
    assert "differ from the cluster's own" in parity_note(own.at(own.params.replace({"title.w": 3.0})), found)


@pytest.mark.parametrize("engine", ENGINES)
def test_only_reading_is_asked_for(server: LuceneServer, shop: Path, engine: str) -> None:
    pulled(server, shop, engine)
    asked = set(server.requests)
    assert asked == {
        ("GET", "/shop"),
        ("POST", "/_msearch"),
        ("POST", "/shop/_mtermvectors"),
        ("POST", "/shop/_analyze"),
    }


def test_judged_documents_that_are_gone_are_counted_and_told(server: LuceneServer, shop: Path) -> None:
    found = pulled(server, shop)
    assert found.notes == ("16 judged documents are not in shop",)
    assert len(found.rows.missed_labels) == 16


def test_a_busy_cluster_is_asked_again(server: LuceneServer, shop: Path) -> None:
    for status in (429, 503):
        server.busy, server.status = 4, status
        assert len(pulled(server, shop).rows) > 100


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_fetched_is_kept_and_the_same_call_goes_on(server: LuceneServer, shop: Path, engine: str) -> None:
    whole = pulled(server, shop, engine, depth=20)
    count = len(server.requests)
    cluster = reach(server, engine)
    queries, qrels = read_queries(shop / "queries.tsv"), read_qrels(shop / "qrels.txt")
    searched, first = cluster.counts, []

    def break_off(*given: object):
        if first:
            server.busy, server.status = 99, 503
        first.append(1)
        return searched(*given)

    cluster.counts = break_off
    with pytest.raises(InputError, match=r"too busy in 6 tries, reading term vectors: 503.*what was fetched is kept"):
        pull(cluster, queries, qrels, depth=20, folder=shop / "kept")
    server.busy = 0
    server.requests.clear()
    again = pull(reach(server, engine), queries, qrels, depth=20, folder=shop / "kept")
    assert len(server.requests) < count / 2
    np.testing.assert_array_equal(again.rows.terms.tf, whole.rows.terms.tf)
    np.testing.assert_array_equal(again.rows.labels, whole.rows.labels)
    server.requests.clear()
    other = pull(reach(server, engine), queries, qrels, depth=30, folder=shop / "kept")
    assert ("POST", "/_msearch") in server.requests
    assert len(other.rows) > len(whole.rows)


def test_a_file_that_was_cut_short_is_mended(server: LuceneServer, shop: Path) -> None:
    whole = pulled(server, shop, folder=shop / "kept")
    path = shop / "kept" / "documents.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    again = pulled(server, shop, folder=shop / "kept")
    np.testing.assert_array_equal(again.rows.terms.tf, whole.rows.terms.tf)
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_say_what_to_do(server: LuceneServer, shop: Path, engine: str) -> None:
    with pytest.raises(InputError, match=r"index nowhere: not there.*is the name of the index right"):
        reach(server, engine, "nowhere").fields()
    server.closed = True
    with pytest.raises(InputError, match="the index is closed"):
        reach(server, engine).fields()
    server.well()
    with pytest.raises(InputError, match=r"shop has no text field headline \(it has title, body\)"):
        pulled(server, shop, engine, fields=["headline"])
    server.mapping["title"]["similarity"] = "DFR"
    with pytest.raises(InputError, match=r"title is scored by DFR, not by BM25 \(leave it out by --fields"):
        pulled(server, shop, engine)
    server.well()
    server.mapping["title"]["analyzer"] = "german"
    with pytest.raises(InputError, match="cut queries in different ways: title by german"):
        pulled(server, shop, engine)
    server.well()
    server.slow = 1.0
    with pytest.raises(InputError, match="no answer in 6 tries"):
        reach(server, engine, timeout=0.1).fields()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_that_is_not_there(server: LuceneServer, engine: str) -> None:
    with pytest.raises(InputError, match=r"no answer in 6 tries.*is the address right, is it up"):
        connect(engine, Access.of("http://127.0.0.1:9", "shop")).fields()


def test_shards_are_told(server: LuceneServer, shop: Path) -> None:
    server.shards = 3
    assert any("3 shards" in note for note in pulled(server, shop).notes)


def test_addresses_that_are_none() -> None:
    for url, index in (
        ("search", "shop"),
        ("file:///etc/passwd", "shop"),
        ("http://host", "a/../b"),
        ("http://host", "*"),
    ):
        with pytest.raises(UsageError, match="is no"):
            Access.of(url, index)
    with pytest.raises(UsageError, match="can't be asked over the network"):
        connect("sqlite", Access.of("http://host", "shop"))


@pytest.mark.parametrize("engine", ENGINES)
def test_commands_tune_and_evaluate_and_tell_no_secret(
    server: LuceneServer, shop: Path, engine: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.needs_password, server.engine = True, engine
    given = ["--engine", engine, "--url", server.url, "--index", "shop", "--queries", str(shop / "queries.tsv")]
    tune = ["tune", *given, "--qrels", str(shop / "qrels.txt"), "--test", str(shop / "test.txt"), "--no-curve"]
    tune += ["--out", str(shop / "out"), "--adopt", "always", "--set", "epochs=20"]
    monkeypatch.setenv("FLIPRANK_USER", USER)
    monkeypatch.setenv("FLIPRANK_PASSWORD", PASSWORD + "?")
    assert run(tune) == 1
    told = capfd.readouterr().err
    assert "not allowed" in told
    assert "FLIPRANK_PASSWORD" in told
    assert PASSWORD not in told
    monkeypatch.setenv("FLIPRANK_PASSWORD", PASSWORD)
    assert run(tune) == 0
    out, err = capfd.readouterr()
    assert "are the cluster's own" in out
    result = json.loads((shop / "out" / "result.json").read_text())
    assert result["proof"]["test"]["tuned"] > result["proof"]["test"]["default"]
    assert (shop / "out" / "export" / "README.md").is_file()
    template = {"query": {"match": {"body": {"query": "{{query}}"}}}}
    (shop / "by-body.json").write_text(json.dumps(template))
    asked = ["evaluate", str(shop / "test.txt"), *given, "--template", str(shop / "by-body.json"), "--json"]
    assert run(asked) == 0
    by_body = json.loads(capfd.readouterr().out)
    assert run([*asked[:-3], "--json"]) == 0
    by_all = json.loads(capfd.readouterr().out)
    measure = next(iter(by_body["runs"]["by-body"]))
    assert by_all["runs"]["shop"][measure] > by_body["runs"]["by-body"][measure]
    written = b"".join(path.read_bytes() for path in shop.rglob("*") if path.is_file())
    for secret in (PASSWORD, "Basic "):
        assert secret not in out + err
        assert secret.encode() not in written


def test_options_of_clusters_go_together(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        ("tune --index shop --qrels q --engine elasticsearch", "--index goes with --url"),
        ("tune --url http://host --qrels q --engine elasticsearch", "--url takes --index"),
        ("tune --url http://host --index shop --qrels q", "--url tunes the function of an engine"),
        ("evaluate q.txt --url http://host --index shop --queries q", "--url takes --engine"),
        ("evaluate q.txt", "Give runs, or --url"),
        ("tune --url http://a:b@host --index shop --qrels q --engine opensearch", "has a password in it"),
    ):
        assert run([*arguments.split(), *(["--out", str(shop / "o")] if arguments.startswith("tune") else [])]) in (
            1,
            2,
        )
        assert said in " ".join(capfd.readouterr().err.split())


def test_templates(tmp_path: Path) -> None:
    hostile = 'a"}, "size": 9999, "x": {"y": "'
    assert Template({"query": {"match": {"body": "{{query}}"}}, "size": 3}).request(hostile, 5) == {
        "query": {"match": {"body": hostile}},
        "size": 3,
    }
    (tmp_path / "t.json").write_text('{"query": {"match_all": {}}}')
    with pytest.raises(InputError, match="the place for the text of the query"):
        read_template(tmp_path / "t.json")


def test_ten_thousand_term_vectors() -> None:
    words = [f"w{i}" for i in range(10)]
    documents = {f"d{i}": {"title": words[i % 10], "body": f"{words[i % 10]} filler filler"} for i in range(10_000)}
    server = LuceneServer(documents, ["title", "body"])
    try:
        from fliprank.data.trec import Qrels

        queries = {f"q{i}": word for i, word in enumerate(words)}
        qrels = Qrels.of({qid: {f"d{i}": 1.0} for i, qid in enumerate(queries)})
        found = pull(reach(server), queries, qrels, depth=1000)
        assert len(found.rows) == 10_000
        assert sum(path == "/shop/_mtermvectors" for _, path in server.requests) == 100
    finally:
        server.close()


def test_the_clients_are_the_official_ones() -> None:
    assert int(version("elasticsearch").split(".")[0]) >= 8
    assert int(version("opensearch-py").split(".")[0]) >= 2
