"""Documents of any kind, in batches of columns: JSON lines, CSV, TSV, BEIR folders, Parquet, TREC, frames, mappings.

The kind of a file is detected from its content. Errors name file and line: if polars can't parse a batch of JSON lines,
they are read again one by one to find the broken one. Text (also lists of strings, and text in a nested object, as
`metadata.author`) becomes fields; numbers and dates become columns of the documents; `links` are kept for `links.py`.

>>> batch = next(read_documents([{"_id": 7, "title": "Red shoes", "price": 9.5}]))
>>> batch.ids.to_list(), sorted(batch.texts), batch.numbers["price"].to_list()
(['7'], ['title'], [9.5])
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from fliprank.data.files import StrPath, open_bytes, read_chunks, resolve
from fliprank.data.json_files import strict_json
from fliprank.data.json_limits import check_json_lines
from fliprank.data.tables import header_of, open_table
from fliprank.errors import InputError, printable
from fliprank.text.build.trec_documents import read_trec

__all__ = ["IDS", "Batch", "Source", "line_of", "read_documents"]

IDS = ("_id", "id", "docid", "docno", "doc_id")
"""Names that the id of a document may have."""
BATCH = 20_000
DEEPEST = 8
"""The depth to which nested objects are flattened."""

Source = StrPath | Sequence[StrPath] | pl.DataFrame | Iterable[Mapping[str, Any]]
_KINDS = {str: "text", int: "a number", float: "a number", bool: "true or false", list: "a list", dict: "an object"}
_HINT = 'a line is a JSON object such as {"_id": "d1", "title": "...", "text": "..."}'


@dataclass(frozen=True, eq=False)
class Batch:
    """Some documents: ids, text per field, numbers per column, lists of links; `first` counts from 0 in its file.

    `others` are the names of values that are neither text nor numbers nor links. In a table all cells are strings: it
    is not `typed`, and what looks like a number may be one.
    """

    ids: pl.Series
    texts: dict[str, pl.Series]
    numbers: dict[str, pl.Series]
    links: pl.Series | None
    path: Path | None
    first: int
    others: tuple[str, ...] = ()
    typed: bool = True


def read_documents(source: Source) -> Iterator[Batch]:
    """The documents of `source` in batches: a file, a folder in BEIR's layout, several of them, a frame, mappings."""
    if isinstance(source, pl.DataFrame):
        yield from _numbered(source.iter_slices(BATCH), None)
    elif isinstance(source, str | Path) or hasattr(source, "__fspath__"):
        yield from _read_file(Path(cast(StrPath, source)))
    else:
        rows = iter(cast(Iterable[Any], source))
        first = next(rows, None)
        if isinstance(first, Mapping):
            yield from _numbered(_frames(first, rows), None)
        else:
            for path in [] if first is None else [first, *rows]:
                yield from _read_file(Path(cast(StrPath, path)))


def line_of(path: Path, number: int) -> int | None:
    """The line (from 1) of the document `number` (from 0) of a file of JSON lines or a table; None for other files."""
    kind = _kind(path)
    if kind == "table":
        return next(islice(open_table(path, _has_id).records(), number, None))[0]
    if kind != "json":
        return None
    line = 0
    for chunk in read_chunks(path):
        for text in chunk.split(b"\n")[:-1]:
            line += 1
            number -= bool(text.strip())
            if number < 0:
                return line
    return None


def _read_file(given: Path) -> Iterator[Batch]:
    path = resolve(given / "corpus.jsonl" if given.is_dir() else given)
    kind = _kind(path)
    kinds = {"json": _json_frames, "trec": _trec_frames, "parquet": _parquet_frames, "table": _table_frames}
    for batch in _numbered(kinds[kind](path), path):
        yield replace(batch, typed=kind != "table")


def _kind(path: Path) -> str:
    with open_bytes(path) as file:
        given = file.read(1 << 16)
    first, start = given.partition(b"\n")[0], given.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"{"):
        return "json"
    if start[:5].upper().startswith((b"<DOC>", b"<DOC ")):
        return "trec"
    if header_of(first, _has_id) is not None:
        return "table"
    if re.search(r"\.[ct]sv(\.gz)?$", path.name, re.IGNORECASE):
        line = printable(first.decode(errors="replace").strip())
        hint = f"one of the columns is called {', '.join(IDS[:-1])} or {IDS[-1]}; the first line is {line[:200]!r}"
        raise InputError("no header line with an id", path=path, line=1, hint=hint)
    hint = "JSON lines, CSV or TSV with a header, Parquet, or TREC's <DOC><DOCNO>... are detected from the content"
    raise InputError("not a file of documents" if start else "the file is empty", path=path, hint=hint)


def _json_frames(path: Path) -> Iterator[pl.DataFrame]:
    line = 1
    for chunk in read_chunks(path):
        lines, data = chunk.count(b"\n"), chunk.removeprefix(b"\xef\xbb\xbf") if line == 1 else chunk
        if not data.isspace():
            check_json_lines(data, path, line)
            try:
                # Polars reads all lines to learn the fields: others it would drop silently.
                frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                _raise_at_line(path, data, line)
                raise InputError(f"can't be read as JSON lines from line {line} on: {error}", path=path) from error
            if _bad_ids(frame):
                _raise_at_line(path, data, line)
            yield frame
        line += lines


