"""Whether more judgements would help: the learning curve, and the sentence that answers it."""

from __future__ import annotations

from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.saturation import Outlook
from fliprank.report.page.section import Section, short

__all__ = ["outlook_section"]


def outlook_section(found: Outlook, curve: LearningCurve | None) -> Section:
    """The curve where there is one; what the law says of larger sizes beside it."""
    points = [] if curve is None else curve.points()
    data = {
        "measure": "" if curve is None else str(curve.measure),
        "points": [[p.ranker, p.size, *(short(x) for x in (p.test, p.low, p.high, p.training))] for p in points],
        "gains": [[g.before, g.after, *(short(x, 4) for x in (g.gain, g.low, g.high))] for g in found.gains],
        "worth": found.worth,
        "repeats": 0 if curve is None else curve.repeats,
    }
    return Section("outlook", "More judgements?", found.sentence, data)
