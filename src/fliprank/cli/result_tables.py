"""What a person sees of a fit: the verdict, each measure before and after, who gained and lost, the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fliprank.cli.diff_text import moves_lines
from fliprank.console import new_table, plain
from fliprank.experiment.significance import p_value

if TYPE_CHECKING:
    from fliprank.experiment.results import FoldResult, Proof, Result

__all__ = ["training_tables", "tuning_tables"]

MOVED = 3
"""Queries that are shown of those that gained, and of those that lost."""
SHOWN = 8
"""Choices that are shown of a frontier, beside the one that was made."""
QUERIES = {"train": "training queries", "valid": "validation queries", "test": "test queries"}


def training_tables(result: Result) -> Iterator[Table | str]:
    """Train, validation and test figures, with folds one row each and their mean; of a cascade one row per stage."""
    means = result.means()
    measures = list(next(iter(means.values())))
    table = new_table("", ["set", *measures])
    for part, mean in means.items():
        if len(result.folds) > 1:
            for name, fold in result.folds.items():
                table.add_row(f"{part} {plain(name)}", *(f"{fold.figures[part][m]:.4f}" for m in measures))
        label = f"{part} mean" if len(result.folds) > 1 else part
        table.add_row(label, *(f"[bold]{mean[m]:.4f}[/]" for m in measures))
    yield table
    for name, fold in result.folds.items():
        if fold.stages:
            yield _stage_table(name, fold)
            lost = "Lost: relevant documents that do not reach the stage."
            yield f"Gain and p: over the stage before{_scale(fold)}. {lost}"
        if fold.fit.settings.get("method") == "blend":
            yield _blend_table(name, fold)
        if "cutoffs" in fold.fit.settings:
            yield _cutoff_table(name, fold)
            yield f"A cost includes: {fold.fit.settings['cutoffs']['cost_includes']}."
        if "tie" in fold.fit.stopped:
            yield f"{name} {fold.fit.stopped}.".strip().capitalize()


def _stage_table(name: str, fold: FoldResult) -> Table:
    """What each stage of a cascade gains and loses, in at most 80 columns."""
    title = f"{name} {fold.fit.measure} after each stage, {QUERIES[fold.stages_on]}".strip()
    table = new_table(title, ["stage", "top", "value", "95% interval", "gain", "p", "lost"])
    for row in fold.stages:
        interval = f"{row.interval[0]:.4f} to {row.interval[1]:.4f}"
        step = ("", "") if row.stage == 1 else (f"{row.step:+.4f}", p_value(row.step_p))
        table.add_row(str(row.stage), str(row.size), f"{row.value:.4f}", interval, *step, f"{row.lost:.1%}")
    return table


def _scale(fold: FoldResult) -> str:
    """On what scale gains are, where it is not that of the measure."""
    measure, values = fold.fit.measure, fold.stages[0].values
    known = values[~np.isnan(values)]
    plain = measure is None or bool((measure.paired(known) == known).all())
    return "" if plain else ", as queries are averaged (geometric: differences of logarithms)"


def _blend_table(name: str, fold: FoldResult) -> Table:
    """The parts of a blend with their weights, and what was chosen of the part, equal and fitted weights."""
    parts = len(fold.fit.settings["parts"])
    table = new_table(
        f"{name} {fold.fit.measure} of parts and blends, validation queries".strip(), ["part", "value", "weight"]
    )
    for number, tried in enumerate(fold.fit.tried):
        value = "-" if np.isnan(tried.value) else f"{tried.value:.4f}"
        weight = f"{tried.weight:.2f}" if number < parts else "chosen" if tried.weight else ""
        table.add_row(plain(tried.what), value, weight)
    return table


def _cutoff_table(name: str, fold: FoldResult) -> Table:
    """Some of the frontier of cost and measure, and in bold the choice."""
    found = fold.fit.settings["cutoffs"]
    title = f"{name} {fold.fit.measure} by sizes, {QUERIES[found['on']]}, before training again".strip()
    table = new_table(title, ["µs per query", "value", "sizes by stage", "lost by stage", ""])
    chosen = found["frontier"].index(found["chosen"])
    last = len(found["frontier"]) - 1
    for place in sorted({chosen, *(round(i * last / (SHOWN - 1)) for i in range(SHOWN))}):
        choice = found["frontier"][place]
        by_stage = dict(zip(choice["stages"], zip(choice["sizes"], choice["lost"], strict=True), strict=True))
        pairs = [by_stage.get(s) for s in range(len(found["cost_per_document"]))]
        sizes = ", ".join("-" if pair is None else str(pair[0]) for pair in pairs)
        lost = ", ".join("-" if pair is None else f"{pair[1]:.1%}" for pair in pairs[1:])
        cells = [f"{choice['cost']:,.4g}", f"{choice['value']:.4f}", sizes, lost]
        if place == chosen:
            cells = [f"[bold]{cell}[/]" for cell in cells]
        table.add_row(*cells, "chosen" if place == chosen else "")
    return table


def tuning_tables(result: Result) -> Iterator[Table | str]:
    """What came of a tuning, what counts most first."""
    test, crossed = result.proofs.get("test"), result.proofs.get("cross_validated")
    proof = test or crossed
    if result.verdict is not None:
        yield result.verdict.sentence
        yield from result.verdict.also
        yield _written(result)
    if result.outlook is not None:
        yield f"Would more judgements help? {result.outlook.sentence}"
    if test is not None:
        yield _proof_table(f"On {len(test.evaluation.qids)} held-out queries", test)
    if crossed is not None:
        yield _proof_table(f"Cross-validated on {len(crossed.evaluation.qids)} training queries", crossed)
    if result.moves is not None:
        yield from moves_lines(result.moves)
    elif proof is not None:
        yield _moved_table(proof, result.texts)
    if "models" in result.fit.settings:
        yield _model_table(result)
        yield "p: against the usual function with its defaults, corrected for the number of functions (Holm)."
    yield _parameter_table(result)
    if result.ranges:
        yield "as good: values of this parameter alone that no test tells from the tuned one (95%)."
    yield _how(result)
    if any(result.new_documents):
        counts = ", then ".join(map(str, result.new_documents))
        yield f"Documents new at the top after tuning, retrieved and tuned on again: {counts}."


def _written(result: Result) -> str:
    """What is in the folder, and how to have the other."""
    if result.adopted:
        return "model/ holds the tuned function."
    return "model/ holds the defaults, tuned-model/ the tuned function; --adopt always takes it all the same."


def _proof_table(title: str, proof: Proof) -> Table:
    table = new_table(title, ["measure", "default", "tuned", "change", "95% interval", "p", "helped", "hurt"])
    means = proof.evaluation.means()
    for c, reading in zip(proof.comparisons, proof.evaluation.readings, strict=True):
        interval = f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}"
        values = (f"{means['default'][c.measure]:.4f}", f"[bold]{means['tuned'][c.measure]:.4f}[/]")
        counts = (c.worse, c.better) if reading.measure.smaller_is_better else (c.better, c.worse)
        p = p_value(c.p["randomisation"])
        table.add_row(plain(c.measure), *values, f"{c.difference:+.4f}", interval, p, *map(str, counts))
    return table


def _moved_table(proof: Proof, texts: dict[str, str]) -> Table:
    """The queries that gained most, and those that lost most."""
    sign = proof.sign
    moved = sorted(proof.by_query().items(), key=lambda query: sign * (query[1][0] - query[1][1]))
    gained = [each for each in moved[:MOVED] if sign * (each[1][1] - each[1][0]) > 0]
    lost = [each for each in moved[-MOVED:] if sign * (each[1][1] - each[1][0]) < 0]
    table = new_table(f"Most helped and most hurt, {proof.comparisons[0].measure}", ["query", "default", "tuned"])
    for qid, (before, after) in (*gained, *lost):
        table.add_row(plain(f"{qid}: {texts[qid]}" if texts.get(qid) else qid), f"{before:.4f}", f"{after:.4f}")
    return table


def _model_table(result: Result) -> Table:
    """The functions that competed, and in bold the one that is worth its parameters."""
    table = new_table("Functions, held-out queries", ["function", "parameters", "default", "tuned", "difference", "p"])
    for rival in result.fit.settings["models"]:
        figures = (f"{rival[key]:.4f}" for key in ("default", "tuned"))
        cells = [rival["name"], str(rival["parameters"]), *figures, f"{rival['difference']:+.4f}"]
        cells.append(p_value(rival["corrected"]))
        chosen = rival["name"] == result.fit.settings["chosen"]
        table.add_row(*(f"[bold]{cell}[/]" if chosen else cell for cell in cells))
    return table


def _parameter_table(result: Result) -> Table:
    tuned, start = result.fit.model.params, result.fit.start
    default = tuned.at(tuned.default) if start is None or start.params.names != tuned.names else start.params
    table = new_table("Parameters", ["parameter", "default", "tuned", "as good"])
    for i, (name, driver) in enumerate(zip(tuned.names, tuned.drivers(), strict=True)):
        span = None if driver is None else result.ranges.get(driver)
        said = "fixed" if driver is None else "" if span is None else str(span)
        if span is not None and (span.low, span.high) == (tuned.lower[i], tuned.upper[i]):
            said += " (any)"
        table.add_row(plain(name), f"{default.values[i]:.4g}", f"{tuned.values[i]:.4g}", said)
    return table


def _how(result: Result) -> str:
    """Which recipes were taken, the heaviest first."""
    recipes = sorted((each for each in result.fit.tried if each.weight), key=lambda each: -each.weight)
    if "models" in result.fit.settings:
        return f"How: {recipes[0].what}: the fewest among functions within one standard error of the best."
    if len(recipes) == 1:
        return f"How: {recipes[0].what}."
    shown = "; ".join(f"{each.what} ({each.weight:.0%})" for each in recipes[:3])
    more = f"; {len(recipes) - 3} more" if len(recipes) > 3 else ""
    return f"How: a mean of {len(recipes)} recipes, weighted by cross-validation: {shown}{more}."
