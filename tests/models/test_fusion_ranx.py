"""The same lists fused by ranx: RRF, and weighted sums of min-max and z-scores; on random and on real lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fusion_formulas import NAMES, Fused, Ranked, fused, rows_of

import fliprank as fr

ranx = pytest.importorskip("ranx")

REAL = Path(__file__).parents[3] / "shared" / "data" / "fusion" / "dl19"


def both(source: str) -> tuple[fr.Candidates, list[object]]:
    """Rows, and the runs of ranx that they are made of. ranx needs every query in every run, and no equal scores."""
    if source == "random":
        rng = np.random.default_rng(8)
        lists = {f"q{q}": [_random(rng) for _ in range(3)] for q in range(20)}
        runs = [{q: dict(each[j]) for q, each in lists.items()} for j in range(3)]
        return rows_of(lists), [ranx.Run(run) for run in runs]
    if not REAL.is_dir():
        pytest.skip("the runs of TREC DL 2019 are not there")
    paths = [REAL / f"{name}.run.gz" for name in ("bm25", "tasb", "ada2")]
    runs = dict(zip(NAMES, (fr.read_run(path) for path in paths), strict=True))
    qrels = fr.read_qrels(REAL / "qrels.txt.gz")
    judged = set(qrels.qids.tolist())
    tables = [{q: _untied(t) for q, t in run.to_dict().items() if q in judged} for run in runs.values()]
    rows = fr.fusion_rows(dict(zip(NAMES, tables, strict=True)), qrels)
    assert rows.queries == 43
    return rows, [ranx.Run(table) for table in tables]


def _random(rng: np.random.Generator) -> Ranked:
    size = int(rng.integers(2, 20))
    docs = [f"d{i:02d}" for i in rng.choice(25, size, replace=False)]
    return list(zip(docs, np.sort(rng.gamma(2.0, 3.0, size))[::-1].tolist(), strict=True))


def _untied(table: Fused) -> Fused:
    """Without equal scores: ranx ranks these in any order."""
    best_first = sorted(table.items(), key=lambda x: (x[1], x[0]), reverse=True)
    return {doc: score - 1e-6 * i for i, (doc, score) in enumerate(best_first)}


def same(ours: dict[str, Fused], theirs: dict[str, Fused]) -> None:
    assert ours.keys() == theirs.keys()
    assert len(ours) > 5
    for query, scores in ours.items():
        assert scores.keys() == theirs[query].keys()
        for doc, score in scores.items():
            assert score == pytest.approx(theirs[query][doc], rel=1e-6, abs=1e-9), (query, doc)


@pytest.mark.parametrize("source", ["random", "real"])
@pytest.mark.parametrize(
    ("norm", "settings", "method", "params"),
    [
        ("rank", {"engine": "elasticsearch-rrf"}, "rrf", {"k": 60}),
        ("min-max", {"engine": "plain", "normalise": "minmax"}, "wsum", {"weights": [0.5, 0.2, 0.3]}),
        ("zmuv", {"engine": "plain", "normalise": "zscore"}, "wsum", {"weights": [0.5, 0.2, 0.3]}),
    ],
)
def test_fused_scores_are_those_of_ranx(
    source: str, norm: str, settings: dict[str, str], method: str, params: dict[str, object]
) -> None:
    rows, runs = both(source)
    model = fr.Fusion(lists=NAMES, **settings)
    model = model.at([1, 1, 1, 60] if method == "rrf" else [0.5, 0.2, 0.3])
    theirs = ranx.fuse(runs=runs, norm=None if norm == "rank" else norm, method=method, params=params)
    same(fused(rows, model.score(rows)), {q: dict(t) for q, t in theirs.to_dict().items()})
