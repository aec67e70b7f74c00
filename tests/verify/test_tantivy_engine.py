"""Tantivy itself computes what we compute."""

from __future__ import annotations

from pathlib import Path

import tantivy
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

from fliprank.export import About, write_export
from fliprank.export.functions import engine_model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index


def test_scores_of_odd_texts() -> None:
    check_odd_texts("tantivy")


def test_scores_and_measures_of_the_help_centre() -> None:
    check_help_centre("tantivy")


def filled(module: object, pages: dict[str, dict[str, str]]) -> tantivy.Index:
    """An index as the exported module wants it."""
    schema = module.schema()  # type: ignore[attr-defined]
    index = tantivy.Index(schema)
    writer = index.writer(num_threads=1)
    for docid, page in pages.items():
        writer.add_document(tantivy.Document.from_dict({"docid": docid, **page}, schema))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def test_the_exported_module_ranks_as_the_model_does(tmp_path: Path) -> None:
    model = model_of(odd_index(), "tantivy", None, 1)
    folder = write_export(tmp_path / "out", model, "tantivy", About(analyzer=odd_index().analyzer))
    module = loaded(folder / "tantivy_search.py")
    index = filled(module, odd_pages())
    hits = {qid: dict(module.search(index, text, 1000)) for qid, text in QUERIES.items()}
    check_hits(odd_index(), model, QUERIES, hits)


def test_english_words_are_stemmed_and_names_can_not_break_out(tmp_path: Path) -> None:
    names = ("a'}\nraise SystemExit", 'b"""', "c\\")
    rows = Index.build([{"_id": "x"} | dict.fromkeys(names, "red shoe")], fields=names)
    model = random_parameters(engine_model("tantivy").prepared(rows.rows({}, {}), 0), 1)
    folder = write_export(tmp_path / "out", model, "tantivy", About(analyzer=Analyzer()))
    module = loaded(folder / "tantivy_search.py")
    index = filled(module, {"x": dict.fromkeys(names, "Red shoes"), "y": {names[0]: "blue"}})
    assert [docid for docid, _ in module.search(index, 'a SHOE, "please: (')] == ["x"]
