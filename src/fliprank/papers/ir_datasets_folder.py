"""A collection of ir_datasets as a folder in BEIR's layout, which every part that takes a text collection can read.

`--data robust=ir_datasets:disks45/nocr/trec-robust-2004` writes it once, below the folder of results. What ir_datasets
does not have on this machine it downloads, or says how to get; nothing else in fliprank downloads anything.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fliprank.errors import InputError, MissingExtraError

__all__ = ["PREFIX", "write_ir_dataset"]

PREFIX = "ir_datasets:"


def write_ir_dataset(name: str, folder: Path) -> Path:
    """The folder of the data set with this id: corpus.jsonl, queries.jsonl and qrels/test.tsv. Whole or not at all."""
    place = folder / name.replace("/", "_")
    if place.is_dir():
        return place
    data = _load(name)
    parts = [kind for kind in ("docs", "queries", "qrels") if not getattr(data, f"has_{kind}")()]
    if parts:
        raise InputError(f"{PREFIX}{name} has no {' and no '.join(parts)}", hint="take an id that has judged queries")
    made = folder / f".{place.name}.new"
    shutil.rmtree(made, ignore_errors=True)
    (made / "qrels").mkdir(parents=True)
    _write_lines(made / "corpus.jsonl", ({"_id": doc.doc_id, **_texts(doc)} for doc in data.docs_iter()))
    _write_lines(made / "queries.jsonl", ({"_id": q.query_id, "text": _text(q)} for q in data.queries_iter()))
    with (made / "qrels" / "test.tsv").open("w") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for each in data.qrels_iter():
            file.write(f"{each.query_id}\t{each.doc_id}\t{each.relevance}\n")
    made.rename(place)
    return place


def _load(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtraError("ir_datasets", "ir_datasets") from None
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise InputError(f"ir_datasets knows no data set {name!r}", hint="ir_datasets list shows them") from None


def _texts(document: Any) -> dict[str, str]:
    """Every field that is text."""
    fields = document._asdict()
    return {name: value for name, value in fields.items() if name != "doc_id" and isinstance(value, str)}


def _text(query: Any) -> str:
    """What a person would type: the text of the query, or its title where it has several fields."""
    fields = query._asdict()
    for name in ("text", "title", "query"):
        if isinstance(fields.get(name), str):
            return str(fields[name])
    return str(query.default_text())


def _write_lines(path: Path, records: Iterable[dict[str, str]]) -> None:
    with path.open("w") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
