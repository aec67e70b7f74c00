"""Indexing and retrieval: 98,998 real pages (161 MB of text) with stemming and stop words, beside bm25s and tantivy.

    python bench/indexing.py             # ratios in one process, all warm, the least of several tries in turn
    python bench/indexing.py --million   # time and memory per document for 100,000 to 1,000,000 documents

All start from the same lists of ids and texts in memory. Growth is measured on the crawl repeated with new ids
and shuffled words, from Parquet to an index in a file, in one process per size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from timing import Row, show, timed

from fliprank.data.files import read_bytes
from fliprank.text.index import Index

CRAWL = Path(__file__).parents[2] / "shared" / "data" / "text" / "stanford-crawl.jsonl.gz"
QUERIES, DEPTH = 1000, 1000
SIZES = (100_000, 300_000)
MILLION = (100_000, 300_000, 1_000_000)

CHILD = """
import json, sys, time
from fliprank.text.index import Index
documents, path, queries = sys.argv[1:]
Index.build([{"_id": "warm", "text": "up"}]).candidates({"q": "up"})
start = time.perf_counter()
index = Index.build(documents, path, fields=["text"])
built = time.perf_counter() - start
start = time.perf_counter()
rows = index.candidates(json.loads(queries), depth=2500)
found = time.perf_counter() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024  # ru_maxrss would begin with the parent's
print(json.dumps([len(index), built, found, len(rows), peak]))
"""


def crawl() -> pl.DataFrame:
    return pl.read_ndjson(read_bytes(CRAWL).tobytes(), infer_schema_length=None).select("_id", "text")


def three_words(texts: list[str], queries: int, seed: int = 1) -> list[str]:
    """Queries of three consecutive words, each from one page."""
    rng, out = np.random.default_rng(seed), []
    for d in rng.integers(0, len(texts), queries).tolist():
        words = texts[d].split() or ["stanford"]
        at = int(rng.integers(0, max(len(words) - 2, 1)))
        out.append(" ".join(words[at : at + 3]))
    return out


def with_bm25s(texts: list[str]) -> object:
    import bm25s
    import Stemmer

    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    index.index(tokens, show_progress=False)
    return index


def with_tantivy(ids: list[str], texts: list[str]) -> object:
    import tantivy

    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    analyzer = analyzer.filter(tantivy.Filter.stopword("english")).filter(tantivy.Filter.stemmer("english"))
    schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw")
    index = tantivy.Index(schema.add_text_field("text", tokenizer_name="stems").build())
    index.register_tokenizer("stems", analyzer.build())
    writer = index.writer(300_000_000, 2)
    for docid, text in zip(ids, texts, strict=True):
        writer.add_document(tantivy.Document(id=docid, text=text))
    writer.commit()
    writer.wait_merging_threads()
    return index


def in_turn(tries: int, *works: Callable[[], object]) -> list[float]:
    """The least time of each, tried in turn, so that other work on the machine slows all of them."""
    return np.min([[timed(work, 1)[0] for work in works] for _ in range(tries)], axis=0).tolist()  # type: ignore[no-any-return]


def rows() -> list[Row]:
    import bm25s
    import Stemmer

    frame = crawl()
    ids, texts = frame["_id"].to_list(), frame["text"].to_list()
    Index.build([{"_id": "warm", "text": "up"}]).search({"q": "up"})

    def ours() -> Index:
        return Index.build(pl.DataFrame({"_id": ids, "text": texts}))

    own, peer, other = in_turn(2, ours, lambda: with_bm25s(texts), lambda: with_tantivy(ids, texts))
    what = f"index {len(ids):,} pages, stems, stop words"
    out = [
        Row(what, "bm25s, PyStemmer", peer / own, "at least 3"),
        Row(what, "tantivy, 2 threads", other / own, "near 1"),
    ]
    index, theirs = ours(), with_bm25s(texts)
    asked = three_words(texts, QUERIES)
    queries = {str(i): text for i, text in enumerate(asked)}
    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "show_progress": False}

    def search_theirs() -> object:
        tokens = bm25s.tokenize(asked, **options)
        return theirs.retrieve(tokens, k=DEPTH, show_progress=False)  # type: ignore[attr-defined]

    search_theirs()
    index.search(queries, depth=DEPTH)
    own, peer = in_turn(7, lambda: index.search(queries, depth=DEPTH), search_theirs)
    out.append(Row(f"BM25, {QUERIES:,} queries, top {DEPTH:,}", "bm25s, numba backend", peer / own, "at least 1"))
    small, large = growth(frame, SIZES)
    out.append(Row("time per document, 300,000 documents", "100,000 documents", large[1] / small[1] / 3, "about 1"))
    out.append(Row("peak memory, 300,000 documents", "100,000 documents", large[4] / small[4], "at most 3"))
    return out


def growth(frame: pl.DataFrame, sizes: tuple[int, ...]) -> list[list[float]]:
    """For each size: documents, seconds to build, seconds to find candidates, their rows, peak memory in bytes."""
    queries = {str(i): text for i, text in enumerate(three_words(frame["text"].to_list(), 100))}
    out = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            documents = Path(name, "documents.parquet")
            _write(frame, size, documents)
            child = [sys.executable, "-c", CHILD, str(documents), str(Path(name, "index")), json.dumps(queries)]
            out.append(json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout))
    return out


def _write(frame: pl.DataFrame, size: int, path: Path) -> None:
    """The crawl repeated, with new ids and words in another order."""
    parts, words = [], pl.col("text").str.split(" ")
    for copy in range(-(-size // len(frame))):
        shuffled = words.list.sample(fraction=1.0, shuffle=True, seed=copy).list.join(" ")
        parts.append(frame.lazy().select(pl.format("{}-{}", pl.lit(copy), "_id").alias("_id"), shuffled.alias("text")))
    pl.concat(parts).head(size).sink_parquet(path, compression="lz4", row_group_size=50_000)


def million() -> None:
    print("| documents | seconds to index | µs per document | s for candidates, 100 queries | rows | peak memory, GB |")
    print("|---|---|---|---|---|---|")
    for documents, built, found, count, peak in growth(crawl(), MILLION):
        cells = (
            f"{documents:,} | {built:.1f} | {built / documents * 1e6:.0f} | {found:.2f} | {count:,} | {peak / 1e9:.2f}"
        )
        print(f"| {cells} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true")
    million() if parser.parse_args().million else show(rows())
