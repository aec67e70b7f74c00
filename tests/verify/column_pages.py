"""Documents with text and columns, to be ranked by both."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np
from engine_checks import FIELDS

from fliprank.export import engine_model
from fliprank.models import Feature, Model, Stack
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FIRST_DAY = date(2024, 1, 1)
WORDS = [f"w{i}" for i in range(30)]


@cache
def pages() -> list[dict[str, Any]]:
    """Text, stars (whole numbers to 200, some missing), price (powers of 2, some missing), the day of publishing."""
    rng, out = np.random.default_rng(3), []
    for i in range(120):
        sizes = {"title": rng.integers(0, 7), "body": rng.integers(0, 90), "tags": rng.integers(0, 3)}
        page: dict[str, Any] = {name: " ".join(rng.choice(WORDS, size)) for name, size in sizes.items()}
        page |= {"stars": int(rng.integers(1, 200)), "price": float(2.0 ** rng.integers(-3, 9))}
        page["published"] = (FIRST_DAY + timedelta(days=int(rng.integers(0, 700)))).isoformat()
        for name in ("stars", "price", "published"):
            if rng.random() < 0.2:
                page[name] = None
        out.append({"_id": f"d{i}"} | page)
    return out


@cache
def column_index() -> Index:
    return Index.build(pages(), fields=FIELDS, analyzer=Analyzer(lowercase=False, stopwords=None, stemmer=None))


def stacked(engine: str, function: str, *parts: tuple[Feature, float]) -> Model:
    """The text function with these features, at their weights; the curves as they start."""
    index = column_index()
    rows = index.rows({"q": "w1"}, {"q": index.docids.tolist()})
    model = Stack(engine_model(engine, function, FIELDS), *(part for part, _ in parts)).prepared(rows, 0)
    rng = np.random.default_rng(8)
    values = model.params.values.copy()
    inner = len(model.params) - len(parts) - 1
    for i, name in enumerate(model.params.names[:inner]):
        if name.endswith(".w"):
            values[i] = 1.0 + 2.0 * rng.random()
    values[-len(parts) :] = [weight for _, weight in parts]
    return model.at(values)
