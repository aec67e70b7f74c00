"""Test collections in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv, each plain or gzipped.

Polars parses the JSON lines; where it can't, or an `_id` is missing or not unique, the lines are read again one by one
to name the one at fault. The corpus is read when it is asked for.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as name:
...     _ = Path(name, "corpus.jsonl").write_text('{"_id": "d1", "title": "Red shoe"}')
...     _ = Path(name, "queries.jsonl").write_text('{"_id": "q1", "text": "shoes"}')
...     Path(name, "qrels").mkdir()
...     _ = Path(name, "qrels", "test.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1\\n")
...     collection = read_beir(name)
...     collection.queries, collection.qrels.to_dict(), collection.documents().to_dicts()
({'q1': 'shoes'}, {'q1': {'d1': 1.0}}, [{'_id': 'd1', 'title': 'Red shoe'}])
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import polars as pl

from fliprank.checked import checked
from fliprank.data.files import StrPath, read_chunks, resolve
from fliprank.data.json_files import json_objects
from fliprank.data.json_limits import check_json_lines
from fliprank.data.trec import Qrels, read_qrels
from fliprank.errors import InputError

__all__ = ["Beir", "find_split", "read_beir", "read_documents", "split_to_fit"]

_BOM = b"\xef\xbb\xbf"
_HINT = 'a line is a JSON object such as {"_id": "d1", "text": "..."}'


@dataclass(frozen=True, eq=False)
class Beir:
    """A collection: the text of each judged query by its id, the judgements of a split, and where the documents are."""

    queries: dict[str, str]
    qrels: Qrels
    corpus: Path

    def documents(self) -> pl.DataFrame:
        """The documents: `_id` and the fields that they have (title, text, ...)."""
        return read_documents(self.corpus)


@checked
def read_beir(folder: StrPath, split: str = "test") -> Beir:
    """Read the queries and judgements of a split. Queries without judgements (of other splits) are left out."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError("no such folder", path=root)
    corpus, source = resolve(root / "corpus.jsonl"), resolve(root / "queries.jsonl")
    qrels = read_qrels(find_split(root, split))
    frame = read_documents(source)
    if "text" not in frame.columns or frame["text"].dtype != pl.String or frame["text"].has_nulls():
        _complain(source, field="text")
    texts = dict(zip(frame["_id"].to_list(), frame["text"].to_list(), strict=True))
    judged = dict.fromkeys(qrels.qids.tolist())
    if absent := [qid for qid in judged if qid not in texts]:
        raise InputError("the judged query has no text", path=source, query=absent[0])
    return Beir({qid: text for qid, text in texts.items() if qid in judged}, qrels, corpus)


def read_documents(path: StrPath) -> pl.DataFrame:
    """A frame of a file of JSON objects, one per line, each with an `_id` of its own (always as a string).

    Fields are what polars makes of them: nested ones stay so, strings and other values in one field become strings.
    """
    data = b"".join(read_chunks(path)).removeprefix(_BOM)
    if not data or data.isspace():
        raise InputError("the file is empty", path=path)
    check_json_lines(data, path)
    try:
        # Polars looks at all lines for the fields there are: those it does not expect it would drop silently.
        frame = pl.read_ndjson(BytesIO(data), infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        _complain(path, reason=str(error))
    ids = frame["_id"] if "_id" in frame.columns else pl.Series([None])
    if not (ids.dtype == pl.String or ids.dtype.is_integer()) or ids.has_nulls():
        _complain(path)
    ids = ids.cast(pl.String)
    if ids.n_unique() < len(ids) or (ids == "").any():
        _complain(path)
    return frame.with_columns(ids.alias("_id"))


def split_to_fit(root: StrPath, others: Container[str | None] = ()) -> str:
    """The split that is meant where none is named: train, or the only one, unless it is among `others`."""
    splits = _splits(root)
    return splits[0] if len(splits) == 1 and splits[0] not in others else "train"


def find_split(root: StrPath, split: str) -> Path:
    """The file of judgements of a split; raises with the splits that there are."""
    folder = Path(root) / "qrels"
    try:
        return resolve(folder / f"{split}.tsv")
    except InputError as error:
        splits = ", ".join(_splits(root))
        hint = f"there are: {splits}" if splits else "there are no files qrels/<split>.tsv"
        raise InputError(f"no judgements of the split {split!r}", path=folder, hint=hint) from error


def _splits(root: StrPath) -> list[str]:
    """The names of the splits, sorted."""
    folder = Path(root) / "qrels"
    files = (file.name for file in folder.iterdir()) if folder.is_dir() else ()
    return sorted(
        {name.removesuffix(".gz").removesuffix(".tsv") for name in files if name.endswith((".tsv", ".tsv.gz"))}
    )


def _complain(path: StrPath, field: str | None = None, reason: str = "can't be read as JSON lines") -> NoReturn:
    """Raise an error at the first line that is broken, or whose `_id` (or `field`) is missing or has occurred.

    Where there is none, fields must be of types that do not mix, in lines that are fine by themselves.
    """
    seen: set[str] = set()
    kinds: dict[str, type] = {}
    clash = None
    for line, record in json_objects(path):
        name = record.get("_id")
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise InputError(
                "no _id, or one that is neither a string nor a whole number", path=path, line=line, hint=_HINT
            )
        if str(name) in seen:
            raise InputError(f"the _id {str(name)!r} occurs twice", path=path, line=line)
        if field is not None and not isinstance(record.get(field), str):
            raise InputError(f"no {field}, or one that is not a string", path=path, line=line, hint=_HINT)
        seen.add(str(name))
        for key, value in record.items():
            kind = float if type(value) is int else type(value)
            if value is not None and kinds.setdefault(key, kind) is not kind and clash is None:
                clash = line, f"{key!r} is of another type than in the lines before"
    raise InputError(clash[1] if clash else reason, path=path, line=clash[0] if clash else None)
