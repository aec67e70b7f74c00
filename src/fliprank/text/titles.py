"""The titles of some documents, for a person to know them by.

An index keeps terms, not texts, so titles are read from the documents again. Where it is known which line of a file of
JSON lines a document stands in, only these lines are parsed.

>>> read_titles([{"_id": "a", "title": "Red shoes"}, {"_id": "b", "text": "A shoe.\\nBlue."}], ["b", "a", "zz"])
{'a': 'Red shoes', 'b': 'A shoe. Blue.'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath, open_bytes, read_chunks, resolve
from fliprank.data.ids import Ids
from fliprank.data.json_files import strict_json
from fliprank.text.build.default_fields import NOT_BY_DEFAULT
from fliprank.text.build.documents import IDS, Source, read_documents
from fliprank.text.index_arrays import IndexArrays

__all__ = ["read_titles", "titles_by_index"]

NAMES = ("title", "name", "headline", "subject", "heading")
"""Fields that are titles, the first that there is; else one whose name ends so; else the first text."""
LONGEST = 200
"""Letters of a title that are kept."""
_BOM = b"\xef\xbb\xbf"


def read_titles(source: Source, wanted: Iterable[str]) -> dict[str, str]:
    """The titles of the documents with these ids, as far as there are such documents; reading ends with the last."""
    left, found = set(wanted), dict[str, str]()
    for batch in read_documents(source):
        if not left:
            break
        for row in batch.ids.is_in(list(left)).arg_true().to_list():
            docid = batch.ids[row]
            found[docid] = _title({name: column[row] for name, column in batch.texts.items()})
            left.discard(docid)
    return found


def titles_by_index(path: StrPath, index: IndexArrays, wanted: Iterable[str]) -> dict[str, str]:
    """The same of a file, or a folder in BEIR's layout, that an index was made from: it knows where documents stand.

    Only the lines of these documents are parsed, where documents are JSON lines; other files are read.
    """
    names = list(wanted)
    places = zip(names, index.numbers_of(Ids.of(names)).tolist(), strict=True)
    numbers = {docid: number for docid, number in places if number >= 0}
    source = resolve(Path(path) / "corpus.jsonl" if Path(path).is_dir() else path)
    with open_bytes(source) as file:
        lines = file.read(64).removeprefix(_BOM).lstrip().startswith(b"{")
    found = _from_lines(source, numbers) if lines else {}
    return found if len(found) == len(numbers) else read_titles(source, numbers)


def _from_lines(path: Path, numbers: Mapping[str, int]) -> dict[str, str]:
    """Titles as far as documents stand in the lines where they should: blank lines move them."""
    found, line = dict[str, str](), 0
    for chunk in read_chunks(path):
        count = chunk.count(b"\n")
        here = {docid: number - line for docid, number in numbers.items() if line <= number < line + count}
        texts = chunk.removeprefix(_BOM if line == 0 else b"").split(b"\n") if here else []
        for docid, place in here.items():
            try:
                record = strict_json(texts[place])
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and any(str(record.get(name)) == docid for name in IDS):
                found[docid] = _title(record)
        line += count
    return found


def _title(record: Mapping[str, Any]) -> str:
    """The title of a document, on one line."""
    texts = {name: text for name, text in record.items() if isinstance(text, str) and text.strip()}
    texts = {name: text for name, text in texts.items() if name not in (*IDS, *NOT_BY_DEFAULT)}
    by_name = {name.lower(): text for name, text in reversed(texts.items())}
    known = [by_name[name] for name in NAMES if name in by_name]
    known += [text for name, text in by_name.items() if name.endswith(NAMES[:3])]
    return " ".join(next(iter([*known, *texts.values()]), "")[: 4 * LONGEST].split())[:LONGEST]
