"""The page of an evaluation: every run, the comparisons with the first, and the queries behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fliprank.data.trec import Qrels, Run
from fliprank.experiment.diff import diff_of_runs
from fliprank.experiment.evaluation import Evaluation
from fliprank.experiment.significance import Comparison, p_value
from fliprank.report.page.figures import figures_section, means_table
from fliprank.report.page.measured import measured_section
from fliprank.report.page.queries import queries_section
from fliprank.report.page.section import Documents, Page, Section

__all__ = ["evaluation_page"]


def evaluation_page(
    found: Evaluation,
    comparisons: Sequence[Comparison],
    qrels: Qrels | None = None,
    runs: Mapping[str, Run] | None = None,
    texts: Mapping[str, str] | None = None,
    command: str = "",
) -> Page:
    """With judgements and runs, the page also has the rankings of every query side by side."""
    documents = Documents()
    sections = tuple(_sections(found, comparisons, qrels, runs or {}, texts or {}, documents, command))
    names = ", ".join(list(found.values)[:4])
    return Page("Evaluation report", f"{names} on {len(found.qids):,} judged queries.", sections, documents)


def _sections(
    found: Evaluation,
    comparisons: Sequence[Comparison],
    qrels: Qrels | None,
    runs: Mapping[str, Run],
    texts: Mapping[str, str],
    documents: Documents,
    command: str,
) -> Iterator[Section]:
    means, first = found.means(), found.readings[0]
    best = max(means, key=lambda run: first.measure.sign * means[run][first.label])
    said = f"{best} is best by {first.label}: {means[best][first.label]:.4f}."
    yield figures_section("Runs", said, [means_table("Means over queries", "Run", means)], found.notes)
    names = list(found.values)
    if comparisons:
        yield _comparisons(found, comparisons, names[0])
        others = [run for run in names if run != names[0]]
        other = max(others, key=lambda run: first.measure.sign * means[run][first.label])
        if qrels is not None and {names[0], other} <= runs.keys():
            yield _queries(found, (names[0], other), qrels, runs, texts, documents)
    yield measured_section(found, {}, (), command)


def _comparisons(found: Evaluation, comparisons: Sequence[Comparison], baseline: str) -> Section:
    """Each other run against the first, measure by measure."""
    means, signs = found.means(), {r.label: r.measure.sign for r in found.readings}
    sets = dict[str, list[dict[str, Any]]]()
    for c in comparisons:
        row = {"measure": c.measure, "sign": signs[c.measure], "difference": c.difference, "queries": c.queries}
        row |= {"default": means[baseline][c.measure], "tuned": means[c.run][c.measure], "interval": list(c.interval)}
        row |= {"p": c.p["randomisation"], "better": c.better, "worse": c.worse}
        sets.setdefault(c.run, []).append(row)
    data = {"sets": [{"title": f"{run} against {baseline}", "measures": rows} for run, rows in sets.items()]}
    main = comparisons[0]
    sure = main.p["randomisation"] < 0.05
    better = "better" if signs[main.measure] * main.difference > 0 else "worse"
    said = f"{main.run} is {better if sure else 'not shown to differ'}" + (
        f" than {baseline}" if sure else f" from {baseline}"
    )
    said += (
        f": {main.measure} {main.difference:+.4f} on {main.queries:,} queries, p = {p_value(main.p['randomisation'])}."
    )
    return Section("comparisons", "Comparisons", said, data | {"names": [baseline, "other"]})


def _queries(
    found: Evaluation,
    names: tuple[str, str],
    qrels: Qrels,
    runs: Mapping[str, Run],
    texts: Mapping[str, str],
    documents: Documents,
) -> Section:
    first = found.readings[0]
    columns = [found.values[name][first.label].tolist() for name in names]
    values = [
        (qid, *(None if value != value else value for value in pair))
        for qid, *pair in zip(found.qids.tolist(), *columns, strict=True)
    ]
    lists = diff_of_runs(runs[names[0]], runs[names[1]], qrels, measure=first.measure, tested=False)
    known: dict[str, Any] = {"sign": first.measure.sign, "on": "judged queries", "names": names, "texts": texts}
    return queries_section(values, lists, documents, **known)
