"""Every method on workers, and workers that are killed in the middle of one (`make test-cluster`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters_here import Doomed, fitted, local_client, model_for, remote, some_rows, split

import fliprank as fr
from fliprank.distributed.cluster import Cluster, ClusterError
from fliprank.distributed.rows import cut_rows
from fliprank.optimize.methods import METHODS


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_gives_on_workers_what_it_gives_here(client: Any, name: str) -> None:
    some, method = some_rows(12), METHODS[name]
    assert some.features is not None
    rows = replace(some, features=some.features[:, :2], feature_names=())  # a full grid takes three parameters
    parts, model = split(rows, [5]), model_for(rows)
    known = method.__dataclass_fields__
    settings = {name: few for name, few in (("epochs", 1), ("steps", 3)) if name in known}
    objective = None if method.direct else "ranknet"
    far = fitted(name, objective, remote(Cluster(client), parts), model, **settings)
    here = fitted(name, objective, parts, model, **settings)
    assert far[0] == here[0] or (np.isnan(far[0]) and np.isnan(here[0]))
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


@pytest.mark.parametrize(
    ("method", "objective", "hidden", "after"),
    [
        ("lbfgs", "softndcg(sigma=0.3)", 0, 9),
        ("lbfgs", "ranknet", 4, 14),
        ("adam", "lambdarank", 3, 31),
        ("exact", None, 0, 47),
    ],
)
def test_a_fit_ends_with_the_same_answer_when_a_worker_is_killed(
    doomed: Any, method: str, objective: str | None, hidden: int, after: int
) -> None:
    rows = some_rows(60)
    parts, model = split(rows, [10, 20, 33, 51]), model_for(rows, hidden)
    here = fitted(method, objective, parts, model, epochs=30 if method != "exact" else 2)
    cluster = Doomed(doomed, after)
    far = fitted(method, objective, remote(cluster, parts), model, epochs=30 if method != "exact" else 2)
    assert any("is gone" in text for text in cluster.told)
    assert far[0] == here[0]
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    rows = some_rows(60)
    parts, model = split(rows, [10, 20, 33, 51]), model_for(rows)
    here = fitted("lbfgs", "ranknet", parts, model)
    with local_client(workers) as client:
        far = fitted("lbfgs", "ranknet", remote(Cluster(client), parts), model)
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


@pytest.mark.parametrize("after", [31])
def test_a_cascade_ends_with_the_same_answer_when_a_worker_is_killed(doomed: Any, after: int) -> None:
    cascade = fr.Cascade([fr.Linear(), fr.Network(hidden=2)], sizes=[20, 6])
    options: dict[str, Any] = {"objective": "ranknet", "epochs": 6, "restarts": 1, "measure": "nDCG@5"}
    train, valid = some_rows(60), some_rows(20, seed=1)
    whole = fr.telescope(cascade, fr.on(doomed).send(train, 4), fr.on(doomed).send(valid, 2), **options)
    cluster = Doomed(doomed, after)
    rows, held = (remote(cluster, cut_rows(each, many)) for each, many in ((train, 4), (valid, 2)))
    far = fr.telescope(cascade, rows, held, **options)
    assert any("is gone" in text for text in cluster.told)
    for one, other in zip(far.stages, whole.stages, strict=True):
        np.testing.assert_array_equal(one.model.params.values, other.model.params.values)


def test_a_worker_that_says_nothing_is_left_behind(doomed: Any) -> None:
    rows = some_rows(60)
    parts, model = split(rows, [20, 40]), model_for(rows)
    here = fitted("lbfgs", "ranknet", parts, model)
    told = list[str]()
    cluster = Cluster(doomed, slow=0.5, say=told.append)
    far_rows = remote(cluster, parts)
    fitted("lbfgs", "ranknet", far_rows, model)  # all is compiled and known
    one = sorted(set(cluster.owner.values()))[0]
    stopped = doomed.run(os.getpid, workers=[one])[one]
    os.kill(stopped, signal.SIGSTOP)
    try:
        far = fitted("lbfgs", "ranknet", far_rows, model)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert any("has not answered for" in text for text in told)
    assert any("is left behind" in text for text in told)
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


def test_a_scheduler_that_goes_away_leaves_a_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    train, valid = some_rows(60), some_rows(20, seed=1)
    settings: dict[str, Any] = {"objective": "ranknet", "method": "adam", "epochs": 12, "restarts": 1, "sweep": False}
    settings |= {"measure": "nDCG@5", "patience": None}
    whole = fr.train(fr.Linear(), train, valid, **settings)
    code = "import sys; from distributed.cli.dask_scheduler import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--port", "0", "--no-dashboard", "--scheduler-file", str(tmp_path / "at")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler, _worker(tmp_path / "at") as address:
        ended = list[int]()

        def progress(what: str, number: int, of: int, epoch: Any) -> None:
            ended.append(number)
            if len(ended) == 5:
                scheduler.kill()

        on = fr.on(address)
        with pytest.raises(ClusterError, match=r"the scheduler at .* went away.*--resume"):
            fr.train(fr.Linear(), on.send(train), on.send(valid), checkpoint=tmp_path, progress=progress, **settings)
    assert len(ended) < 12
    with local_client(2) as client:
        on = fr.on(client)
        rows = on.send(train), on.send(valid)
        far = fr.train(fr.Linear(), *rows, checkpoint=tmp_path, resume=True, **settings)
    np.testing.assert_allclose(far.model.params.values, whole.model.params.values, rtol=1e-7, atol=1e-9)


@contextmanager
def _worker(file: Path) -> Iterator[str]:
    """A worker of the scheduler that writes its address to a file."""
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    code = "import sys; from distributed.cli.dask_worker import main; sys.exit(main())"
    command = [sys.executable, "-c", code, address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        try:
            yield address
        finally:
            worker.kill()
