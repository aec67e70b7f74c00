"""Rows in files: what is converted is what is read in memory, and what can't be used is refused with file and query."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fliprank as fr
from fliprank.data.convert import ABOUT
from fliprank.data.file_rows import FileRows, _copied
from fliprank.data.memory import PROCESS, Memory, parse_memory, shares_of
from fliprank.data.row_blocks import csv_blocks, letor_blocks, parquet_blocks, whole_queries
from fliprank.data.row_digest import sum_of_both
from fliprank.data.row_file import RowFile, read_queries, write_rows
from fliprank.data.scattered import ROW, row_bytes
from fliprank.data.store import read_arrays, write_arrays
from fliprank.data.subsample import subsample_by_spec
from fliprank.errors import InputError, UsageError
from fliprank.models.feature_subset import pick_features
from fliprank.models.scaler import Scaler

NAN = float("nan")


def rows_of(seed: int = 0, queries: int = 40, docids: bool = True, unjudged: float = 0.2) -> fr.Candidates:
    """Queries of 1 to 12 rows, four features of which one is constant, some rows not judged."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 13, queries)
    total = int(sizes.sum())
    matrix = rng.normal(size=(total, 4)).astype(np.float32)
    matrix[:, 2] = 7.0
    labels = np.where(rng.random(total) < unjudged, NAN, rng.integers(0, 5, total))
    ids = [f"d{i}" for i in range(total)] if docids else None
    return fr.Candidates.of(
        labels, qid=np.repeat([f"q{i}" for i in range(queries)], sizes), docids=ids, features=matrix
    )


def assert_same(found: fr.Candidates, rows: fr.Candidates) -> None:
    np.testing.assert_array_equal(found.offsets, rows.offsets)
    np.testing.assert_array_equal(found.labels, rows.labels)
    np.testing.assert_array_equal(found.features, rows.features)
    assert found.qids == rows.qids
    assert (found.docids is None) == (rows.docids is None)
    assert rows.docids is None or found.docids == rows.docids


def gathered(rows: FileRows) -> fr.Candidates:
    return rows.gather(np.arange(rows.queries))


def write(path: Path, rows: fr.Candidates) -> None:
    if path.suffix == ".parquet":
        fr.write_parquet(path, rows)
    elif path.suffix == ".csv":
        frame = {
            "qid": np.array(rows.qids.tolist())[rows.query_of_rows()],
            "label": pl.Series(rows.labels).fill_nan(None),
        }
        if rows.docids is not None:
            frame["docid"] = rows.docids.tolist()
        assert rows.features is not None
        columns = {f"{k + 1}": rows.features[:, k] for k in range(4)}
        pl.DataFrame({**frame, **columns}).write_csv(path)
    else:
        fr.write_letor(path, rows)


# Converting


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.csv", "rows.parquet"])
@pytest.mark.parametrize("docids", [True, False])
def test_shards_hold_the_rows_of_any_kind_of_file(tmp_path: Path, name: str, docids: bool) -> None:
    rows = rows_of(docids=docids)
    write(tmp_path / name, rows)
    made = fr.convert(tmp_path / name, tmp_path / "shards", shard=1000)
    assert (made.queries, made.rows, len(made.feature_names)) == (rows.queries, len(rows), 4)
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows)
    assert_same(gathered(fr.open_rows(tmp_path / name)), rows)  # converted into the cache


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.integers(1, 60), st.integers(1, 3000), st.integers(300, 10**6))
def test_no_query_is_cut_in_two_however_small_blocks_and_windows_are(
    tmp_path_factory: pytest.TempPathFactory, seed: int, chunk: int, shard: int, memory: int
) -> None:
    folder, rows = tmp_path_factory.mktemp("cut"), rows_of(seed, 15)
    write(folder / "rows.txt", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fliprank.data.letor.CHUNK", chunk)
        fr.convert(folder / "rows.txt", folder / "shards", shard=shard)
    opened = fr.open_rows(folder / "shards", memory=memory)
    parts = list(opened.each(lambda part: (part.qids.tolist(), part.labels.copy())))
    assert [qid for qids, _ in parts for qid in qids] == rows.qids.tolist()
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in parts]), rows.labels)
    chosen = np.sort(np.random.default_rng(seed).permutation(rows.queries)[:6])
    assert_same(opened.gather(chosen), rows.select(chosen))
    assert_same(gathered(opened.select(chosen)), rows.select(chosen))


@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_a_feature_that_comes_late_is_0_before(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} qid:{i // 4} 1:{i} 2:0.5" for i in range(40)] + ["1 qid:10 5:2.5", "0 qid:10 1:1"]
    (tmp_path / "sparse.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("fliprank.data.letor.CHUNK", 64)
    made = fr.convert(tmp_path / "sparse.txt", tmp_path / "shards", shard=64, format=kind)
    assert len(made.shards) > 2
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), fr.read_letor(tmp_path / "sparse.txt"))


TEXTS = {
    "of -1 and 1": [f"{1 if i % 3 else -1} qid:{i // 4} 1:{i}" for i in range(40)],
    "in which 0 comes late": [f"{1 if i % 3 else -1} qid:{i // 4} 1:{i}" for i in range(40)] + ["0 qid:10 1:7"],
    "of -1": [f"-1 qid:{i // 4} 1:{i}" for i in range(40)],
    "beyond float32": [f"{i % 3} qid:{i // 4} 1:{'1e60' if i > 20 else i}" for i in range(40)],
    "as any other": [f"{i % 3} qid:{i // 4} 1:{i}" for i in range(40)],
}


