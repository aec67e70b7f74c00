"""Files: plain and gzipped alike, errors that name file and line, and never half a file."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.data.files import atomic_write, check_writable, drop_parts, open_text, read_bytes, read_chunks, resolve
from fliprank.data.letor import write_letor
from fliprank.data.parquet import write_parquet
from fliprank.errors import InputError


def test_gzip_is_known_by_content_and_by_the_plain_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\ntwo"))
    (tmp_path / "b.txt").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert read_bytes(tmp_path / "a.txt").tobytes() == b"one\ntwo\n"
    assert read_bytes(tmp_path / "b.txt").tobytes() == b"one\ntwo\n"
    assert resolve(tmp_path / "a.txt").name == "a.txt.gz"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_chunks_are_whole_lines_and_together_the_file(tmp_path: Path, size: int) -> None:
    data = "one\ntwo é\n\nthree lines and more".encode()
    (tmp_path / "x").write_bytes(data)
    chunks = list(read_chunks(tmp_path / "x", size))
    assert b"".join(chunks) == data + b"\n"
    assert all(chunk.endswith(b"\n") for chunk in chunks)


@pytest.mark.parametrize("reader", [read_bytes, lambda path: list(read_chunks(path, 4))])
def test_bad_utf8_is_named_by_line(tmp_path: Path, reader: object) -> None:
    (tmp_path / "x").write_bytes(b"fine\nfine\n\xff\xfe\n")
    with pytest.raises(InputError, match=r"x, line 3: byte 0xff is not UTF-8"):
        reader(tmp_path / "x")  # type: ignore[operator]


def test_what_cant_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        read_bytes(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder, not a file"):
        read_bytes(tmp_path)
    (tmp_path / "empty").write_bytes(b" \n")
    with pytest.raises(InputError, match="empty: the file is empty"):
        read_bytes(tmp_path / "empty")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"some words" * 99)[:-9])
    with pytest.raises(InputError, match="broken gzip data"):
        read_bytes(tmp_path / "cut.gz")


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as file:
        file.write(b"old\n")
    with suppress(KeyboardInterrupt), atomic_write(tmp_path / name) as file:
        file.write(b"new\n")
        raise KeyboardInterrupt
    with open_text(tmp_path / name) as lines:
        assert list(lines) == ["old\n"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        with atomic_write(pipe) as file:
            file.write(b"whole")
        assert read.result() == b"whole"
    assert pipe.is_fifo()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond 1,000 bytes, as on a disk that is full."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


def write_bytes(path: Path, _: Candidates) -> None:
    with atomic_write(path) as file:
        file.write(bytes(1 << 20))


@pytest.mark.parametrize("write", [write_bytes, write_parquet, write_letor])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path: Path, write: Any) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    rows = Candidates.of(np.zeros(20_000), features=np.random.default_rng(0).normal(size=(20_000, 3)))
    with full_disk(), pytest.raises(OSError, match="file") as caught:
        write(target, rows)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_nothing_can_be_written_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_writable(tmp_path / "new" / "folder")
    check_writable(tmp_path, folder=True)
    with pytest.raises(InputError, match="a folder, not a file"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        check_writable(tmp_path / "file" / "below")
    (tmp_path / "closed").mkdir(mode=0o555)
    if not os.access(tmp_path / "closed", os.W_OK):  # the superuser may write anywhere
        with pytest.raises(InputError, match="can't be written to"):
            check_writable(tmp_path / "closed" / "below")


def test_a_pipe_is_no_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a pipe or a device"):
        read_bytes(tmp_path / "pipe")


def test_what_must_survive_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), sync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("rename"), rename(*names))[1])
    for name in ("x", "x.gz"):
        with atomic_write(tmp_path / name) as file:
            file.write(b"abc")
    assert done == ["fsync", "rename", "fsync"] * 2
    with atomic_write(tmp_path / "cache", durable=False) as file:
        file.write(b"abc")
    assert done[6:] == ["rename"]


WRITE = """
import sys, time
from fliprank.data.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def aged(folder: Path, seconds: float) -> list[Path]:
    """The parts in a folder, after making them look as if nobody had written to them for so long."""
    parts = sorted(folder.glob(".*.part"))
    for part in parts:
        os.utime(part, (time.time() - seconds,) * 2)
    return parts


def test_parts_of_killed_processes_go_with_the_next_write_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    target = tmp_path / "run.trec"
    writer = subprocess.Popen([sys.executable, "-c", WRITE, str(target)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    try:
        (part,) = aged(tmp_path, 3600)
        with atomic_write(target) as file:
            file.write(b"another")
        assert part.exists()
    finally:
        writer.kill()
        writer.wait()
    with atomic_write(tmp_path / "other") as file:
        file.write(b"x")
    assert part.exists()  # of another file
    with atomic_write(target) as file:
        file.write(b"whole")
    assert not part.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "run.trec"]


def test_only_our_own_old_parts_are_removed(tmp_path: Path) -> None:
    for name in (".a.txt.abcdefgh.part", "movie.part", ".x.part", ".a.txt.ABCDEFGH.part"):
        (tmp_path / name).write_bytes(b"x")
    drop_parts(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4  # all are fresh
    for path in tmp_path.iterdir():
        os.utime(path, (time.time() - 3600,) * 2)
    drop_parts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.txt.ABCDEFGH.part", ".x.part", "movie.part"]
    drop_parts(tmp_path / "nowhere")
