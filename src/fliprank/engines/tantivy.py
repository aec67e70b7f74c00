"""Tantivy, by its Python package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.models.engine import EngineText

__all__ = ["Tantivy"]


@register
class Tantivy(Runner):
    """An index in memory."""

    name = "tantivy"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        import tantivy

        self.fields = tuple(fields)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("docid", stored=True, tokenizer_name="raw")
        for number in range(len(self.fields)):
            builder.add_text_field(f"f{number}", tokenizer_name="whitespace")
        schema = builder.build()
        self.index = tantivy.Index(schema)
        writer = self.index.writer(num_threads=1)
        for docid, texts in documents.items():
            page = {"docid": docid} | {f"f{number}": texts[name] for number, name in enumerate(self.fields)}
            writer.add_document(tantivy.Document.from_dict(page, schema))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        boosts = {f"f{number}": float(model.params[f"{name}.w"]) for number, name in enumerate(self.fields)}
        searcher, query = self.index.searcher(), self.index.parse_query(" ".join(words), list(boosts), boosts)
        found = searcher.search(query, depth, count=False)
        return {searcher.doc(address)["docid"][0]: float(score) for score, address in found.hits}

    @classmethod
    def version(cls) -> str:
        try:
            return f"tantivy {version('tantivy')}"
        except PackageNotFoundError as error:
            raise missing_package("tantivy", "pip install tantivy")(error) from error