@pytest.mark.parametrize("lines", TEXTS.values(), ids=TEXTS)
def test_what_read_letor_warns_of_is_said_once_at_the_end(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.txt").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings(record=True) as read:
        warnings.simplefilter("always")
        rows = fr.read_letor(tmp_path / "x.txt", cache=False)
    monkeypatch.setattr("fliprank.data.letor.CHUNK", 64)
    with warnings.catch_warnings(record=True) as converted:
        warnings.simplefilter("always")
        made = fr.convert(tmp_path / "x.txt", tmp_path / "shards", shard=64)
    assert len(made.shards) > 3
    assert [str(each.message) for each in converted] == [str(each.message) for each in read]
    assert all(each.filename == __file__ for each in converted)
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows)


@pytest.mark.parametrize("name", ["rows.txt", "rows.csv", "rows.parquet"])
def test_a_part_holds_no_ids_but_its_own(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each part would hold the ids of all rows before it."""
    rows = rows_of(queries=300)
    write(tmp_path / name, rows)
    monkeypatch.setattr("fliprank.data.letor.CHUNK", 1 << 10)
    reader = {".txt": letor_blocks, ".csv": csv_blocks, ".parquet": parquet_blocks}[Path(name).suffix]
    parts = list(whole_queries(reader(tmp_path / name, 4000)))
    assert len(parts) > 3
    assert [qid for part in parts for qid in part.qids.tolist()] == rows.qids.tolist()
    for part in parts:
        for ids in (part.qids, part.docids):
            assert len(ids.buffer) == ids.length.sum()


@pytest.mark.parametrize("name", ["rows.txt", "rows.parquet"])
def test_rows_of_few_features_are_not_taken_for_small(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels and ids take memory, too: of one feature, blocks by features alone would have thirty times the rows."""
    monkeypatch.setattr("fliprank.data.letor.CHUNK", 256)
    rows = fr.Candidates.of([1, 0] * 500, group=[2] * 500, features=np.arange(1000.0)[:, None])
    write(tmp_path / name, rows)
    reader = letor_blocks if name == "rows.txt" else parquet_blocks
    assert max(len(block.labels) for block in reader(tmp_path / name, 50 * 140)) < 80
    made = fr.convert(rows, tmp_path / "shards", shard=50 * 140)
    assert max(len(RowFile(path)) for path in made.shards) < 80
    made = fr.convert(tmp_path / name, tmp_path / "again", shard=50 * 140)
    assert max(len(RowFile(path)) for path in made.shards) < 160


def test_frames_and_candidates_are_converted_too(tmp_path: Path) -> None:
    rows = rows_of()
    write(tmp_path / "rows.parquet", rows)
    fr.convert(pl.read_parquet(tmp_path / "rows.parquet"), tmp_path / "frame", shard=2000)
    fr.convert(rows, tmp_path / "rows", shard=2000)
    for name in ("frame", "rows"):
        assert_same(gathered(fr.open_rows(tmp_path / name)), rows)


def test_statistics_are_gathered_on_the_way_and_are_those_of_memory(tmp_path: Path) -> None:
    rows = rows_of(unjudged=0.0)
    fr.convert(rows, tmp_path / "shards", shard=2000)
    opened, scaler = fr.open_rows(tmp_path / "shards"), Scaler.of(rows)
    assert "_statistics" in vars(opened)  # no row is read for them
    found = Scaler.of(opened)
    assert (found.mean.tolist(), found.scale.tolist()) == (scaler.mean.tolist(), scaler.scale.tolist())
    some = fr.open_rows(tmp_path / "shards" / "00000.rows")
    assert "_statistics" not in vars(some)  # of some shards only, they must be gathered anew
    part = gathered(some)
    assert Scaler.of(some).mean.tolist() == Scaler.of(part).mean.tolist()
    about = json.loads((tmp_path / "shards" / ABOUT).read_text())
    huge = [10**400] * 4
    for damage in ({"mean": ["x"]}, {"mean": [1.0]}, {"deviation": [-1.0] * 4}, {"mean": huge}, {"shards": huge}):
        (tmp_path / "shards" / ABOUT).write_text(json.dumps({**about, "statistics": {**about["statistics"], **damage}}))
        assert "_statistics" not in vars(fr.open_rows(tmp_path / "shards"))


@pytest.mark.parametrize("sample", ["rated", "average", 2.5])
@pytest.mark.parametrize("memory", [500, 10**9])
def test_the_same_unlabelled_rows_are_drawn(tmp_path: Path, sample: Any, memory: int) -> None:
    rows = rows_of(unjudged=0.7)
    fr.convert(rows, tmp_path / "shards", shard=2000)
    opened, one, other = fr.open_rows(tmp_path / "shards", memory), np.random.default_rng(3), np.random.default_rng(3)
    found = subsample_by_spec(opened, sample, one)
    assert isinstance(found, FileRows)
    assert_same(gathered(found), subsample_by_spec(rows, sample, other))
    assert one.random() == other.random()


def test_the_cache_follows_its_file(tmp_path: Path) -> None:
    for seed in (0, 1):
        write(tmp_path / "rows.parquet", rows_of(seed))
        assert_same(gathered(fr.open_rows(tmp_path / "rows.parquet")), rows_of(seed))
    write(tmp_path / "rows.txt", rows_of(2))
    fr.read_letor(tmp_path / "rows.txt")
    opened = fr.open_rows(tmp_path / "rows.txt")  # the cache of read_letor, as it is
    assert [file.path.suffix for file in opened.files] == [".rows"]
    assert not list(opened.files[0].path.parent.glob("*.shards/*.rows")) or opened.files[0].path.parent.suffix == ""
    assert_same(gathered(opened), rows_of(2))


def test_two_who_open_the_same_new_file_convert_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "rows.csv", rows_of())
    both, calls = Barrier(2), list[Path]()

    def meeting(source: Path, *given: Any, **how: Any) -> Any:
        calls.append(source)
        with suppress(BrokenBarrierError):  # if both come here, they convert at the same time
            both.wait(0.5)
        return fr.convert(source, *given, **how)

    monkeypatch.setattr("fliprank.data.open_rows.convert", meeting)
    with ThreadPoolExecutor(2) as pool:
        opened = list(pool.map(fr.open_rows, [tmp_path / "rows.csv"] * 2))
    assert len(calls) == 1
    for rows in opened:
        assert_same(gathered(rows), rows_of())


