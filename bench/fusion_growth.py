"""How the whole of `fliprank fuse` grows with the queries: 4 lists of 1,000 documents each.

    python bench/fusion_growth.py [QUERIES]          (5,000 unless said; about 6 GB then)

Lists see a label through noise and share about half of their documents, as retrievers do; one document in 40 is judged.
Ratios are time per query, so that 1 is linear growth.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
from timing import Row, show, timed

import fliprank as fr
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.trec import Qrels, Run
from fliprank.experiment.fusing import fuse

LISTS, DEPTH, POOL, JUDGED, QUERIES = 4, 1000, 2000, 50, 5000


def collection(queries: int, seed: int = 0) -> tuple[dict[str, Run], Qrels]:
    """Runs and judgements of so many queries; documents of a query are numbered from 0 to POOL - 1."""
    rng = np.random.default_rng(seed)
    names = Ids.of([f"d{number}" for number in range(POOL)])
    qids = Ids.of([f"q{number}" for number in range(queries)])
    labels = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], (queries, JUDGED))
    hidden = rng.normal(size=(queries, POOL))
    hidden[:, :JUDGED] += labels
    runs = {}
    for number in range(LISTS):
        scores = hidden * (0.4 + 0.2 * number) + rng.normal(size=hidden.shape)
        kept = np.argpartition(-scores, DEPTH, axis=1)[:, :DEPTH]
        values = np.take_along_axis(scores, kept, axis=1).ravel()
        offsets = bounds(np.full(queries, DEPTH, np.int64))
        runs[f"list{number}"] = Run(offsets, qids, names.take(kept.ravel()), values, f"list{number}")
    offsets = bounds(np.full(queries, JUDGED, np.int64))
    judged = names.take(np.tile(np.arange(JUDGED), queries))
    return runs, Qrels(offsets, qids, judged, labels.ravel())


def seconds_per_query(queries: int) -> float:
    runs, qrels = collection(queries)
    seconds, _ = timed(lambda: fuse(runs, qrels, measure="nDCG@10", settings={"normalise": "minmax"}), 1)
    return seconds / queries


def rows(most: int = QUERIES // 5) -> list[Row]:
    seconds_per_query(20)  # compiles
    sizes = [most // 4, most // 2, most]
    times = [seconds_per_query(size) for size in sizes]
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    what = f"whole fuse, {LISTS} lists x {DEPTH}: time per query at {{}} queries"
    out = [
        Row(what.format(f"{size:,}"), f"at {sizes[0]:,}: ratio", time / times[0], "about 1")
        for size, time in zip(sizes[1:], times[1:], strict=True)
    ]
    return [*out, Row(f"most memory, {most:,} queries", "GB", gigabytes, "")]


if __name__ == "__main__":
    assert fr.__version__
    show(rows(int(sys.argv[1]) if len(sys.argv) > 1 else QUERIES))
