"""Collects what an index keeps of its documents: batch by batch first, then all together.

Worker threads with a vocabulary each cut the texts of a batch into words; only word numbers are kept. At the end the
vocabularies are united and the distinct words are stemmed, which turns word numbers into term numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numba
import numpy as np
import polars as pl

from fliprank.arrays import Floats, Int32s
from fliprank.data.ids import Ids
from fliprank.errors import InputError
from fliprank.text.analysis import Analyzer
from fliprank.text.build.dates import DAYS, day_numbers
from fliprank.text.build.default_fields import NUMBERS, WITH_DATES, is_text, kind_of, notes_on_left_out
from fliprank.text.build.documents import IDS, Batch, line_of
from fliprank.text.build.inversion import Stream
from fliprank.text.build.links import url_columns
from fliprank.text.words import Chunk, WordCounter, pack

__all__ = ["Collector"]

MOST_WORKERS = 8
"""Each worker has its own vocabulary and counts; more workers cost memory and gain little."""


@dataclass(eq=False)
class Collector:
    """Takes batches of documents (`add`) and further texts of all documents (`add_texts`), then gives arrays.

    `wanted` are the fields that the user named. Chunks and numbers are kept with the number of their first document.
    """

    analyzer: Analyzer
    wanted: Sequence[str] | None = None
    documents: int = 0
    ids: list[Ids] = field(default_factory=list)
    chunks: dict[str, list[tuple[int, Chunk]]] = field(default_factory=dict)
    numbers: dict[str, list[tuple[int, Floats]]] = field(default_factory=dict)
    links: list[pl.DataFrame] = field(default_factory=list)
    urls: list[pl.Series] = field(default_factory=list)
    origins: list[tuple[Path | None, int, int]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.workers = min(numba.get_num_threads(), MOST_WORKERS)
        self.counter = WordCounter(self.analyzer, self.workers)

    def add(self, batch: Batch) -> None:
        """Cut the texts of these documents into words; keep their numbers and links."""
        first, size = self.documents, len(batch.ids)
        self.ids.append(pack(batch.ids))
        self.origins.append((batch.path, batch.first, first))
        texts, numbers = self._fields_and_columns(batch)
        for name, column in texts.items():
            self.add_texts(name, column, first)
        if (urls := batch.texts.get("url")) is not None:
            numbers |= url_columns(urls)
        self.urls.append(pl.Series([None] * size, dtype=pl.String) if urls is None else urls)
        for name, column in numbers.items():
            self.numbers.setdefault(name, []).append((first, column.cast(pl.Float64).fill_null(np.nan).to_numpy()))
        if batch.links is not None:
            source = pl.DataFrame({"source": np.arange(first, first + size), "link": batch.links})
            self.links.append(_link_rows(source.explode("link").drop_nulls()))
        self.documents += size

    def _fields_and_columns(self, batch: Batch) -> tuple[dict[str, pl.Series], dict[str, pl.Series]]:
        """The texts that are fields, and the numbers that are columns; what was text in an earlier batch stays text."""
        self.seen |= batch.texts.keys() | batch.numbers.keys()
        self.others |= set(batch.others)
        numbers = {name: column for name, column in batch.numbers.items() if name not in IDS}
        if self.wanted is not None:
            both = {**batch.numbers, **batch.texts}
            texts = {name: both[name].cast(pl.String) for name in self.wanted if name in both}
            others = {name: column for name, column in batch.texts.items() if name not in texts}
            parsed = self._by_default(others)[1]
            numbers |= {name: column for name, column in parsed.items() if name.endswith(DAYS) or not batch.typed}
        else:
            texts, parsed = self._by_default(batch.texts)
            texts |= {name: c.cast(pl.String) for name, c in batch.numbers.items() if name in self.chunks}
            numbers |= {name: column for name, column in parsed.items() if name not in numbers}
        numbers = {name: column for name, column in numbers.items() if name not in texts}
        if clash := next((name for name in texts if name in self.numbers), None):
            message = f"{clash!r} was a number so far, and is text from document {batch.first + 1} or later on"
            raise InputError(message, path=batch.path, hint=f"name the fields: with {clash!r} among them it is text")
        return texts, numbers

    def _by_default(self, columns: dict[str, pl.Series]) -> tuple[dict[str, pl.Series], dict[str, pl.Series]]:
        """Texts, and numbers and dates that came as strings: judged by what a column held in its first batch."""
        texts, numbers = {}, {}
        for name, column in columns.items():
            if name not in self.kinds:
                self.kinds[name] = kind_of(name, column)
            kind = self.kinds[name]
            if is_text(kind):
                texts[name] = column
            if kind == NUMBERS:
                numbers[name] = column.str.strip_chars().cast(pl.Float64, strict=False)
            elif kind in WITH_DATES:
                numbers[name + DAYS] = day_numbers(column, kind)
        return texts, numbers

    def notes(self) -> list[str]:
        """Notes on what was left out."""
        kinds = self.kinds if self.wanted is None else {}
        return notes_on_left_out(kinds, self.others - self.seen)

    def add_texts(self, name: str, texts: pl.Series, first: int = 0) -> None:
        """Cut the texts of the field `name` of the documents from `first` on; null is empty."""
        packed = pack(texts)
        if self.analyzer.odd(packed.buffer.tobytes()):
            packed = pack(pl.Series(self.analyzer.plain(texts.fill_null("").to_list()), dtype=pl.String))
        kept = self.chunks.setdefault(name, [])
        for chunk in self.counter.count(packed):
            kept.append((first, chunk))
            first += len(chunk.counts)

    def docids(self) -> Ids:
        """The ids of all documents; raises if one occurs twice."""
        ids = Ids.concat(self.ids)
        self.ids = [ids]
        first_one = pl.Series(ids.tolist()).is_first_distinct()
        if not first_one.all():
            number = int((~first_one).arg_max() or 0)
            path, start, base = next(origin for origin in reversed(self.origins) if origin[2] <= number)
            line = None if path is None else line_of(path, start + number - base)
            where = "" if line else f" (document {start + number - base + 1})"
            raise InputError(f"the id {ids[number]!r} occurs twice{where}", path=path, line=line)
        return ids

    def fields(self) -> tuple[str, ...]:
        """The fields, in order; raises if no document has a field that was asked for."""
        if self.wanted is not None:
            if absent := [name for name in self.wanted if name not in self.chunks]:
                have = ", ".join(sorted(self.seen)) or "none"
                raise InputError(f"no document has the field {absent[0]!r}", hint=f"there are: {have}")
            return tuple(self.wanted)
        if not self.chunks:
            raise InputError("the documents have no text")
        return tuple(self.chunks)

    def terms(self) -> tuple[Ids, list[Int32s]]:
        """All terms, sorted by their bytes; for each worker, the term number of each entry of its vocabulary."""
        words, maps = self.counter.unite()
        self.counter.close()
        stems = pl.Series(self.analyzer.stems(words.tolist()), dtype=pl.String)
        terms = stems.unique().sort()
        numbered = pl.DataFrame({"stem": terms, "number": np.arange(len(terms), dtype=np.int32)})
        each = pl.DataFrame({"stem": stems}).join(numbered, on="stem", how="left", maintain_order="left")
        number = each["number"].to_numpy()
        return _used(pack(terms), [number[each] for each in maps], self.counter.stop)

    def stream(self, fields: Sequence[str], maps: Sequence[Int32s]) -> Stream:
        """The terms of all documents, field by field; empties the chunks, to save memory."""
        lengths = np.zeros((len(fields), self.documents), np.int64)
        for f, name in enumerate(fields):
            for first, chunk in self.chunks[name]:
                lengths[f, first : first + len(chunk.counts)] = chunk.counts
        ends = np.cumsum(lengths, dtype=np.int64).reshape(lengths.shape)
        offsets = np.concatenate([(ends - lengths)[:, :1], ends], axis=1)
        tokens = np.empty(int(ends[-1, -1]) if self.documents else 0, np.int32)
        for f, name in enumerate(fields):
            kept = self.chunks[name]
            while kept:
                first, chunk = kept.pop()
                at = offsets[f, first]
                np.take(maps[chunk.worker], chunk.stream, out=tokens[at : at + len(chunk.stream)], mode="clip")
        return Stream(tokens, offsets)

    def columns(self) -> dict[str, Floats]:
        """The numbers of all documents per column; NaN where a document has none."""
        out = {}
        for name, parts in self.numbers.items():
            out[name] = np.full(self.documents, np.nan)
            for first, values in parts:
                out[name][first : first + len(values)] = values
        return out


def _used(terms: Ids, maps: list[Int32s], stop: int) -> tuple[Ids, list[Int32s]]:
    """Without the terms that come from stop words only; stop words are the first entries of each vocabulary."""
    used = np.zeros(len(terms), bool)
    for each in maps:
        used[each[stop:]] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    return terms.take(np.flatnonzero(used)).compact(), [number[each] for each in maps]


def _link_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Source, target and text of exploded links; links without a target are dropped."""
    parts = rows["link"].struct.unnest() if len(rows) else pl.DataFrame()
    empty = pl.Series([None] * len(rows), dtype=pl.String)
    target, text = (_as_text(parts[n], n) if n in parts.columns else empty for n in ("target", "text"))
    return pl.DataFrame({"source": rows["source"], "target": target, "text": text}).drop_nulls("target")


def _as_text(column: pl.Series, name: str) -> pl.Series:
    """The targets or texts of links as strings; a text may be a list of strings, as that of a field may."""
    kind = column.dtype
    if name == "text" and isinstance(kind, pl.List) and kind.inner in (pl.String, pl.Null):
        return column.cast(pl.List(pl.String)).list.join("\n", ignore_nulls=True)
    if kind.is_nested():
        raise InputError(f"the {name} of a link is {'a list' if isinstance(kind, pl.List) else 'an object'}, not text")
    return column.cast(pl.String)
