"""Is tuning ever a loss? Many small sets of judged queries, each tuned on and judged on the other queries.

Each set has 20 to 60 queries of one collection, and BM25, BM25F and the language model are tuned on it as `fliprank
tune` does. What the verdict then writes, the tuned function or the defaults, is compared with the defaults on all other
queries of the collection (docs/tune-verdicts.md).
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.results import Proof
from fliprank.experiment.verdict import SURE, decide
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import stanford_web
from fliprank.papers.own.tuning import MODELS, rows_of
from fliprank.papers.part import Finding, Setting, part

__all__ = ["verdicts"]

COLLECTIONS = ("cranfield", "cacm", "cisi", "npl", "scifact", "icecat", "stanford-web")
SETS, QUICK_SETS = 200, 1


@part("fliprank", "verdicts", "Is tuning ever a loss?", needs=COLLECTIONS, minutes=60, only_by_name=True)
def verdicts(setting: Setting) -> Finding:
    """What was written, against the defaults, by function and by collection."""
    read = cache(partial(_rows, setting))
    lines = list[dict[str, Any]]()
    for number in range(QUICK_SETS if setting.quick else SETS):
        lines += kept(setting, f"set {number + 1}", partial(_one_set, number, read))
    rows = [
        (by, name, *_summary([line for line in lines if line[by] == name]))
        for by in ("function", "collection")
        for name in dict.fromkeys(line[by] for line in lines)
    ]
    worse = sum(row[-1] for row in rows if row[0] == "function")
    return Finding(
        ("by", "of", "tuned sets", "adopted", "mean change, tuned", "mean change, written", "significantly worse"),
        tuple(rows),
        "What `fliprank tune` writes is never significantly worse than the defaults.",
        f"Of {len(lines)} functions tuned on small sets of queries, what was written is significantly worse than the"
        f" defaults on the other queries in {worse} (p < {SURE}, randomisation).",
        "holds" if not worse else "does not hold",
        {"measure": DEFAULT_MEASURE, "sets": SETS, "lines": lines},
        notes=(
            "Tuned: the change of nDCG@10 (exponential gain) if the tuned function was always taken; written: that of"
            " what `tune` writes, the tuned function where cross-validation shows that it is better, or the defaults.",
        ),
    )


def _rows(setting: Setting, name: str) -> Candidates:
    return stanford_web(setting)["2014-train"] if name == "stanford-web" else rows_of(setting, name)


def _summary(lines: list[dict[str, Any]]) -> tuple[Any, ...]:
    adopted = [line for line in lines if line["word"] == "adopt"]
    worse = [line for line in adopted if line["written"] < 0 and line["p"] < SURE]
    tuned, written = (float(np.mean([line[key] for line in lines])) for key in ("tuned", "written"))
    return len(lines), len(adopted), tuned, written, len(worse)


def _one_set(number: int, read: Any) -> list[dict[str, Any]]:
    """One line per function: the verdict, and what tuning and what was written change on the other queries."""
    name = COLLECTIONS[number % len(COLLECTIONS)]
    rows, rng = read(name), np.random.default_rng(number)
    order = rng.permutation(rows.queries)
    size = int(rng.integers(min(20, rows.queries // 2), min(60, rows.queries // 2) + 1))
    seen, others = rows.select(np.sort(order[:size])), rows.select(np.sort(order[size:]))
    found = []
    for function, model in MODELS.items():
        if (function == "BM25F" and len(rows.terms.fields) == 1) or (function[-2:] == "LM" and name == "stanford-web"):
            continue  # it is BM25; there are no collection statistics
        fit = fr.tune(model, seen, measure=DEFAULT_MEASURE)
        assert fit.start is not None
        assert fit.held_out is not None
        verdict = decide({"cross_validated": Proof.of(seen, fit.start.score(seen), fit.held_out, [DEFAULT_MEASURE])})
        after = Proof.of(others, fit.start.score(others), fit.model.score(others), [DEFAULT_MEASURE])
        taken = verdict.adopted("proven")
        found.append(
            {
                "set": number,
                "collection": name,
                "queries": size,
                "function": function,
                "word": verdict.word,
                "tuned": after.gain,
                "written": after.gain if taken else 0.0,
                "p": after.comparisons[0].p["randomisation"] if taken else 1.0,
            }
        )
    return found
