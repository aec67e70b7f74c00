"""The page of a tuning: its numbers are those of result.json, its pictures are right, its text stays text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import nullcontext
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import UsageError, WrongTypeError
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.results import Result
from fliprank.experiment.task import Queries, Task
from fliprank.models import BM25F
from fliprank.report.page import Documents, Page, Section, render, tuning_page, write_page
from fliprank.report.page.parameters import parameters_section
from fliprank.report.page.sample import sample_rows

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'`{{script}} \u2028 \u202e \x1b[2J 🙂 "
    "javascript:x"
)


def some_rows(queries: int = 24, size: int = 12, seed: int = 0) -> fr.Candidates:
    """Rows whose relevant documents are those with the term in the title; ids and terms are of the worst kind."""
    rng, count = np.random.default_rng(seed), queries * size
    tf = np.stack([rng.poisson(0.5, count), rng.poisson(3.0, count)], axis=1)
    length = np.stack([rng.integers(2, 9, count), rng.integers(20, 200, count)], axis=1) + tf
    ones, ends = np.arange(queries + 1), np.arange(count + 1)
    names = Ids.of(f"{HOSTILE} {i}".replace(" ", "_") for i in range(queries))
    terms = TermStatistics(("title", "body"), ones, names, rng.uniform(1, 4, queries), ends, tf, length)
    labels = np.where(tf[:, 0] + rng.normal(0, 0.3, count) > 0.5, 2.0, 0.0)
    labels[rng.random(count) < 0.2] = np.nan
    docids = Ids.of(f"d{i}{HOSTILE}".replace(" ", "_") for i in range(count))
    qids = Ids.of(f"q{i}{HOSTILE}".replace(" ", "_") for i in range(queries))
    return fr.Candidates(ones * size, labels, qids, docids, terms=terms)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("tuned")
    task = Task(Queries(some_rows()), test=Queries(some_rows(seed=1)))
    how: dict[str, Any] = {"measure": "nDCG@5", "folds": 2, "curve": False}
    return tune_and_write(BM25F(), task, folder, lambda _: nullcontext(None), **how), folder


def section(page: Page, kind: str) -> Section:
    return next(each for each in page.sections if each.kind == kind)


def content_of(text: str) -> dict[str, Any]:
    """The JSON of a page, as a browser reads it."""
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def test_every_number_of_the_proof_is_that_of_result_json(tuned: tuple[Result, Path]) -> None:
    result, folder = tuned
    told = json.loads((folder / "result.json").read_text())["proof"]
    content = content_of(render(tuning_page(result, "out", "fliprank tune")))
    verdict, queries = (next(s["data"] for s in content["sections"] if s["kind"] == k) for k in ("verdict", "queries"))
    for shown, proof in zip(verdict["sets"], told.values(), strict=True):
        for row in shown["measures"]:
            figures = proof["measures"][row["measure"]]
            assert {name: row[name] for name in figures} == figures
    by_query = list(told["test"]["by_query"].values())
    assert [[before, after] for _, _, before, after, _ in queries["rows"]] == by_query


def test_the_measure_along_a_parameter_is_that_of_the_model_there(tuned: tuple[Result, Path]) -> None:
    result, _ = tuned
    fit = result.fit
    assert fit.start is not None
    assert fit.measure is not None
    assert fit.rows is not None
    sample = sample_rows(fit.rows, fit.model, fit.start)
    found = parameters_section(fit.model, fit.start, result.ranges, sample, fit.measure, Documents()).data
    assert set(found["paths"]) == set(fit.model.params.free_names)
    for name, path in found["paths"].items():
        assert len(path["x"]) == len(path["y"]) + 1
        here = next(y for y, edge in zip(path["y"], path["x"][1:], strict=True) if edge >= path["value"])
        assert here == pytest.approx(fit.measure.value(fit.model.score(sample.rows), sample.rows), abs=1e-6)
        for i in range(0, len(path["y"]), 7):  # the middle of a stretch: edges are rounded
            params = fit.model.params.replace({name: (path["x"][i] + path["x"][i + 1]) / 2})
            value = fit.measure.value(fit.model.at(params).score(sample.rows), sample.rows)
            assert path["y"][i] == pytest.approx(value, abs=0.03 if not path["exact"] else 1e-6)


def test_lists_have_the_ranks_of_both_functions_and_flips_name_what_caused_them(tuned: tuple[Result, Path]) -> None:
    result, _ = tuned
    page = tuning_page(result)
    data, names = section(page, "queries").data, list(page.documents.places)
    runs: dict[str, dict[str, dict[str, int]]] = {"default": {}, "tuned": {}}
    for name, run in result.runs.items():
        for q, qid in enumerate(run.qids.tolist()):
            span = np.arange(*run.offsets[q : q + 2])
            own = sorted(zip(run.scores[span], run.docids.take(span).tolist(), strict=True), reverse=True)
            runs[name][qid] = {docid: rank for rank, (_, docid) in enumerate(own, 1)}
    caused = 0
    for number, (qid, *_) in enumerate(result.proofs["test"].by_query().items()):
        row, record = data["rows"][number], data["lists"][data["rows"][number][4]]
        for document, _, before, after, *_ in record["documents"]:
            assert (before, after) == tuple(runs[side][qid].get(names[document]) for side in ("default", "tuned"))
        assert row[2] == pytest.approx(result.proofs["test"].by_query()[qid][0])
        for up, down, _, worth, part, parameter in record["flips"]:
            if up is None or down is None or part is None:
                continue
            caused += parameter is not None
            assert data["parts"][part].partition(":")[0] in ("title", "body")
            assert worth != 0
    assert caused > 0
    assert set(data["parameters"]) == set(result.fit.model.params.free_names)


def test_the_parameter_that_caused_a_flip_is_the_one_without_which_the_lead_is_least() -> None:
    rows = some_rows(queries=1)
    start = BM25F().prepared(rows, 0)
    after = start.at(start.params.replace({"title.w": 8.0, "body.b": 0.7}))
    from fliprank.experiment.move_reasons import Explainer, rows_of_candidates
    from fliprank.report.page.causes import set_back

    names = rows.document_ids().tolist()
    found = set_back(Explainer(start, after, rows_of_candidates(rows)), {rows.qids[0]: names})[rows.qids[0]]
    old, new = start.score(rows), after.score(rows)
    pairs = [(u, d) for u in range(len(rows)) for d in range(len(rows)) if old[u] < old[d] and new[u] > new[d]]
    assert pairs
    weight = start.params.free_names.index("title.w")
    for up, down in pairs:  # the weight moved far, the other hardly: each of these flips is its doing
        assert found.parameter(names[up], names[down]) == weight
        assert found.parameter(names[down], names[up]) is None


class Elements(HTMLParser):
    """The elements of a page, with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        self.texts += [""] if self.inside else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data


