"""Which curve each column of the documents gets in a stack, told by its values; and which columns are left out.

The rules, the first that holds, for a column of the training rows in which 0 stands for no value:

- left out: all rows have the same value; fewer than 1 row in 100 has one; it looks like an id (its name says so, or its
  whole numbers differ in all of at least 50 documents and the largest is no more than ten times the median);
- a date (days of a column that held dates, or years or epoch seconds in a column whose name says so): recency;
- one value or none: saturation with k fixed, since no curve can be told from it;
- some values are below 0: saturation on both sides, x / (|x| + k);
- most rows have a value, and 1 in 20 of these is above ten times the median: logarithm;
- any other: saturation, x / (x + k).

A row without a value adds nothing to a score (log(k + 0) is the same for all, which moves no row past another). In a
stack all weights start at 0, so that columns change nothing before they are tuned.

>>> from fliprank.data.candidates import Candidates
>>> price, stars, released = np.geomspace(1, 1e6, 100), np.arange(100) % 5, 730_000 + np.arange(100) % 31
>>> columns = np.stack([price, stars, released, np.ones(100)], axis=1)
>>> rows = Candidates.of(np.zeros(100), features=columns, feature_names=["price", "stars", "released_day", "currency"])
>>> found = column_curves(rows)
>>> {part.name: part.transform for part in found.parts}, found.notes
({'price': 'log', 'stars': 'saturate', 'released_day': 'recency'}, ('column currency is left out: it has one value',))
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.models.document_feature import Feature

__all__ = ["ColumnCurves", "column_curves", "is_date"]

RARE, FEW_DOCUMENTS = 0.01, 50
SKEWED, SHARE = 10.0, 95
"""A logarithm is for columns whose 95th percentile is above ten times the median."""

ID_NAME = re.compile(r"(^|[^a-z])(id|ids|uid|uuid|sku|ean|gtin|upc|isbn|issn|asin|code|zip|zipcode|phone)$")
DATE_NAME = re.compile(r"year|date|time|day|publish|releas|creat|modif|updat|post|epoch")
DATE_RANGES = ((1000.0, 2200.0), (364_878.0, 803_533.0), (1e8, 7.3e9), (1e11, 7.3e12))
"""Years; days counted from the year 1; seconds and milliseconds since 1970, from 1973 on. All but the last: to 2200."""


class ColumnCurves(NamedTuple):
    """The features to put in a stack, and what to tell about the columns that are left out."""

    parts: tuple[Feature, ...]
    notes: tuple[str, ...]


def column_curves(rows: Candidates) -> ColumnCurves:
    """The features of these rows, each through the curve that suits its values."""
    parts, notes = [], []
    for place, name in enumerate(rows.feature_names):
        assert rows.features is not None
        values = rows.features[:, place].astype(np.float64)
        why = _why_not(rows, name, values)
        if why:
            notes.append(f"column {name} is left out: {why}")
        else:
            parts.append(_through_curve(name, values))
    return ColumnCurves(tuple(parts), tuple(notes))


def is_date(name: str, values: Floats) -> bool:
    """Whether a column holds dates: its name says so, and all its values are years, days, or seconds since 1970.

    >>> is_date("year", np.array([1999.0, 0.0, 2004.0])), is_date("year", np.array([1.0, 2.0]))
    (True, False)
    """
    present = values[values != 0]
    if not len(present) or not DATE_NAME.search(name.lower()):
        return False
    return any(low <= present.min() and present.max() <= high for low, high in DATE_RANGES)


def _why_not(rows: Candidates, name: str, values: Floats) -> str:
    """Why this column is no feature; empty if it is one."""
    present = values != 0
    if len(values) == 0 or (values == values[0]).all():
        return "it has one value"
    if present.mean() < RARE:
        return f"{present.sum():,} of {len(values):,} rows have a value"
    if is_date(name, values):
        return ""
    return "it looks like an id" if ID_NAME.search(name.lower()) or _all_different(rows, values) else ""


def _all_different(rows: Candidates, values: Floats) -> bool:
    """Whether each document has a whole number of its own, none much larger than the others."""
    if rows.docids is None or (values != np.rint(values)).any() or values.min() < 0:
        return False
    documents = dict(zip(rows.docids.tolist(), values.tolist(), strict=True))
    own = np.array([value for value in documents.values() if value])
    if len(own) < FEW_DOCUMENTS or len(np.unique(own)) < len(own):
        return False
    return bool(own.max() <= SKEWED * np.median(own))


def _through_curve(name: str, values: Floats) -> Feature:
    present = values[values != 0]
    if is_date(name, values):
        return Feature(name, transform="recency")
    if (present == present[0]).all():
        return Feature(name, transform="saturate" if present[0] > 0 else "signed", k=float(abs(present[0])))
    if present.min() < 0:
        return Feature(name, transform="signed")
    skewed = np.percentile(present, SHARE) > SKEWED * np.median(present)
    return Feature(name, transform="log" if skewed and len(present) > len(values) / 2 else "saturate")
