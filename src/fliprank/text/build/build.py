"""From a source of documents to an index in memory: what `Index.build` does.

A thread reads and parses ahead while workers cut the batch before into words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from queue import Queue
from threading import Event, Thread
from typing import Any

import numpy as np
import polars as pl

from fliprank.arrays import Ints
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, match
from fliprank.errors import InputError, UsageError
from fliprank.text.analysis import Analyzer
from fliprank.text.build.builder import Builder, pack
from fliprank.text.build.documents import Batch, Source, read_documents
from fliprank.text.index import Index, Progress
from fliprank.text.build.inversion import invert
from fliprank.text.build.links import pagerank, read_links

__all__ = ["make"]

ANCHOR, PAGERANK = "anchor", "pagerank"
_END = object()


def make(
    source: Source,
    fields: Sequence[str] | None,
    analyzer: Analyzer,
    anchors: StrPath | None,
    links: StrPath | None,
    positions: bool,
    progress: Progress,
) -> Index:
    """Read, cut, unite, invert."""
    if isinstance(fields, str) or (fields is not None and (not fields or len(set(fields)) < len(fields))):
        raise UsageError(f"fields must be a list of different names, not {fields!r}")
    builder = Builder(analyzer, fields)
    try:
        with closing(_ahead(read_documents(source))) as batches:
            for batch in batches:
                builder.add(batch)
                progress("reading", builder.documents)
        if builder.documents == 0:
            raise InputError("no documents")
        docids = builder.docids()
        notes = [*builder.notes(), *_follow_links(builder, docids, anchors, links)]
    finally:
        builder.counter.close()
    progress("stemming", builder.documents)
    names = builder.fields()
    terms, maps = builder.terms()
    tokens, offsets = builder.streams(names, maps)
    progress("inverting", builder.documents)
    postings = invert(tokens, offsets, len(terms), builder.workers)
    lengths = np.ascontiguousarray(np.diff(offsets).T, np.int32)
    rank = np.empty(len(docids), np.int32)
    rank[pl.Series(docids.tolist(), dtype=pl.String).arg_sort().to_numpy()] = np.arange(len(docids), dtype=np.int32)
    if not positions:
        tokens, offsets = np.empty(0, np.int32), np.empty((0, 0), np.int64)
    p = postings
    arrays = (p.starts, p.docs, p.tf, p.field_df, p.cf, lengths, tokens, offsets)
    return Index(docids, rank, terms, names, *arrays, analyzer, builder.columns(), tuple(notes))


def _ahead(items: Iterator[Batch], depth: int = 2) -> Generator[Batch, None, None]:
    """The same items, made by a thread that is at most `depth` of them ahead."""
    queue: Queue[Any] = Queue(depth)
    stop = Event()

    def work() -> None:
        try:
            for item in items:
                queue.put(item)
                if stop.is_set():
                    return
            queue.put(_END)
        except BaseException as error:
            queue.put(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        while thread.is_alive():  # it may wait for room
            while not queue.empty():
                queue.get_nowait()
            thread.join(0.05)


def _follow_links(builder: Builder, docids: Ids, anchors: StrPath | None, links: StrPath | None) -> list[str]:
    """Add link text as a field and PageRank as a column, if there are links; notes on what leads nowhere."""
    own = pl.concat(builder.links) if builder.links else pl.DataFrame(schema={"target": pl.String})
    files = [] if anchors is None else [read_links(anchors)]
    files += [] if links is None else [read_links(links, ("source", "target"))]
    given = [frame for frame in (own, *files) if len(frame)]
    notes: list[str] = []
    sources, targets, texts = [], [], []
    for frame in given:
        target = _numbers(frame["target"], builder, docids)
        if (lost := int((target < 0).sum())) and lost < len(target):
            notes.append(f"{lost:,} of {len(target):,} links lead to documents that are not in the index")
        elif lost:
            raise InputError("no link leads to a document of the index", hint="targets are ids or urls of documents")
        if "source" in frame.columns:
            source = frame["source"]
            start = source.to_numpy() if source.dtype.is_integer() else _numbers(source, builder, docids)
            known = (target >= 0) & (start >= 0)
            sources.append(start[known])
            targets.append(target[known])
        if "text" in frame.columns:
            texts.append(
                pl.DataFrame({"target": target, "text": frame["text"]}).filter(pl.col("target") >= 0).drop_nulls()
            )
    if texts and ANCHOR not in builder.chunks and (builder.wanted is None or ANCHOR in builder.wanted):
        joined = pl.concat(texts).group_by("target", maintain_order=True).agg(pl.col("text").str.join("\n"))
        column = pl.Series([None], dtype=pl.String).extend_constant(None, len(docids) - 1)
        column = column.scatter(joined["target"], joined["text"]) if len(joined) else column
        builder.add_texts(ANCHOR, column)
    if sources and PAGERANK not in builder.numbers:
        # Times the number of documents: a page of average standing has 1, in collections of any size.
        rank = pagerank(np.concatenate(sources), np.concatenate(targets), len(docids)) * len(docids)
        builder.numbers[PAGERANK] = [(0, rank)]
    return notes


def _numbers(names: pl.Series, builder: Builder, docids: Ids) -> Ints:
    """The document of each name: by its id, or else by its url; -1 where there is none."""
    number = _lookup(names, docids)
    if (number < 0).any() and any(urls.null_count() < len(urls) for urls in builder.urls):
        urls = Ids(*pack(pl.concat(builder.urls)))
        number = np.where((number < 0) & (names.fill_null("") != "").to_numpy(), _lookup(names, urls), number)
    return number


def _lookup(names: pl.Series, among: Ids) -> Ints:
    ids = Ids(*pack(names))
    return match(ids, np.array([0, len(ids)]), among, np.array([0, len(among)]), np.zeros(1, np.int64))
