"""What was fetched is kept: after an error or a kill the same call goes on, and has in the end what one call has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from asking import command, pulled, reach
from cluster_server import ClusterServer

from fliprank.clusters.pull import Pulled
from fliprank.errors import InputError

pytestmark = pytest.mark.long


def same(one: Pulled, other: Pulled) -> None:
    np.testing.assert_array_equal(one.rows.terms.tf, other.rows.terms.tf)
    np.testing.assert_array_equal(one.rows.terms.field_df, other.rows.terms.field_df)
    np.testing.assert_array_equal(one.rows.terms.length, other.rows.terms.length)
    np.testing.assert_array_equal(one.rows.labels, other.rows.labels)
    assert one.start() == other.start()


def test_a_call_that_was_broken_off_goes_on(server: ClusterServer, shop: Path, engine: str) -> None:
    cluster = reach(server, engine)
    whole, count = pulled(cluster, shop, depth=20), len(server.requests)
    cluster = reach(server, engine)
    told = list[int]()

    def progress(what: str, number: int) -> None:
        told.append(number)
        if what != "searching":
            server.state.busy, server.state.status = 99, 503

    with pytest.raises(InputError, match=r"too busy in 6 tries, .*: 503.*what was fetched is kept"):
        pulled(cluster, shop, depth=20, folder=shop / "kept", progress=progress)
    done = len(server.requests) - 6
    again = pulled(reach(server, engine), shop, depth=20, folder=shop / "kept")
    assert done + len(server.requests) <= count + 5
    same(again, whole)
    assert any("fetched by an earlier run" in note for note in again.notes)
    third = pulled(reach(server, engine), shop, depth=20, folder=shop / "kept")
    assert len(server.requests) <= 3  # its settings, and how many shards it has
    same(third, whole)
    assert len(pulled(reach(server, engine), shop, depth=30, folder=shop / "kept").rows) > len(whole.rows)


@pytest.mark.parametrize("engine", ["elasticsearch", "solr", "vespa"])
def test_a_command_that_was_killed_goes_on(server: ClusterServer, shop: Path, engine: str) -> None:
    whole, count = pulled(reach(server, engine), shop), len(server.requests)
    server.well(engine)
    server.state.hold_after = count - 8
    running = subprocess.Popen(
        [sys.executable, "-m", "fliprank", *command("tune", server, engine, shop)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    while len(server.requests) <= server.state.hold_after and running.poll() is None:
        time.sleep(0.05)
    assert running.poll() is None, running.stderr and running.stderr.read().decode()[-300:]
    running.send_signal(signal.SIGKILL)
    running.communicate()
    again = pulled(reach(server, engine), shop, folder=shop / "out" / "cluster" / "train")
    assert 1 < len(server.requests) <= 24
    same(again, whole)


def test_a_file_that_was_cut_short_is_mended(server: ClusterServer, shop: Path, engine: str) -> None:
    whole = pulled(reach(server, engine), shop, depth=5, folder=shop / "kept")
    paths = sorted((shop / "kept").iterdir())
    assert len(paths) >= 3
    for path in paths:
        path.write_bytes(path.read_bytes()[:-30])
    same(pulled(reach(server, engine), shop, depth=5, folder=shop / "kept"), whole)
    assert all(path.read_bytes().endswith(b"\n") for path in paths)


def test_a_query_with_another_text_is_asked_anew(server: ClusterServer, shop: Path, engine: str) -> None:
    before = pulled(reach(server, engine), shop, depth=5, folder=shop / "kept")
    lines = (shop / "queries.tsv").read_text().splitlines()
    (shop / "queries.tsv").write_text("\n".join(["q0\tw1 w2", *lines[1:]]) + "\n")
    after = pulled(reach(server, engine), shop, depth=5, folder=shop / "kept")
    assert before.rows.terms.terms.tolist()[:3] == lines[0].split("\t")[1].split()
    assert after.rows.terms.terms.tolist()[:2] == ["w1", "w2"]
    same(after, pulled(reach(server, engine), shop, depth=5))


@pytest.mark.parametrize("line", ["5", '["q0"]', "{", '["q0", NaN]', "[" * 5000, '["q0", 1, 2]'])
def test_a_file_that_is_broken_is_named(server: ClusterServer, shop: Path, line: str) -> None:
    pulled(reach(server, "elasticsearch"), shop, depth=5, folder=shop / "kept")
    path = shop / "kept" / "queries.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=r"queries.jsonl, line 12: broken.*\(remove this file\)"):
        pulled(reach(server, "elasticsearch"), shop, depth=5, folder=shop / "kept")
