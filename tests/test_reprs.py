"""What a person prints in a notebook is a few lines, and never the arrays inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.models.base import full_text


def feature_rows(names: tuple[str, ...] = ("bm25", "clicks")) -> fr.Candidates:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, len(names)))
    docids = [f"d{i}" for i in range(200)]
    return fr.Candidates.of(x[:, 0] > 0.5, group=[20] * 10, features=x, feature_names=names, docids=docids)


ROWS = feature_rows()
LINEAR = fr.Linear().prepared(ROWS, 0).at([0.5, 1.25, -2.0])
RUN = fr.Run(ROWS.offsets, ROWS.qids, ROWS.document_ids(), LINEAR.score(ROWS), "mine")
INDEX = fr.Index.build([{"_id": "a", "title": "Red shoes", "price": 3.0}, {"_id": "b", "title": "Blue", "price": 4.0}])
QRELS = fr.Qrels.of({"q": {"a": 1, "b": 0}})
TEXT = INDEX.candidates({"q": "red shoes"}, QRELS)
EVALUATION = fr.evaluate(ROWS, {"linear": LINEAR.score(ROWS), "zero": np.zeros(200)}, ["AP", "nDCG@10"])
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "candidates": (lambda: ROWS, "Candidates: 10 queries, 200 rows (200 judged), 2 features"),
    "text": (lambda: TEXT, "Candidates: 1 queries, 2 rows (2 judged), 1 features, term statistics of title"),
    "run": (lambda: RUN, "Run mine: 10 queries, 200 documents"),
    "qrels": (lambda: QRELS, "Qrels: 1 queries, 2 judgements"),
    "ids": (lambda: ROWS.qids, "Ids('1', '2', '3', ... 10 in all)"),
    "few ids": (lambda: QRELS.docids, "Ids('a', 'b')"),
    "terms": (lambda: TEXT.terms, "TermStatistics: 1 queries, 2 rows, fields title"),
    "index": (lambda: INDEX, "Index: 2 documents, 3 terms, fields title, columns price"),
    "linear": (lambda: LINEAR, "Linear(bias=0.5, w.bm25=1.25, w.clicks=-2)"),
    "unprepared": (lambda: fr.Network(hidden=3), "Network(hidden=3)"),
    "blend": (lambda: fr.Blend([fr.Linear(), fr.Trees(leaves=7)]), "Blend(parts=(Linear(), Trees(leaves=7)))"),
    "network": (lambda: fr.Network(hidden=5).prepared(ROWS, 0), "Network(21 parameters)"),
    "bm25f": (lambda: fr.BM25F().prepared(TEXT, 0), "BM25F(k=1.2, title.w=1, title.b=0.75)"),
    "comparison": (lambda: EVALUATION.compare()[0], "zero - linear: AP -"),
    "surface": (lambda: fr.landscape.surface(LINEAR, ROWS, ["w.bm25", "w.clicks"], "AP"), "Surface of AP, 41 x 41"),
    "trajectory": (lambda: fr.landscape.trajectory(LINEAR, ROWS, "w.bm25", "AP"), "ModelTrajectory: AP at best"),
    "flips": (lambda: fr.find_flips(LINEAR.score(ROWS), np.arange(200.0), ROWS), "Flips: "),
    "generated": (lambda: fr.generate(2, seed=1), "Generated(rows=Candidates: 2 queries"),
    "evaluation": (lambda: EVALUATION, "Evaluation on 10 queries\n  linear: AP 0."),
    "comparisons": (lambda: EVALUATION.compare(), "2 comparisons\n  zero - linear: AP -"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_shown_in_a_few_lines_without_its_arrays(name: str) -> None:
    make, begins = CASES[name]
    shown = repr(make())
    assert shown.startswith(begins)
    assert "array(" not in shown
    assert len(shown.splitlines()) <= 6
    assert max(map(len, shown.splitlines())) <= 160


def test_trees_say_how_many_there_are() -> None:
    fit = fr.train(fr.Trees(rounds=3, leaves=4, rate=0.1, leaf_rows=5), ROWS)
    assert repr(fit.model) == f"Trees({len(fit.model.forest)} trees)"  # type: ignore[attr-defined]
    assert "array(" not in repr(fit)


def test_names_from_files_can_not_move_the_cursor_of_a_terminal() -> None:
    rows = feature_rows(("bm25", "evil\x1b[2J"))
    assert "\x1b" not in repr(fr.Linear().prepared(rows, 0))
    assert "\x1b" not in repr(fr.Run(ROWS.offsets, ROWS.qids, ROWS.document_ids(), np.zeros(200), "\x1b[2J"))


def test_models_that_are_shown_alike_still_have_different_full_texts() -> None:
    one, other = fr.BM25F(["title"]), fr.BM25F(["title"]).at([1.2, 2.0, 0.5])
    assert full_text(one) == full_text(fr.BM25F(["title"]))
    assert full_text(one) != full_text(other)
    assert full_text(fr.Blend([one, fr.Linear()])) != full_text(fr.Blend([other, fr.Linear()]))


def test_the_frame_of_an_evaluation_has_every_query() -> None:
    frame = EVALUATION.to_frame()
    assert frame.columns == ["run", "query", "measure", "value"]
    assert frame.height == 2 * 2 * 10
    for run, values in EVALUATION.values.items():
        for measure, column in values.items():
            mine = frame.filter(run=run, measure=measure)
            assert mine["query"].to_list() == EVALUATION.qids.tolist()
            assert mine["value"].to_list() == column.tolist()
    means = EVALUATION.to_frame(per_query=False)
    assert means.rows() == [(run, name, v) for run, known in EVALUATION.means().items() for name, v in known.items()]


def test_the_frame_of_comparisons_has_every_figure() -> None:
    found = EVALUATION.compare()
    row, first = found.to_frame().row(0, named=True), found[0]
    assert (row["run"], row["measure"], row["difference"], row["low"]) == (
        *(first.run, first.measure, first.difference), first.interval[0],
    )  # fmt: skip
    assert (row["p_randomisation"], row["p_holm"]) == (first.p["randomisation"], first.corrected["holm"])
    assert row["better"] + row["worse"] + row["tied"] == row["queries"] == 10
