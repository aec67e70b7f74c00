"""The page of a fit that Python made: of a tuning with its proof, of a training with its trail."""

from __future__ import annotations

from math import isnan
from os import PathLike
from pathlib import Path

from fliprank.errors import UsageError, check_type
from fliprank.experiment.results import FoldResult, Result
from fliprank.experiment.task import Queries, Task
from fliprank.optimize.fit import Fit
from fliprank.report.page.render import write_page
from fliprank.report.page.training import training_page
from fliprank.report.page.tuning import result_of_fit, tuning_page

__all__ = ["write_fit_page"]


def write_fit_page(fit: Fit, path: str | PathLike[str]) -> Path:
    """Write the page of `fit` to a file whose name ends in .html."""
    check_type("path", path, (str, PathLike), "the name of a file, such as 'report.html'")
    if Path(path).suffix not in (".html", ".htm"):
        raise UsageError(f"a report is an HTML file: give a name such as report.html, not {str(path)!r}")
    if fit.prover is not None:
        return write_page(path, tuning_page(result_of_fit(fit)))
    task = None if fit.rows is None else Task(Queries(fit.rows))
    figures: dict[str, dict[str, float]] = {}
    if fit.measure is not None:
        known = {"train": fit.best.train, "valid": fit.best.valid}
        figures = {part: {str(fit.measure): value} for part, value in known.items() if not isnan(value)}
    settings = {"model": fit.model.kind}
    return write_page(path, training_page(Result({"": FoldResult(fit, figures)}, settings, task=task)))
