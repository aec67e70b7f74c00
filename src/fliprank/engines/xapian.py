"""Xapian, through its Python bindings: fields by prefixes, weights of fields by OP_SCALE_WEIGHT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.export.xapian import prefixes
from fliprank.models.engine import EngineText

__all__ = ["Xapian", "weighting"]

PACKAGE = missing_package("Xapian", "pip install xapian-bindings-binary, or apt-get install python3-xapian")


@register
class Xapian(Runner):
    """A database in memory."""

    name = "xapian"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        import xapian

        self.prefix = prefixes(fields)
        self.docids = list(documents)
        self.database = xapian.WritableDatabase("", xapian.DB_BACKEND_INMEMORY)
        for texts in documents.values():
            document = xapian.Document()
            for name, prefix in self.prefix.items():
                for word in texts[name].split():
                    document.add_term(prefix + word)
            self.database.add_document(document)

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        import xapian
        from xapian import Query

        if not words:
            return {}
        by_field = []
        for name, prefix in self.prefix.items():
            terms = Query(Query.OP_OR, [Query(prefix + word) for word in words])
            by_field.append(Query(Query.OP_SCALE_WEIGHT, terms, model.params[f"{name}.w"]))
        enquire = xapian.Enquire(self.database)
        enquire.set_query(Query(Query.OP_OR, by_field))
        enquire.set_weighting_scheme(weighting(model))
        return {self.docids[hit.docid - 1]: hit.weight for hit in enquire.get_mset(0, depth)}

    @classmethod
    def version(cls) -> str:
        try:
            import xapian
        except ImportError as error:
            raise PACKAGE(error) from error
        return f"Xapian {xapian.version_string()}"

    def close(self) -> None:
        self.database.close()


def weighting(model: EngineText) -> Any:
    """The function as Xapian has it. It takes a lambda of 0.7 for one that was not set: the next number is as good."""
    import xapian

    params = model.params
    if model.formula.function == "bm25":
        return xapian.BM25Weight(params["k"], 0.0, 1.0, params["b"], model.formula.shortest)
    rate = math.nextafter(0.7, 1.0) if params["lambda"] == 0.7 else params["lambda"]
    return xapian.LMWeight(params["scale"], xapian.Weight.TWO_STAGE_SMOOTHING, rate, params["mu"])
