"""What each stage of a cascade does: the measure after it with its interval, and the relevant documents it never sees.

Matveeva et al. 2006, Tables 2, 4 and 6, as a picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError, WrongTypeError
from fliprank.experiment.cascade_analysis import AfterStage, after_stages
from fliprank.measures import Measure
from fliprank.models.cascade import Cascade
from fliprank.optimize.fit import Fit
from fliprank.report.drawing import WIDTH, altair, chart_of, heading, series, stacked
from fliprank.report.plots.fitted import rows_of
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder, intact, number

__all__ = ["stages"]

Record = dict[str, Any]


def _read(folder: ResultFolder) -> Any:
    listed = folder.part("stages", "only cascades have stages: train --model cascade")
    with intact(folder.path / "result.json"):
        figures = ("value", "gain", "step", "step_p", "lost")
        rows = [
            {"stage": int(each["stage"]), "size": int(each["size"])}
            | {name: number(each[name]) for name in figures}
            | dict(zip(("low", "high"), map(number, each["interval"]), strict=True))
            for each in listed
        ]
        on = {"test": "test", "valid": "validation", "train": "training"}.get(str(listed[0].get("on")), "")
    return _drawn({"": rows}, folder.measure, f"on {on} queries" if on else "")


@plot("stages", "the measure after each stage of a cascade, and the relevant documents that do not reach it", _read)
def stages(
    found: Fit | Sequence[AfterStage] | Mapping[str, Sequence[AfterStage]],
    measure: str | Measure | None = None,
    *,
    rows: Candidates | None = None,
) -> Any:
    """`found` is what `after_stages` gives, or several of these by the name of their model, or the fit of a cascade.

    For a fit, `rows` are the queries to look at; `measure` is its own unless another is given.
    """
    if isinstance(found, Fit):
        if not isinstance(found.model, Cascade):
            raise UsageError(f"only cascades have stages: this is the fit of a {found.model.kind} model")
        chosen = measure or found.measure
        if chosen is None:
            raise UsageError("this fit does not know its measure: give measure=")
        listed: Any = {"": after_stages(found.model, rows_of(found, rows), chosen)}
        measure = chosen
    else:
        listed = found if isinstance(found, Mapping) else {"": found}
        given = [row for table in listed.values() for row in (table if isinstance(table, list | tuple) else [None])]
        if not given or not all(isinstance(row, AfterStage) for row in given):
            raise WrongTypeError("found", found, "what after_stages gives, by name or alone, or the fit of a cascade")
    tables = {name: [_record(row) for row in table] for name, table in listed.items()}
    return _drawn(tables, str(measure or "measure"), "")


def _record(row: AfterStage) -> Record:
    known = {name: getattr(row, name) for name in ("stage", "size", "value", "gain", "step", "step_p", "lost")}
    return known | dict(zip(("low", "high"), row.interval, strict=True))


def _drawn(tables: Mapping[str, Sequence[Record]], measure: str, on: str) -> Any:
    """Two frames over the same stages: the measure, and what was cut off before the stage."""
    alt, names = altair(), list(tables)
    values = [
        row | {"model": name, "name": f"{row['stage']}: top {row['size']:,}"}
        for name, rows in tables.items()
        for row in rows
    ]
    if not values:
        raise InputError("there are no stages to draw")
    order = list(dict.fromkeys(row["name"] for row in sorted(values, key=lambda row: (row["stage"], -row["size"]))))
    told = series(names, "model", shape=True)
    offset = {"xOffset": alt.XOffset("model:N", sort=names)} if len(names) > 1 else {}
    title = "stage: documents that it ranks"
    x = alt.X("name:N", title=title, sort=order, axis=alt.Axis(labelAngle=0), scale=alt.Scale(paddingInner=0.3))
    above = x.copy(deep=False)
    above.title = None
    base = chart_of(values).encode(x=above, color=told["color"], **offset)
    scale = alt.Scale(zero=False, padding=12)
    bars = base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q", title=measure, scale=scale), y2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(y=alt.Y("value:Q", scale=scale), shape=told["shape"])
    room = alt.Scale(domain=[0, 1.3 * max(row["lost"] for row in values) or 1.0], nice=False)
    lost = alt.Y("lost:Q", title=["relevant", "documents lost"], scale=room, axis=alt.Axis(format=".0%", tickCount=4))
    bar = {"size": max(4, min(28, 200 // (len(order) * len(names))))}
    cut = chart_of(values).mark_bar(**bar).encode(x=x, y=lost, color=told["color"], **offset)
    number = cut.mark_text(dy=-8).encode(text=alt.Text("lost:Q", format=".1%"), color=alt.value("#000000"))
    frames = [
        alt.layer(bars, dots).properties(width=WIDTH, height=200),
        alt.layer(cut, number).properties(width=WIDTH, height=90),
    ]
    return stacked(
        frames, heading(_sentence(tables, measure, on), *_steps(tables), "Bars: 95% intervals over queries.")
    )


def _sentence(tables: Mapping[str, Sequence[Record]], measure: str, on: str) -> str:
    rows = next(iter(tables.values()))
    after = f"{measure} after each stage{' ' + on if on else ''}"
    if len(tables) > 1 or len(rows) < 2:
        return after
    return f"{after}: {rows[0]['value']:.4f} after the first, {rows[-1]['value']:.4f} after the last"


def _steps(tables: Mapping[str, Sequence[Record]]) -> list[str]:
    """What each stage gains over the one before, of a single cascade."""
    if len(tables) > 1:
        return []
    later = list(next(iter(tables.values())))[1:]
    told = "; ".join(f"stage {row['stage']} {row['step']:+.4f} (p {row['step_p']:.2g})" for row in later)
    return [f"Gain over the stage before: {told}"] if told else []
