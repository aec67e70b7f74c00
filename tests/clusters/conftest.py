"""A shop's documents in a server that scores by Lucene; skipped where there is no Lucene."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lucene_server import LuceneServer

from fliprank.clusters import calls
from fliprank.engines.base import runner_of
from fliprank.errors import FliprankError

WORDS = [f"w{i}" for i in range(60)]
FIELDS = ["title", "body"]


@pytest.fixture(scope="session")
def server() -> Iterator[LuceneServer]:
    try:
        runner_of("lucene").version()
    except FliprankError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(3)
    documents = {
        f"d{i}": {"title": " ".join(rng.choice(WORDS, rng.integers(0, 6))), "body": " ".join(rng.choice(WORDS, i % 90))}
        for i in range(300)
    }
    running = LuceneServer(documents, FIELDS)
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _well(server: LuceneServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.well()
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.001)
    for name in ("USER", "PASSWORD", "API_KEY"):
        monkeypatch.delenv(f"FLIPRANK_{name}", raising=False)


@pytest.fixture
def shop(tmp_path: Path, server: LuceneServer) -> Path:
    """Queries, and judgements that like titles."""
    rng, lines = np.random.default_rng(4), []
    queries = {f"q{i}": " ".join(rng.choice(WORDS, 3, replace=False)) for i in range(24)}
    for qid, text in queries.items():
        for docid, page in server.documents.items():
            hits = len(set(text.split()) & set(page["title"].split()))
            if hits or rng.random() < 0.02:
                lines.append(f"{qid} 0 {docid} {hits}\n")
        lines.append(f"{qid} 0 gone{qid} 1\n")
    (tmp_path / "queries.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in queries.items()))
    half = [line for line in lines if int(line.split()[0][1:]) < 16]
    (tmp_path / "qrels.txt").write_text("".join(half))
    (tmp_path / "test.txt").write_text("".join(line for line in lines if line not in set(half)))
    return tmp_path
