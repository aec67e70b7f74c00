"""Text and columns tuned together for an engine: whatever comes out of the fit, the engine can be told."""

from __future__ import annotations

import numpy as np
import pytest

import fliprank as fr
from fliprank.export import engine_model, target_names, targets_for
from fliprank.export.columns import engine_stack

ENGINES = ("elasticsearch", "opensearch", "solr", "vespa")


def rows() -> fr.Candidates:
    """Rows with columns of every kind: skewed numbers, a date, small counts, numbers below 0."""
    rng = np.random.default_rng(4)
    words = [f"w{i}" for i in range(9)]
    docs = [
        {
            "_id": f"d{i}", "title": " ".join(rng.choice(words, 3)), "body": " ".join(rng.choice(words, 20)),
            "price": float(10 ** rng.uniform(0, 6)), "released": f"202{i % 5}-01-{1 + i % 28:02d}",
            "stars": float(i % 6), "margin": float(rng.normal()),
        }
        for i in range(120)
    ]  # fmt: skip
    index = fr.Index.build(docs, fields=["title", "body"])
    qrels = {f"q{i}": {f"d{j}": int(j % 3) for j in range(i, i + 20)} for i in range(8)}
    return index.candidates({f"q{i}": f"w{i} w{i + 1}" for i in range(8)}, qrels, depth=30)


@pytest.mark.parametrize("engine", ENGINES)
def test_wherever_the_fit_ends_within_its_bounds_the_engine_takes_it(engine: str) -> None:
    given = rows()
    model, bounds, notes = engine_stack(engine_model(engine), given)
    names = {part.name for part in model.parts if isinstance(part, fr.Feature)}
    assert {"price", "stars"} <= names
    refused = engine in ("elasticsearch", "opensearch")
    assert ("margin" not in names) == refused
    assert any("margin is left out: rank_feature takes no values below 0" in note for note in notes) == refused
    ready, rng = model.prepared(given, 0), np.random.default_rng(0)
    for _ in range(20):
        weights = {name: float(rng.normal()) for name in ready.params.free_names if name.endswith(".weight")}
        weights = {name: abs(w) if name in bounds else w for name, w in weights.items()}
        assert engine in targets_for(ready.at(ready.params.replace(weights)))
    for name in bounds:
        assert engine not in targets_for(ready.at(ready.params.replace({name: -1.0})))


def test_an_engine_that_takes_text_alone_says_which_take_columns() -> None:
    with pytest.raises(fr.UsageError, match="sqlite takes no columns beside text; these do: elasticsearch, opensearch"):
        engine_stack(engine_model("sqlite"), rows())
    assert set(ENGINES) <= target_names().keys()