@pytest.mark.parametrize("damage", ["rows.json", "source.json", "00000.rows"])
def test_a_cache_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    write(tmp_path / "rows.csv", rows_of())
    folder = fr.open_rows(tmp_path / "rows.csv").files[0].path.parent
    (folder / "source.json").write_text("[")
    (folder / damage).write_text("{")
    assert_same(gathered(fr.open_rows(tmp_path / "rows.csv")), rows_of())


def test_the_shards_of_a_file_that_is_gone_go_with_their_lock(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, rows_of())
    folder = fr.open_rows(tmp_path / "a.csv").files[0].path.parent
    (tmp_path / "a.csv").unlink()
    fr.open_rows(tmp_path / "b.csv")
    assert not list(folder.parent.glob(f"{folder.stem}*"))


# What can't be used


def shards(folder: Path, count: int = 3, **given: Any) -> list[Path]:
    rows, paths = rows_of(**given), list[Path]()
    for number, part in enumerate(np.array_split(np.arange(rows.queries), count)):
        paths.append(folder / f"{number}.rows")
        write_rows(paths[-1], rows.select(part))
    return paths


def test_shards_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    rows = rows_of(7).select([0])
    odd = fr.Candidates.of(
        rows.labels, qid=["x"] * len(rows), docids=rows.docids.tolist(), features=rows.features[:, :3]
    )
    write_rows(paths[1], odd)
    with pytest.raises(InputError, match=r"1\.rows: lacks the feature '4'.*0\.rows"):
        fr.open_rows(tmp_path)
    write_rows(paths[1], rows_of(7, docids=False).select([0]))
    with pytest.raises(InputError, match=r"1\.rows: has no document ids, but .*0\.rows has"):
        fr.open_rows(tmp_path)


