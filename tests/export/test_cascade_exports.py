"""Cascades in engines: what their requests rank first is what our cascade ranks first."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_formulas import VespaExpression, plugin_scores, solr_scores
from feature_models import columns_of, make_rows, trained

import fliprank as fr
from fliprank.errors import UsageError
from fliprank.export import read_export
from fliprank.export.vespa_ltr import function_names

ROWS = make_rows(seed=1)
STAGES = [("linear", "net", "trees"), ("subset", "trees", "linear"), ("trees", "linear", "net")]
SIZES = [12, 6, 3]


def cascade(names: tuple[str, ...], sizes: list[int] = SIZES) -> fr.Cascade:
    return fr.Cascade([trained()[name] for name in names], sizes=sizes[: len(names)])


def export(model: fr.Model, to: str, folder: Path) -> Path:
    return read_export(fr.export_model(model, to, folder)).folder


def ours(model: fr.Model, query: int, count: int) -> list[int]:
    """The first documents of a query."""
    start, stop = ROWS.offsets[query], ROWS.offsets[query + 1]
    return np.argsort(-model.score(ROWS)[start:stop], kind="stable")[:count].tolist()


@pytest.mark.parametrize("names", STAGES, ids=",".join)
def test_rescorers_of_elasticsearch_rank_the_last_window_as_we_do(names: tuple[str, ...], tmp_path: Path) -> None:
    model = cascade(names)
    place = export(model, "elasticsearch-ltr", tmp_path)
    search, features = (json.loads((place / f"{name}.json").read_text()) for name in ("search", "featureset"))
    assert [each["window_size"] for each in search["rescore"]] == SIZES
    columns = columns_of(ROWS) | {"fliprank_one": np.ones(len(ROWS), np.float32)}
    scores = {}
    for number in range(1, 4):
        created = json.loads((place / f"model-{number}.json").read_text())
        scores[created["model"]["name"]] = plugin_scores(created, features, columns)
    rng = np.random.default_rng(0)
    for query in range(ROWS.queries):
        start, stop = ROWS.offsets[query], ROWS.offsets[query + 1]
        hits = [(float(score), row) for row, score in enumerate(rng.random(stop - start))]
        for each in search["rescore"]:
            hits = rescored(hits, each, scores[each["query"]["rescore_query"]["sltr"]["model"]][start:stop])
        assert [row for _, row in hits[: SIZES[-1]]] == ours(model, query, SIZES[-1])


def rescored(hits: list[tuple[float, int]], how: dict[str, Any], scores: np.ndarray) -> list[tuple[float, int]]:
    """Elasticsearch's QueryRescorer: the window gets the weighted sum of scores, the rest its own; all are sorted.

    Equal scores are in the order of documents.
    """
    hits = sorted(hits, key=lambda hit: (-hit[0], hit[1]))
    own, new = how["query"]["query_weight"], how["query"]["rescore_query_weight"]
    window = [(own * score + new * float(scores[row]), row) for score, row in hits[: how["window_size"]]]
    rest = [(own * score, row) for score, row in hits[how["window_size"] :]]
    return sorted([*window, *rest], key=lambda hit: (-hit[0], hit[1]))


@pytest.mark.parametrize("names", STAGES, ids=",".join)
def test_phases_of_vespa_rank_as_we_do(names: tuple[str, ...], tmp_path: Path) -> None:
    model = cascade(names)
    place = export(model, "vespa", tmp_path)
    profile = (place / "fliprank.profile").read_text()
    phases = re.findall(r"(\S+-phase) \{(?:\s+rerank-count: (\d+))?\s+expression: file:(\S+)\.expression\s+\}", profile)
    assert [(phase, count) for phase, count, _ in phases] == [
        *(("first-phase", ""), ("second-phase", "6"), ("global-phase", "3"))
    ]
    called = function_names(read_export(place).settings["features"])
    assert all(f"function {name}() {{" in profile for name in called.values())
    columns = {called[name]: column for name, column in columns_of(ROWS).items() if name in called}
    scores = [VespaExpression((place / f"{file}.expression").read_text()).value(columns) for _, _, file in phases]
    for query in range(ROWS.queries):
        start, stop = ROWS.offsets[query], ROWS.offsets[query + 1]
        order = list(range(stop - start))
        for (_, count, _), values in zip(phases, scores, strict=True):
            top = int(count or len(order))
            order[:top] = sorted(order[:top], key=lambda row: (-values[start + row], row))
        assert order == ours(model, query, len(order))


@pytest.mark.parametrize("last", ["linear", "net", "trees"])
def test_solr_ranks_by_a_function_and_then_anew(last: str, tmp_path: Path) -> None:
    model = cascade(("linear", last))
    place = export(model, "solr-ltr", tmp_path)
    request = (place / "request.txt").read_text()
    assert "rq={!ltr model=fliprank reRankDocs=6 " in request
    terms = re.findall(r"product\((\S+?),\$(f\d+)\)", request)
    named = dict(re.findall(r"^(f\d+)=FILL IN A FUNCTION: (.+)$", request, re.MULTILINE))
    constant = re.search(r",([-0-9.e]+)\)$", request, re.MULTILINE)
    assert constant is not None
    columns = columns_of(ROWS)
    first = np.full(len(ROWS), float(constant[1]))
    for weight, place_of in terms:
        first += float(weight) * columns[named[place_of]]
    assert first.min() > 0
    then = solr_scores(json.loads((place / "model.json").read_text()), columns)
    for query in range(ROWS.queries):
        start, stop = ROWS.offsets[query], ROWS.offsets[query + 1]
        order = np.argsort(-first[start:stop].astype(np.float32), kind="stable").tolist()
        order[:6] = sorted(order[:6], key=lambda row: (-then[start + row], row))
        assert order == ours(model, query, len(order))


def test_cascades_that_an_engine_has_no_stages_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Solr ranks anew once per request, this cascade has 3 stages"):
        fr.export_model(cascade(STAGES[0]), "solr-ltr", tmp_path)
    with pytest.raises(UsageError, match="it must be linear"):
        fr.export_model(cascade(("net", "linear")), "solr-ltr", tmp_path)
    four = fr.Cascade([trained()["linear"]] * 4, sizes=[12, 9, 6, 3])
    with pytest.raises(UsageError, match="Vespa ranks in 3 phases, this cascade has 4 stages"):
        fr.export_model(four, "vespa", tmp_path)
    with pytest.raises(UsageError, match="a cascade is several models"):
        fr.export_model(cascade(STAGES[0]), "onnx", tmp_path)
