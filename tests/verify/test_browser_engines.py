"""MiniSearch, Lunr and Orama themselves compute what we compute."""

from __future__ import annotations

import pytest
from engine_checks import check_help_centre, check_odd_texts, installed, model_of, odd_index

from fliprank.engines.base import runner_of
from fliprank.engines.browser import MiniSearch
from fliprank.errors import UsageError

ENGINES = ["minisearch", "lunr", "orama"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine; skips where Node or the package can't be had."""
    name: str = request.param
    try:
        installed(name)
    except UsageError as error:
        pytest.skip(f"{error}; `make .venv/node` installs both by apt-get and npm")
    return name


def test_scores_of_odd_texts(engine: str) -> None:
    check_odd_texts(engine)


def test_scores_and_measures_of_the_help_centre(engine: str) -> None:
    check_help_centre(engine)


def test_a_field_of_weight_0_counts_nothing(engine: str) -> None:
    index = odd_index()
    model = model_of(index, engine, None, 2)
    without = model.at(model.params.values * [name != "body.w" for name in model.params.names])
    documents = {"a": {"title": "xa", "body": "xb xb", "tags": ""}, "b": {"title": "", "body": "xa xb", "tags": "xc"}}
    with runner_of(engine)(documents, index.fields, without) as running:
        assert running.search(["xb"], without, 10) == pytest.approx({"a": 0.0, "b": 0.0}, abs=1e-6)


def test_what_goes_wrong_in_node_is_told(engine: str) -> None:
    model = model_of(odd_index(), engine, None, 2)
    with runner_of(engine)({"a": dict.fromkeys(model.fields or (), "xa")}, model.fields or (), model) as running:
        running.process.kill()  # type: ignore[attr-defined]
        with pytest.raises(UsageError, match="ended in Node"):
            running.search(["xa"], model, 10)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("FLIPRANK_NODE_MODULES", str(tmp_path))
    with pytest.raises(UsageError, match=r"minisearch is not installed in .*npm install minisearch"):
        MiniSearch.version()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"node is not installed here .*Node.js 18"):
        runner_of("minisearch").version()
