"""From a source of documents to the arrays of an index.

A thread reads and parses ahead while workers cut the previous batch into words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import polars as pl

from fliprank.arrays import Ints
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, locate
from fliprank.errors import InputError, UsageError
from fliprank.forks import check_not_forked
from fliprank.text.analysis import Analyzer
from fliprank.text.build.collector import Collector
from fliprank.text.build.documents import Batch, Source, read_documents
from fliprank.text.build.inversion import Stream, invert
from fliprank.text.build.links import pagerank, read_links
from fliprank.text.index_arrays import IndexArrays, Progress
from fliprank.text.words import pack

__all__ = ["build_arrays"]

ANCHOR, PAGERANK = "anchor", "pagerank"


def build_arrays(
    source: Source,
    fields: Sequence[str] | None,
    analyzer: Analyzer,
    *,
    anchors: StrPath | None = None,
    links: StrPath | None = None,
    positions: bool = True,
    progress: Progress | None = None,
) -> IndexArrays:
    """Read documents, cut them into words, unite the vocabularies, stem, invert; options as of `Index.build`."""
    check_not_forked()
    if isinstance(fields, str) or (fields is not None and (not fields or len(set(fields)) < len(fields))):
        raise UsageError(f"fields must be a list of different names, not {fields!r}")
    report, collector = progress or (lambda step, done: None), Collector(analyzer, fields)
    try:
        with closing(_ahead(read_documents(source))) as batches:
            for batch in batches:
                collector.add(batch)
                report("reading", collector.documents)
        if collector.documents == 0:
            raise InputError("no documents")
        docids = collector.docids()
        notes = [*collector.notes(), *_follow_links(collector, docids, anchors, links)]
    finally:
        collector.counter.close()
    report("stemming", collector.documents)
    names = collector.fields()
    terms, maps = collector.terms()
    stream = collector.stream(names, maps)
    report("inverting", collector.documents)
    inverted = invert(stream, len(terms), collector.workers)
    lengths = np.ascontiguousarray(np.diff(stream.offsets).T, np.int32)
    rank = np.empty(len(docids), np.int32)
    rank[pl.Series(docids.tolist(), dtype=pl.String).arg_sort().to_numpy()] = np.arange(len(docids), dtype=np.int32)
    if not positions:
        stream = Stream(np.empty(0, np.int32), np.empty((0, 0), np.int64))
    arrays = (docids, rank, terms, names, *inverted, lengths, *stream)
    return IndexArrays(*arrays, analyzer, collector.columns(), tuple(notes))


def _ahead(items: Iterator[Batch]) -> Generator[Batch, None, None]:
    """The same items, each made by a thread while the one before it is used."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item


def _follow_links(collector: Collector, docids: Ids, anchors: StrPath | None, links: StrPath | None) -> list[str]:
    """Add link text as a field and PageRank as a column, if there are links; returns notes on dead links."""
    own = pl.concat(collector.links) if collector.links else pl.DataFrame(schema={"target": pl.String})
    files = [] if anchors is None else [read_links(anchors)]
    files += [] if links is None else [read_links(links, ("source", "target"))]
    given = [frame for frame in (own, *files) if len(frame)]
    notes: list[str] = []
    sources, targets, texts = [], [], []
    for frame in given:
        target = _numbers(frame["target"], collector, docids)
        if (unknown := int((target < 0).sum())) and unknown == len(target):
            raise InputError("no link leads to a document of the index", hint="targets are ids or urls of documents")
        if unknown:
            notes.append(f"{unknown:,} of {len(target):,} links lead to documents that are not in the index")
        if "source" in frame.columns:
            source = frame["source"]
            start = source.to_numpy() if source.dtype.is_integer() else _numbers(source, collector, docids)
            known = (target >= 0) & (start >= 0)
            sources.append(start[known])
            targets.append(target[known])
        if "text" in frame.columns:
            texts.append(
                pl.DataFrame({"target": target, "text": frame["text"]}).filter(pl.col("target") >= 0).drop_nulls()
            )
    if texts and ANCHOR not in collector.chunks and (collector.wanted is None or ANCHOR in collector.wanted):
        joined = pl.concat(texts).group_by("target", maintain_order=True).agg(pl.col("text").str.join("\n"))
        column = pl.Series([None], dtype=pl.String).extend_constant(None, len(docids) - 1)
        column = column.scatter(joined["target"], joined["text"]) if len(joined) else column
        collector.add_texts(ANCHOR, column)
    if sources and PAGERANK not in collector.numbers:
        # Times the number of documents: the average is 1, in collections of any size.
        rank = pagerank(np.concatenate(sources), np.concatenate(targets), len(docids)) * len(docids)
        collector.numbers[PAGERANK] = [(0, rank)]
    return notes


def _numbers(names: pl.Series, collector: Collector, docids: Ids) -> Ints:
    """The number of the document with each name, an id or else a url; -1 if there is none."""
    packed = pack(names)
    number = locate(packed, docids)
    if (number < 0).any() and any(urls.null_count() < len(urls) for urls in collector.urls):
        by_url = locate(packed, pack(pl.concat(collector.urls)))
        number = np.where((number < 0) & (packed.length > 0), by_url, number)
    return number
