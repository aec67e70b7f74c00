"""Pictures of results: `fr.plots.NAME(result)` gives an Altair chart, `fr.plots.save(chart, path)` writes it.

    chart = fr.plots.trail(fit)
    fr.plots.save(chart, "trail.svg")

`fit.plot("trail")` is short for the first line, and `fliprank plot trail FOLDER --out trail.svg` draws the same from
the folder that a command wrote. Needs the extra `report`.
"""

from fliprank.report.plots.fusion import fusion
from fliprank.report.plots.learning_curve import learning_curve
from fliprank.report.plots.precision_recall import precision_recall
from fliprank.report.plots.queries import queries
from fliprank.report.plots.ranges import ranges
from fliprank.report.plots.rank_distribution import rank_distribution
from fliprank.report.plots.registry import PLOTS, Plot, find_plot, plot_fit
from fliprank.report.plots.stages import stages
from fliprank.report.plots.surface import surface
from fliprank.report.plots.trail import trail
from fliprank.report.plots.trajectory import trajectory
from fliprank.report.saving import save

__all__ = [
    "PLOTS",
    "Plot",
    "find_plot",
    "fusion",
    "learning_curve",
    "plot_fit",
    "precision_recall",
    "queries",
    "ranges",
    "rank_distribution",
    "save",
    "stages",
    "surface",
    "trail",
    "trajectory",
]