def test_hostile_text_stays_text_and_the_policy_allows_what_is_ours_alone(tuned: tuple[Result, Path]) -> None:
    text = render(Page(HOSTILE, HOSTILE, (Section("verdict", HOSTILE, HOSTILE, {"also": [HOSTILE]}),)))
    elements = Elements(text)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 2
    style, _, script = elements.texts
    policy = next(attrs["content"] for tag, attrs in elements.found if attrs.get("http-equiv")) or ""
    for kind, own in (("style-src", style), ("script-src", script)):
        assert f"{kind} 'sha256-{b64encode(sha256(own.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert content_of(text)["sections"][0]["data"]["also"] == [HOSTILE]
    assert "alert" not in render(tuning_page(tuned[0])).replace("\\u003c", "<").split('id="content"')[0]


def test_scripts_name_everything_once_and_load_nothing() -> None:
    """They are put into one module: two top-level names that are the same would not run."""
    texts = [f.read_text() for f in (files("fliprank.report.page") / "assets").iterdir() if f.name.endswith(".js")]
    names = [
        name for text in texts for name in re.findall(r"^(?:export )?(?:const|let|function|class) (\w+)", text, re.M)
    ]
    assert len(names) == len(set(names))
    for text in texts:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(", text
        )


def test_a_number_that_is_none_is_null(tmp_path: Path) -> None:
    page = Page("t", "a", (Section("x", "t", "c", {"values": [1.5, float("nan"), float("inf")]}),))
    text = write_page(tmp_path / "page.html", page).read_text()
    assert content_of(text)["sections"][0]["data"]["values"] == [1.5, None, None]


def test_python_writes_the_report_of_a_tuning(tmp_path: Path) -> None:
    fit = fr.tune(BM25F(), some_rows(), folds=2, measure="nDCG@5", test=some_rows(seed=1))
    path = fit.report(tmp_path / "report.html")
    kinds = [each["kind"] for each in content_of(path.read_text())["sections"]]
    assert kinds[:3] == ["verdict", "parameters", "queries"]
    with pytest.raises(UsageError, match=r"report\.html"):
        fit.report(tmp_path / "report.pdf")
    with pytest.raises(WrongTypeError, match="path must be"):
        fit.report(7)  # type: ignore[arg-type]
