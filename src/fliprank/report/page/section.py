"""What a page is made of: sections, and the documents that several of them name.

>>> documents = Documents()
>>> documents.number("d1", "Red shoes"), documents.number("d2"), documents.number("d1")
(0, 1, 0)
>>> documents.content()
[['d1', 'Red shoes'], ['d2', '']]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Documents", "Page", "Section", "clipped", "short"]

LONGEST = 300
"""Letters of a title or query that a page shows; nobody reads more of it in a table."""


@dataclass(frozen=True)
class Section:
    """`kind` names the script that draws it, `conclusion` is the sentence at its head, `data` is plain JSON."""

    kind: str
    title: str
    conclusion: str
    data: dict[str, Any]

    def content(self) -> dict[str, Any]:
        """As the page holds it."""
        return {"kind": self.kind, "title": self.title, "conclusion": self.conclusion, "data": self.data}


@dataclass
class Documents:
    """Documents by number: a page names a document in many lists, and holds its id and title once."""

    places: dict[str, int] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)

    def number(self, docid: str, title: str = "") -> int:
        """The number of a document; a title that comes later than the document is kept, too."""
        place = self.places.setdefault(docid, len(self.places))
        if place == len(self.titles):
            self.titles.append("")
        if title and not self.titles[place]:
            self.titles[place] = clipped(title)
        return place

    def fill(self, read: Callable[[Iterable[str]], Mapping[str, str]] | None) -> None:
        """Read the titles that are still missing, where they can be read."""
        left = [docid for docid, title in zip(self.places, self.titles, strict=True) if not title]
        if read is not None and left:
            for docid, title in read(left).items():
                self.number(docid, title)

    def content(self) -> list[list[str]]:
        """[[id, title], ...] by number."""
        return [[clipped(docid), title] for docid, title in zip(self.places, self.titles, strict=True)]


@dataclass(frozen=True)
class Page:
    """The sections of a page, what it is called, and below that what it is about."""

    title: str
    about: str
    sections: tuple[Section, ...]
    documents: Documents = field(default_factory=Documents)

    def content(self) -> dict[str, Any]:
        """As JSON holds it."""
        sections = [section.content() for section in self.sections]
        return {"title": self.title, "about": self.about, "sections": sections, "documents": self.documents.content()}


def clipped(text: str) -> str:
    """The beginning of a long text.

    >>> len(clipped("x" * 10_000))
    300
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def short(value: float | None, digits: int = 6) -> float | int | None:
    """A number for a picture, with so many digits; None where it is none.

    >>> short(0.123456789), short(3.0), short(float("nan"))
    (0.123457, 3, None)
    """
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
