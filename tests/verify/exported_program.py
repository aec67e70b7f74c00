"""A module of Python that an export wrote, imported as its user would, and held against our own ranking."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_checks import QUERIES

from fliprank.engines.coded_texts import coded_queries
from fliprank.models import EngineText
from fliprank.text.index import Index

NEAR = 1e-5
"""Exports have numbers of six digits."""


def imported(path: Path) -> Any:
    """The module at this path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_ranking(index: Index, model: EngineText, search: Any) -> None:
    """`search(text)` gives documents with scores, best first: all of them, and as the model has them."""
    expected = index.search(QUERIES, model, depth=len(index)).to_dict()
    compared = 0
    for qid, words in coded_queries(index, QUERIES).items():
        if words:
            found = dict(search(" ".join(words)))
            assert found == pytest.approx(expected[qid], rel=NEAR, abs=NEAR)
            ours = np.array([expected[qid][docid] for docid in found])
            assert (np.diff(ours) <= NEAR * (1.0 + ours[:-1])).all()
            compared += len(found)
    assert compared > 200