def test_a_query_in_two_shards_is_named_with_both_files(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    write_rows(paths[2], rows_of().select([3, 30]))
    with pytest.raises(InputError, match=r"2\.rows, query q3: the query is in .*0\.rows, too"):
        fr.open_rows(str(tmp_path / "*.rows"))


@pytest.mark.parametrize("keep", [0, 10, 200, 0.5, 0.99])
def test_a_shard_that_is_cut_off_is_named(tmp_path: Path, keep: float) -> None:
    path = shards(tmp_path)[1]
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(InputError, match=r"1\.rows"):
        fr.open_rows(tmp_path)


@pytest.mark.parametrize("name", ["offsets", "qid_length", "docid_length", "labels", "features"])
def test_arrays_that_do_not_fit_together_are_refused(tmp_path: Path, name: str) -> None:
    (path,) = shards(tmp_path, 1)
    header, arrays = read_arrays(path)
    wrong = [arrays[name][:-1], np.zeros(arrays[name].shape, np.int64 if name == "labels" else np.float64)]
    if name == "offsets":
        wrong += [np.roll(arrays[name], 1), arrays[name][::-1], -arrays[name]]
    if name.endswith("length"):
        wrong += [-arrays[name], arrays[name] + 1]
    for damage in wrong:
        write_arrays(path, header, {**arrays, name: np.ascontiguousarray(damage)})
        with pytest.raises(InputError, match=str(path)):
            fr.open_rows(path)


def wrapping(offsets: Any) -> Any:
    """Offsets that end where they did; all differences are positive, if they overflow: 2^63 - 1, then -2."""
    return np.concatenate([[0, 2**63 - 1, -2], offsets[3:]])


def test_offsets_whose_differences_overflow_are_refused(tmp_path: Path) -> None:
    (path,) = shards(tmp_path, 1, docids=False)
    header, arrays = read_arrays(path)
    write_arrays(path, header, {**arrays, "offsets": wrapping(arrays["offsets"])})
    with pytest.raises(InputError, match=r"0\.rows: a damaged file of rows: its offsets do not rise"):
        fr.open_rows(path)


def test_missed_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    rows, path = rows_of(), tmp_path / "x.rows"
    write_rows(path, rows.take(np.arange(0, len(rows), 2)))
    header, arrays = read_arrays(path)
    offsets = arrays["missed_offsets"]
    for damage in (wrapping(offsets), offsets[:-1], offsets[:0], np.roll(offsets, 1), -offsets):
        write_arrays(path, header, {**arrays, "missed_offsets": np.ascontiguousarray(damage)})
        with pytest.raises(InputError, match=r"x\.rows: a damaged file of rows"):
            fr.open_rows(path)


def test_features_without_rows_and_names_are_not_named_by_the_million(tmp_path: Path) -> None:
    """An array of no rows takes no bytes, whatever width its header says."""
    path, empty = tmp_path / "x.rows", np.empty(0, np.uint8)
    arrays = {"offsets": np.zeros(1, np.int64), "labels": np.empty(0), "qid": empty, "qid_length": empty.astype("i4")}
    write_arrays(path, {}, {**arrays, "features": np.empty((0, 10**7), np.float32)})
    with pytest.raises(InputError, match=r"x\.rows: a damaged file of rows: 10,000,000 features"):
        fr.open_rows(path)


def test_an_unreadable_shard_and_no_shard_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no shards"):
        fr.open_rows(tmp_path)
    with pytest.raises(InputError, match="no file fits this pattern"):
        fr.open_rows(tmp_path / "*.rows")
    (tmp_path / "0.rows").mkdir()
    with pytest.raises(InputError, match=r"0\.rows: can't be read"):
        fr.open_rows(tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"x\.parquet: can't be read as Parquet"):
        fr.open_rows(tmp_path / "x.parquet")


def test_rows_of_a_query_that_stand_apart_are_refused_by_name_and_leave_nothing(tmp_path: Path) -> None:
    lines = [f"1 qid:{q} 1:0.5" for q in (1, 1, 2, 3, 1, 4)]
    (tmp_path / "apart.txt").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        for chunk in (1 << 20, 8):
            patch.setattr("fliprank.data.letor.CHUNK", chunk)
            with pytest.raises(InputError, match=r"apart\.txt, query 1: its rows stand apart"):
                fr.convert(tmp_path / "apart.txt", tmp_path / "shards", shard=8)
    assert os.listdir(tmp_path) == ["apart.txt"]


def test_a_table_without_its_columns_or_with_words_for_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("query,label,x\na,1,2\n")
    with pytest.raises(InputError, match=r"a\.csv.*qid"):
        fr.convert(tmp_path / "a.csv", tmp_path / "shards")
    (tmp_path / "b.csv").write_text("qid,label,x\na,1,2\nb,0,red\n")
    with pytest.raises(InputError, match=r"b\.csv: can't be read as a table, in lines"):
        fr.convert(tmp_path / "b.csv", tmp_path / "shards")
    (tmp_path / "c.csv").write_text("qid,label,x\na,1,2\nb,0,\n")
    fr.convert(tmp_path / "c.csv", tmp_path / "shards")
    with pytest.raises(InputError, match=r"not finite numbers: x in 1 of"):
        fr.Linear().prepared(fr.open_rows(tmp_path / "shards"), 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",qid,label,x\n0,a,1,2\n", r"line 1: column 1 has no name.*index=False"),
        ("qid,label,x\na,1,2\n\nb,0\n", r"line 4: expected 3 cells, found 2"),
        ("qid,label,x\na,1,2\nb", r"line 3: expected 3 cells, found 1"),
        ("qid,label,x\na,1,2,3\n", r"line 2: expected 3 cells, found 4"),
        ('qid,label,x\n"a\nb",1,2\n', r"line 2: expected 3 cells, found a quote that does not end"),
        ("qid,label,x\na,1,2\n\n\n,1,2\n", r"line 5: column 'qid' has no value"),
        ("qid,docid,label,x\na,b,1,2\n" + "\n" * 5000 + "a,,1,2\n", r"line 5003: column 'docid' has no value"),
        ("qid,label,x\na,1,2\n\nb,1,1e39\n", r"line 4: a label or feature is infinite"),
        ("qid,label,x\na,1,2\n\nb,inf,1\n", r"line 4: a label or feature is infinite"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=rf"x\.csv, {said}"):
        fr.convert(tmp_path / "x.csv", tmp_path / "shards", shard=8)  # so that blocks are as small as can be
    assert os.listdir(tmp_path) == ["x.csv"]


def test_what_is_wrong_with_a_parquet_file_is_named_by_its_row(tmp_path: Path) -> None:
    for column, said in (("qid", "column 'qid' has no value"), ("x", "a label or feature is infinite")):
        frame = pl.DataFrame({"qid": ["a", "b", "c"], "label": [1, 0, 1], "x": [1.0, 2.0, 3.0]})
        wrong = pl.when(pl.col("qid") == "c").then(None if column == "qid" else float("inf")).otherwise(pl.col(column))
        frame.with_columns(wrong.alias(column)).write_parquet(tmp_path / "x.parquet")
        with pytest.raises(InputError, match=rf"x\.parquet: {said}.*, in row 2 "):
            fr.convert(tmp_path / "x.parquet", tmp_path / "shards", shard=8)


def test_empty_lines_are_skipped_and_words_for_no_number_are_ids_too(tmp_path: Path) -> None:
    lines = ["qid;docid;label;x", "", "NULL;nan;1;NULL", "NULL;NaN;;nan", " ", ";;;", 'nan;"a;""b""";NULL;NaN', "", ""]
    for ends in ("\n", "\r\n"):
        (tmp_path / "x.csv").write_text(ends.join(lines), newline="")
        fr.convert(tmp_path / "x.csv", tmp_path / "shards", shard=8, force=True)
        rows = gathered(fr.open_rows(tmp_path / "shards"))
        assert rows.qids.tolist() == ["NULL", "nan"]
        assert rows.docids.tolist() == ["nan", "NaN", 'a;"b"']
        np.testing.assert_array_equal(rows.labels, [1, NAN, NAN])
        assert np.isnan(rows.features).all()


def test_a_folder_of_others_is_not_replaced_and_ours_only_by_force(tmp_path: Path) -> None:
    fr.convert(rows_of(1), tmp_path / "shards")
    with pytest.raises(InputError, match="--force replaces it"):
        fr.convert(rows_of(2), tmp_path / "shards")
    fr.convert(rows_of(2), tmp_path / "shards", force=True)
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows_of(2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="give a new or empty folder"):
        fr.convert(rows_of(2), tmp_path / "mine", force=True)
    assert os.listdir(tmp_path / "mine") == ["letter.txt"]


def test_a_swap_that_ends_in_between_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fr.convert(rows_of(1), tmp_path / "shards")
    rename = os.rename

    def interrupted(source: Any, target: Any) -> None:
        if Path(source).suffix == ".part":
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fr.convert(rows_of(2), tmp_path / "shards", force=True)
    assert os.listdir(tmp_path) == ["shards"]
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows_of(1))


