"""What a worker tells when it can't go on, and certificates for tls://."""

from __future__ import annotations

import errno
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters_here import Counting, kill, local_client, model_for, remote, some_rows, split

import fliprank as fr
from fliprank.data.row_file import write_rows
from fliprank.data.subsample import _label_counts
from fliprank.distributed import worker
from fliprank.distributed.cluster import Cluster, ClusterError
from fliprank.distributed.messages import Named, pack, unpack
from fliprank.distributed.rows import ClusterRows, cut_rows
from fliprank.distributed.whole_tasks import WholeTasks
from fliprank.errors import InputError
from fliprank.objectives import parse_objective
from fliprank.optimize.problem import Problem

ROLES = ("client", "scheduler", "worker")


def envelope(do: str, request: Any) -> bytes:
    told = {"do": do, "session": "s", "version": fr.__version__, "forget": [], "sent": {}}
    return pack({**told, "request": pack(request)})


def told(do: str, request: Any) -> dict[str, Any]:
    found: dict[str, Any] = unpack(worker._answer(envelope(do, request), 1))
    return found


def test_a_worker_says_what_it_misses() -> None:
    assert told("rows", {"rows": ["rows-1", "rows-2"]})["missing"] == ["rows-1", "rows-2"]
    assert told("echo", [1, 2])["told"] == [1, 2]


def test_a_full_disk_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(session: Any, request: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/scratch/shard.index")

    monkeypatch.setattr(worker, "echo", full)
    found = told("echo", [1])
    assert (found["error"], found["message"]) == (
        "InputError",
        "/scratch/shard.index: No space left on device, on a worker",
    )


def test_an_index_that_finds_no_room_on_a_worker_is_an_error(client: Any, tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"_id": "a", "title": "red shoes"}\n')
    with pytest.raises(InputError, match=r"docs\.jsonl|full"):
        fr.on(client).index(tmp_path / "docs.jsonl", folder="/dev/full/indexes")


def test_certificates_are_those_of_dasks_configuration(tmp_path: Path) -> None:
    import dask
    from distributed.security import Security

    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    tls = {f"{role}.{part}": str(path) for role in ROLES for part, path in (("cert", cert), ("key", key))}
    settings = {f"distributed.comm.tls.{name}": value for name, value in {**tls, "ca-file": str(cert)}.items()}
    with dask.config.set(settings), local_client(1, protocol="tls://", security=Security()) as secure:
        address = secure.scheduler.address
        assert address.startswith("tls://")
        with fr.on(address) as on:
            assert len(on.send(some_rows(10))) == len(some_rows(10))


def test_another_version_is_refused() -> None:
    other = pack({"do": "echo", "session": "s", "version": "0.0.1", "forget": [], "sent": {}, "request": pack([1])})
    found = unpack(worker._answer(other, 1))
    assert found["message"] == f"a worker has fliprank {fr.__version__}, the client 0.0.1: install the same on both"


def test_a_session_that_has_ended_is_forgotten_and_not_answered() -> None:
    assert told("echo", [1])["told"] == [1]
    worker.session_of("s").made["rows-1"] = some_rows(3)
    worker.end_session("s")
    assert "this session has ended" in told("echo", [1])["message"]
    assert not worker.session_of("s").made
    del worker._ENDED["s"]


def test_what_is_forgotten_while_it_is_made_is_not_kept() -> None:
    session = worker.Session()

    def make() -> int:
        session.forget(["rows-1"])
        return 7

    assert session.once("rows-1", make) == 7
    assert not session.made
    assert session.once("rows-1", lambda: 8) == 8
    assert session.made == {"rows-1": 8}


def test_a_worker_that_can_not_run_fliprank_is_an_error_and_not_a_dead_one(client: Any) -> None:
    class Broken(Cluster):
        def _run(self, worker: str, message: bytes) -> bytes:
            raise ModuleNotFoundError("No module named 'fliprank'")

    with pytest.raises(ClusterError, match=r"can't run fliprank \(ModuleNotFoundError: No module named 'fliprank'\)"):
        ClusterRows(Broken(client), [{"rows": some_rows(4)}])


def test_workers_that_end_again_and_again_are_an_error(client: Any) -> None:
    class Unreachable(Cluster):
        def _run(self, worker: str, message: bytes) -> bytes:
            raise OSError("connection refused")

    told = list[str]()
    with pytest.raises(ClusterError, match="8 workers ended while they had the same 1 shard"):
        ClusterRows(Unreachable(client, say=told.append), [{"rows": some_rows(4)}])
    assert len(told) == 9


def test_what_many_shards_miss_is_sent_in_two_rounds(client: Any, tmp_path: Path) -> None:
    parts = cut_rows(some_rows(60), 40)
    for number, part in enumerate(parts):
        write_rows(tmp_path / f"{number:02d}.rows", part)
    cluster = Counting(client)
    rows = ClusterRows(cluster, [{"file": str(path), "queries": None} for path in sorted(tmp_path.iterdir())])
    assert len(rows) == len(some_rows(60))
    assert set(cluster.messages.values()) == {2}  # the question, and the question with all that was missing


def test_a_file_that_changed_before_it_is_read_again_is_an_error(doomed: Any, tmp_path: Path) -> None:
    rows, cluster = some_rows(20), Cluster(doomed, say=lambda text: None)
    write_rows(tmp_path / "one.rows", rows.select(np.arange(10)))
    write_rows(tmp_path / "two.rows", rows.select(np.arange(10, 20)))
    far = ClusterRows(cluster, [{"file": str(tmp_path / f"{name}.rows"), "queries": None} for name in ("one", "two")])
    other = some_rows(20, seed=5).select(np.arange(10))
    write_rows(tmp_path / "new.rows", other)
    (tmp_path / "new.rows").replace(tmp_path / "one.rows")
    kill(doomed, cluster.owner[far.numbers[0]])
    with pytest.raises(InputError, match=r"one\.rows: has other rows than when it was first read"):
        list(far.each(_label_counts))


def test_answers_of_many_threads_do_not_disturb_each_other() -> None:
    rows = some_rows(40)
    parts, model = split(rows, [10, 20, 30]), model_for(rows)
    points = [model.initialised(seed).params.free_values for seed in range(24)]
    here = Problem.of(model, parts, "nDCG@10", parse_objective("ranknet"))
    with local_client(1, threads_per_worker=4) as client:
        far = Problem.of(model, remote(Cluster(client), parts), "nDCG@10", parse_objective("ranknet"))
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda at: (far.measure_at(at), far.value_and_grad(at, np.arange(5))[0]), points))
    assert found == [(here.measure_at(at), here.value_and_grad(at, np.arange(5))[0]) for at in points]


def test_rows_of_whole_tasks_are_sent_to_each_worker_once() -> None:
    rows, tasks = some_rows(2000), 12
    with local_client(2, threads_per_worker=3) as client:
        cluster = Cluster(client)
        told = WholeTasks(cluster)._call(_label_counts, [[Named("rows-all")]] * tasks, {"rows-all": rows})
        costs = {line["question"]: line for line in cluster.costs.by_question()}
    assert told == [_label_counts(rows)] * tasks
    assert costs["send rows"]["times"] == 2
    assert costs["send rows"]["sent"] > len(pack({"rows": rows})) > 10 * costs["_label_counts"]["sent"]
