"""Milvus Lite: the BM25 function of one text field, in a database in a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.models.engine import EngineText

__all__ = ["Milvus"]

PACKAGE = missing_package("Milvus Lite", "pip install pymilvus milvus-lite")
LONGEST = 65535
"""Bytes of a text, at most."""
BATCH = 1000


@register
class Milvus(Runner):
    """A collection with one text; k1 and b belong to its index, so that they are set when it is made."""

    name = "milvus"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        from pymilvus import DataType, Function, FunctionType, MilvusClient

        self.folder = tempfile.TemporaryDirectory(prefix="fliprank-milvus-")
        self.client = MilvusClient(str(Path(self.folder.name) / "milvus.db"))
        self.docids = list(documents)
        schema, index = self.client.create_schema(auto_id=False), self.client.prepare_index_params()
        schema.add_field("number", DataType.INT64, is_primary=True)
        schema.add_field("text", DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["sparse"]))
        constants = {"bm25_k1": model.params["k"], "bm25_b": model.params["b"]}
        lite = {"params": constants}  # Milvus Lite overlooks what pymilvus sends without this
        index.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=lite)
        self.client.create_collection("texts", schema=schema, index_params=index)
        rows = [
            {"number": number, "text": " ".join(texts[name] for name in fields)}
            for number, texts in enumerate(documents.values())
        ]
        for first in range(0, len(rows), BATCH):
            self.client.insert("texts", rows[first : first + BATCH])
        self.client.flush("texts")  # Milvus Lite would otherwise index all of it anew for every query
        self.client.load_collection("texts")

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        found = self.client.search("texts", data=[" ".join(words)], anns_field="sparse", limit=depth)[0]
        return {self.docids[hit["number"]]: abs(hit["distance"]) for hit in found}  # Milvus Lite has them with a minus

    @classmethod
    def version(cls) -> str:
        try:
            return f"Milvus Lite {version('milvus-lite')}, pymilvus {version('pymilvus')}"
        except ImportError as error:
            raise PACKAGE(error) from error

    def close(self) -> None:
        self.client.close()
        self.folder.cleanup()
