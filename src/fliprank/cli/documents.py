"""The options that say how documents become an index, for all commands that build one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.text.analysis import Analyzer
    from fliprank.text.index import Index

__all__ = [
    "Anchors",
    "Docs",
    "Fields",
    "IndexOptions",
    "Links",
    "Memory",
    "NFeatures",
    "Stemmer",
    "Stopwords",
    "index_in",
    "read_rows",
]

Docs = Annotated[Path | None, typer.Option(help="Documents: JSON lines, CSV, TSV, Parquet or TREC; plain or .gz.")]
Fields = Annotated[str | None, typer.Option(help="Fields of the documents, such as title,body,anchor.")]
Anchors = Annotated[Path | None, typer.Option(help="Link texts (target, text), for the field anchor.")]
Links = Annotated[Path | None, typer.Option(help="Links (source, target), for the column pagerank.")]
Stemmer = Annotated[str, typer.Option(help="The language of a Snowball stemmer, or none.")]
NFeatures = Annotated[
    int | None,
    typer.Option(min=1, max=1_000_000, help="Features of LETOR rows; by default the largest number, up to 20,000."),
]
Memory = Annotated[
    str | None,
    typer.Option(help="Leave rows in their files, with at most so much in memory, as 2GB; shards always stay there."),
]
Stopwords = Annotated[
    str | None,
    typer.Option(help="english, none, or a file with one word per line; default: english if the stemmer is English."),
]


@dataclass(frozen=True)
class IndexOptions:
    """How the user wants documents to be indexed."""

    fields: str | None = None
    stemmer: str = "english"
    stopwords: str | None = None
    anchors: Path | None = None
    links: Path | None = None

    @property
    def wanted(self) -> list[str] | None:
        """The names of the fields; None if the user named none."""
        return None if self.fields is None else [name.strip() for name in self.fields.split(",") if name.strip()]

    def analyzer(self) -> Analyzer:
        """The analyzer. English stop words are the default for English only: other languages have such words too."""
        from fliprank.text.analysis import Analyzer, read_words

        words = self.stopwords or ("english" if self.stemmer in ("english", "porter") else "none")
        stop = None if words == "none" else words if words == "english" else read_words(words)
        return Analyzer(stemmer=None if self.stemmer == "none" else self.stemmer, stopwords=stop)


def index_in(place: Path) -> Index:
    """The index in a file, checked for damage; or the only index in a folder, such as `tune` writes."""
    from fliprank.experiment import folder_rows

    return folder_rows.index_in(place)


def read_rows(path: Path, folder: Path) -> Candidates:
    """The rows of a file; or, for judgements with the texts of queries, rows from the index of a tuning."""
    from fliprank.experiment import folder_rows

    return folder_rows.read_rows(path, folder)
