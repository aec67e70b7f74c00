"""`fr.on`: the same calls on rows of a cluster, whole tasks of small data, and what goes wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters_here import local_client, some_rows, split

import fliprank as fr
from fliprank.cli import run
from fliprank.data.candidates import Candidates
from fliprank.data.row_file import write_rows
from fliprank.data.subsample import _label_counts
from fliprank.distributed.cluster import Cluster, ClusterError
from fliprank.distributed.messages import pack, unpack
from fliprank.distributed.rows import ClusterRows
from fliprank.errors import InputError, UsageError, WrongTypeError

TRAIN, VALID = some_rows(50), some_rows(20, seed=1)
QUICK: dict[str, Any] = {"measure": "nDCG@10", "restarts": 2, "epochs": 4}


def files(folder: Path, rows: Candidates, cuts: list[int]) -> list[Path]:
    paths = []
    for number, part in enumerate(split(rows, cuts)):
        paths.append(folder / f"part-{number}.rows")
        write_rows(paths[-1], part)
    return paths


def test_a_training_on_files_that_workers_read_is_that_on_the_same_shards_in_memory(
    client: Any, tmp_path: Path
) -> None:
    files(tmp_path, TRAIN, [11, 30])
    on = fr.on(client)
    rows = on.read(tmp_path)
    assert rows.queries == TRAIN.queries
    assert rows.qids == TRAIN.qids
    far = fr.train(fr.Linear(), rows, on.send(VALID), objective="ranknet", **QUICK)
    here = fr.train(fr.Linear(), TRAIN, VALID, objective="ranknet", **QUICK)
    np.testing.assert_allclose(far.model.params.values, here.model.params.values, rtol=1e-6, atol=1e-8)
    assert far.best.valid == pytest.approx(here.best.valid, abs=1e-9)
    assert [each.what for each in far.tried] == [each.what for each in here.tried]
    assert far.model.structure() == here.model.structure()  # the scaler is the same to the last bit


def test_one_file_is_cut_into_as_many_parts_as_there_are_threads(client: Any, tmp_path: Path) -> None:
    (path,) = files(tmp_path, TRAIN, [])
    rows = fr.on(client).read(path)
    assert len(rows.row_counts) == 2
    assert rows.row_counts.sum() == len(TRAIN)
    assert abs(int(np.diff(rows.row_counts)[0])) < 50
    assert len(fr.on(client).read(path, shards=5).row_counts) == 5
    exact, whole = (fr.train(fr.Linear(), each, method="exact", average=False, **QUICK) for each in (rows, TRAIN))
    # Its first direction is a gradient, which is a sum over shards: rounded otherwise, but the same to twelve digits.
    np.testing.assert_allclose(exact.model.params.values, whole.model.params.values, rtol=1e-9, atol=1e-9)
    assert exact.best.train == whole.best.train


def test_a_cascade_is_trained_where_its_rows_are(client: Any) -> None:
    cascade = fr.Cascade([fr.Linear(), fr.Network(hidden=2)], sizes=[20, 6])
    options: dict[str, Any] = {"objective": "ranknet", "epochs": 3, "restarts": 1, "measure": "nDCG@5"}
    on = fr.on(client)
    far = fr.telescope(cascade, on.send(TRAIN, 3), on.send(VALID), **options)
    here = fr.telescope(cascade, TRAIN, VALID, **options)
    for one, other in zip(far.stages, here.stages, strict=True):
        np.testing.assert_allclose(one.model.params.values, other.model.params.values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("convention", ["fliprank", "trec_eval", "ranx"])
def test_an_evaluation_brings_back_the_value_of_each_query(client: Any, convention: str) -> None:
    model, measures = fr.Linear().prepared(TRAIN, 0).initialised(1), ["nDCG@10", "RR"]
    rows = fr.on(client).send(TRAIN, 3)
    far, here = (fr.evaluate(model, each, measures, convention=convention) for each in (rows, TRAIN))
    assert far.qids == here.qids
    for name in here.values["model"]:
        np.testing.assert_array_equal(far.values["model"][name], here.values["model"][name])


@pytest.mark.parametrize("named", [True, False])
def test_rank_writes_on_workers_what_it_writes_here(client: Any, tmp_path: Path, named: bool) -> None:
    rows = TRAIN if named else replace(TRAIN, docids=None)
    files(tmp_path, rows, [4, 11, 12, 30, 44])  # more shards than threads: they come in rounds
    fr.Linear().prepared(TRAIN, 0).initialised(1).save(tmp_path / "model")
    address, out = client.scheduler.address, {side: tmp_path / f"{side}.run" for side in ("far", "here")}
    assert run(["rank", str(tmp_path / "model"), str(tmp_path), "--cluster", address, "--out", str(out["far"])]) == 0
    assert run(["rank", str(tmp_path / "model"), str(tmp_path), "--out", str(out["here"])]) == 0
    assert out["far"].read_bytes() == out["here"].read_bytes()
    assert len(out["far"].read_text().splitlines()) == len(TRAIN)


def test_trials_and_folds_of_small_data_are_whole_tasks(client: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {**QUICK, "objective": "softndcg", "checkpoint": tmp_path / "far"}
    with fr.on(client) as on:
        far = fr.train(fr.Linear(), TRAIN, VALID, **settings)
        asked = {line["question"]: line["times"] for line in on.explain().to_dicts()}
        again = fr.train(fr.Linear(), TRAIN, VALID, resume=True, **settings)
    here = fr.train(fr.Linear(), TRAIN, VALID, **{**settings, "checkpoint": tmp_path / "here"})
    assert asked == {"run_whole_trial": 1, "send rows": 2}
    for one in (far, again):
        np.testing.assert_array_equal(one.model.params.values, here.model.params.values)
        assert str(one.trail) == str(here.trail)  # where there is no number, that is NaN, which equals nothing
        assert one.tried == here.tried
    written = [sorted(each.name for each in (tmp_path / side).iterdir()) for side in ("far", "here")]
    assert written[0] == written[1]


def test_a_worker_that_joins_late_takes_over_shards() -> None:
    with local_client(1) as client:
        cluster = Cluster(client)
        rows = ClusterRows(cluster, [{"rows": part} for part in split(TRAIN, [9, 20, 35])])
        before = list(rows.each(_label_counts))
        assert len(set(cluster.owner.values())) == 1
        client.cluster.scale(2)
        client.wait_for_workers(2)
        deadline = time.monotonic() + 60
        while len(set(cluster.owner.values())) < 2:
            assert list(rows.each(_label_counts)) == before
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert list(rows.each(_label_counts)) == before


def test_messages_come_back_as_they_were() -> None:
    value = {"a": [1, 2.5, float("inf"), None, True, "é"], "b": (np.arange(3), np.zeros((0, 2))), "c": b"bytes"}
    found = unpack(pack(value))
    assert found["a"] == value["a"]
    assert found["c"] == b"bytes"
    np.testing.assert_array_equal(found["b"][0], np.arange(3))
    assert found["b"][1].shape == (0, 2)
    model = fr.Network(hidden=2).prepared(TRAIN, 0)
    with pytest.raises(InputError, match="a model without all but its values"):
        unpack(pack(model))
    with pytest.raises(UsageError, match="not ready"):
        pack(fr.Linear())
    with pytest.raises(UsageError, match="a object can't be sent"):
        pack(object())


@pytest.mark.parametrize("cut", [0, 3, 17, 40])
def test_damaged_messages_are_an_error(cut: int) -> None:
    whole = pack({"values": np.arange(100), "name": "x"})
    with pytest.raises(InputError, match="damaged message"):
        unpack(whole[:cut])


def test_wrong_clients_and_addresses_are_refused() -> None:
    with pytest.raises(WrongTypeError, match=r"client must be a dask\.distributed\.Client"):
        fr.on(7)
    for address in ("local:none", "local:0", "somewhere"):
        with pytest.raises(UsageError, match="local:4"):
            fr.on(address)


def test_without_dask_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['distributed'] = None\nimport fliprank as fr\nfr.on('local:2')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "dask.distributed is not installed: pip install 'fliprank[cluster]'" in ended.stderr


def test_a_scheduler_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fliprank.distributed.on.CONNECT", 0.5)
    with pytest.raises(ClusterError, match="no scheduler answers at tcp://127"):
        fr.on("tcp://127.0.0.1:9")
