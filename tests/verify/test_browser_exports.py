"""What is exported for MiniSearch, Lunr and Orama, used in Node as its first lines say, ranks as the model does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_checks import check_hits, installed, model_of, random_parameters

import fliprank as fr
from fliprank.data.builtin import collection
from fliprank.data.trec import read_qrels
from fliprank.engines.browser import node_modules
from fliprank.errors import UsageError
from fliprank.export import About, write_export
from fliprank.export.functions import engine_model
from fliprank.models import EngineText
from fliprank.text.analysis import Analyzer, word_pattern
from fliprank.text.index import Index
from fliprank.text.search.queries import read_queries

FIELDS = ("title", "headings", "text")
SCRIPT = Path(__file__).with_name("use_exported.mjs")


@pytest.fixture(params=["minisearch", "lunr", "orama"])
def engine(request: pytest.FixtureRequest) -> str:
    return available(request.param)


def available(name: str) -> str:
    try:
        installed(name)
    except UsageError as error:
        pytest.skip(f"{error}; `make .venv/node` installs both by apt-get and npm")
    return name


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.build(collection(), fields=FIELDS)


def pages() -> list[dict[str, str]]:
    lines = (collection() / "corpus.jsonl").read_text("utf-8").splitlines()
    return [
        {"id": page["_id"]} | {name: page[name] for name in FIELDS if page.get(name)} for page in map(json.loads, lines)
    ]


def in_node(engine: str, module: Path, analyzer: Analyzer, documents: list[dict[str, str]], queries: Any) -> Any:
    """The answers to queries, with the stems of our own stemmer."""
    texts = [*queries.values(), *(text for page in documents for text in page.values())]
    words = sorted({word for text in texts for word in word_pattern().findall(analyzer.normal(text))})
    given = {"documents": documents, "queries": queries, "stems": dict(zip(words, analyzer.stems(words), strict=True))}
    ran = subprocess.run(
        ["node", str(SCRIPT), engine, str(node_modules()), str(module)],
        input=json.dumps(given).encode(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def check_ranking(index: Index, model: EngineText, found: dict[str, list[tuple[str, float]]]) -> None:
    """All documents of all queries."""
    assert sum(map(len, found.values())) > 2000
    check_hits(index, model, QUERIES, {qid: dict(hits) for qid, hits in found.items()})


QUERIES = dict(read_queries(collection()))


def test_the_exported_module_ranks_real_texts_as_the_model_does(engine: str, index: Index, tmp_path: Path) -> None:
    model = model_of(index, engine, None, 3)
    if engine == "lunr":  # weights that put rounding to three decimals out of the way of six digits
        values = [
            v * 1e4 if n.endswith(".w") else v for n, v in zip(model.params.names, model.params.values, strict=True)
        ]
        model = model.at(values)
    folder = write_export(tmp_path / "out", model, engine, About(analyzer=index.analyzer))
    check_ranking(index, model, in_node(engine, folder / f"{engine}.mjs", index.analyzer, pages(), QUERIES))


def test_a_help_centre_is_tuned_and_searched_in_the_browser(index: Index, tmp_path: Path) -> None:
    available("minisearch")
    rows = index.candidates(collection(), read_qrels(collection() / "qrels" / "train.tsv"), depth=50)
    fit = fr.tune(engine_model("minisearch"), rows, folds=None, adopt="always", method="lbfgs")
    assert isinstance(fit.model, EngineText)
    assert (fit.model.params.values != fit.model.params.default).any()
    folder = write_export(tmp_path / "out", fit.model, "minisearch", About(analyzer=index.analyzer))
    found = in_node("minisearch", folder / "minisearch.mjs", index.analyzer, pages(), QUERIES)
    check_ranking(index, fit.model, found)


TEXTS = {
    "marks": "CAFE\u0301 naïve हिन्दी, İzmir ΟΔΟΣ οδός",
    "alone": "東京に行く ひらがな カタカナ x東y",
    "others": "snake_case a-b it's 3.14 ½ ٣ the The and, ❤\ufe0f \u0301x",
    "nothing": " \n -- ",
}


@pytest.mark.parametrize(
    "analyzer", [Analyzer(), Analyzer(lowercase=False, stopwords=["x", "</script>"], stemmer=None)]
)
def test_terms_are_those_of_our_analyzer(analyzer: Analyzer, index: Index, tmp_path: Path) -> None:
    available("minisearch")
    folder = write_export(tmp_path, model_of(index, "minisearch", None, 1), "minisearch", About(analyzer=analyzer))
    texts = TEXTS | {page["id"]: page["text"] for page in pages() if "text" in page}
    found = in_node("terms", folder / "minisearch.mjs", analyzer, [], texts)
    assert found == {name: analyzer.terms(text) for name, text in texts.items()}


def test_names_of_fields_can_not_break_out_of_the_module(engine: str, tmp_path: Path) -> None:
    names = ('a"];process["exit"](7)//', "`${process['exit'](8)}`", "'\\", "\u2028", "__proto__x")
    rows = Index.build([{"_id": "x"} | dict.fromkeys(names, "red shoe"), {"_id": "y", names[0]: "blue"}], fields=names)
    model = random_parameters(engine_model(engine).prepared(rows.rows({}, {}), 0), 1)
    if engine == "lunr":
        with pytest.raises(UsageError, match="no field with a slash in its name"):
            write_export(tmp_path / "refused", model, engine)
        names = names[1:]
        model = random_parameters(engine_model(engine, None, names).prepared(rows.rows({}, {}), 0), 1)
    module = write_export(tmp_path / "out", model, engine) / f"{engine}.mjs"
    documents = [{"id": "x"} | dict.fromkeys(names, "red shoe"), {"id": "y"}]
    found = in_node(engine, module, rows.analyzer, documents, {"q": "shoe"})
    assert [docid for docid, _ in found["q"]] == ["x"]


def test_dots_in_names_are_refused_for_orama(tmp_path: Path) -> None:
    model = engine_model("orama", None, ["a.b"])
    rows = Index.build([{"_id": "x", "a.b": "red"}], fields=["a.b"]).rows({}, {})
    with pytest.raises(UsageError, match="takes a dot in the name of a field"):
        write_export(tmp_path / "out", model.prepared(rows, 0), "orama")
