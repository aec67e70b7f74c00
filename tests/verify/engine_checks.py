"""What every engine is put to: the same scores and order as ours, at its defaults and elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fliprank.data.builtin import collection
from fliprank.data.trec import Qrels, read_qrels
from fliprank.engines.base import runner_of
from fliprank.engines.verify import Verified, verify
from fliprank.export.functions import engine_model
from fliprank.models import EngineText
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FIELDS = ("title", "body", "tags")
QUERIES = {"a": "w1 w2 w2 nowhere", "b": "w3", "c": "w4 w5 w6 w7", "d": "nowhere", "e": "w1 w1 w1", "f": "rare w9"}


@cache
def odd_index() -> Index:
    """Lengths beyond 40 and beyond 255, fields that documents lack, documents without a word, one rare term."""
    rng, words, pages = np.random.default_rng(11), np.array([f"w{i}" for i in range(40)]), []
    for i in range(150):
        sizes = {"title": rng.integers(0, 7), "body": rng.integers(0, 90) ** 2 // 20, "tags": rng.integers(0, 3)}
        texts = {name: " ".join(rng.choice(words, size if i % 17 else 0)) for name, size in sizes.items()}
        pages.append({"_id": f"d{i}"} | texts)
    pages[40]["body"] += " rare"
    return Index.build(pages, fields=FIELDS, analyzer=Analyzer(lowercase=False, stopwords=None, stemmer=None))


@cache
def help_centre() -> Index:
    """The collection that ships with the package."""
    return Index.build(collection())


def random_parameters(model: EngineText, seed: int) -> EngineText:
    """Anywhere that the engine allows: between its bounds, and where there is no upper one up to twice the default."""
    rng, params = np.random.default_rng(seed), model.params
    far = np.maximum(params.free_lower + 4.0, 2.0 * params.at(params.default).free_values)
    high = np.where(np.isinf(params.free_upper), far, params.free_upper)
    return model.at(
        params.with_free(params.free_lower + (0.05 + 0.9 * rng.random(len(high))) * (high - params.free_lower))
    )


def model_of(index: Index, engine: str, function: str | None, seed: int) -> EngineText:
    """The engine's function on this index, away from its defaults."""
    return random_parameters(engine_model(engine, function, index.fields).prepared(index.rows({}, {}), 0), seed)


def check_odd_texts(engine: str, function: str | None = None, seeds: int = 3) -> None:
    """All documents of all queries: the engine's scores are ours."""
    index, qrels = odd_index(), Qrels.of({qid: {"d1": 1.0} for qid in QUERIES})
    for seed in range(seeds):
        found = verify(model_of(index, engine, function, seed), index, QUERIES, qrels, depth=len(index))
        check(found, least=200)


def check_help_centre(engine: str, function: str | None = None, seed: int = 5) -> None:
    """The first hundred of every judged query; and the measure in the engine is that of our own ranking."""
    index = help_centre()
    qrels = read_qrels(collection() / "qrels" / "test.tsv")
    found = verify(model_of(index, engine, function, seed), index, collection(), qrels)
    check(found, least=2000)
    means = [proof.evaluation.means()["tuned"] for proof in (found.there, found.here)]
    for name, value in means[0].items():
        assert abs(value - means[1][name]) < 0.002, name  # ties may fall either way


def check(found: Verified, least: int) -> None:
    for name, each in found.agreements.items():
        assert each.pairs >= least
        assert each.good, f"{found.version}, {name}: {each}"


def installed(engine: str) -> str:
    """Its version; raises where it is not installed."""
    return runner_of(engine).version()


def loaded(path: Path) -> ModuleType:
    """A module of Python that was exported."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_hits(
    index: Index, model: EngineText, asked: Mapping[str, str], hits: Mapping[str, Mapping[str, float]]
) -> None:
    """All documents that an exported search found: our scores, but for the six digits that were written, and order."""
    ours = index.search(asked, model, depth=len(index)).to_dict()
    assert sum(map(len, hits.values())) > 100
    for qid, found in hits.items():
        expected = ours.get(qid, {})
        assert dict(found) == pytest.approx(expected, rel=3e-5, abs=1e-9), qid
        assert all(b <= a * (1 + 3e-5) for a, b in pairwise(expected[docid] for docid in found)), qid


def odd_pages() -> dict[str, dict[str, str]]:
    """The documents of `odd_index`, by id."""
    index, words = odd_index(), odd_index().terms.tolist()
    return {
        docid: {
            name: " ".join(words[t] for t in index.tokens[slice(*index.token_offsets[f, d : d + 2])])
            for f, name in enumerate(index.fields)
        }
        for d, docid in enumerate(index.docids.tolist())
    }
