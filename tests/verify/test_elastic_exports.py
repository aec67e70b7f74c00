"""The files for Elasticsearch and OpenSearch, read as these do: Lucene then ranks as the model does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from column_pages import column_index, stacked
from elastic_checks import check_elastic_files
from engine_checks import check_help_centre, check_odd_texts, model_of, odd_index
from lucene_places import use_lucene

from fliprank.errors import UsageError
from fliprank.export import About, write_export
from fliprank.export.target import find_target
from fliprank.models import EngineText, Feature
from fliprank.text.analysis import Analyzer

FUNCTIONS = ("most_fields", "best_fields", "lm_dirichlet", "lm_jelinek_mercer")
ENGINES = ("elasticsearch", "opensearch")


@pytest.fixture(autouse=True)
def lucene8(monkeypatch: pytest.MonkeyPatch) -> None:
    use_lucene(monkeypatch, 8)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_scores(engine: str, function: str) -> None:
    check_odd_texts(engine, function, seeds=1)
    check_help_centre(engine, function)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_exported_files_rank_as_the_model_does(engine: str, function: str, tmp_path: Path) -> None:
    model = model_of(column_index(), engine, function, 1)
    check_elastic_files(write_export(tmp_path, model, engine), model, engine)


def test_opensearch_before_version_3_has_a_template_of_its_own(tmp_path: Path) -> None:
    model = model_of(column_index(), "opensearch", "most_fields", 2)
    folder = write_export(tmp_path, model, "opensearch")
    check_elastic_files(folder, model, "opensearch 2", "search-template-before-3.json")
    with pytest.raises(AssertionError):
        check_elastic_files(folder, model, "opensearch 2")


COLUMNS = {
    "saturation": [(Feature("stars", transform="saturate", k=30.0), 1.5)],
    "log": [(Feature("stars", transform="log", k=3.0), 0.7)],
    "sigmoid": [(Feature("stars", transform="sigmoid", k=40.0), 2.0)],
    "less is better": [(Feature("price", transform="saturate", k=8.0), -1.2)],
    "less is better, sigmoid": [(Feature("price", transform="sigmoid", k=8.0), -1.2)],
    "recency": [(Feature("published_day", transform="recency", k=90.0), 0.8)],
    "several": [(Feature("stars", transform="log", k=2.0), 0.3), (Feature("price", transform="saturate", k=4.0), -0.5)],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("engine", ENGINES)
def test_columns_beside_the_text(engine: str, name: str, tmp_path: Path) -> None:
    model = stacked(engine, "most_fields", *COLUMNS[name])
    check_elastic_files(write_export(tmp_path, model, engine), model, engine)


def test_what_rank_feature_can_not_do_is_refused() -> None:
    refused = {
        "scaling_factor of log must be 1 or more": (Feature("stars", transform="log", k=0.5), 1.0),
        "counts against a document": (Feature("stars", transform="log", k=2.0), -1.0),
        "takes no values below 0": (Feature("stars", transform="signed", k=2.0), 1.0),
    }
    for reason, part in refused.items():
        with pytest.raises(UsageError, match=reason):
            find_target("elasticsearch", stacked("elasticsearch", "most_fields", part))


def test_a_field_without_weight_is_left_out_and_said_so(tmp_path: Path) -> None:
    model = model_of(odd_index(), "elasticsearch", "most_fields", 1)
    folder = write_export(tmp_path, model.at(model.params.replace({"tags.w": 0.0})), "elasticsearch")
    assert "tags" not in (folder / "index.json").read_text() + (folder / "search-template.json").read_text()
    assert "Field tags is left out" in (folder / "README.md").read_text()
    assert "Documents must be indexed again" in (folder / "README.md").read_text()


def test_the_analyzer_that_was_tuned_with_is_written(tmp_path: Path) -> None:
    model = model_of(odd_index(), "elasticsearch", "most_fields", 1)
    about = About(analyzer=Analyzer(stopwords=("der", "die"), stemmer="german"))
    folder = write_export(tmp_path, model, "elasticsearch", about)
    told = json.loads((folder / "index.json").read_text())
    assert told["settings"]["analysis"] == {
        "analyzer": {
            "fliprank": {
                "type": "custom",
                "tokenizer": "fliprank_words",
                "filter": ["lowercase", "fliprank_stop", "fliprank_stem"],
            }
        },
        "tokenizer": {"fliprank_words": {"type": "pattern", "pattern": "(?U)\\W+"}},
        "filter": {
            "fliprank_stop": {"type": "stop", "stopwords": ["der", "die"]},
            "fliprank_stem": {"type": "snowball", "language": "German"},
        },
    }
    assert told["mappings"]["properties"]["title"]["analyzer"] == "fliprank"


@pytest.mark.parametrize("name", ["title^2", "tit*", "{{title}}", " ", "a."])
def test_names_that_mean_something_in_a_query_are_refused(name: str) -> None:
    known = model_of(column_index(), "elasticsearch", None, 0)
    model = EngineText(known.formula, (name, "body", "tags"), tokens=known.tokens, counted=known.counted)
    with pytest.raises(UsageError, match="can't be called"):
        find_target("elasticsearch", model)


def test_combined_fields_needs_no_new_indexing(tmp_path: Path) -> None:
    model = model_of(odd_index(), "elasticsearch", "combined_fields", 1)
    folder = write_export(tmp_path, model, "elasticsearch")
    told = json.loads((folder / "settings.json").read_text())
    assert told == {"index": {"similarity": {"default": {"type": "BM25", "k1": pytest.approx(model.params["k"], 1e-5),
                                                         "b": pytest.approx(model.params["b"], 1e-5)}}}}  # fmt: skip
    assert "No document needs to be indexed again." in (folder / "README.md").read_text()
    assert "similarity" not in str(json.loads((folder / "index.json").read_text())["mappings"])
