"""Which field, term and parameter caused a flip.

What one document has over the other is a sum over terms and fields, before and after, in units of the spread of the
query's scores: the part that changed most in favour of the document that rose is the field and term. The parameter is
the one without which the margin would shrink most: the tuned function is scored with each parameter set back to its
old value, alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import InputError, UsageError
from fliprank.experiment.move_reasons import Explainer
from fliprank.experiment.query_diff import Moved
from fliprank.models.contributions import Part

__all__ = ["SetBack", "part_of_flip", "set_back"]

MOST_PARAMETERS = 32
"""Parameters up to which each is set back in turn."""


@dataclass(frozen=True, eq=False)
class SetBack:
    """Scores of some documents of one query by the function before, after, and after but for one parameter each."""

    place: Mapping[str, int]
    before: Floats
    after: Floats
    but_for: Floats

    def parameter(self, up: str, down: str) -> int | None:
        """The parameter without whose change `up` would lead by least; None where this function does not swap them."""
        if up not in self.place or down not in self.place:
            return None
        one, other = self.place[up], self.place[down]
        if not self.after[one] > self.after[other] or self.before[one] > self.before[other] or not len(self.but_for):
            return None
        margins = (self.but_for[:, one] - self.but_for[:, other]) / _spread(self.but_for.T)
        least = int(np.argmin(margins))
        return least if margins[least] < (self.after[one] - self.after[other]) / _spread(self.after) else None


def _spread(scores: Floats) -> Floats:
    found = scores.std(axis=0)
    return np.where(found > 0, found, 1.0)


def set_back(explainer: Explainer, documents: Mapping[str, Sequence[str]]) -> dict[str, SetBack]:
    """These scores, by query; none where rows can't be had or a score depends on all rows of a query."""
    model, start = explainer.after, explainer.before
    same = start.params.names == model.params.names and start.params.free_names == model.params.free_names
    if model.whole_queries or not same or len(model.params.free_names) > MOST_PARAMETERS:
        return {}
    try:
        rows = explainer.rows_of(documents)
    except (InputError, UsageError):
        return {}
    tuned, old = model.params.free_values, start.params.free_values
    every = []
    for slot in range(len(tuned)):
        values = tuned.copy()
        values[slot] = old[slot]
        every.append(model.at(model.params.with_free(values)).score(rows))
    before, after = start.score(rows), model.score(rows)
    but_for, out = np.array(every).reshape(len(every), len(rows)), dict[str, SetBack]()
    for q, (qid, names) in enumerate(documents.items()):
        span = slice(*rows.offsets[q : q + 2])
        place = {name: i for i, name in enumerate(names)}
        out[qid] = SetBack(place, before[span], after[span], but_for[:, span])
    return out


def part_of_flip(up: Moved, down: Moved, spreads: tuple[float, float]) -> Part | None:
    """The term and field that changed most in favour of `up`; None where nothing did, or scores are no sums."""
    margins = dict[Part, float]()
    for document, sign in ((up, 1.0), (down, -1.0)):
        for part, before, after in document.sums:
            change = sign * (after / spreads[1] - before / spreads[0])
            margins[part] = margins.get(part, 0.0) + change
    best = max(margins, key=lambda part: margins[part], default=None)
    return best if best is not None and margins[best] > 1e-12 else None
