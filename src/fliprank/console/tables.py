"""The tables of an evaluation, and how all tables are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich.table import Table

from fliprank.console.fitting import FittingTable
from fliprank.errors import printable

if TYPE_CHECKING:
    from fliprank.experiment.evaluation import Evaluation
    from fliprank.experiment.significance import Comparison

__all__ = ["comparison_tables", "explanation", "mean_table", "new_table", "plain", "query_table"]

NAMES = {
    "run",
    "measure",
    "query",
    "set",
    "parameter",
    "parameters",
    "stage",
    "part",
    "function",
    "paper",
    "what",
    "data",
    "value of",
}
NAMES |= {"goes up", "goes down", "labels", ""}
"""Columns of names, which are set to the left; all others have numbers, to the right."""

_BRACKET, _TAG = re.compile(r"(\\*)\["), re.compile(r"\[[a-z#/@][^[]*?]")


def mean_table(result: Evaluation) -> Table:
    """Runs in rows, measures in columns."""
    best = {r.label: _best(result, r.label, r.measure.smaller_is_better) for r in result.readings}
    table = new_table(f"Means over {len(result.qids)} queries", ["run", *best], shorter=_short_runs(result.values))
    for run, means in result.means().items():
        cells = [f"{value:.4f}" for value in means.values()]
        several = len(result.values) > 1
        bold = [f"[bold]{c}[/]" if several and means[m] == best[m] else c for m, c in zip(means, cells, strict=True)]
        table.add_row(plain(run), *bold)
    return table


def comparison_tables(comparisons: list[Comparison], confidence: float) -> list[Table]:
    """One table per measure, one row per run: the difference to the baseline, on how many queries, and its p."""
    from fliprank.experiment.significance import p_value

    tables: dict[str, Table] = {}
    columns = ["run", "difference", f"{confidence:.0%} interval", "+/-/=", "p", "t-test", "Wilcoxon", "Holm", "max-T"]
    for c in comparisons:
        if c.measure not in tables:
            title, spare = f"{c.measure} against {c.baseline}", ("Wilcoxon", "t-test", "Holm", "max-T")
            tables[c.measure] = new_table(
                title, columns, spare, _short_runs([c.baseline, *(d.run for d in comparisons)])
            )
        p = (c.p["randomisation"], c.p["t"], c.p["wilcoxon"], c.corrected["holm"], c.corrected["max_t"])
        interval = f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}"
        counts = f"{c.better}/{c.worse}/{c.tied}"
        tables[c.measure].add_row(plain(c.run), f"{c.difference:+.4f}", interval, counts, *map(p_value, p))
    return list(tables.values())


def query_table(result: Evaluation) -> Table:
    """One row per query and run."""
    columns = ["query", "run", *(reading.label for reading in result.readings)]
    table = new_table("", columns, shorter=_short_runs(result.values))
    for i, qid in enumerate(result.qids.tolist()):
        for run, values in result.values.items():
            table.add_row(plain(qid), plain(run), *(f"{column[i]:.4f}" for column in values.values()))
    return table


def explanation(told: list[tuple[str, str]]) -> Table:
    """What the printed numbers depend on."""
    table = Table(title="What these numbers mean", title_justify="left", show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for what, how in told:
        table.add_row(plain(what), plain(how))
    return table


def new_table(
    title: str, columns: Sequence[str], optional: Sequence[str] = (), shorter: dict[str, str] | None = None
) -> Table:
    """A table with a title; names to the left, numbers to the right.

    A narrow terminal gets it without the columns `optional`, the first of them first, and with the `shorter` names.
    """
    short = {plain(name): plain(other) for name, other in (shorter or {}).items()}
    table = FittingTable(
        title=plain(title) or None, title_justify="left", title_style="bold", optional=optional, shorter=short
    )
    for name in columns:
        left = name in NAMES
        table.add_column(plain(name), justify="left" if left else "right", overflow="fold", no_wrap=not left)
    return table


def plain(text: str) -> str:
    r"""Text from a user, safe to show: no markup, no control characters.

    Rich's own `escape` loses a backslash before a bracket that begins no tag. Those at the end are doubled for the tag
    that may follow.

    >>> plain("[red]"), plain("a[1]"), plain("C:\\[1]")
    ('\\[red]', 'a[1]', 'C:\\\\[1]')
    """
    text = printable(text)

    def escaped(found: re.Match[str]) -> str:
        backslashes = found[1]
        if _TAG.match(text, found.end(1)):
            return f"{backslashes * 2}\\["
        return f"{backslashes}\\[" if backslashes else "["

    return _BRACKET.sub(escaped, text) + "\\" * (len(text) - len(text.rstrip("\\")))


def _short_runs(runs: Iterable[str]) -> dict[str, str]:
    """Paths of runs by as much of their ends as tells them apart.

    >>> _short_runs(["a/bm25/x.run", "a/lm/x.run", "y.run"])
    {'a/bm25/x.run': 'bm25/x.run', 'a/lm/x.run': 'lm/x.run', 'y.run': 'y.run'}
    """
    paths = {run: PurePath(run).parts for run in runs}
    short = {}
    for run, parts in paths.items():
        others = [other for name, other in paths.items() if name != run]
        count = 1
        while count < len(parts) and any(other[-count:] == parts[-count:] for other in others):
            count += 1
        short[run] = str(PurePath(*parts[-count:])) if parts else run
    return short


def _best(result: Evaluation, measure: str, smaller: bool) -> float:
    means = [result.mean(run, measure) for run in result.values]
    return min(means) if smaller else max(means)