def test_a_folder_that_a_killed_process_moved_away_comes_back(tmp_path: Path) -> None:
    fr.convert(rows_of(1), tmp_path / "shards")
    os.rename(tmp_path / "shards", tmp_path / ".shards.old")  # and the process was killed
    with pytest.raises(InputError, match="--force replaces it"):
        fr.convert(rows_of(2), tmp_path / "shards")
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows_of(1))
    os.rename(tmp_path / "shards", tmp_path / ".shards.old")
    fr.convert(rows_of(2), tmp_path / "other")
    os.rename(tmp_path / "other", tmp_path / "shards")  # or the process was killed after both steps
    fr.convert(rows_of(3), tmp_path / "shards", force=True)
    assert os.listdir(tmp_path) == ["shards"]
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows_of(3))


@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_shards_are_on_the_disk_before_their_folder_appears(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = list[tuple[int, bool]](), os.fsync

    def noted(handle: int) -> None:
        fsync(handle)
        synced.append((os.fstat(handle).st_ino, (tmp_path / "shards").exists()))

    monkeypatch.setattr(os, "fsync", noted)
    made = fr.convert(rows_of(), tmp_path / "shards", format=kind, shard=2000)
    for path in (*made.shards, made.folder / ABOUT, made.folder):
        assert (path.stat().st_ino, False) in synced
    assert synced[-1] == (tmp_path.stat().st_ino, True)


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "shards").symlink_to(tmp_path / "disk" / "rows")
    for seed in (1, 2):
        made = fr.convert(rows_of(seed), tmp_path / "shards", force=True)
        assert made.folder == tmp_path / "shards"
        assert (tmp_path / "shards").is_symlink()
        assert_same(gathered(fr.open_rows(made.shards)), rows_of(seed))
    assert os.listdir(tmp_path / "disk") == ["rows"]


FULL = """
import resource, signal, sys
import fliprank as fr
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    fr.convert(sys.argv[1], sys.argv[2], shard=2000, force=True)
except OSError as error:
    print("refused", error.strerror, error.filename)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: a write fails in the middle of a shard."""
    write(tmp_path / "rows.txt", rows_of(3, 200))
    fr.convert(rows_of(2), tmp_path / "shards")
    ended = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "rows.txt", tmp_path / "shards"], capture_output=True, text=True
    )
    assert "refused File too large" in ended.stdout, ended.stderr
    assert sorted(os.listdir(tmp_path)) == ["rows.txt", "shards"]
    assert_same(gathered(fr.open_rows(tmp_path / "shards")), rows_of(2))


CONVERT = """
import sys, time
from pathlib import Path
import fliprank as fr

def wait(rows):
    print("writing", flush=True)
    time.sleep(600)

fr.convert(fr.Candidates.of([1, 0], features=[[1.0], [2.0]]), Path(sys.argv[1]), progress=wait)
"""


def test_folders_of_killed_processes_go_with_the_next_run_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    def aged() -> Path:
        (part,) = tmp_path.glob(".*.part")
        os.utime(part, (time.time() - 3 * 86_400,) * 2)
        return part

    given = [sys.executable, "-c", CONVERT, tmp_path / "shards"]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        part = aged()
        fr.convert(rows_of(1), tmp_path / "shards")
        assert list(part.iterdir())
        writer.kill()
    aged()
    fr.convert(rows_of(2), tmp_path / "others")
    assert part.exists()  # of another folder
    fr.convert(rows_of(2), tmp_path / "shards", force=True)
    assert sorted(os.listdir(tmp_path)) == ["others", "shards"]


