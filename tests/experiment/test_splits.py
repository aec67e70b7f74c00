"""Folds: every query where it belongs, once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fliprank as fr
from fliprank.data.builtin import collection
from fliprank.experiment.splits import fold_queries, folds_of
from fliprank.experiment.task import fold_tasks, task_of_documents


def rows_of(queries: int) -> fr.Candidates:
    x = np.random.default_rng(0).normal(size=(6 * queries, 3))
    labels = np.clip(np.round(x[:, 0] + 0.5), 0, 2)
    return fr.Candidates.of(labels, group=[6] * queries, features=x)


@given(st.integers(5, 200), st.integers(0, 5))
def test_five_folds_test_every_query_once_and_rotate_the_parts(queries: int, seed: int) -> None:
    found = fold_queries(queries, (3, 1, 1), 5, seed)
    everyone = np.arange(queries)
    np.testing.assert_array_equal(np.sort(np.concatenate([test for *_, test in found])), everyone)
    np.testing.assert_array_equal(np.sort(np.concatenate([valid for _, valid, _ in found])), everyone)
    for number, (train, valid, test) in enumerate(found):
        np.testing.assert_array_equal(np.sort(np.concatenate([train, valid, test])), everyone)
        assert abs(len(test) - queries / 5) < 1
        np.testing.assert_array_equal(valid, found[number - 1][2])  # as in LETOR: tested on in the fold before


@given(st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(0, 5)), st.integers(2, 8), st.integers(40, 90))
def test_any_shares_part_all_queries(parts: tuple[int, int, int], folds: int, queries: int) -> None:
    for found in fold_queries(queries, parts, folds, 0):
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(queries))
        for share, part in zip(parts, found, strict=True):
            assert abs(len(part) - queries * share / sum(parts)) <= 1


def test_plain_folds_are_what_they_were() -> None:
    """The same queries in the same folds as when `tune` had this function: its figures depend on them."""
    drawn = np.random.default_rng(3).permutation(17)
    for found, expected in zip(folds_of(17, 4, 3), np.array_split(drawn, 4), strict=True):
        np.testing.assert_array_equal(found, np.sort(expected))


def test_rows_follow_their_queries() -> None:
    rows = rows_of(23)
    for train, valid, test in fr.folds(rows, seed=4):
        assert train.queries + valid.queries + test.queries == 23
        for part in (train, valid, test):
            first = rows.qids.tolist().index(part.qids[0])
            assert part.features is not None
            assert rows.features is not None
            np.testing.assert_array_equal(part.features[:6], rows.features[6 * first : 6 * first + 6])
    again = [[part.qids.tolist() for part in fold] for fold in fr.folds(rows, seed=4)]
    assert again == [[part.qids.tolist() for part in fold] for fold in fr.folds(rows, seed=4)]
    assert again != [[part.qids.tolist() for part in fold] for fold in fr.folds(rows, seed=5)]


def test_nonsense_is_refused() -> None:
    with pytest.raises(fr.UsageError, match=r"parts=\(3, 1\): expected shares"):
        list(fr.folds(rows_of(9), (3, 1)))
    with pytest.raises(fr.UsageError, match="9 folds of 5 queries"):
        list(fr.folds(rows_of(5), folds=9))
    with pytest.raises(fr.UsageError, match="fold 1 has no validation query"):
        list(fr.folds(rows_of(5), (98, 1, 1), 2))


def test_folds_of_documents_keep_texts_and_judgements_of_their_queries() -> None:
    docs = collection()
    index = fr.Index.build(docs)
    task = task_of_documents(index, docs / "queries.jsonl", docs / "qrels" / "train.tsv", depth=5)
    tested = []
    for fold in fold_tasks(task, 4):
        for part in fold.parts().values():
            assert part.qrels is not None
            assert set(part.rows.qids.tolist()) == set(part.texts) == set(part.qrels.qids.tolist())
            assert task.train.qrels is not None
            whole = task.train.qrels.to_dict()
            assert part.qrels.to_dict() == {qid: whole[qid] for qid in part.qrels.qids.tolist()}
        assert fold.test is not None
        tested += fold.test.rows.qids.tolist()
    assert sorted(tested) == sorted(task.train.rows.qids.tolist())


def test_a_file_is_cross_validated_as_a_folder_of_folds_would_be(tmp_path: Path) -> None:
    rows = rows_of(30)
    fr.write_letor(tmp_path / "rows.txt", rows)
    for number, fold in enumerate(fr.folds(fr.read_letor(tmp_path / "rows.txt"), seed=7), 1):
        folder = tmp_path / "data" / f"Fold{number}"
        folder.mkdir(parents=True)
        for name, part in zip(("train", "vali", "test"), fold, strict=True):
            fr.write_letor(folder / f"{name}.txt", part)
    given = ["--seed", "7", "--method", "lbfgs", "--objective", "ranknet", "--epochs", "3", "--restarts", "1"]
    told = []
    for source in (["rows.txt", "--cv", "5"], ["--folds", "data"]):
        command = [sys.executable, "-m", "fliprank", "train", *source, *given, "--out", source[0][:4] + "fit"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told.append(json.loads((tmp_path / (source[0][:4] + "fit") / "result.json").read_text()))
    assert [fold["fold"] for fold in told[0]["folds"]] == [f"Fold{i}" for i in range(1, 6)]
    assert told[0]["folds"] == told[1]["folds"]
    both = [sys.executable, "-m", "fliprank", "train", "rows.txt", "--cv", "5", "--valid", "rows.txt"]
    wrong = subprocess.run(both, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--cv parts the training queries itself" in wrong.stderr
