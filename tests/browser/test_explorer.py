"""The explorer: scores and measures are Python's to 1e-9, sliders rank anew, the address holds the setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import Browser
from explored import MODELS, some_rows

from fliprank.data.order import order_rows
from fliprank.measures import parse_measure
from fliprank.models import Model, load_model
from fliprank.report.page import Documents, Page, write_page
from fliprank.report.page.explorer import explorer_section, sampled

CARDS = "return [...document.querySelectorAll('.ranking li')].map((c) => [c.dataset.document, c.dataset.score])"


# What a measure makes of a ranking does not depend on the model: two of them are enough for all measures.
CASES = [(name, "AP") for name in MODELS]
CASES += [(name, each) for name in ("bm25f", "rrf") for each in ("nDCG(dcg='exp-log2')@5", "RR", "ERR@10", "Bpref")]


def shown(browser: Browser) -> tuple[list[tuple[int, float]], float, float]:
    """(document, score) of each card, the measure of the query, and that of all queries."""
    cards = [(int(document), float(score)) for document, score in browser.run(CARDS)]
    value, mean = browser.run(
        "return [document.querySelector('.ranking').dataset.value, document.querySelector('.now').dataset.mean]"
    )
    return cards, float(value), float(mean)


def settings(model: Model, seed: int) -> list[float]:
    """Values of the free parameters somewhere around the defaults, within their bounds."""
    params, rng = model.params, np.random.default_rng(seed)
    moved = params.free_values * rng.uniform(0.3, 1.7, len(params.free_values)) + rng.normal(
        0, 0.02, len(params.free_values)
    )
    return [float(f"{value:.12g}") for value in np.clip(moved, params.free_lower, params.free_upper)]


@pytest.mark.parametrize(("name", "measure"), CASES)
def test_scores_and_measures_of_the_page_are_those_of_python(
    browser: Browser, tmp_path: Path, name: str, measure: str
) -> None:
    rows, law = some_rows(), parse_measure(measure)
    model = MODELS[name].prepared(rows, 0)
    start = model
    if name == "linear" or not model.params.free_values.any():
        model = model.at(model.params.with_free(np.linspace(-1, 1, len(model.params.free_names))))
    documents = Documents()
    section = explorer_section(model, start, rows, law, {}, documents)
    assert section is not None
    path = write_page(tmp_path / "page.html", Page("x", "y", (section,), documents))
    few, sliders = sampled(rows, model, start), section.data["parameters"]
    names = few.document_ids().tolist()
    browser.show(path)
    for seed in range(3):
        wanted = [
            min(max(value, slider["low"]), slider["high"])
            for value, slider in zip(settings(model, seed), sliders, strict=True)
        ]
        browser.run("location.hash = arguments[0]", f"#explore={','.join(map(repr, wanted))}&list={seed}")
        there = model.at(model.params.with_free(wanted))
        scores, span = there.score(few), range(*few.offsets[seed : seed + 2])
        order = order_rows(scores, few.offsets, few.docids)[span.start : span.stop][:10]
        browser.until("return document.getElementById('explored-query').value === arguments[0]", str(seed))
        cards, value, mean = shown(browser)
        assert [score for _, score in cards] == pytest.approx(
            [float(scores[row]) for row in order], abs=1e-9, rel=1e-12
        )
        assert [list(documents.places)[number] for number, _ in cards] == [names[row] for row in order]
        assert value == pytest.approx(float(law.per_query(scores, few)[seed]), abs=1e-9)
        assert mean == pytest.approx(law.value(scores, few), abs=1e-9)
    assert browser.complaints() == []


def test_sliders_rank_anew_and_tell_the_flips(browser: Browser, demo: Path) -> None:
    browser.show(demo / "report.html")
    content = json.loads(browser.run("return document.getElementById('content').textContent"))
    data: dict[str, Any] = next(each["data"] for each in content["sections"] if each["kind"] == "explorer")
    tuned = load_model(demo / "tuned-model")
    assert data["tuned"] == tuned.params.values.tolist()
    before, _, mean = shown(browser)
    assert mean == pytest.approx(data["values"]["tuned"], abs=1e-9)
    browser.run("document.getElementById('slider-0').focus()")
    for _ in range(6):
        browser.one("#slider-0").send_keys("\ue010")  # the End key, then steps by the arrow
        browser.one("#slider-4").send_keys("\ue012" * 12)
    after, _, moved = shown(browser)
    assert after != before
    assert moved != mean
    assert browser.texts(".flips li")
    assert browser.run("return location.hash").startswith("#explore=")
    buttons = browser.all("#explorer .controls button")
    buttons[0].click()
    assert shown(browser)[2] == pytest.approx(data["values"]["default"], abs=1e-9)
    buttons[1].click()
    assert shown(browser)[2] == pytest.approx(data["values"]["tuned"], abs=1e-9)


def test_the_address_holds_the_setting_and_back_returns_to_the_one_before(browser: Browser, demo: Path) -> None:
    path = demo / "report.html"
    browser.show(path)
    start = shown(browser)
    buttons = browser.all("#explorer .controls button")
    buttons[0].click()
    default, address = shown(browser), browser.run("return location.hash")
    assert default != start
    browser.driver.back()
    mean = "return document.querySelector('.now').dataset.mean === arguments[0]"
    browser.until(mean, repr(start[2]))
    browser.driver.forward()
    browser.until(mean, repr(default[2]))
    browser.show(path, address)
    assert shown(browser) == default
    for wrong in ("#explore=1", "#explore=x,y", "#explore=" + ",".join(["1e999"] * 8), "#explore=&list=-3"):
        browser.show(path, wrong)
        assert shown(browser) == start
        assert browser.complaints() == []