def _raise_at_line(path: Path, data: bytes, line: int) -> None:
    """Raise at the first line that is broken, has no id, or has a field of another kind than earlier lines."""
    kinds: dict[str, type] = {}
    clash: tuple[int, str] | None = None
    for text in data.split(b"\n"):
        if text.strip():
            try:
                record = strict_json(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"broken JSON: {error}", path=path, line=line) from error
            if not isinstance(record, dict):
                raise InputError("a JSON object was expected", path=path, line=line, hint=_HINT)
            values = [record[name] for name in IDS if name in record]
            if not values or isinstance(values[0], bool) or not isinstance(values[0], str | int) or values[0] == "":
                message = "no _id, or one that is neither a string nor a whole number"
                raise InputError(message, path=path, line=line, hint=_HINT)
            for key, value in record.items():
                kind, before = type(value), kinds.setdefault(key, type(value)) if value is not None else type(value)
                if kind is not before and {kind, before} & {dict, list} and clash is None:
                    clash = line, f"{key!r} is {_KINDS[kind]} here, and {_KINDS[before]} before"
        line += 1
    if clash is not None:
        raise InputError(clash[1], path=path, line=clash[0], hint="a field must be of one kind in all documents")


def _bad_ids(frame: pl.DataFrame) -> bool:
    name = next((name for name in IDS if name in frame.columns), None)
    if name is None:
        return True
    ids = frame[name]
    return (
        not (ids.dtype == pl.String or ids.dtype.is_integer())
        or ids.has_nulls()
        or bool((ids.cast(pl.String) == "").any())
    )


def _has_id(header: Sequence[str]) -> bool:
    return not set(IDS).isdisjoint(header)


def _table_frames(path: Path) -> Iterator[pl.DataFrame]:
    """Cells are strings; empty ones are null. Columns without a name are left out."""
    table = open_table(path, _has_id)
    records, key = table.records(), next(table.header.index(name) for name in IDS if name in table.header)
    while some := list(islice(records, BATCH)):
        if bad := next((line for line, cells in some if not cells[key].strip()), None):
            raise InputError(f"no {table.header[key]}", path=path, line=bad)
        columns = zip(table.header, zip(*(cells for _, cells in some), strict=True), strict=True)
        texts = {name: pl.Series(name, cells, pl.String) for name, cells in columns if name}
        yield pl.DataFrame(texts).with_columns(pl.all().replace("", None))


def _trec_frames(path: Path) -> Iterator[pl.DataFrame]:
    documents = read_trec(path)
    while rows := list(islice(documents, BATCH)):
        yield pl.DataFrame(rows, infer_schema_length=None)


def _parquet_frames(path: Path) -> Iterator[pl.DataFrame]:
    with open_bytes(path) as file:
        zipped = io.BytesIO(file.read()) if isinstance(file, gzip.GzipFile) else None
    try:
        lazy = pl.scan_parquet(zipped or path, glob=False)
        total = lazy.select(pl.len()).collect().item()
        for start in range(0, total, BATCH):
            yield lazy.slice(start, BATCH).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"can't be read as Parquet: {error}", path=path) from error


def _frames(first: Mapping[str, Any], rows: Iterator[Any]) -> Iterator[pl.DataFrame]:
    some = [first, *islice(rows, BATCH - 1)]
    while some:
        try:
            yield pl.DataFrame(some, infer_schema_length=None, strict=False)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            raise InputError(f"documents must be mappings of field names to text: {error}") from error
        some = list(islice(rows, BATCH))


def _numbered(frames: Iterable[pl.DataFrame], path: Path | None) -> Iterator[Batch]:
    first = 0
    for frame in frames:
        if _bad_ids(frame):
            where = f"among the documents from number {first + 1} on"
            raise InputError(f"a document without an id {where}", path=path, hint=f"looked for {', '.join(IDS)}")
        yield _batch(frame, path, first)
        first += len(frame)
    if first == 0:
        raise InputError("no documents", path=path)


def _batch(frame: pl.DataFrame, path: Path | None, first: int) -> Batch:
    """The columns of a frame by their kind; nested objects are flattened."""
    key = next(name for name in IDS if name in frame.columns)
    texts, numbers, links, others = {}, {}, None, []
    for name, column in (each for given in frame for each in _flattened(given.name, given)):
        kind = column.dtype
        if name == key or kind == pl.Null:
            continue
        if name == "links" and isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct):
            links = column
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            texts[name] = column.cast(pl.String)
        elif isinstance(kind, pl.List) and kind.inner == pl.String:
            texts[name] = column.list.join("\n", ignore_nulls=True)
        elif isinstance(kind, pl.Date | pl.Datetime):
            texts[name] = column.dt.strftime("%Y-%m-%d" if kind == pl.Date else "%Y-%m-%d %H:%M")
        elif kind.is_numeric() or kind == pl.Boolean:
            numbers[name] = column
        else:
            others.append(name)
    return Batch(frame[key].cast(pl.String), texts, numbers, links, path, first, tuple(others))


def _flattened(name: str, column: pl.Series, depth: int = 0) -> Iterator[tuple[str, pl.Series]]:
    """A column as it is, or the columns of a nested object under names with dots."""
    if not isinstance(column.dtype, pl.Struct) or depth == DEEPEST:
        yield name, column
        return
    for field in column.dtype.fields:
        yield from _flattened(f"{name}.{field.name}", column.struct.field(field.name), depth + 1)