MANY = """
import resource, sys
from pathlib import Path
import fliprank as fr
from fliprank.data.store import allow_many_files

place, most = Path(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
rows = fr.Candidates.of([1, 0] * 150, group=[2] * 150, features=[[float(k)] for k in range(300)])
fr.convert(rows, place / "few")  # so that all modules and kernels are there
fr.open_rows(place / "few")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
allow_many_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64 or most == 64)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(len(fr.convert(rows, place / "many", shard=1).shards))
try:
    fr.open_rows(place / "many")
except fr.FliprankError as error:
    print(error)
"""


def test_more_shards_than_files_may_be_open_are_written_and_reading_them_says_what_to_do(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, "-c", MANY, tmp_path], capture_output=True, text=True, check=True)
    raised, count, error = told.stdout.splitlines()
    assert (raised, count) == ("True", "150")
    assert "Too many open files" in error
    assert "ulimit -n" in error
    opened = fr.open_rows(tmp_path / "many")
    assert "_statistics" in vars(opened)
    assert opened.statistics().mean.tolist() == fr.open_rows(tmp_path / "few").statistics().mean.tolist()


def test_memory_is_read_as_people_write_it() -> None:
    assert [parse_memory(x) for x in ("2GB", "2 gb", "512MiB", 1000)] == [2 * 10**9, 2 * 10**9, 1 << 29, 1000]
    for wrong in ("much", "-1GB", "0", "2XB", ""):
        with pytest.raises(UsageError, match="expected a size such as 2GB"):
            parse_memory(wrong)


# Windows


def opened(folder: Path, rows: fr.Candidates, shard: int = 2000, memory: int = 20_000) -> FileRows:
    fr.convert(rows, folder, shard=shard, force=True)
    return fr.open_rows(folder, memory)


def test_no_queries_are_no_rows(tmp_path: Path) -> None:
    rows = opened(tmp_path / "shards", rows_of())
    none = rows.select(np.arange(0))
    assert (none.queries, len(none), len(none.windows)) == (0, 0, 0)
    assert none.digest != rows.digest
    for found in (rows.gather(np.arange(0)), none.without_features()):
        assert (found.queries, len(found)) == (0, 0)
    assert none.rewritten(lambda part: part).queries == 0


@pytest.mark.parametrize("width", [1, 100])
def test_windows_count_labels_and_ids_beside_features(tmp_path: Path, width: int) -> None:
    queries = 2000
    rows = fr.Candidates.of(
        np.zeros(4 * queries), group=[4] * queries, features=np.zeros((4 * queries, width), np.float32)
    )
    files = opened(tmp_path / "shards", rows, shard=10**9, memory=10**6)
    assert (files.row_counts * row_bytes(width) <= files.memory.window).all()
    assert len(files.windows) <= 1.1 * len(rows) * row_bytes(width) / files.memory.window + 1


def test_a_batch_holds_the_ids_of_its_rows_only(tmp_path: Path) -> None:
    rows = rows_of(queries=200)
    files = opened(tmp_path / "shards", rows, memory=10**9)
    chosen = np.array([3, 50, 120])
    found = files.gather(chosen)
    assert_same(found, rows.select(chosen))
    assert found.docids is not None
    assert len(found.docids.buffer) == found.docids.length.sum()
    assert len(found.qids.buffer) == found.qids.length.sum()
    for part in files.each(lambda part: part):
        assert len(part.qids.buffer) == part.qids.length.sum()


def test_a_batch_costs_what_its_rows_are_and_not_what_the_file_is(tmp_path: Path) -> None:
    queries, few = 50_000, np.array([7, 40_000])
    ids = [f"document-{number}" for number in range(queries)]
    rows = fr.Candidates.of(np.zeros(queries), group=[1] * queries, docids=ids, features=np.ones((queries, 1)))
    files = opened(tmp_path / "shards", rows, 10**9, 10**9)
    assert_same(files.gather(few), rows.select(few))
    tracemalloc.start()
    try:
        files.gather(few)
        assert tracemalloc.get_traced_memory()[1] < 4 * queries  # less than a number per query
    finally:
        tracemalloc.stop()


def resident(files: FileRows) -> int:
    """Bytes of the mapped files that are in the memory of this process."""
    names, total, ours = {str(file.path) for file in files.files}, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = line.split(maxsplit=5)[-1] in names
        elif ours and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="where Linux tells what is mapped")
