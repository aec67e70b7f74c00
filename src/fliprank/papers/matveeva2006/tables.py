"""Tables 2 to 7 of Matveeva et al. 2006: telescoping with linear and two-layer nets, and how stable it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fliprank.experiment.cascade_analysis import AfterStage, after_stages
from fliprank.experiment.telescope import telescope
from fliprank.measures import parse_measure
from fliprank.models import Cascade
from fliprank.papers.checkpoint import finished, kept
from fliprank.papers.matveeva2006.sets import NDCG, RANKNET, Scale, Sets, net, sets_of, stage_row, trained
from fliprank.papers.part import Finding, Setting, Verdict, part
from fliprank.papers.rules import Claims, alike, all_of, difference, larger

__all__ = ["almost_all", "columns"]

HIDDEN = (0, 2, 4, 8)
"""The paper also has 16 and 32, which take longer than all of these together."""
ADAM: dict[str, Any] = {"method": "adam", "epochs": 8}
"""For reshuffled runs: L-BFGS does not see the order of queries. Eight epochs are some 900 steps on 3,514 queries."""
READING = (
    "nDCG@10 with exponential gain on the test queries, ± half of its 95% interval. Gain: of the last stage over the"
    " first, with the p of a randomisation test. Lost: documents labelled 1 or more that are below each cut."
)

LEFT_OUT = "Nets of 16 and 32 hidden nodes, which the paper has too, are left out to save time."


def columns(sizes: tuple[int, ...], first: str = "hidden nodes") -> tuple[str, ...]:
    """The heading of Tables 2, 4 and 6."""
    return (first, *(f"top {size:,}" for size in sizes), "gain", "p", "lost")


def almost_all(verdicts: list[Verdict]) -> Verdict:
    """The verdict on what is said of almost all: one may be otherwise.

    >>> almost_all(["holds", "holds", "does not hold"]), almost_all(["holds", "does not hold", "does not hold"])
    ('holds', 'does not hold')
    """
    held, against = (verdicts.count(word) for word in ("holds", "does not hold"))
    return "holds" if held >= len(verdicts) - 1 else "does not hold" if against > 1 else "can't be told at this size"


def _stages(setting: Setting, which: str, hidden: tuple[int, ...], fewer: bool, claim: str) -> Finding:
    """One line per number of hidden nodes, one column per stage; each is tested, last stage less first."""
    scale = Scale.of(which, setting)
    sets, sizes = sets_of(setting, scale), scale.fewer if fewer else scale.sizes
    found, claims, alike_four = {}, Claims(), list[Verdict]()
    for nodes in hidden:
        name = f"{nodes} hidden nodes"
        cascade = four = trained(setting, sets, [net(nodes)] * len(scale.sizes), scale.sizes, name)
        if fewer:  # the first stage is that of the cascade of four
            cascade = trained(setting, sets, [net(nodes)] * len(sizes), sizes, name, four.stages[0])
        found[nodes] = after_stages(cascade, sets.test, NDCG, seed=setting.seed)
        claims.add(f"{name}, last stage less first", larger, found[nodes][-1].values, found[nodes][0].values)
        if fewer and not nodes:
            ended = after_stages(four, sets.test, NDCG, seed=setting.seed)[-1]
            apart = difference(found[0][-1].values, ended.values)
            alike_four = [alike(apart)]
    linear, *nets = claims.verdicts.values()
    gained, lost = (nets.count(word) for word in ("holds", "does not hold"))
    notes = (LEFT_OUT,) if which == "first" else ()
    told = f" Without the second stage it ends {apart} from where four stages end." if fewer else ""
    return Finding(
        columns(sizes),
        tuple(stage_row(nodes, rows, sizes) for nodes, rows in found.items()),
        claim,
        f"The linear net gains {found[0][-1].gain:+.4f} from the first to the last stage (p {found[0][-1].p:.2g});"
        f" {gained} of {len(nets)} two-layer nets gain and {lost} lose significantly.{told}",
        all_of([linear, *alike_four, *([almost_all(nets)] if which == "first" and not fewer else [])]),
        scale.settings() | {"hidden": list(hidden), "sizes": list(sizes), "seed": setting.seed},
        lambda: _chart({f"{nodes} hidden" if nodes else "linear": rows for nodes, rows in found.items()}),
        (READING, *notes, *claims.notes),
    )


def _chart(found: dict[str, list[AfterStage]]) -> Any:
    from fliprank.report.plots import stages

    return stages(found, NDCG)


@part("matveeva2006", "table2", "Four stages, linear and two-layer nets", minutes=7)
def table2(setting: Setting) -> Finding:
    """The first data set, 2500, 1000, 100 and 10 documents."""
    claim = (
        "Telescoping in four stages raises nDCG@10 of the linear net from 0.445 to 0.473, and that of almost all nets."
    )
    return _stages(setting, "first", (0, 2) if setting.quick else HIDDEN, False, claim)


@part("matveeva2006", "table3", "Reshuffled training sets, linear", minutes=10)
def table3(setting: Setting) -> Finding:
    """Eleven runs with the training queries in other orders."""
    claim = "Over 11 reshufflings every stage raises the mean, by more than the runs differ (0.001 to 0.002)."
    return _reshuffled(setting, "first", 2 if setting.quick else 11, claim)


@part("matveeva2006", "table4", "Three stages, linear and two-layer nets", minutes=3)
def table4(setting: Setting) -> Finding:
    """Without the stage of 1000 documents."""
    claim = "Without the second stage the gain is about the same: the linear net goes from 0.445 to 0.473 all the same."
    return _stages(setting, "first", (0, 2) if setting.quick else HIDDEN, True, claim)


@part("matveeva2006", "table6", "Four stages on more training queries", minutes=4)
def table6(setting: Setting) -> Finding:
    """The second data set: more training queries; the paper has 23,407."""
    claim = "With more training queries telescoping gains as much: the linear net goes from 0.462 to 0.483."
    return _stages(setting, "second", (0, 2) if setting.quick else (0, 4, 8), False, claim)


@part("matveeva2006", "table7", "Reshuffled training sets, more training queries", minutes=5)
def table7(setting: Setting) -> Finding:
    """Five runs on the second data set."""
    claim = "Over 5 reshufflings of the larger set every stage raises the mean, by more than the runs differ."
    return _reshuffled(setting, "second", 2 if setting.quick else 5, claim)


def _reshuffled(setting: Setting, which: str, runs: int, claim: str) -> Finding:
    """The mean after each stage over runs; each run is kept, so that a killed one goes on."""
    scale = Scale.of(which, setting)
    sets, sizes = sets_of(setting, scale), scale.sizes
    values = np.array([kept(setting, f"run {run}", partial(_run, setting, sets, run)) for run in range(1, runs + 1)])
    means, deviations = values.mean(axis=0), values.std(axis=0, ddof=1)
    steps = np.diff(means)
    apart = bool((steps > deviations[1:]).all())
    text = ", ".join(f"{step:+.4f}" for step in steps)
    return Finding(
        ("stage", "mean", "standard deviation", "least", "most"),
        tuple(
            (f"top {size:,}", float(mean), float(deviation), float(low), float(high))
            for size, mean, deviation, low, high in zip(
                sizes, means, deviations, values.min(axis=0), values.max(axis=0), strict=True
            )
        ),
        claim,
        f"Over {runs} runs the stages change the mean by {text}; runs differ by {deviations.min():.4f} to"
        f" {deviations.max():.4f} (standard deviation).",
        "holds" if apart else "does not hold" if runs > 2 else "can't be told at this size",
        scale.settings() | {"method": RANKNET | ADAM, "runs": runs, "seed": setting.seed},
        notes=(
            "By Adam, which sees the order of queries. Each run has its own order of queries, weights to start from and"
            " unlabelled documents.",
        ),
    )


def _run(setting: Setting, sets: Sets, run: int) -> list[float]:
    """The measure after each stage of one run."""
    cascade, options = Cascade([net(0)] * len(sets.scale.sizes), sets.scale.sizes), RANKNET | ADAM
    seed = setting.seed + 10_000 * run
    fit = finished(telescope(cascade, sets.blocks, sets.valid, seed=seed, **options))
    assert isinstance(fit.model, Cascade)
    chosen = parse_measure(NDCG)
    return [chosen.value(scores, sets.test) for scores in fit.model.by_stage(sets.test)]
