"""Milvus Lite computes what we compute, and the program that is exported ranks as the model does."""

from __future__ import annotations

from pathlib import Path

from engine_checks import check_help_centre, check_odd_texts, model_of, odd_index
from exported_program import check_ranking, imported
from pymilvus import MilvusClient

from fliprank.engines.coded_texts import coded_documents
from fliprank.export import write_export


def test_scores_of_odd_texts() -> None:
    check_odd_texts("milvus")


def test_scores_and_measures_of_the_help_centre() -> None:
    check_help_centre("milvus")


def test_the_exported_program_ranks_as_the_model_does(tmp_path: Path) -> None:
    index, model = odd_index(), model_of(odd_index(), "milvus", None, 3)
    program = imported(write_export(tmp_path / "out", model, "milvus") / "milvus_search.py")
    client = MilvusClient(str(tmp_path / "base.db"))
    program.create(client, "documents", lite=True)
    client.insert("documents", [program.row(*each) for each in coded_documents(index, index.fields).items()])
    client.load_collection("documents")
    check_ranking(index, model, lambda text: program.search(client, "documents", text, len(index)))
    client.close()
