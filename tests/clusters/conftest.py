"""A shop's documents in a server that scores by Lucene; skipped where there is no Lucene."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from asking import TEST, TRAIN
from cluster_server import ENGINES, ClusterServer

from fliprank.clusters import calls
from fliprank.engines.base import runner_of
from fliprank.errors import FliprankError

WORDS = [f"w{i}" for i in range(60)]
FIELDS = ["title", "body"]
SECRETS = ("USER", "PASSWORD", "API_KEY", "CA_CERTS", "CLIENT_CERT", "CLIENT_KEY")


@pytest.fixture(scope="session")
def running() -> Iterator[ClusterServer]:
    try:
        runner_of("lucene").version()
    except FliprankError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(3)
    documents = {
        f"d{i}": {"title": " ".join(rng.choice(WORDS, rng.integers(0, 6))), "body": " ".join(rng.choice(WORDS, i % 90))}
        for i in range(300)
    }
    server = ClusterServer(documents, FIELDS)
    yield server
    server.close()


@pytest.fixture
def server(running: ClusterServer) -> ClusterServer:
    running.well()
    return running


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long waits, and nobody's secrets but those of the test."""
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.001)
    for name in SECRETS:
        monkeypatch.delenv(f"FLIPRANK_{name}", raising=False)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(tmp_path: Path, server: ClusterServer) -> Path:
    """Queries, and judgements that like titles."""
    rng, lines = np.random.default_rng(4), []
    queries = {f"q{i}": " ".join(rng.choice(WORDS, 3, replace=False)) for i in range(TRAIN + TEST)}
    for qid, text in queries.items():
        for docid, page in server.index.documents.items():
            hits = len(set(text.split()) & set(page["title"].split()))
            if hits or rng.random() < 0.02:
                lines.append(f"{qid} 0 {docid} {hits}\n")
        lines.append(f"{qid} 0 gone{qid} 1\n")
    (tmp_path / "queries.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in queries.items()))
    half = [line for line in lines if int(line.split()[0][1:]) < TRAIN]
    (tmp_path / "qrels.txt").write_text("".join(half))
    (tmp_path / "test.txt").write_text("".join(line for line in lines if line not in set(half)))
    return tmp_path
