"""Whoosh itself computes what we compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_checks import (
    QUERIES,
    check_help_centre,
    check_hits,
    check_odd_texts,
    loaded,
    model_of,
    odd_index,
    odd_pages,
    random_parameters,
)
from whoosh.filedb.filestore import RamStorage
from whoosh.util.numeric import byte_to_length, length_to_byte

from fliprank.errors import UsageError
from fliprank.export import About, write_export
from fliprank.export.functions import engine_model
from fliprank.models.engine.formula import rounded_lengths
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index


def test_scores_of_odd_texts() -> None:
    check_odd_texts("whoosh")


def test_scores_and_measures_of_the_help_centre() -> None:
    check_help_centre("whoosh")


def test_lengths_are_those_of_its_own_table() -> None:
    lengths = np.array([*range(5000), 50_000, 106_373, 106_374, 106_375, 200_000], np.float64)
    kept = [byte_to_length(length_to_byte(int(length))) for length in lengths]
    np.testing.assert_array_equal(rounded_lengths(lengths, "whoosh"), kept)


def test_the_exported_module_ranks_as_the_model_does(tmp_path: Path) -> None:
    model = model_of(odd_index(), "whoosh", None, 1)
    folder = write_export(tmp_path / "out", model, "whoosh", About(analyzer=odd_index().analyzer))
    module = loaded(folder / "whoosh_search.py")
    index = RamStorage().create_index(module.schema())
    writer = index.writer()
    for docid, page in odd_pages().items():
        writer.add_document(docid=docid, **page)
    writer.commit()
    hits = {qid: dict(module.search(index, text, 1000)) for qid, text in QUERIES.items()}
    check_hits(odd_index(), model, QUERIES, hits)


def test_words_are_cut_as_ours_and_names_can_not_break_out(tmp_path: Path) -> None:
    names = ("a'}\nraise", 'b"""', "c\\")
    rows = Index.build([{"_id": "x"} | dict.fromkeys(names, "red shoe")], fields=names)
    model = random_parameters(engine_model("whoosh").prepared(rows.rows({}, {}), 0), 1)
    folder = write_export(tmp_path / "out", model, "whoosh", About(analyzer=Analyzer()))
    module = loaded(folder / "whoosh_search.py")
    text = "The Runner's red_shoes, 3 of THEM; running a café"
    assert [token.text for token in module.analyzer()(text)] == Analyzer().terms(text)


def test_names_that_whoosh_refuses_are_refused(tmp_path: Path) -> None:
    rows = Index.build([{"_id": "x", "_a": "red"}], fields=["_a"])
    model = engine_model("whoosh").prepared(rows.rows({}, {}), 0)
    with pytest.raises(UsageError, match="a field of Whoosh can't be called '_a'"):
        write_export(tmp_path / "refused", model, "whoosh")
