"""The names of a stack's parameters: those of its parts, with a prefix where two parts have the same name.

>>> one, other = Parameters.of({"k": 1.2, "b": 0.75}), Parameters.of({"k": 1.2, "title.w": 1.0})
>>> joined(["bm25", "bm25f"], [one, other], Parameters.of({"bm25.weight": 1.0})).names
('bm25.k', 'b', 'bm25f.k', 'title.w', 'bm25.weight')
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from fliprank.models.parameters import Parameters

__all__ = ["joined", "unique"]


def unique(labels: list[str]) -> list[str]:
    """The labels, with a number after those that occur more than once.

    >>> unique(["bm25", "pagerank", "bm25"])
    ['bm25.1', 'pagerank', 'bm25.2']
    """
    often, seen, out = Counter(labels), Counter[str](), []
    for label in labels:
        seen[label] += 1
        out.append(label if often[label] == 1 else f"{label}.{seen[label]}")
    return out


def joined(kinds: list[str], parts: list[Parameters], top: Parameters) -> Parameters:
    """The parameters of the parts, then those on top; what was fixed or shared stays so.

    A name that two parts have, whether of a parameter or of a shared value, gets the part's kind as a prefix.
    """
    often = Counter(name for params in parts for name in {*params.names, *params.free_names})
    names: list[str] = []
    drivers: list[str | None] = []
    for prefix, params in zip([*unique(kinds), ""], [*parts, top], strict=True):
        own = {
            name: f"{prefix}.{name}" if prefix and often[name] > 1 else name
            for name in (*params.names, *params.free_names)
        }
        names += [own[name] for name in params.names]
        drivers += [None if key is None else own[key] for key in params.drivers()]
    values, lower, upper, default = (
        np.concatenate([getattr(params, column) for params in [*parts, top]])
        for column in ("values", "lower", "upper", "default")
    )
    return Parameters(tuple(names), values, lower, upper, default).driven_by(drivers)
