"""The container of arrays is checked before it is believed; a cache lives as long as the content it came from."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fliprank.data import letor, store
from fliprank.data.letor import read_letor
from fliprank.data.store import cache_path, read_arrays, write_arrays
from fliprank.errors import InputError

TEXT = "".join(f"{r % 3} qid:{r // 4} 1:{r}.5 2:{r * r} #docid = d{r}\n" for r in range(40))

arrays = st.dictionaries(
    st.text(max_size=5),
    st.sampled_from(store.DTYPES).flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, min_side=0))),
    max_size=4,
)


@settings(deadline=None)
@given(arrays, st.dictionaries(st.text(), st.integers() | st.text()))
def test_arrays_come_back_as_they_were_aligned_and_read_only(kept: store.Arrays, header: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_arrays(Path(folder) / "x", header, kept)
        found_header, found = read_arrays(Path(folder) / "x")
    assert found_header == header
    assert found.keys() == kept.keys()
    for name, array in kept.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
        if array.size:
            assert found[name].ctypes.data % store.ALIGNMENT == 0
            assert not found[name].flags.writeable


def test_other_types_of_array_are_refused(tmp_path: Path) -> None:
    for array in (np.array(["a"]), np.array([None]), np.array([1j]), np.array([True]), np.array([1], "i2")):
        with pytest.raises(TypeError, match="a store holds u1"):
            write_arrays(tmp_path / "x", {}, {"a": array})
    assert list(tmp_path.iterdir()) == []


def test_big_endian_arrays_are_stored_little_endian(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {}, {"a": np.array([1, 2, 3], ">i4")})
    assert read_arrays(tmp_path / "x")[1]["a"].tolist() == [1, 2, 3]


def container(table: Any, *, version: Any = store.VERSION, header: Any = None, data: int = 256) -> bytes:
    text = json.dumps({"version": version, "header": {} if header is None else header, "arrays": table}).encode()
    return store.MAGIC + len(text).to_bytes(8, "little") + text + bytes(data)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"flip",
        b"fliprank",
        b"something else that is long enough",
        store.MAGIC + (1 << 62).to_bytes(8, "little") + b"{}",
        store.MAGIC + (2).to_bytes(8, "little") + b"[]",
        store.MAGIC + (2).to_bytes(8, "little") + b"\xff\xff",
        store.MAGIC + (100_000).to_bytes(8, "little") + b"[" * 100_000,
        container({}, version=99),
        container({}, header=[1]),
        container([]),
        container({"a": 3}),
        container({"a": ["i8", [3]]}),
        container({"a": ["O", [3], 0]}),
        container({"a": [["i8"], [3], 0]}),
        container({"a": ["i8", 3, 0]}),
        container({"a": ["i8", [3.0], 0]}),
        container({"a": ["i8", [True], 0]}),
        container({"a": ["i8", [-1], 0]}),
        container({"a": ["i8", [3], -64]}),
        container({"a": ["i8", [3], 8]}),
        container({"a": ["i8", [3], 1 << 70]}),
        container({"a": ["i8", [33], 0]}),
        container({"a": ["i8", [1 << 40, 1 << 40], 0]}),
        container({"a": ["i8", [0, 1 << 90], 0]}),
        container({"a": ["i8", [1] * 100, 0]}),
    ],
)
def test_a_foreign_or_damaged_container_is_an_input_error(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(InputError):
        read_arrays(tmp_path / "x")


def test_a_header_that_was_changed_is_refused_though_no_array_is_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", {"power": 2}, {"a": np.arange(3)})
    data = (tmp_path / "x").read_bytes()
    for changed in (data.replace(b'"power": 2', b'"power": 3'), data.replace(b'"i8", [3]', b'"f8", [3]')):
        assert changed != data
        (tmp_path / "x").write_bytes(changed)
        with pytest.raises(InputError, match="its header is not what was written"):
            read_arrays(tmp_path / "x")


def test_the_last_byte_that_fits_is_accepted(tmp_path: Path) -> None:
    raw = container({"a": ["u1", [10], 0]}, data=0)
    padding = -len(raw) % store.ALIGNMENT
    (tmp_path / "x").write_bytes(raw + bytes(padding + 10))
    assert read_arrays(tmp_path / "x")[1]["a"].tolist() == [0] * 10
    (tmp_path / "x").write_bytes(raw + bytes(padding + 9))
    with pytest.raises(InputError, match="beyond the end"):
        read_arrays(tmp_path / "x")


@contextmanager
def counted_parses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files that are parsed, not taken from a cache."""
    parsed: list[Path] = []
    parse = letor._parse

    def counting(source: Path, *rest: Any) -> Any:
        parsed.append(source)
        return parse(source, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(letor, "_parse", counting)
        yield parsed


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "data" / "rows.txt"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def cache_of(path: Path) -> Path:
    cache = cache_path(path)
    assert cache is not None
    return cache


def age(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of the cache run ahead, so that the file is no longer fresh."""
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 10_000_000_000)


def test_the_second_load_is_equal_mapped_and_not_parsed(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted_parses(monkeypatch) as parsed:
        first, second = read_letor(source), read_letor(source)
    assert len(parsed) == 1
    assert second.qids == first.qids
    assert second.docids == first.docids
    assert second.offsets.tolist() == first.offsets.tolist()
    assert second.labels.tolist() == first.labels.tolist()
    assert second.features.tolist() == first.features.tolist()
    assert not second.features.flags.writeable
    assert not second.features.flags.owndata


def test_an_old_file_is_not_hashed_again_a_fresh_one_is(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    digest = store.content_digest
    monkeypatch.setattr(store, "content_digest", lambda path: hashed.append(path) or digest(path))
    read_letor(source)
    read_letor(source)
    assert len(hashed) == 2  # racy: the file may have changed after it was cached, within the same tick
    age(source, monkeypatch)
    read_letor(source)
    assert len(hashed) == 3  # hashed once more, and stamped anew
    read_letor(source)
    assert len(hashed) == 3


@pytest.mark.parametrize("old", [False, True])
def test_changed_content_of_the_same_size_and_time_is_noticed(
    source: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    if old:
        age(source, monkeypatch)
    before = source.stat()
    assert read_letor(source).labels[0] == 0
    source.write_text("4" + TEXT[1:])
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.stat().st_size == before.st_size
    assert source.stat().st_mtime_ns == before.st_mtime_ns
    assert read_letor(source).labels[0] == 4
    assert read_letor(source).labels[0] == 4


def test_a_file_that_is_touched_linked_or_named_otherwise_keeps_its_cache(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_letor(source)
    source.touch()
    (tmp_path / "link").symlink_to(source)
    monkeypatch.chdir(tmp_path)
    with counted_parses(monkeypatch) as parsed:
        for path in (source, tmp_path / "link", Path("data/../data/rows.txt")):
            assert len(read_letor(path)) == 40
    assert parsed == []


def test_nothing_is_written_beside_the_data(source: Path, tmp_path: Path) -> None:
    read_letor(source)
    assert [path.name for path in source.parent.iterdir()] == ["rows.txt"]
    assert list((tmp_path / "cache" / "fliprank").iterdir()) == [cache_of(source)]
    assert (tmp_path / "cache" / "fliprank").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("given", [None, "", "not/absolute"])
def test_without_a_cache_folder_that_counts_it_is_in_the_home(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    read_letor(source)
    assert list((tmp_path / "home" / ".cache" / "fliprank").iterdir()) == [cache_of(source)]


def test_caches_of_files_that_are_gone_and_damaged_ones_are_removed(source: Path) -> None:
    other, third = source.with_name("other.txt"), source.with_name("third.txt")
    for path in (other, third):
        shutil.copy(source, path)
        read_letor(path)
    folder = cache_of(source).parent
    (folder / "damaged.rows").write_bytes(b"fliprank")
    (folder / "notes.txt").write_text("not ours")
    other.unlink()
    read_letor(source)
    assert {path.name for path in folder.iterdir()} == {cache_of(source).name, cache_of(third).name, "notes.txt"}


def test_other_options_are_not_answered_from_the_cache(source: Path) -> None:
    assert read_letor(source).features.shape == (40, 2)
    assert read_letor(source, n_features=5).features.shape == (40, 5)
    assert np.isnan(read_letor(source, unjudged=0).labels[0])
    assert read_letor(source).labels[0] == 0


def cut(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def flip_feature(raw: bytes) -> bytes:
    return raw[:-3] + bytes([raw[-3] ^ 0xFF]) + raw[-2:]


def flip_header(raw: bytes) -> bytes:
    return raw.replace(b'"offsets"', b'"0ffsets"')


@pytest.mark.parametrize("damage", [cut, flip_feature, flip_header, lambda raw: b"", lambda raw: raw[:-1]])
def test_a_damaged_cache_is_parsed_again_and_replaced(
    source: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    expected = read_letor(source).features.tolist()
    cache = cache_of(source)
    raw = cache.read_bytes()
    cache.write_bytes(damage(raw))
    with counted_parses(monkeypatch) as parsed:
        assert read_letor(source).features.tolist() == expected
        assert read_letor(source).features.tolist() == expected
    assert len(parsed) == 1
    assert len(cache.read_bytes()) == len(raw)


HOSTILE: list[dict[str, Any]] = [
    {"offsets": np.array([0, 30, 20, 40])},
    {"offsets": np.array([0, 1 << 62])},
    {"offsets": np.array([0, 2**63 - 1, -(2**63), -1, 40])},
    {"offsets": np.array([], np.int64)},
    {"offsets": np.array(0)},
    {"offsets": np.array([0.0, np.nan])},
    {"labels": np.zeros(39)},
    {"labels": np.zeros((40, 1))},
    {"qid_length": np.full(10, 1 << 30, np.int32)},
    {"qid_length": np.array([-5, *[1] * 8, 7], np.int32)},
    {"docid_length": np.full(40, 2, np.int32)},
    {"docid": np.zeros(3, np.uint8)},
    {"features": np.zeros((39, 2), np.float32)},
    {"features": np.zeros(80, np.float32)},
    {"features": np.zeros((40, 2))},
    {"surprise": np.zeros(3)},
    {"offsets": None},
    {"qid": None},
    {"docid_length": None},
]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_cache_with_hostile_arrays_is_parsed_again(
    source: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    expected = read_letor(source).features.tolist()
    stamp, kept = read_arrays(cache_of(source))
    changed = {name: array for name, array in {**kept, **change}.items() if array is not None}
    write_arrays(cache_of(source), stamp, changed)
    os.utime(cache_of(source), ns=(stamp["written"], stamp["written"]))
    with counted_parses(monkeypatch) as parsed:
        assert read_letor(source).features.tolist() == expected
    assert len(parsed) == 1


@pytest.mark.parametrize("name", ["key", "digest", "written", "signature", "note"])
@pytest.mark.parametrize("value", [None, [], 3, {}, [None]])
def test_a_cache_with_a_hostile_header_never_breaks_the_load(source: Path, name: str, value: Any) -> None:
    expected = read_letor(source).features.tolist()
    stamp, kept = read_arrays(cache_of(source))
    without = {key: kept_value for key, kept_value in stamp.items() if key != name}
    for changed in ({**stamp, name: value}, without):
        write_arrays(cache_of(source), changed, kept)
        os.utime(cache_of(source), ns=(stamp["written"], stamp["written"]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nor does it put words in the reader's mouth
            assert read_letor(source).features.tolist() == expected


@contextmanager
def no_right_to_write(folder: Path) -> Iterator[None]:
    """Root may write anywhere, so root becomes nobody for a while."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.parametrize("is_a_device", [False, True])
@pytest.mark.filterwarnings("ignore:.*are not cached")
def test_in_a_folder_that_can_not_be_written_to_there_is_no_cache(
    monkeypatch: pytest.MonkeyPatch, is_a_device: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:  # not tmp_path, whose parents only their owner may enter
        source = Path(name) / "rows.txt"
        source.write_text(TEXT)
        cache = Path(name) if not is_a_device else Path("/dev/null")
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        with no_right_to_write(Path(name)), counted_parses(monkeypatch) as parsed:
            assert len(read_letor(source)) == 40
            assert len(read_letor(source)) == 40
            assert len(parsed) == 2
        assert [path.name for path in Path(name).iterdir()] == ["rows.txt"]


@pytest.mark.filterwarnings("ignore:.*are not cached")
def test_where_the_cache_can_not_be_put_in_place_nothing_is_left_behind(source: Path) -> None:
    (cache_of(source) / "occupied").mkdir(parents=True)
    assert len(read_letor(source)) == 40
    assert [path.name for path in cache_of(source).parent.iterdir()] == [cache_of(source).name]


def test_a_file_that_changes_while_it_is_parsed_is_not_cached(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = letor._parse

    def slow(path: Path, *rest: Any) -> Any:
        found = parse(path, *rest)
        path.write_text("0 qid:1 1:1\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(letor, "_parse", slow)
        read_letor(source)
    assert not cache_of(source).exists()
    assert len(read_letor(source)) == 1


def test_a_changed_byte_anywhere_is_noticed_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write_arrays(path, {"name": "é"}, {"a": np.arange(40), "b": np.ones((2, 3)), "none": np.empty((0, 3), np.int32)})
    good, given = path.read_bytes(), {name: array.tolist() for name, array in read_arrays(path, check=True)[1].items()}
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            header, arrays = read_arrays(path, check=True)
        except InputError:
            continue
        assert header == {"name": "é"}  # what may change: the filling between arrays, white space
        assert {name: array.tolist() for name, array in arrays.items()} == given


@pytest.mark.parametrize("place", [-1, -3, -100])
def test_a_flipped_bit_in_a_cache_of_unchanged_time_is_never_read_as_good(source: Path, place: int) -> None:
    expected = read_letor(source).features.tolist()
    cache = cache_of(source)
    raw, time = bytearray(cache.read_bytes()), cache.stat().st_mtime_ns
    raw[place] ^= 1
    cache.write_bytes(raw)
    os.utime(cache, ns=(time, time))
    assert read_letor(source).features.tolist() == expected


def test_a_store_without_sums_is_not_believed_where_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write_arrays(path, {}, {"a": np.arange(4)})
    path.write_bytes(path.read_bytes().replace(b'"sum"', b'"sun"'))
    with pytest.raises(InputError, match="not what was written"):
        read_arrays(path, check=True)


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="not a regular file"):
            read_arrays(path)


def test_where_nothing_can_be_cached_that_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    (tmp_path / "file").touch()
    for name in ("a", "b"):
        (tmp_path / name).write_text(TEXT)
    with pytest.warns(UserWarning, match=r"below/fliprank: Not a directory; files are not cached .*XDG_CACHE_HOME"):
        rows = read_letor(tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_letor(tmp_path / "b")) == len(read_letor(tmp_path / "a")) == len(rows)
