"""Tables as spreadsheets and shops export them: a header line, then records, parted by commas, semicolons or tabs.

Which of the three is told by the header. A cell in quotes may hold separators and line breaks, and quotes that are
written twice. Each record comes with the line on which it begins, for messages.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.csv"
>>> _ = path.write_text('id,title\\nd1,"Red, or\\nblue"\\n\\nd2,Sky\\n')
>>> table = open_table(path)
>>> table.header, list(table.records())
(('id', 'title'), [(2, ['d1', 'Red, or\\nblue']), (5, ['d2', 'Sky'])])
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fliprank.data.files import StrPath, open_bytes, read_chunks, resolve
from fliprank.errors import InputError

__all__ = ["Table", "header_of", "open_table"]

SEPARATORS = "\t,;"
Fits = Callable[[Sequence[str]], bool]
"""Whether a header is one of those that are looked for."""
LONGEST_CELL = 1 << 30
LONGEST_HEADER = 1 << 20
_QUOTES = "a cell that holds a quote, a separator or a line break stands in quotes, and quotes in it are written twice"


@dataclass(frozen=True)
class Table:
    """A file with a header: the names of its columns (those without a name are ''), and what parts its cells."""

    path: Path
    header: tuple[str, ...]
    separator: str

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each record begins, and its cells: as many as the header has. Empty lines are skipped."""
        # The limit of 128 KB per cell is one for the whole process, and long documents exceed it: it is only raised.
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
        reader = csv.reader(_lines(self.path), delimiter=self.separator, strict=True)
        begin = 1
        try:
            for cells in reader:
                if begin > 1 and any(cell.strip() for cell in cells):
                    self._check(cells, begin)
                    yield begin, cells
                begin = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"broken table: {error}", path=self.path, line=begin, hint=_QUOTES) from error

    def _check(self, cells: list[str], line: int) -> None:
        if len(cells) != len(self.header):
            hint = f"the header has {', '.join(self.header)}; {_QUOTES}"
            message = f"expected {len(self.header)} cells, found {len(cells)}"
            raise InputError(message, path=self.path, line=line, hint=hint)


def open_table(path: StrPath, fits: Fits | None = None) -> Table:
    """The table in a file. With `fits`, the separator is the one by which the header fits."""
    source = resolve(path)
    with open_bytes(source) as file:
        first = file.readline(LONGEST_HEADER)
    header, separator = header_of(first, fits) or ((), "")
    if not header:
        raise InputError("no header line with the names of columns", path=source, line=1)
    named = [name for name in header if name]
    if twice := next((name for i, name in enumerate(named) if name in named[:i]), None):
        raise InputError(f"two columns are called {twice!r}", path=source, line=1)
    return Table(source, header, separator)


def header_of(first: bytes, fits: Fits | None = None) -> tuple[tuple[str, ...], str] | None:
    """The names in the first line of a file and what parts them; None if it can't be a header of two or more columns.

    >>> header_of(b'docid;"price, net"', lambda names: "docid" in names)
    (('docid', 'price, net'), ';')
    """
    try:
        line = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for separator in sorted(SEPARATORS, key=line.count, reverse=True):
        try:
            names = [name.strip() for name in next(csv.reader([line], delimiter=separator, strict=True), [])]
        except csv.Error:
            continue
        if len(names) > 1 and (fits is None or fits(names)):
            return tuple(names), separator
    return None


def _lines(path: Path) -> Iterator[str]:
    """The lines with their ends, cut at newlines only, checked to be UTF-8; without a byte order mark."""
    begin = "\ufeff"
    for chunk in read_chunks(path):
        yield from io.StringIO(chunk.decode().removeprefix(begin), newline="\n")
        begin = ""
