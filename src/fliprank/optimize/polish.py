"""Polish a trained model: climb the measure from where a gradient left it (Taylor et al. 2006, section 2.3).

A smooth objective leads to a good region, though it is not the measure; an exact search makes the last steps on the
measure itself. The queries of validation say how many of them to keep, if any.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> fit = polish(Linear().prepared(rows, 0).at([0, 1, 0.1]), rows, measure="RR")
>>> fit.trail[0].train, fit.best.train
(0.5, 1.0)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.optimize.exact import Exact
from fliprank.optimize.fit import Fit, Recorder

__all__ = ["polish"]


def polish(
    model: Model,
    train: Candidates,
    valid: Candidates | None = None,
    measure: str | Measure = "nDCG(dcg='exp-log2')@10",
    *,
    seed: int = 0,
    recorder: Recorder | None = None,
    **settings: Any,
) -> Fit:
    """The model after as much of an exact ascent as helps on `valid`: none, where it is best as it is.

    On `train` it is never worse than it was. `settings` are those of `Exact`; a `recorder` of one's own may keep a
    checkpoint or show progress.
    """
    kept = Recorder(model, train, valid, parse_measure(measure)) if recorder is None else recorder
    method = Exact(**settings)
    if not kept.finished:
        method.run(kept, None, np.random.default_rng(seed))
        kept.finish()
    return kept.fit()
