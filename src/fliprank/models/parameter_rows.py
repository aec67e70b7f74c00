"""Parameters in model.json: one row per parameter, as a person reads them.

A row says only what is unusual: a parameter is unbounded, free and has the default 0 unless its row says otherwise.
With more than a thousand parameters the values are in the arrays file, and only rows that say something are kept.

>>> rows, _ = to_rows(Parameters.of({"k": 1.2, "b": (0.75, 0, 1)}).fix("k"))
>>> for row in rows: print(row)
{'name': 'k', 'value': 1.2, 'default': 1.2, 'fixed': True}
{'name': 'b', 'value': 0.75, 'lower': 0.0, 'upper': 1.0, 'default': 0.75}
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from fliprank.errors import InputError, UsageError
from fliprank.models.folder import Arrays, Record
from fliprank.models.parameters import Parameters

__all__ = ["from_rows", "to_rows"]

MOST_ROWS = 1000

Rows = list[dict[str, Any]]


def to_rows(params: Parameters, most: float = MOST_ROWS) -> tuple[Rows, Arrays]:
    """The rows for model.json, and the arrays to keep beside it; raises if a value is out of bounds.

    Up to `most` parameters are all in the rows.
    """
    params.check_bounds()
    rows = [_row(params, i, driver) for i, driver in enumerate(params.drivers())]
    if len(rows) <= most:
        return rows, {}
    special = [row for row in rows if row.keys() != {"name", "value"}]
    return [{key: row[key] for key in row if key != "value"} for row in special], {"values": params.values}


def _row(params: Parameters, i: int, driver: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": params.names[i], "value": float(params.values[i])}
    for key, column, usual in (
        ("lower", params.lower, -inf),
        ("upper", params.upper, inf),
        ("default", params.default, 0),
    ):
        if column[i] != usual:
            row[key] = float(column[i])
    if driver is None:
        row["fixed"] = True
    elif driver != params.names[i]:
        row["shared"] = driver
    return row


def from_rows(record: Record, names: tuple[str, ...], arrays: Arrays) -> Parameters:
    """The parameters that `to_rows` wrote, for a model whose structure has these `names`."""
    rows = record.records("parameters")
    if arrays:
        rows = _with_values(record, rows, names, arrays)
    found = tuple(row.text("name") for row in rows)
    if found != names:
        wrong = next((pair for pair in zip(found, names, strict=False) if pair[0] != pair[1]), None)
        said = f"{len(found)} of them" if wrong is None else f"{wrong[0]!r} in place of {wrong[1]!r}"
        raise InputError(f"parameters: expected the {len(names)} of this structure, found {said}", path=record.path)
    try:
        return Parameters(
            names,
            np.array([row.number("value") for row in rows]),
            np.array([row.number("lower") if row.has("lower") else -inf for row in rows]),
            np.array([row.number("upper") if row.has("upper") else inf for row in rows]),
            np.array([row.number("default", 0.0) for row in rows]),
        ).driven_by([_driver(row) for row in rows])
    except UsageError as error:
        raise InputError(f"parameters: {error}", path=record.path) from error


def _driver(row: Record) -> str | None:
    if row.has("fixed"):
        return None if row.data["fixed"] is True else row.fail("fixed", "true, or no such key")
    return row.text("shared" if row.has("shared") else "name")


def _with_values(record: Record, rows: list[Record], names: tuple[str, ...], arrays: Arrays) -> list[Record]:
    """All rows, from those that were written and the values in the arrays file."""
    values = arrays.get("values")
    if values is None or values.shape != (len(names),) or values.dtype != np.float64:
        record.fail("arrays", f"an array of {len(names)} parameter values in that file")
    special = {row.text("name"): row.data for row in rows}
    if unknown := special.keys() - set(names):
        raise InputError(f"parameters: {min(unknown)!r} is not a parameter of this structure", path=record.path)
    return [
        Record(record.path, f"parameter {name}", {"name": name, **special.get(name, {}), "value": value})
        for name, value in zip(names, values.tolist(), strict=True)
    ]
