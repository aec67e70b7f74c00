"""What a person sees on a terminal: tables, notes, and a sign of life while work goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fliprank.errors import printable

if TYPE_CHECKING:
    from fliprank.experiment.evaluation import Evaluation
    from fliprank.experiment.significance import Comparison
    from fliprank.optimize.fit import Epoch

__all__ = [
    "comparison_tables",
    "counting",
    "explanation",
    "fit_progress",
    "mean_table",
    "new_table",
    "plain",
    "query_table",
    "screen_width",
    "shortened",
    "show",
    "working",
]


def show(*things: Table | str) -> None:
    """Print to standard output; wide enough for whole tables where there is no terminal to fit."""
    console = Console(highlight=False, emoji=False, width=screen_width())
    for thing in things:
        console.print(printable(thing), markup=False) if isinstance(thing, str) else console.print(thing)


def screen_width() -> int:
    """The columns of the terminal; 160 where there is none."""
    return Console().width if sys.stdout and sys.stdout.isatty() else 160


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on standard error while the block runs; silent when that is not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True, emoji=False).status(f"{text} (the first run after an installation compiles for a while)"):
        yield


def mean_table(result: Evaluation) -> Table:
    """Runs in rows, measures in columns."""
    best = {r.label: _best(result, r.label, r.measure.smaller_is_better) for r in result.readings}
    table = new_table(f"Means over {len(result.qids)} queries", ["run", *best])
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
            tables[c.measure] = new_table(f"{c.measure} against {c.baseline}", columns)
        p = (c.p["randomisation"], c.p["t"], c.p["wilcoxon"], c.corrected["holm"], c.corrected["max_t"])
        interval = f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}"
        counts = f"{c.better}/{c.worse}/{c.tied}"
        tables[c.measure].add_row(plain(c.run), f"{c.difference:+.4f}", interval, counts, *map(p_value, p))
    return list(tables.values())


def query_table(result: Evaluation) -> Table:
    """One row per query and run."""
    table = new_table("", ["query", "run", *(reading.label for reading in result.readings)])
    for i, qid in enumerate(result.qids.tolist()):
        for run, values in result.values.items():
            table.add_row(plain(qid), plain(run), *(f"{column[i]:.4f}" for column in values.values()))
    return table


@contextmanager
def counting(name: str) -> Iterator[Callable[[str, int], None]]:
    """A line on standard error that says what is done and how far it is; silent without a terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done: None
        return
    with Console(stderr=True, emoji=False).status(name) as status:
        yield lambda what, done: status.update(f"{name}: {what}" + (f" {done:,}" if done else ""))


@contextmanager
def fit_progress(name: str) -> Iterator[Callable[[str, int, int, Epoch | None], None]]:
    """A bar on standard error for the fits of a command, with the latest epoch; silent without a terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done, total, epoch: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as progress:
        task = progress.add_task(
            f"{printable(name)} (the first run after an installation compiles for a while)", total=None
        )

        def report(what: str, done: int, total: int, epoch: Epoch | None) -> None:
            at = "" if epoch is None else f" epoch {epoch.number} train {epoch.train:.4f} valid {epoch.valid:.4f}"
            progress.update(task, description=f"{printable(name)}: {what}{at}", completed=done, total=total)

        yield report


def explanation(told: list[tuple[str, str]]) -> Table:
    """What the printed numbers depend on."""
    table = Table(title="What these numbers mean", title_justify="left", show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for what, how in told:
        table.add_row(plain(what), plain(how))
    return table


def new_table(title: str, columns: list[str]) -> Table:
    """A table with a title; names to the left, numbers to the right."""
    table = Table(title=plain(title) or None, title_justify="left", title_style="bold")
    for name in columns:
        left = name in ("run", "measure", "query", "set", "parameter", "stage", "part")
        table.add_column(plain(name), justify="left" if left else "right", overflow="fold", no_wrap=not left)
    return table


def plain(text: str) -> str:
    """Text from a user, safe to show: no markup, no control characters."""
    return escape(printable(text))


def shortened(text: str, width: int) -> str:
    """Text from a user on one line of at most so many columns, control characters replaced; wide letters count twice.

    >>> shortened("red shoes", 9), shortened("red shoes" + chr(27), 6), cell_len(shortened("靴" * 9, 6))
    ('red shoes', 'red s…', 5)
    """
    clean = printable(" ".join(text.split()))
    return clean if cell_len(clean) <= width else set_cell_size(clean, max(width - 1, 0)).rstrip() + "…"[:width]


def _best(result: Evaluation, measure: str, smaller: bool) -> float:
    means = [result.mean(run, measure) for run in result.values]
    return min(means) if smaller else max(means)
