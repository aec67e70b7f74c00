"""How tests ask the server: through a cluster of the package, or by the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster_server import ClusterServer

from fliprank.clusters.access import Access
from fliprank.clusters.cluster import Cluster, connect
from fliprank.clusters.pull import Pulled, pull
from fliprank.data.trec import read_qrels
from fliprank.text.search.queries import read_queries

TRAIN, TEST = 10, 6
"""Queries of the shop, in the order of their names."""


def reach(server: ClusterServer, engine: str, index: str = "shop", **options: Any) -> Cluster:
    """The cluster, whose server is well."""
    server.well(engine)
    return connect(engine, Access.of(server.url, index, **options))


def pulled(cluster: Cluster, shop: Path, **options: Any) -> Pulled:
    return pull(cluster, read_queries(shop / "queries.tsv"), read_qrels(shop / "qrels.txt"), **options)


def command(name: str, server: ClusterServer, engine: str, shop: Path) -> list[str]:
    """`fliprank tune` or `evaluate` of this shop."""
    given = ["--engine", engine, "--url", server.url, "--index", "shop", "--queries", str(shop / "queries.tsv")]
    if name == "evaluate":
        return ["evaluate", str(shop / "test.txt"), *given]
    given += ["--qrels", str(shop / "qrels.txt"), "--test", str(shop / "test.txt"), "--no-curve"]
    return ["tune", *given, "--out", str(shop / "out"), "--adopt", "always", "--set", "epochs=20"]
