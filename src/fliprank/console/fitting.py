"""Tables that fit a terminal without losing a letter.

Rich crops a name to make room for numbers. Here a table that is too wide goes without vertical lines, names measures
shortly, leaves out the columns that it can do without (and says which), wraps sentences, and at last is printed in
several blocks, one below the other.

>>> shortened("nDCG(dcg='exp-log2')@10 of 5 queries")
'nDCG@10 (exp) of 5 queries'
>>> table = FittingTable(title="Means", optional=("b",))
>>> for name in ("run", "a", "b"):
...     table.add_column(name)
>>> table.add_row("x.run", "0.5", "[bold]0.25[/]")
>>> plain_lines(table)
['', 'Means', 'run    a    b', 'x.run  0.5  0.25']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

__all__ = ["FittingTable", "fitted", "narrow", "plain_lines", "shortened"]

WIDE = 120
"""Columns from which a terminal is wide: lines between columns, whole names of measures."""
GUTTER = 2
"""Blanks between columns."""
SENTENCE = 20
"""To so many columns at least a column of sentences may be wrapped."""
NAME = 12
"""To so many columns at least a column of names may be folded, where not even one column fits beside it."""

_EXPONENTIAL = re.compile(r"\(dcg='exp-log2'\)(@\d+)?")


def narrow(width: int) -> bool:
    """Whether a terminal of so many columns gets short names and tables without vertical lines."""
    return width < WIDE


def shortened(text: str) -> str:
    """The text with short names of measures, which `-m` understands too."""
    return _EXPONENTIAL.sub(r"\1 (exp)", text)


class FittingTable(Table):
    """A table that knows which columns it can do without, and shorter names of what it shows."""

    def __init__(self, *args: Any, optional: Sequence[str] = (), shorter: dict[str, str] | None = None, **options: Any):
        super().__init__(*args, **options)
        self.optional = tuple(optional)
        """Names of columns, in the order in which they are left out."""
        self.shorter = shorter or {}


@dataclass(frozen=True)
class _Column:
    header: str
    cells: tuple[str, ...]
    right: bool
    width: int = 0

    @classmethod
    def of(cls, header: str, cells: Sequence[str], right: bool) -> _Column:
        return cls(header, tuple(cells), right, max((_length(cell) for cell in (header, *cells)), default=0))

    @property
    def flows(self) -> bool:
        """Whether it has sentences, which may be wrapped."""
        return not self.right and any(" " in cell.strip() for cell in self.cells)


def fitted(table: Table, width: int, left_out: dict[str, None]) -> Iterator[Table | Text]:
    """The title and the table for a terminal of so many columns, in one part or several.

    `left_out` is told the names of the columns for which there was no room.
    """
    boxed = table.box is not None and not narrow(width)
    columns = _columns(table, {} if boxed else getattr(table, "shorter", {}), short=not boxed)
    if boxed and sum(column.width + 3 for column in columns) + 1 <= width:
        yield from _titled(str(table.title or ""))
        yield _boxed(table)
        return
    yield from _titled(_short_title(table))
    columns, without = _without_optional(columns, getattr(table, "optional", ()), width)
    left_out.update(dict.fromkeys(without))
    columns = _wrapped(columns, width)
    for block in _blocks(columns, width):
        yield _light(block, table.show_header)


def plain_lines(table: Table) -> list[str]:
    """The table as text: columns side by side, nothing wrapped, no lines drawn."""
    columns = _columns(table, {}, short=False)
    lines = ["", _plain(str(table.title))] if table.title else []
    heads = [[column.header for column in columns]] if table.show_header else []
    for cells in (*heads, *zip(*(column.cells for column in columns), strict=True)):
        shown = [_padded(cell, column) for cell, column in zip(cells, columns, strict=True)]
        lines.append((" " * GUTTER).join(shown).rstrip())
    return lines


def _columns(table: Table, shorter: dict[str, str], short: bool) -> list[_Column]:
    def said(cell: Any) -> str:
        text = shorter.get(str(cell), str(cell))
        return shortened(text) if short else text

    found = []
    for column in table.columns:
        header = said(column.header) if table.show_header else ""
        found.append(_Column.of(header, [said(cell) for cell in column.cells], column.justify == "right"))
    return found


def _short_title(table: Table) -> str:
    title = str(table.title or "")
    for name, short in getattr(table, "shorter", {}).items():
        title = title.replace(name, short)
    return shortened(title)


def _without_optional(columns: list[_Column], optional: Sequence[str], width: int) -> tuple[list[_Column], list[str]]:
    """The columns that fit, and the names of those left out."""
    kept, left_out = columns, list[str]()
    for name in optional:
        if _total(kept) <= width:
            break
        kept = [column for column in kept if column.header != name]
        left_out.append(name)
    return kept, left_out


def _wrapped(columns: list[_Column], width: int) -> list[_Column]:
    """Columns of sentences made narrower, always the widest, until all fit or none can be."""
    while _total(columns) > width:
        over = [column for column in columns if column.flows and column.width > SENTENCE]
        if not over:
            break
        widest = max(over, key=lambda column: column.width)
        columns = [replace(column, width=column.width - 1) if column is widest else column for column in columns]
    return columns


def _blocks(columns: list[_Column], width: int) -> Iterator[list[_Column]]:
    """As many columns as fit, each time after the first, which says what a row is about."""
    if _total(columns) <= width:
        yield columns
        return
    key, others = columns[0], columns[1:]
    widest = max((column.width for column in others), default=0)
    key = replace(key, width=min(key.width, max(NAME, width - GUTTER - widest)))
    block = [key]
    for column in others:
        if len(block) > 1 and _total([*block, column]) > width:
            yield block
            block = [key]
        block.append(column)
    yield block


def _titled(title: str) -> Iterator[Text]:
    """The title after a blank line, by itself: in the table it would be wrapped to the width of the columns."""
    if title:
        yield Text("")
        yield Text(_plain(title), style="bold")


def _boxed(table: Table) -> Table:
    """The table as it is, but for the title; no cell is wrapped."""
    out = copy(table)
    out.title, out.columns = None, []
    for column in table.columns:
        cells: list[RenderableType] = [_text(str(cell)) for cell in column.cells]
        out.columns.append(replace(column, header=_text(str(column.header)), no_wrap=True, _cells=cells))
    return out


def _light(columns: list[_Column], header: bool) -> Table:
    """Columns of these widths, without lines; what is longer is folded, never cropped."""
    table = Table(box=None, pad_edge=False)
    table.show_header, table.header_style, table.padding = header, "dim", (0, GUTTER, 0, 0)
    for column in columns:
        table.add_column(_text(column.header), min_width=column.width, max_width=column.width, overflow="fold")
        table.columns[-1].justify = "right" if column.right else "left"
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(_text, cells))
    return table


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + GUTTER * (len(columns) - 1)


def _length(cell: str) -> int:
    return cell_len(_plain(cell))


def _padded(cell: str, column: _Column) -> str:
    text = _plain(cell)
    blanks = " " * (column.width - cell_len(text))
    return blanks + text if column.right else text + blanks


def _plain(markup: str) -> str:
    return _text(markup).plain


def _text(markup: str) -> Text:
    """The text of a cell. Rich takes an escaped backslash at the end for two where no tag follows: so one does."""
    return Text.from_markup(f"{markup}[bold][/]", emoji=False)
