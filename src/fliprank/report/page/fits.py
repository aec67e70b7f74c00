"""The page of a fit that Python made: of a tuning with its proof, of a training with its trail."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from fliprank.errors import UsageError, check_type
from fliprank.optimize.fit import Fit
from fliprank.report.page.render import write_page
from fliprank.report.page.tuning import result_of_fit, tuning_page

__all__ = ["write_fit_page"]


def write_fit_page(fit: Fit, path: str | PathLike[str]) -> Path:
    """Write the page of `fit` to a file whose name ends in .html."""
    check_type("path", path, (str, PathLike), "the name of a file, such as 'report.html'")
    if Path(path).suffix not in (".html", ".htm"):
        raise UsageError(f"a report is an HTML file: give a name such as report.html, not {str(path)!r}")
    return write_page(path, tuning_page(result_of_fit(fit)))
