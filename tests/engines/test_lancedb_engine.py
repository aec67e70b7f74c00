"""LanceDB itself computes what we compute, and the program that is exported ranks as the model does."""

from __future__ import annotations

from pathlib import Path

import lancedb
import pyarrow
import pytest
from engine_checks import check_help_centre, check_odd_texts, model_of, odd_index
from exported_program import check_ranking, imported

from fliprank.engines.coded_texts import coded_documents
from fliprank.export import About, write_export
from fliprank.text.analysis import Analyzer

FUNCTIONS = pytest.mark.parametrize("function", ["multi_match", "should"])


@FUNCTIONS
def test_scores_of_odd_texts(function: str) -> None:
    check_odd_texts("lancedb", function)


@FUNCTIONS
def test_scores_and_measures_of_the_help_centre(function: str) -> None:
    check_help_centre("lancedb", function)


@FUNCTIONS
def test_the_exported_program_ranks_as_the_model_does(function: str, tmp_path: Path) -> None:
    index, model = odd_index(), model_of(odd_index(), "lancedb", function, 3)
    about = About(analyzer=Analyzer(stopwords=None, stemmer=None))
    program = imported(write_export(tmp_path / "out", model, "lancedb", about) / "lancedb_search.py")
    texts = coded_documents(index, index.fields)
    columns = {name: [each[name] for each in texts.values()] for name in index.fields}
    table = lancedb.connect(tmp_path / "base").create_table("t", pyarrow.table({"docid": list(texts), **columns}))
    program.index(table)

    def search(text: str) -> list[tuple[str, float]]:
        return [(hit["docid"], hit["_score"]) for hit in program.search(table, text, len(index))]

    check_ranking(index, model, search)
