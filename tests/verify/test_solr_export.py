"""Solr's edismax: what it asks of Lucene is what we compute, and its files say so."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from column_pages import column_index, pages, stacked
from engine_checks import FIELDS, check_help_centre, check_odd_texts, model_of
from expressions import calculate
from lucene_places import use_lucene

from fliprank.engines.java import newest_lucene
from fliprank.errors import UsageError
from fliprank.export import About, write_export
from fliprank.export.target import find_target
from fliprank.models import EngineText, Feature, Model
from fliprank.text.analysis import Analyzer

COLUMNS = {
    "saturation": [(Feature("stars", transform="saturate", k=30.0), 1.5)],
    "log": [(Feature("stars", transform="log", k=0.3), 0.7)],
    "as it is": [(Feature("stars"), 0.01)],
    "sigmoid": [(Feature("stars", transform="sigmoid", k=40.0), 2.0)],
    "signed": [(Feature("stars", transform="signed", k=40.0), -2.0)],
    "signed, up": [(Feature("stars", transform="signed", k=40.0), 2.0)],
    "less is better": [(Feature("price", transform="saturate", k=8.0), -1.2)],
    "less is better, sigmoid": [(Feature("price", transform="sigmoid", k=8.0), -1.2)],
    "recency": [(Feature("published_day", transform="recency", k=90.0), 0.8)],
    "old is better": [(Feature("published_day", transform="recency", k=90.0), -0.8)],
    "several": [(Feature("stars", transform="log", k=2.0), 0.3), (Feature("price", transform="saturate", k=4.0), -0.5)],
}


@pytest.fixture(autouse=True)
def lucene8(monkeypatch: pytest.MonkeyPatch) -> None:
    use_lucene(monkeypatch, 8)


def test_scores() -> None:
    check_odd_texts("solr")
    check_help_centre("solr")


def functions(row: Mapping[str, float]) -> dict[str, Any]:
    """Solr's functions of a document, by its reference guide."""
    return {
        "sum": lambda *values: sum(values),
        "product": lambda *values: math.prod(values),
        "sub": lambda a, b: a - b,
        "div": lambda a, b: a / b,
        "max": max,
        "pow": lambda a, b: a**b,
        "ln": math.log,
        "abs": abs,
        "gt": lambda a, b: float(a > b),
        "if": lambda a, b, c: b if a else c,
        "field": lambda name: row.get(name, 0.0),
    }


def solr_scores(folder: Path, query: str) -> dict[str, float]:
    """What Solr makes of the files: edismax in Lucene, and functions added, at least 0."""
    java, index = newest_lucene(), column_index()
    schema = ElementTree.fromstring(f"<schema>{(folder / 'schema.xml').read_text()}</schema>")
    params = json.loads((folder / "query.json").read_text())["params"]
    assert schema.find("similarity").get("class") == "solr.SchemaSimilarityFactory"  # type: ignore[union-attr]
    types = {kind.get("name"): kind.find("similarity") for kind in schema.findall("fieldType")}
    fields = {field.get("name"): types.get(field.get("type")) for field in schema.findall("field")}
    weights = {name: float(weight) for name, weight in (each.split("^") for each in params["qf"].split())}
    assert params["defType"] == "edismax"
    assert params["sow"] == "true"
    similarities = {}
    for name in weights:
        told = {each.get("name"): float(each.text or "") for each in fields[name] or ()}
        assert fields[name].get("class") == "solr.BM25SimilarityFactory"  # type: ignore[union-attr]
        similarities[name] = java("search.similarities.BM25Similarity")(
            java.jpype.JFloat(told["k1"]), java.jpype.JFloat(told["b"])
        )
    engine = lucene_index(java, similarities)
    builder, some = java("search.BooleanQuery$Builder")(), java("search.BooleanClause$Occur").SHOULD
    for word in query.split():
        several = java.jpype.java.util.ArrayList()
        for name, weight in weights.items():
            term = java("search.TermQuery")(java("index.Term")(name, word))
            several.add(java("search.BoostQuery")(term, java.jpype.JFloat(weight)))
        builder.add(java("search.DisjunctionMaxQuery")(several, java.jpype.JFloat(float(params["tie"]))), some)
    hits = engine.search(builder.build(), 1000).scoreDocs
    text = {str(index.docids[hit.doc]): float(hit.score) for hit in hits}
    rows = index.rows({"q": query}, {"q": list(text)})
    out = {}
    for row, (docid, score) in enumerate(text.items()):
        values = dict(zip(rows.feature_names, rows.features[row].tolist(), strict=True))  # type: ignore[index]
        for name in params.get("bf", []):
            score += max(0.0, calculate(name, functions(values)))
        out[docid] = score
    assert all(column in fields for column in ("stars", "price", "published_day") if column in str(params.get("bf")))
    return out


def lucene_index(java: Any, similarities: Mapping[str, Any]) -> Any:
    directory = java("store.ByteBuffersDirectory")()
    words = java("analysis.core.WhitespaceAnalyzer")()
    writer = java("index.IndexWriter")(directory, java("index.IndexWriterConfig")(words))
    for page in pages():
        document = java("document.Document")()
        for name in FIELDS:
            document.add(java("document.TextField")(name, page[name], java("document.Field$Store").NO))
        writer.addDocument(document)
    writer.forceMerge(1)
    writer.close()
    searcher = java("search.IndexSearcher")(java("index.DirectoryReader").open(directory))
    searcher.setSimilarity(java.similarity_by_field(dict(similarities), java("search.similarities.BM25Similarity")()))
    return searcher


def check_files(folder: Path, model: Model) -> None:
    for query in ("w1 w2", "w3", "w4 w5 w5 w6"):
        found = solr_scores(folder, query)
        rows = column_index().rows({"q": query}, {"q": list(found)})
        gap = np.array(list(found.values())) - model.score(rows)
        assert len(gap) > 10
        np.testing.assert_allclose(gap, gap.mean(), atol=1e-5 * max(found.values()))


def test_the_exported_files_rank_as_the_model_does(tmp_path: Path) -> None:
    model = model_of(column_index(), "solr", None, 1)
    check_files(write_export(tmp_path, model, "solr"), model)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_beside_the_text(name: str, tmp_path: Path) -> None:
    model = stacked("solr", "edismax", *COLUMNS[name])
    check_files(write_export(tmp_path, model, "solr"), model)


def test_what_has_no_bound_below_is_refused() -> None:
    with pytest.raises(UsageError, match="counts against a document without bound"):
        find_target("solr", stacked("solr", "edismax", (Feature("stars", transform="log", k=2.0), -1.0)))


def test_the_analyzer_is_written_and_names_are_safe(tmp_path: Path) -> None:
    known = model_of(column_index(), "solr", None, 1)
    folder = write_export(tmp_path, known, "solr", About(analyzer=Analyzer()))
    schema = ElementTree.fromstring(f"<schema>{(folder / 'schema.xml').read_text()}</schema>")
    classes = [each.get("class") for each in schema.find("fieldType/analyzer") or ()]
    wanted = ("PatternTokenizer", "LowerCaseFilter", "StopFilter", "SnowballPorterFilter")
    assert classes == [f"solr.{name}Factory" for name in wanted]
    assert "the\n" in (folder / "stopwords_fliprank.txt").read_text()
    for name in ("title^9", "a b", 'x"', "<x>"):
        model = EngineText(known.formula, (name, "body", "tags"), tokens=known.tokens, counted=known.counted)
        with pytest.raises(UsageError, match="can't be called"):
            find_target("solr", model)
