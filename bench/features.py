"""All features of 100,000 rows of real pages, against plain Python and against finding those rows.

    python bench/features.py              # speed, on the crawl in ../shared/data if it is there
    python bench/features.py --quality    # the figure of docs/features.md

A ratio is the peer's time over fliprank's, best of several, warm, in the same run.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import polars as pl
from timing import Row, best, show, timed

from fliprank.arrays import Floats
from fliprank.data.builtin import collection
from fliprank.data.candidates import Candidates
from fliprank.text.analysis import Analyzer
from fliprank.text.features.features import feature_rows, features
from fliprank.text.index import Index

CRAWL = Path(__file__).parents[2] / "shared" / "data" / "text" / "stanford-crawl.jsonl.gz"
QUERIES, DEPTH = 400, 250
FIELDS = ["url", "title", "headings", "text"]


def first_words(index: Index) -> dict[str, str]:
    """Queries of two to five terms, drawn from the first words of documents."""
    rng = np.random.default_rng(0)
    field = index.fields.index("text")
    asked: dict[str, str] = {}
    while len(asked) < QUERIES:
        d, size = rng.integers(index.documents), rng.integers(2, 6)
        first, end = index.token_offsets[field, d : d + 2]
        words = [index.terms[int(t)] for t in index.tokens[first : min(first + size, end)]]
        if len(words) == size:
            asked[f"q{len(asked)}"] = " ".join(words)
    return asked


def pages() -> pl.DataFrame | Path:
    """The crawl, whose pages are one text each: the first words serve as title and headings, the url as words."""
    if not CRAWL.exists():
        return collection()
    with gzip.open(CRAWL) as file:
        frame = pl.read_ndjson(file.read())
    parts = pl.col("text").str.extract_groups(r"^((?:\S+\s+){0,6})((?:\S+\s+){0,15})").struct.rename_fields(FIELDS[1:3])
    return frame.with_columns(parts.alias("parts"), pl.col("url").str.replace_all(r"[/.]", " ")).unnest("parts")


def plain_bm25(
    texts: list[list[str]], questions: list[list[str]], idf: dict[str, float], average: float
) -> list[float]:
    """One feature of these rows as one would write it in Python, given terms and idf."""
    out = []
    for text, question in zip(texts, questions, strict=True):
        tf, flat = Counter(text), 1.2 * (0.25 + 0.75 * len(text) / average)
        out.append(sum(idf[t] * tf[t] / (tf[t] + flat) for t in question if tf[t]))
    return out


def in_python(index: Index, asked: dict[str, str], rows: Candidates, expected: Floats) -> float:
    """Seconds per row of `plain_bm25` over the longest field, after checking that it agrees."""
    field, terms = index.fields.index("text"), index.terms.tolist()
    assert rows.docids is not None
    number = {docid: d for d, docid in enumerate(index.docids.tolist())}
    ends = [index.token_offsets[field, number[d] : number[d] + 2] for d in rows.docids]
    texts = [[terms[t] for t in index.tokens[a:b]] for a, b in ends]
    questions = [asked[qid].split() for qid in np.repeat(rows.qids.tolist(), rows.sizes)]
    df = {t: index.field_df[terms.index(t), field] for t in {t for question in questions for t in question}}
    idf = {t: log(1 + (len(index) - n + 0.5) / (n + 0.5)) for t, n in df.items()}
    spent, found = timed(lambda: plain_bm25(texts, questions, idf, index.field_tokens[field] / len(index)), 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    return spent / len(rows)


def rows() -> list[Row]:
    """(what, peer, ratio, target) for each peer."""
    index = Index.build(pages(), fields=FIELDS, analyzer=Analyzer(stemmer=None))
    asked = first_words(index)
    pool, found = timed(lambda: index.candidates(asked, depth=DEPTH), 3)
    half, some = found.select(np.arange(QUERIES // 2)), found.select(np.arange(20))
    small = features(index, some, asked)
    assert small.features is not None
    python = in_python(index, asked, some, small.features[:, small.feature_names.index("text.bm25")].astype(np.float64))
    whole, part = best(lambda: features(index, found, asked), 3), best(lambda: features(index, half, asked), 3)
    width, count = len(small.feature_names), len(found)
    print(f"{width} features of {count:,} rows: {whole:.2f} s", file=sys.stderr)
    size = f"{width} features of {count:,} rows"
    return [
        Row(
            size,
            "one of them, BM25 of the text, in plain Python, given terms and idf",
            python * count / whole,
            ">= 1",
        ),
        Row(size, "finding the rows: BM25 over the whole index", pool / whole, "-"),
        Row(size, f"its own time for {len(half):,} rows (quotient)", whole / part, "<= 2"),
        Row(size, "million values per second (quotient)", count * width / whole / 1e6, ">= 10"),
    ]


def quality() -> None:
    """nDCG on the test queries of the built-in collection, all chosen on its training queries."""
    from fliprank.experiment.training import train
    from fliprank.measures import parse_measure
    from fliprank.models import Linear

    folder, measure = collection(), parse_measure("nDCG(dcg='exp-log2')@10")
    index = Index.build(folder)
    learn, test = (
        feature_rows(index, folder, folder / "qrels" / f"{part}.tsv", depth=50) for part in ("train", "test")
    )
    assert test.features is not None
    fit = train(Linear(), *learn.split(0.7, 0.3), measure=measure)
    bm25 = test.features[:, test.feature_names.index("all.bm25")].astype(np.float64)
    plain, learned = (measure.aggregate(measure.per_query(s, test)) for s in (bm25, fit.model.score(test)))
    print(
        f"{measure} on the {test.queries} test queries is {plain:.3f} for BM25 of all fields, and {learned:.3f} for a "
        f"linear model of {len(test.feature_names)} features, trained and chosen on the {learn.queries} others."
    )


if __name__ == "__main__":
    quality() if "--quality" in sys.argv else show(rows())
