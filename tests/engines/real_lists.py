"""Lists to fuse by an engine and by us: random ones with ties, single hits, empty lists; real ones of TREC DL 2019."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fusion_formulas import NAMES, Fused, Ranked, random_lists, rows_of

import fliprank as fr

REAL = Path(__file__).parents[3] / "shared" / "data" / "fusion" / "dl19"


def lists_of(source: str, count: int) -> dict[str, list[Ranked]]:
    """{query: its lists, best first}."""
    if source == "random":
        return random_lists(np.random.default_rng(20261118), count)
    if not REAL.is_dir():
        pytest.skip("the runs of TREC DL 2019 are not there")
    runs = [fr.read_run(REAL / f"{name}.run.gz").to_dict() for name in ("bm25", "ada2", "repllama")[:count]]
    return {
        query: [sorted(run[query].items(), key=lambda x: (x[1], x[0]), reverse=True) for run in runs]
        for query in list(runs[0])[:12]
    }


def ours(lists: dict[str, list[Ranked]], model: fr.Fusion) -> dict[str, Fused]:
    rows = rows_of(lists)
    return fr.fused_run(rows, model.score(rows)).to_dict()


def names(count: int) -> tuple[str, ...]:
    return NAMES[:count]


def same(mine: Fused, theirs: Fused, rel: float = 1e-9) -> None:
    assert mine.keys() == theirs.keys()
    for doc, score in mine.items():
        assert score == pytest.approx(theirs[doc], rel=rel, abs=1e-12 if rel < 1e-8 else 1e-7), doc