def test_labels_and_ids_of_windows_that_are_not_kept_are_let_go_of(tmp_path: Path) -> None:
    count = 60_000
    ids = [f"document-{number}" for number in range(count)]
    rows = fr.Candidates.of(np.zeros(count), group=[100] * (count // 100), docids=ids, features=np.ones((count, 1)))
    files = opened(tmp_path / "shards", rows, 10**9, 10**5)
    size, found = files.files[0].path.stat().st_size, list[int]()
    for part in files.each(_copied):
        assert part.docids is not None
    found.append(resident(files))
    files.gather(np.arange(0, files.queries, 5))
    found.append(resident(files))
    assert size > 1.5e6
    assert max(found) < size / 4, (found, size)
    roomy = fr.open_rows(tmp_path / "shards", 10**9)
    list(roomy.each(_copied))
    roomy.gather(np.arange(0, roomy.queries, 5))
    assert resident(roomy) > size / 2  # those of windows that stay are not


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 99), st.data())
def test_row_numbers_and_sizes_of_some_queries(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    rows = rows_of(seed, 15)
    files = opened(tmp_path_factory.mktemp("some") / "shards", rows, 500, data.draw(st.integers(300, 10**5)))
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, 14)))), np.int64)
    wanted = np.arange(len(rows))[np.isin(rows.query_of_rows(), chosen)]
    np.testing.assert_array_equal(files.row_numbers(chosen), wanted)
    assert files.rows_of(chosen) == len(wanted)
    assert files.select(chosen).qids == rows.qids.take(chosen)
    again = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(chosen) - 1, 0))))), np.int64)
    if len(chosen):
        assert_same(files.select(chosen).gather(again), rows.select(chosen[again]))


def first_rows(part: fr.Candidates, size: int) -> fr.Candidates:
    return part.top(-np.arange(float(len(part))), size)


@pytest.mark.parametrize("memory", [500, 20_000, 10**6, 10**9])
def test_rows_that_are_cut_are_the_same_in_few_files_that_leave_nothing(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, place = rows_of(queries=120), tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    files, left = opened(tmp_path / "shards", rows, 100, memory), list[int]()

    def cut(part: fr.Candidates) -> fr.Candidates:
        left.append(sum(len(names) for _, _, names in os.walk(place)))
        return first_rows(part, 3)

    found = files.rewritten(cut)
    assert set(left) == {0}  # a file has no name as soon as it is written
    assert os.listdir(place) == []
    assert_same(gathered(found), first_rows(rows, 3))
    needed = len(found) * row_bytes(4) / found.memory.window
    assert len(found.files) <= max(found.queries if memory == 500 else 0, 2 * needed + 1)
    same = files.rewritten(lambda part: part)
    assert_same(gathered(same), rows)
    assert len(files.files) > 20


def test_what_is_kept_is_within_one_budget_for_all_rows_of_a_process(tmp_path: Path) -> None:
    """Training and validation rows, what is drawn and cut of them, stage by stage: together no more than the shares."""
    memory, least = Memory(150_000), list[int]()
    shares = shares_of(memory)
    train, valid = (
        opened(tmp_path / name, rows_of(seed, 150, unjudged=0.4), 2000, memory.total)
        for seed, name in enumerate(("train", "valid"))
    )

    def check(*_: Any) -> None:
        alive = [each for each in gc.get_objects() if isinstance(each, FileRows) and each.memory == memory]
        labels = sum(ROW * int(rows.row_counts[number]) for rows in alive for number in list(rows._kept))
        assert labels <= shares.labels.taken <= shares.labels.size == memory.resident
        stay = [(rows, number) for rows in alive for what, number in list(rows._grants) if what == "features"]
        assert sum(16 * int(rows.row_counts[number]) for rows, number in stay) <= shares.features.taken
        assert shares.features.taken <= memory.resident
        assert shares.scores.taken <= memory.resident
        least.append(len(alive))

    cascade = fr.Cascade([fr.Linear(), fr.Linear(), fr.Linear()], sizes=[12, 6, 4])
    how: dict[str, Any] = {"objective": "ranknet", "epochs": 2, "restarts": 1, "sweep": False}
    fit = fr.telescope(cascade, train, valid, progress=lambda _: nullcontext(check), **how)
    fr.evaluate(fit.model, train, "AP")
    check()
    assert max(least) > 3
    assert shares.labels.taken > 0
    del train, valid, fit
    gc.collect()
    assert (shares.features.taken, shares.labels.taken, shares.scores.taken) == (0, 0, 0)


def test_rows_that_were_cut_leave_their_room_to_others(tmp_path: Path) -> None:
    memory = Memory(1_000_001)
    files = opened(tmp_path / "shards", rows_of(queries=200), memory=memory.total)
    list(files.each(len))
    assert shares_of(memory).labels.taken > 0
    found = files.rewritten(first_rows, 2)
    assert (files._kept, shares_of(memory).labels.taken, shares_of(memory).features.taken) == ({}, 0, 0)
    list(found.each(len))
    assert shares_of(memory).labels.taken == ROW * len(found)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_sum_of_two_arrays_follows_from_theirs(one: bytes, other: bytes) -> None:
    assert sum_of_both(zlib.crc32(one), zlib.crc32(other), len(other)) == zlib.crc32(one + other)


def test_rows_are_known_by_what_they_are(tmp_path: Path) -> None:
    """However they are cut into files and windows, whenever they were written, in the cache or not; else not."""
    rows = rows_of(queries=60)
    write(tmp_path / "rows.txt", rows)
    fr.convert(rows, tmp_path / "many", shard=500)
    fr.convert(rows, tmp_path / "one", shard=10**6)
    made = {place: fr.open_rows(tmp_path / place) for place in ("many", "one", "rows.txt")}
    fr.read_letor(tmp_path / "rows.txt")
    made["cache"] = fr.open_rows(tmp_path / "rows.txt", memory=2000)
    assert len({len(each.files) for each in made.values()}) > 1
    assert len({each.digest for each in made.values()}) == 1
    cuts = [fr.open_rows(tmp_path / "many", memory).rewritten(first_rows, 3) for memory in (500, 20_000, 10**9)]
    assert len({len(each.windows) for each in cuts}) == 3
    assert len({each.digest for each in cuts}) == 1
    some = [made[place].select(np.array([1, 7, 50])).digest for place in ("many", "one")]
    assert some[0] == some[1]
    labels = np.where(np.arange(len(rows)) == 5, 9.0, rows.labels)
    others = [
        rows.select(np.arange(59)),
        replace(rows, labels=labels),
        replace(rows, feature_names=("a", "b", "c", "d")),
    ]
    digests = {each.digest for each in (*made.values(), cuts[0])} | {some[0]}
    for number, other in enumerate(others):
        fr.convert(other, tmp_path / f"other{number}", shard=500)
        digests.add(fr.open_rows(tmp_path / f"other{number}").digest)
    assert len(digests) == 3 + len(others)


def test_threads_share_windows_that_are_kept(tmp_path: Path) -> None:
    """Up to four trials look at the same kept window, each with its own columns, which are dropped when it ends."""
    files = opened(tmp_path / "shards", rows_of(queries=30), shard=10**6, memory=10**9)
    names = [("1", "2"), ("2", "3"), ("1", "4")]

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for turn in range(400):
            with files.window(0) as part:
                some = names[rng.integers(3)]
                assert pick_features(part, some).feature_names == some
                part.memo[seed, turn] = True

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)


