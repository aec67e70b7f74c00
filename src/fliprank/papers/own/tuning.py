"""Default against tuned on judged text collections (docs/text-collections.md).

Cranfield, CACM, CISI, NPL and SciFact: five-fold cross-validation over queries. stanford-web and icecat: tuned on
training queries, tested on others.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.results import Proof
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import some_queries, stanford_web, text_collection
from fliprank.papers.part import Finding, Setting, Verdict, part

__all__ = ["MODELS", "held_out", "text_collections"]

COLLECTIONS = ("cranfield", "cacm", "cisi", "npl", "scifact")
MODELS: dict[str, fr.Model] = {"BM25": fr.BM25(), "BM25F": fr.BM25F(), "two-stage LM": fr.TwoStageLM()}
SURE = 0.05
COMPARED = ("default", "tuned", "difference", "low", "high", "p", "helped", "hurt")


def rows_of(setting: Setting, name: str) -> Candidates:
    """The training queries of a collection; when quick, 30 of them."""
    rows = text_collection(setting, name, 50 if setting.quick else 1000).train.rows
    return some_queries(rows, 30, setting.seed) if setting.quick else rows


def _compared(proof: Proof) -> list[float | int]:
    """The cells of `COMPARED`."""
    [c], means = proof.comparisons, proof.evaluation.means()
    values = [means[run][c.measure] for run in ("default", "tuned")]
    return [*values, c.difference, *c.interval, c.p["randomisation"], c.better, c.worse]


@part("fliprank", "text-collections", "Tuning on judged text collections", needs=COLLECTIONS, minutes=3,
      only_by_name=True)  # fmt: skip
def text_collections(setting: Setting) -> Finding:
    """Each function tuned on each collection, by cross-validation."""
    rows = list[tuple[Any, ...]]()
    for name in COLLECTIONS[: 1 if setting.quick else None]:
        given = rows_of(setting, name)
        assert given.terms is not None
        for what, model in MODELS.items():
            if what == "BM25F" and len(given.terms.fields) == 1:
                continue  # it is BM25
            rows.append(
                (name, what, *kept(setting, f"{name}, {what}", partial(_cross_validated, model, given, setting)))
            )
    return _finding(("collection", "function", *COMPARED), rows, 2, setting, "five folds of the queries")


def _cross_validated(model: fr.Model, rows: Candidates, setting: Setting) -> list[float | int]:
    found = fr.tune(model, rows, measure=DEFAULT_MEASURE, seed=setting.seed)
    assert found.start is not None
    assert found.held_out is not None
    return _compared(Proof.of(rows, found.start.score(rows), found.held_out, [DEFAULT_MEASURE]))


@part("fliprank", "held-out", "Which function is worth its parameters?", needs=("stanford-web", "icecat"), minutes=3,
      only_by_name=True)  # fmt: skip
def held_out(setting: Setting) -> Finding:
    """Every function, and the one that `auto` takes, on queries of other sets."""
    web = stanford_web(setting)
    shop = text_collection(setting, "icecat", 50 if setting.quick else 1000)
    assert shop.test is not None
    sets = {
        "2014-train": (web["2014-train"], {name: web[name] for name in ("2014-dev", "2013")}),
        "icecat train": (shop.train.rows, {"icecat test": shop.test.rows}),
    }
    rows = list[tuple[Any, ...]]()
    for name, (given, tests) in sets.items():
        few = some_queries(given, 30, setting.seed) if setting.quick else given
        for found in kept(setting, name, partial(_on_others, few, tests, setting)):
            rows.append((name, *found))
    columns = ("trained on", "tested on", "function", "parameters", "auto takes it", *COMPARED)
    return _finding(columns, rows, 5, setting, "queries of other sets")


def _on_others(rows: Candidates, tests: dict[str, Candidates], setting: Setting) -> list[list[Any]]:
    chosen, out = fr.tune("auto", rows, measure=DEFAULT_MEASURE, seed=setting.seed), list[list[Any]]()
    usual = chosen.start
    assert usual is not None
    for rival in chosen.settings["models"]:
        model = fr.tune(rival["name"], rows, measure=DEFAULT_MEASURE, seed=setting.seed).model
        took = "yes" if rival["name"] == chosen.settings["chosen"] else "no"
        for tested, test in tests.items():
            proof = Proof.of(test, usual.score(test), model.score(test), [DEFAULT_MEASURE])
            out.append([tested, rival["name"], rival["parameters"], took, *_compared(proof)])
    return out


def _finding(columns: tuple[str, ...], rows: list[tuple[Any, ...]], first: int, setting: Setting, on: str) -> Finding:
    """`first` is the column where `COMPARED` begins."""
    gains, ps = ([row[first + i] for row in rows] for i in (2, 5))
    better, worse = (
        sum(sign * gain > 0 and p < SURE for gain, p in zip(gains, ps, strict=True)) for sign in (1.0, -1.0)
    )
    verdict: Verdict = "does not hold" if worse else "holds" if better else "can't be told at this size"
    return Finding(
        columns,
        tuple(rows),
        "Tuned parameters are better than the defaults on queries that the fit did not see, and never worse.",
        f"Of {len(rows)} rows tuning is significantly better in {better} and worse in {worse} (p < {SURE},"
        f" randomisation over queries), on {on}.",
        verdict,
        {"measure": DEFAULT_MEASURE, "seed": setting.seed, "models": list(MODELS)},
        notes=("low, high: the 95% interval of the difference by bootstrap. Helped, hurt: queries.",),
    )
