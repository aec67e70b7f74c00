"""Vespa's rank profile, calculated from the texts themselves: its own bm25 by its documentation, one term at a time."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from column_pages import column_index, pages, stacked
from engine_checks import FIELDS, model_of
from expressions import calculate
from test_solr_export import COLUMNS

from fliprank.export import write_export
from fliprank.models import EngineText, Feature, Model

ALL = COLUMNS | {
    "falling without bound": [(Feature("stars", transform="log", k=2.0), -0.4)],
    "falling as it is": [(Feature("stars"), -0.01)],
}


def parse(schema: str) -> tuple[dict[str, dict[str, float]], dict[str, str], str, set[str]]:
    """Rank properties by field, functions, the first phase, and all fields; anything else is an error."""
    text = re.sub(r"#.*", "", schema)
    number = r"-?[\d.]+(?:e[+-]?\d+)?"
    field = (
        r"field (\w+) type (string|double) \{\s*indexing: (?:index|attribute) \| summary\s*(?:index: enable-bm25\s*)?\}"
    )
    fields = {name for name, _ in re.findall(field, text)}
    profile = re.fullmatch(
        rf"\s*(?:{field}\s*)+fieldset fliprank \{{\s*fields: (?P<searched>\w+(?:, \w+)*)\s*\}}\s*"
        r"rank-profile fliprank inherits default \{\s*"
        r"(?P<functions>(?:function \w+\(\) \{\s*expression: [^\n]+\s*\}\s*)*)"
        r"first-phase \{\s*expression: (?P<first>[^\n]+)\s*\}\s*"
        rf"rank-properties \{{\s*(?P<properties>(?:bm25\(\w+\)\.\w+: {number}\s*)+)\}}\s*\}}\s*",
        text,
    )
    assert profile, text
    properties: dict[str, dict[str, float]] = {}
    for name, key, value in re.findall(rf"bm25\((\w+)\)\.(\w+): ({number})", profile["properties"]):
        properties.setdefault(name, {})[key] = float(value)
    functions = dict(re.findall(r"function (\w+)\(\) \{\s*expression: ([^\n]+)", profile["functions"]))
    assert set(profile["searched"].split(", ")) == set(properties)
    return properties, functions, profile["first"], fields


def vespa_bm25(page: dict[str, Any], name: str, query: str, told: dict[str, float]) -> float:
    words, score = page[name].split(), 0.0
    for term in query.split():
        n = sum(term in other[name].split() for other in pages())
        idf = math.log(1 + (len(pages()) - n + 0.5) / (n + 0.5))
        tf = words.count(term)
        if tf:
            norm = 1 - told["b"] + told["b"] * len(words) / told["averageFieldLength"]
            score += idf * tf * (told["k1"] + 1) / (tf + told["k1"] * norm)
    return score


def vespa_scores(schema: str, query: str) -> dict[str, float]:
    properties, own, first, fields = parse(schema)
    index = column_index()
    rows = index.rows({"q": query}, {"q": index.docids.tolist()})
    out = {}
    for row, page in enumerate(pages()):
        values = dict(zip(rows.feature_names, rows.features[row].tolist(), strict=True))  # type: ignore[index]
        given = {name: value or math.nan for name, value in values.items() if name in fields}  # 0: no value was sent
        functions: dict[str, Any] = {
            "bm25": lambda name, page=page: vespa_bm25(page, name, query, properties[name]),
            "attribute": given.__getitem__,
            "isNan": lambda x: float(math.isnan(x)),
            "if": lambda a, b, c: b if a else c,
            "max": max,
            "pow": math.pow,
            "log": math.log,
            "fabs": abs,
        }
        for name, expression in own.items():
            functions[name] = lambda expression=expression, known=dict(functions): calculate(expression, known)
        out[page["_id"]] = calculate(first, functions)
    return out


def check_files(folder: Path, model: Model) -> None:
    index = column_index()
    for query in ("w1 w2", "w4 w5 w5 w6"):
        theirs = vespa_scores((folder / "schema.sd").read_text(), query)
        rows = index.rows({"q": query}, {"q": list(theirs)})
        np.testing.assert_allclose(list(theirs.values()), model.score(rows), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_profile_scores_as_the_model_does(seed: int, tmp_path: Path) -> None:
    model = model_of(column_index(), "vespa", None, seed)
    check_files(write_export(tmp_path, model, "vespa"), model)


@pytest.mark.parametrize("name", ALL)
def test_columns_beside_the_text(name: str, tmp_path: Path) -> None:
    model = stacked("vespa", "bm25", *ALL[name])
    check_files(write_export(tmp_path, model, "vespa"), model)


def test_names_are_made_fit(tmp_path: Path) -> None:
    known = model_of(column_index(), "vespa", None, 1)
    names = ("meta.title", "body } first-phase {", *FIELDS[2:])
    model = EngineText(known.formula, names, tokens=known.tokens, counted=known.counted)
    folder = write_export(tmp_path, model, "vespa")
    assert parse((folder / "schema.sd").read_text())[3] == {"meta_title", "body___first_phase__", "tags"}
    assert "meta.title is called meta_title there." in (folder / "README.md").read_text()
