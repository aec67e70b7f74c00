"""LanceDB's own full-text search, in a table in a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.models.engine import EngineText

__all__ = ["LanceDB"]

PACKAGE = missing_package("LanceDB", "pip install lancedb")


@register
class LanceDB(Runner):
    """A column with an index per field, whose words are cut at spaces and left as they are."""

    name = "lancedb"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        import lancedb
        import pyarrow
        from lancedb.index import FTS

        self.columns = {name: f"f{number}" for number, name in enumerate(fields)}
        self.folder = tempfile.TemporaryDirectory(prefix="fliprank-lance-")
        columns = {self.columns[name]: [texts[name] for texts in documents.values()] for name in fields}
        self.table = lancedb.connect(self.folder.name).create_table(
            "texts", pyarrow.table({"docid": list(documents), **columns})
        )
        plain = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "lower_case": False}
        for column in columns:
            self.table.create_index(column, config=FTS(base_tokenizer="whitespace", **plain))

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        hits = self.table.search(self._query(" ".join(words), model)).select(["docid", "_score"]).limit(depth)
        return {hit["docid"]: hit["_score"] for hit in hits.to_list()}

    def _query(self, text: str, model: EngineText) -> Any:
        from lancedb.query import BooleanQuery, MatchQuery, MultiMatchQuery, Occur

        boosts = [model.params[f"{name}.w"] for name in self.columns]
        if model.formula.function == "multi_match":
            return MultiMatchQuery(text, list(self.columns.values()), boosts=boosts)
        each = zip(self.columns.values(), boosts, strict=True)
        return BooleanQuery([(Occur.SHOULD, MatchQuery(text, column, boost=boost)) for column, boost in each])

    @classmethod
    def version(cls) -> str:
        try:
            import lancedb
        except ImportError as error:
            raise PACKAGE(error) from error
        return f"LanceDB {lancedb.__version__}"

    def close(self) -> None:
        self.folder.cleanup()
