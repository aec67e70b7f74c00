"""What a person sees of a tuning: the verdict, each measure before and after, who gained and lost, the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table

from fliprank.console import new_table, p_value, plain
from fliprank.experiment.tuned import SURE

if TYPE_CHECKING:
    from fliprank.experiment.tuned import Outcome, Proof
    from fliprank.experiment.tuning import Tuned

__all__ = ["outcome_tables"]

MOVED = 3
"""Queries that are shown of those that gained, and of those that lost."""
WIDEST = 60
"""Letters of a query that are shown."""


def outcome_tables(outcome: Outcome) -> Iterator[Table | str]:
    """What came of a tuning, what counts most first."""
    proof = outcome.test or outcome.cross_validated
    if proof is not None:
        yield from _verdict(proof)
    if outcome.test is not None:
        yield _proof_table(f"On {len(outcome.test.evaluation.qids)} held-out queries", outcome.test)
    if outcome.cross_validated is not None:
        queries = len(outcome.cross_validated.evaluation.qids)
        yield _proof_table(f"Cross-validated on {queries} training queries (nested)", outcome.cross_validated)
    if proof is not None:
        yield _moved_table(proof, outcome.texts)
    yield _parameter_table(outcome)
    if outcome.ranges:
        yield "as good: values of this parameter alone that no test tells from the tuned one (95%)."
    yield _how(outcome.tuned)
    if any(outcome.rounds):
        told = ", then ".join(map(str, outcome.rounds))
        yield f"Documents new at the top after tuning, retrieved and tuned on again: {told}."


def _verdict(proof: Proof) -> Iterator[str]:
    """One line to act upon, and a warning for each other measure that is worse by more than chance gives."""
    first, *others = proof.comparisons
    p = p_value(first.p["randomisation"])
    told = f"{first.measure} {first.difference:+.4f} on {first.queries} queries that tuning did not see, p = {p}"
    if proof.gain > 0:
        yield f"Better: {told}." if proof.sure else f"Perhaps better: {told}. More judged queries would tell."
    else:
        yield f"{'Worse' if proof.sure else 'Not better'}: {told}. Stay with the defaults."
    for c in others:
        if c.difference < 0 and c.p["randomisation"] < SURE:
            yield f"But {c.measure} falls by {-c.difference:.4f}, p = {p_value(c.p['randomisation'])}."


def _proof_table(title: str, proof: Proof) -> Table:
    table = new_table(title, ["measure", "default", "tuned", "difference", "95% interval", "p", "helped", "hurt"])
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
    sign = proof.evaluation.readings[0].measure.sign
    moved = sorted(proof.by_query().items(), key=lambda query: sign * (query[1][0] - query[1][1]))
    gained = [each for each in moved[:MOVED] if sign * (each[1][1] - each[1][0]) > 0]
    lost = [each for each in moved[-MOVED:] if sign * (each[1][1] - each[1][0]) < 0]
    table = new_table(f"Most helped and most hurt, {proof.comparisons[0].measure}", ["query", "default", "tuned"])
    for qid, (before, after) in (*gained, *lost):
        text = texts.get(qid, "")
        shown = f"{qid}: {text[:WIDEST]}{'…' if len(text) > WIDEST else ''}" if text else qid
        table.add_row(plain(shown), f"{before:.4f}", f"{after:.4f}")
    return table


def _parameter_table(outcome: Outcome) -> Table:
    tuned, default = outcome.tuned.model.params, outcome.tuned.default.params
    table = new_table("Parameters", ["parameter", "default", "tuned", "as good"])
    for i, (name, driver) in enumerate(zip(tuned.names, tuned.drivers(), strict=True)):
        span = None if driver is None else outcome.ranges.get(driver)
        told = "fixed" if driver is None else "" if span is None else str(span)
        if span is not None and (span.low, span.high) == (tuned.lower[i], tuned.upper[i]):
            told += " (any)"
        table.add_row(plain(name), f"{default.values[i]:.4g}", f"{tuned.values[i]:.4g}", told)
    return table


def _how(tuned: Tuned) -> str:
    """Which ways to tune were taken, the heaviest first."""
    ways = sorted(tuned.weights.items(), key=lambda way: -way[1])
    if len(ways) == 1:
        return f"How: {ways[0][0]}."
    told = "; ".join(f"{way} ({weight:.0%})" for way, weight in ways[:3])
    more = f"; {len(ways) - 3} more" if len(ways) > 3 else ""
    return f"How: a mean of {len(ways)} ways, each counting as held-out training queries speak for it: {told}{more}."
