"""The difference that a change makes to each query, from the largest gain to the largest loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from fliprank.errors import InputError, UsageError, WrongTypeError
from fliprank.experiment.evaluation import Evaluation
from fliprank.experiment.fusing import TUNED, Fused
from fliprank.experiment.proving import TuningProof
from fliprank.experiment.results import Proof
from fliprank.experiment.significance import Comparison, p_value
from fliprank.optimize.fit import Fit
from fliprank.report.drawing import COLOURS, GREY, altair, chart_of, framed, heading
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder, intact, number

__all__ = ["queries"]

NAMED = 3
"""Queries that are named at either end."""

EQUAL = 1e-12
"""A difference that is not larger is none."""

PARTS = {"test": "test queries", "cross_validated": "training queries, cross-validated"}


class _Sides(NamedTuple):
    """{query: (before, after)} of a measure, what the sides are called, and what is known of their difference."""

    values: Mapping[str, tuple[float, float]]
    measure: str
    names: tuple[str, str] = ("before", "after")
    on: str = ""
    told: str = ""
    sign: float = 1.0


def _read(folder: ResultFolder) -> Any:
    proofs = folder.part("proof", "only tune and fuse prove what they fit on held-out queries")
    with intact(folder.path / "result.json"):
        part, figures = next(iter(proofs.items()))
        values = {str(qid): (number(one), number(two)) for qid, (one, two) in figures["by_query"].items()}
        low, high = map(number, figures["interval"])
        told = _told(number(figures["difference"]), (low, high), number(figures["p"]))
        names = (str(folder.result.get("kept") or "default"), "tuned")
        sign = 1.0
        if (number(figures["difference"]) > 0) != (figures["better"] > figures["worse"]):
            sign = _sign(folder.measure)
    return _drawn(_Sides(values, folder.measure, names, PARTS.get(part, ""), told, sign))


@plot("queries", "what each query gains or loses, from the largest gain to the largest loss", _read)
def queries(
    found: Fit | TuningProof | Proof | Fused | Evaluation | Mapping[str, tuple[float, float]],
    measure: str | None = None,
    run: str | None = None,
    baseline: str | None = None,
) -> Any:
    """One bar per query: `run` minus `baseline`.

    Of a tuning (the fit, or its proof) and of a fusion that is tuned minus default, on held-out queries; of an
    evaluation the second run minus the first, unless others are named, by its first measure unless another is. Of a
    mapping {query: (before, after)}, after minus before.
    """
    if isinstance(found, Mapping):
        return _drawn(_of_mapping(found, measure))
    if isinstance(found, Evaluation):
        return _drawn(_of_evaluation(found, measure, run, baseline))
    if run is not None or baseline is not None or measure is not None:
        raise UsageError("measure, run and baseline go with an evaluation")
    if isinstance(found, Fit):
        found = found.proof
    if isinstance(found, Proof):
        return _drawn(_of_proof(found, "held-out queries", ("default", "tuned")))
    if isinstance(found, TuningProof):
        return _drawn(_of_proof(found.main, PARTS[found.on], ("default", "tuned")))
    if isinstance(found, Fused):
        part, proof = next(iter(found.proofs.items()))
        return _drawn(_of_proof(proof, PARTS[part], (found.kept, TUNED)))
    raise WrongTypeError("found", found, "a tuning, its proof, a fusion, an evaluation, or {query: (before, after)}")


def _of_mapping(found: Mapping[Any, Any], measure: str | None) -> _Sides:
    try:
        values = {str(qid): (float(one), float(two)) for qid, (one, two) in found.items()}
    except (TypeError, ValueError):
        raise WrongTypeError("found", found, "{query: (before, after)} with two numbers per query") from None
    return _Sides(values, measure or "measure")


def _of_evaluation(found: Evaluation, measure: str | None, run: str | None, baseline: str | None) -> _Sides:
    names = list(found.values)
    before = baseline or names[0]
    after = run or next((name for name in names if name != before), None)
    for name in (before, after):
        if name not in names or before == after:
            raise UsageError(f"two runs are compared, of {', '.join(names)}; given were {before} and {after}")
    assert after is not None
    labels = [reading.label for reading in found.readings]
    chosen = measure or labels[0]
    if chosen not in labels:
        raise UsageError(f"this evaluation has no {chosen}; it has {', '.join(labels)}")
    columns = (found.values[name][chosen].tolist() for name in (before, after))
    values = dict(zip(found.qids.tolist(), zip(*columns, strict=True), strict=True))
    compared = next(c for c in found.compare(before) if c.run == after and c.measure == chosen)
    sign = next(reading.measure.sign for reading in found.readings if reading.label == chosen)
    return _Sides(values, chosen, (before, after), "", _of_comparison(compared), sign)


def _of_proof(proof: Proof, on: str, names: tuple[str, str]) -> _Sides:
    compared = proof.comparisons[0]
    return _Sides(proof.by_query(), compared.measure, names, on, _of_comparison(compared), proof.sign)


def _of_comparison(compared: Comparison) -> str:
    return _told(compared.difference, compared.interval, compared.p["randomisation"])


def _told(difference: float, interval: tuple[float, float], p: float) -> str:
    return (
        f"Mean difference {difference:+.4f}, 95% interval {interval[0]:+.4f} to {interval[1]:+.4f}, p = {p_value(p)}."
    )


def _sign(measure: str) -> float:
    from fliprank.measures import parse_measure

    return parse_measure(measure).sign


def _drawn(found: _Sides) -> Any:
    """Bars from the largest gain to the largest loss; the ends are named, the mean is a dashed line."""
    gaps = {qid: two - one for qid, (one, two) in found.values.items() if math.isfinite(one) and math.isfinite(two)}
    if not gaps:
        raise InputError("there is no query with two figures to compare")
    alt, ordered = altair(), sorted(gaps.items(), key=lambda each: -found.sign * each[1])
    kinds = {"better": COLOURS[0], "worse": COLOURS[1], "equal": GREY}
    bars: list[dict[str, Any]] = [
        {"place": place, "query": qid, "difference": gap, "change": _kind(found.sign * gap)}
        for place, (qid, gap) in enumerate(ordered, 1)
    ]
    counts = {kind: sum(bar["change"] == kind for bar in bars) for kind in kinds}
    legend = alt.Legend(orient="top", title=None)
    colour = alt.Color("change:N", scale=alt.Scale(domain=list(kinds), range=list(kinds.values())), legend=legend)
    edge = alt.Scale(domain=[0.5, len(bars) + 0.5], nice=False)
    x = alt.X(
        "left:Q",
        title="queries, from the largest gain to the largest loss",
        scale=edge,
        axis=alt.Axis(grid=False, format="d", tickMinStep=1),
    )
    y = alt.Y("difference:Q", title=f"difference in {found.measure}", scale=alt.Scale(padding=16))
    half = 0.4 if len(bars) <= 100 else 0.5  # gaps between very many bars would only make them pale
    boxes = [bar | {"left": bar["place"] - half, "right": bar["place"] + half, "zero": 0} for bar in bars]
    drawn = chart_of(boxes).mark_rect().encode(x=x, x2="right:Q", y=y, y2="zero:Q", color=colour)
    mean = sum(gaps.values()) / len(gaps)
    level = chart_of([{"mean": mean, "text": f"mean {mean:+.4f}"}])
    rule = level.mark_rule(strokeDash=[5, 4], strokeWidth=1.4, color="#000000").encode(y="mean:Q")
    words = level.mark_text(align="right", x=554, dy=-8).encode(y="mean:Q", text="text:N")
    zero = chart_of([{"zero": 0}]).mark_rule(color="#000000", strokeWidth=0.8).encode(y="zero:Q")
    title = heading(
        f"{found.measure}, {found.names[1]} minus {found.names[0]}: {counts['better']} queries better, "
        f"{counts['worse']} worse, {counts['equal']} equal",
        found.told,
        *_ends(bars),
        f"On {found.on}." if found.on else "",
    )
    return framed(alt.layer(drawn, zero, rule, words), title)


def _kind(gain: float) -> str:
    return "equal" if abs(gain) <= EQUAL else "better" if gain > 0 else "worse"


def _ends(bars: list[dict[str, Any]]) -> list[str]:
    """The queries at either end by name."""
    first = [bar for bar in bars[:NAMED] if bar["change"] == "better"]
    last = [bar for bar in bars[-NAMED:][::-1] if bar["change"] == "worse"]
    told = (", ".join(f"{_short(bar['query'])} ({bar['difference']:+.3f})" for bar in part) for part in (first, last))
    return [f"{name}: {each}" for name, each in zip(("Gained most", "Lost most"), told, strict=True) if each]


def _short(qid: str) -> str:
    return qid if len(qid) <= 24 else f"{qid[:23]}…"
