"""Options that say how documents become an index, for all commands that make one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.errors import InputError

if TYPE_CHECKING:
    from fliprank.text.analysis import Analyzer
    from fliprank.text.index import Index

__all__ = ["Anchors", "Docs", "Fields", "Links", "Making", "Stemmer", "Stopwords", "index_in"]

Docs = Annotated[Path | None, typer.Option(help="Documents: JSON lines, Parquet or TREC; plain or .gz.")]
Fields = Annotated[str | None, typer.Option(help="Fields of the documents, such as title,body,anchor.")]
Anchors = Annotated[Path | None, typer.Option(help="Link texts (target, text): the field anchor.")]
Links = Annotated[Path | None, typer.Option(help="Links (source, target): the column pagerank.")]
Stemmer = Annotated[str, typer.Option(help="Snowball language, or none.")]
Stopwords = Annotated[
    str | None,
    typer.Option(help="english, none, or a file of words, one a line; by default english for an English stemmer only."),
]


@dataclass(frozen=True)
class Making:
    """What was asked for."""

    fields: str | None = None
    stemmer: str = "english"
    stopwords: str | None = None
    anchors: Path | None = None
    links: Path | None = None

    @property
    def wanted(self) -> list[str] | None:
        """The names of the fields."""
        return None if self.fields is None else [name.strip() for name in self.fields.split(",") if name.strip()]

    def analyzer(self) -> Analyzer:
        """As asked; stop words are of the stemmer's language or none, for English ones are words of other languages."""
        from fliprank.text.analysis import Analyzer, read_words

        words = self.stopwords or ("english" if self.stemmer in ("english", "porter") else "none")
        stop = None if words == "none" else words if words == "english" else read_words(words)
        return Analyzer(stemmer=None if self.stemmer == "none" else self.stemmer, stopwords=stop)


def index_in(place: Path) -> Index:
    """The index in a file, looked through; or the only one in a folder, such as `tune` leaves."""
    from fliprank.text.index import Index

    if not place.is_dir():
        return Index.open(place, check=True)
    found = sorted(place.glob("*.index"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"has {len(found)} indexes; name one: {names}" if found else "has no index", path=place)
    return Index.open(found[0], check=True)
