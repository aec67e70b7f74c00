"""What a worker tells when it can't go on, and certificates for tls://."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clusters_here import local_client, some_rows

import fliprank as fr
from fliprank.distributed import worker
from fliprank.distributed.messages import pack, unpack
from fliprank.errors import InputError

ROLES = ("client", "scheduler", "worker")


def envelope(do: str, request: Any) -> bytes:
    return pack({"do": do, "session": "s", "forget": [], "sent": {}, "request": pack(request)})


def told(do: str, request: Any) -> dict[str, Any]:
    found: dict[str, Any] = unpack(worker._answer(envelope(do, request), 1))
    return found


def test_a_worker_says_what_it_misses() -> None:
    assert told("rows", {"rows": ["rows-1"]})["missing"] == ["rows-1"]
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
