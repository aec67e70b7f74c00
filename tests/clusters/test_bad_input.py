"""All that may go wrong with a cluster: an error that says what to do, or another try."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from asking import command, pulled, reach
from cluster_server import ClusterServer

from fliprank.cli import run
from fliprank.clusters import calls
from fliprank.clusters.access import Access
from fliprank.clusters.calls import Failure, patiently
from fliprank.clusters.cluster import connect
from fliprank.errors import FliprankError, InputError, UsageError

pytestmark = pytest.mark.long


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_busy_cluster_is_asked_again(server: ClusterServer, engine: str, status: int) -> None:
    cluster = reach(server, engine)
    server.state.busy, server.state.status = 5, status
    assert set(cluster.fields()) == {"title", "body"}
    assert len(server.requests) == 6


def test_waits_grow_and_end(server: ClusterServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.5)
    access, waits = reach(server, "solr").access, list[float]()

    def busy() -> None:
        raise Failure(503, "busy")

    with pytest.raises(InputError, match="too busy in 9 tries, asking: 503 busy"):
        patiently(busy, access, "asking", waits.append, 9)
    assert len(waits) == 8
    assert all(0.7 * 2**i * 0.5 <= wait <= 1.3 * 2**i * 0.5 for i, wait in enumerate(waits[:5]))
    assert max(waits) <= calls.LONGEST_WAIT * 1.25


def test_what_is_not_passing_is_asked_once(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine)
    server.state.echo = 400
    with pytest.raises(InputError, match=r"refused.*400"):
        cluster.fields()
    assert len(server.requests) == 1


def test_an_answer_of_a_part_of_the_index_is_none(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine)
    request = cluster.usual_request("w1", {"title": 1.0}, 5)
    whole = cluster.search([request])
    server.state.partial = 2
    assert cluster.search([request]) == whole
    server.state.partial = 99
    with pytest.raises(InputError, match=r"too busy in 6 tries, searching: 504"):
        cluster.search([request])


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_shards_that_failed_are_asked_again(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine)
    server.state.failed_shards = 99
    with pytest.raises(InputError, match=r"503 node_not_connected_exception 1 shards failed: gone"):
        cluster.search([cluster.usual_request("w1", {"title": 1.0}, 5)])


def test_an_index_that_is_not_there(server: ClusterServer, engine: str) -> None:
    said = {"vespa": r"refused.*'nowhere' is not a valid document type"}
    with pytest.raises(InputError, match=said.get(engine, r"nowhere: not there.*is the name of the index right")):
        reach(server, engine, "nowhere").fields()


def test_an_index_that_is_closed(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine)
    server.state.closed = True
    with pytest.raises(InputError, match=r"closed|No backends in service"):
        cluster.fields()


def test_a_field_that_is_not_there(server: ClusterServer, shop: Path, engine: str) -> None:
    with pytest.raises(InputError, match=r"shop has no text field headline \(it has (title, body|body, title)\)"):
        pulled(reach(server, engine), shop, fields=["headline"])


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch", "solr"])
def test_fields_that_are_scored_or_cut_in_other_ways(server: ClusterServer, shop: Path, engine: str) -> None:
    cluster = reach(server, engine)
    server.state.similarity = "DFR"
    with pytest.raises(InputError, match=r"title is scored by DFR, not by BM25 \(leave it out by --fields.*: body\)"):
        pulled(cluster, shop)
    cluster = reach(server, engine)
    server.state.analyzer = "german"
    with pytest.raises(InputError, match="cut queries in different ways: title by german"):
        pulled(cluster, shop)
    assert len(pulled(cluster, shop, fields=["body"]).rows) > 100


def test_vespa_needs_its_rank_profile(server: ClusterServer, shop: Path) -> None:
    cluster = reach(server, "vespa")
    server.state.profiles = ("default",)
    with pytest.raises(InputError, match=r"shop has no rank profile fliprank \(add the one of docs/clusters.md"):
        pulled(cluster, shop)


def test_a_cluster_that_is_not_there(engine: str) -> None:
    with socket.socket() as taken:  # a port that nobody listens on
        taken.bind(("127.0.0.1", 0))
        cluster = connect(engine, Access.of(f"http://127.0.0.1:{taken.getsockname()[1]}", "shop"))
        with pytest.raises(InputError, match=r"no answer in 6 tries.*is the address right, is it up"):
            cluster.fields()


def test_a_cluster_that_is_slow(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine, timeout=0.1)
    server.state.slow = 0.5
    with pytest.raises(InputError, match="no answer in 6 tries"):
        cluster.fields()
    server.state.slow = 0.0


def test_wrong_credentials_are_not_tried_again(server: ClusterServer, engine: str) -> None:
    cluster = reach(server, engine, environment={"FLIPRANK_USER": "ann", "FLIPRANK_PASSWORD": "guess"})
    server.state.locked = True
    with pytest.raises(InputError, match=r"not allowed.*401 \(set FLIPRANK_USER and FLIPRANK_PASSWORD, or"):
        cluster.fields()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("engine", "what"), [("elasticsearch", "/_analyze"), ("solr", "/analysis/field"), ("solr", "/schema")]
)
def test_a_right_that_is_missing_is_named(server: ClusterServer, shop: Path, engine: str, what: str) -> None:
    cluster = reach(server, engine)
    server.state.forbidden = what
    with pytest.raises(InputError, match=r"not allowed, (cutting queries|reading its schema): 403.*see docs/clusters"):
        pulled(cluster, shop)


def test_the_version_is_left_out_where_it_may_not_be_asked_for(server: ClusterServer) -> None:
    for engine, what, told in (("elasticsearch", "/", "Elasticsearch 9.1.0"), ("solr", "admin/system", "Solr 9.7.0")):
        cluster = reach(server, engine)
        assert cluster.described() == told
        server.state.forbidden = what
        assert cluster.described() == engine


NONSENSE: list[Any] = [[], {}, "<html>welcome</html>", {"root": 5, "responseHeader": {}}, {"shop": 7}, "null"]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=str)
def test_an_answer_of_another_shape_is_an_error_that_says_so(server: ClusterServer, engine: str, nonsense: Any) -> None:
    cluster = reach(server, engine)
    server.state.nonsense = nonsense
    for ask in (
        cluster.fields,
        lambda: cluster.search([cluster.usual_request("w1", {"title": 1.0}, 5)]),
    ):
        with pytest.raises(FliprankError, match=r"can't be read|refused|no answer|sent elsewhere|stands for 2"):
            ask()


def test_scores_that_are_none_leave_the_order(server: ClusterServer) -> None:
    cluster = reach(server, "elasticsearch")
    request = {"query": {"match": {"body": {"query": "w1"}}}, "sort": "_id", "size": 4}
    [found] = cluster.search([request])
    assert list(found) == sorted(found)
    assert list(found.values()) == [4.0, 3.0, 2.0, 1.0]


def test_addresses_that_are_none() -> None:
    for url, index in (
        ("search", "shop"),
        ("file:///etc/passwd", "shop"),
        ("http://[::1", "shop"),
        ("http://host:port", "shop"),
        ("http://ho st", "shop"),
        ("http://host", "a/../b"),
        ("http://host", "*"),
        ("http://host", ""),
    ):
        with pytest.raises(UsageError, match="is no"):
            Access.of(url, index)
    with pytest.raises(UsageError, match="is no name of a field"):
        Access.of("http://host", "shop", id_field="id or 1")
    with pytest.raises(UsageError, match="is no name of a schema"):
        connect("vespa", Access.of("http://host", "my-shop"))
    with pytest.raises(UsageError, match=r"these can: elasticsearch, opensearch, solr, vespa"):
        connect("sqlite", Access.of("http://host", "shop"))
    for engine in ("elasticsearch", "opensearch", "solr", "vespa"):  # no port, a path: as it may be behind a proxy
        connect(engine, Access.of("https://host/search", "shop"))


def test_errors_of_a_command_are_one_line_for_people(
    server: ClusterServer, shop: Path, engine: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.well(engine)
    server.state.echo = 500
    for name in ("tune", "evaluate"):
        assert run(command(name, server, engine, shop)) == 1
        told = capfd.readouterr().err
        assert "refused" in told
        assert "Traceback" not in told
    assert not (shop / "out" / "result.json").exists()
