"""Whoosh, a search engine in Python (the package whoosh-reloaded keeps it up)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.models.engine import EngineText

__all__ = ["Whoosh"]


@register
class Whoosh(Runner):
    """An index in memory."""

    name = "whoosh"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        from whoosh.analysis import SpaceSeparatedTokenizer
        from whoosh.fields import ID, TEXT, Schema
        from whoosh.filedb.filestore import RamStorage

        self.names = {name: f"f{number}" for number, name in enumerate(fields)}
        texts = {field: TEXT(analyzer=SpaceSeparatedTokenizer(), phrase=False) for field in self.names.values()}
        self.index = RamStorage().create_index(Schema(docid=ID(stored=True), **texts))
        writer = self.index.writer()
        for docid, page in documents.items():
            writer.add_document(docid=docid, **{field: page[name] for name, field in self.names.items()})
        writer.commit()

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        from whoosh.query import Or, Term
        from whoosh.scoring import BM25F

        own = {f"{field}_B": float(model.params[f"{name}.b"]) for name, field in self.names.items()}
        boosts = {field: float(model.params[f"{name}.w"]) for name, field in self.names.items()}
        terms = [Term(field, word, boost) for word in words for field, boost in boosts.items()]
        with self.index.searcher(weighting=BM25F(K1=float(model.params["k"]), **own)) as searcher:
            found = searcher.search(Or(terms).normalize(), limit=depth)  # as its parser does
            return {hit["docid"]: float(hit.score) for hit in found}

    @classmethod
    def version(cls) -> str:
        try:
            return f"Whoosh-Reloaded {version('whoosh-reloaded')}"
        except PackageNotFoundError as error:
            raise missing_package("Whoosh", "pip install whoosh-reloaded")(error) from error

    def close(self) -> None:
        self.index.close()
