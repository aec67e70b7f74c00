"""Files: plain and gzipped alike, errors that name file and line, and never half a file."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest

from fliprank.data.files import atomic_write, open_text, read_bytes, read_chunks, resolve
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
