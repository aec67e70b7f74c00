"""Clusters of processes on this machine, rows for them, and ways to disturb them."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.rows import ClusterRows
from fliprank.experiment.trials import fit_once
from fliprank.measures import parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.objectives import parse_objective
from fliprank.optimize.methods import make_method


@contextmanager
def local_client(workers: int, **given: Any) -> Iterator[Any]:
    """A client of a scheduler with so many worker processes of one thread each."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "processes": True, **given}
    with (
        LocalCluster(**options, dashboard_address=":0", silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        yield client


def some_rows(queries: int = 40, features: int = 5, seed: int = 0) -> Candidates:
    """Graded rows of queries of different sizes, some of which have nothing relevant."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, queries)
    matrix = rng.normal(size=(sizes.sum(), features))
    truth = matrix[:, 0] + 0.7 * matrix[:, 1] - 0.4 * matrix[:, 2] ** 2 + rng.normal(size=len(matrix))
    labels = np.clip(np.floor(1.5 * truth), 0, 4)
    ids = [f"d{i}" for i in rng.permutation(len(matrix))]
    return Candidates.of(labels, qid=np.repeat(np.arange(queries), sizes), docids=ids, features=matrix)


def split(rows: Candidates, cuts: list[int]) -> list[Candidates]:
    """The rows as shards that end at these numbers of queries."""
    ends = sorted({0, *(cut for cut in cuts if 0 < cut < rows.queries), rows.queries})
    return [rows.select(np.arange(a, b)) for a, b in pairwise(ends)]


class Counting(Cluster):
    """A cluster that counts its messages by worker."""

    def __init__(self, client: Any, **given: Any) -> None:
        super().__init__(client, **given)
        self.messages: Counter[str] = Counter()

    def send(self, do: str, group: Any, request: bytes) -> Future[bytes]:
        self.messages[group.worker] += 1
        return super().send(do, group, request)


class Shuffled(Cluster):
    """A cluster whose answers come late, each by a time of its own."""

    chance = np.random.default_rng(0)

    def _run(self, worker: str, message: bytes) -> bytes:
        told = super()._run(worker, message)
        time.sleep(float(self.chance.uniform(0, 0.003)))
        return told


class Doomed(Cluster):
    """A cluster of which a worker is killed when so many messages were sent: while it works on that message."""

    def __init__(self, client: Any, after: int) -> None:
        super().__init__(client, say=self.heard)
        self.after, self.count, self.told = after, 0, list[str]()

    def heard(self, text: str) -> None:
        self.told.append(text)

    def send(self, do: str, group: Any, request: bytes) -> Future[bytes]:
        future = super().send(do, group, request)
        self.count += 1
        if self.count == self.after:
            kill(self.client, group.worker)
        return future


def kill(client: Any, worker: str) -> None:
    """End a worker as a machine that fails would: at once, without a word."""
    os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)


def remote(cluster: Cluster, parts: list[Candidates]) -> ClusterRows:
    return ClusterRows(cluster, [{"rows": part} for part in parts])


def model_for(rows: Candidates, hidden: int = 0) -> Model:
    return (Network(hidden=hidden) if hidden else Linear()).prepared(rows, 0)


def fitted(method: str, objective: str | None, rows: Any, model: Model, **settings: Any) -> tuple[float, Model]:
    target = None if objective is None else parse_objective(objective)
    made = make_method(method, target, **settings)
    return fit_once(made, target, model, rows, parse_measure("nDCG@10"), 3)