class Forgetful(dict[Any, Any]):
    """What another thread empties at once."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def test_columns_that_are_forgotten_at_once_are_still_given() -> None:
    rows = rows_of()
    rows.__dict__["memo"] = Forgetful()
    assert pick_features(rows, ("1", "3")).feature_names == ("1", "3")


@pytest.mark.parametrize("named", [True, False])
def test_queries_are_read_from_the_file_that_was_opened(tmp_path: Path, named: bool) -> None:
    """By the file itself; or by its map, where another file has its name by now, or none has."""
    rows, chosen = rows_of(), np.array([0, 2, 3, 4, 7])
    rows = rows if named else replace(rows, docids=None)
    write_rows(tmp_path / "one.rows", rows)
    for change in ("nothing", "another", "none"):
        file = RowFile(tmp_path / "one.rows")
        if change == "another":
            write_rows(tmp_path / "one.rows", replace(rows, labels=rows.labels + 1))
        elif change == "none":
            (tmp_path / "one.rows").unlink()
        found, known = read_queries([(file, chosen)]), rows.select(chosen)
        known = replace(known, labels=known.labels + 1) if change == "none" else known
        assert (file._handle is None) == (change != "nothing")
        assert (found.qids, found.docids) == (known.qids, known.docids)
        for name in ("offsets", "labels", "features", "missed_offsets", "missed_labels"):
            np.testing.assert_array_equal(getattr(found, name), getattr(known, name))


def test_little_memory_is_told_to_be_exceeded_with_what_can_be_kept_to(tmp_path: Path) -> None:
    fr.convert(rows_of(), tmp_path / "shards")
    with pytest.warns(UserWarning, match=r"memory=10MB will be exceeded: the least .* is 453MB"):
        fr.open_rows(tmp_path / "shards", "10MB")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fr.open_rows(tmp_path / "shards", "453MB")
    assert [Memory(10**6 * size).data + PROCESS <= 10**6 * size for size in (453, 480, 2000)] == [True] * 3


# Memory

PEAK = """
import re, sys
from pathlib import Path
import fliprank as fr

def highest():  # not by getrusage, which counts what the process was before it became Python
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

rows = fr.open_rows(sys.argv[1], memory=sys.argv[2])
begin = highest()
fit = fr.train(fr.Linear(), rows, objective="ranknet", measure="nDCG@10", epochs=2, restarts=1)
fit = fr.train(fit.model, rows, method="exact", epochs=1, restarts=1, measure="nDCG@10", directions="axes")
fr.evaluate(fit.model, rows, ["nDCG@10", "AP"])
print(begin, highest())
"""


@pytest.mark.long
def test_memory_stays_below_the_data(tmp_path: Path) -> None:
    """A process that trains, searches and evaluates stays within its memory; with the rows in it, it could not."""
    rng, paths = np.random.default_rng(0), list[Path]()
    queries, size, width = 250, 40, 200
    for number in range(40):
        matrix = rng.normal(size=(queries * size, width)).astype(np.float32)
        labels = np.digitize(matrix[:, 0] + rng.normal(size=len(matrix)), [1, 2])
        qids = np.repeat(np.arange(number * queries, (number + 1) * queries), size)
        paths.append(tmp_path / f"{number:02d}.rows")
        write_rows(paths[-1], fr.Candidates.of(labels, qid=qids, features=matrix))
    data = sum(path.stat().st_size for path in paths)
    command = [sys.executable, "-c", PEAK]
    subprocess.run([*command, paths[0], "480MB"], check=True, capture_output=True)  # to compile takes memory, too
    told = subprocess.run([*command, tmp_path, "480MB"], capture_output=True, text=True, check=True)
    begin, peak = map(int, told.stdout.split())
    assert data > 300e6
    assert peak < parse_memory("480MB") < begin + data, (begin, peak, data)
