"""Milvus: BM25 of one text, a sparse vector that a function makes of it; k1 and b belong to the index.

score = sum_t idf_t f_t (k1 + 1) / (f_t + k1 (1 - b + b length / average)) with Lucene's idf. There are no weights of
fields: all fields are one text. Several texts with a vector each can be fused (`fliprank fuse --engine milvus`).
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25"]

DIGITS = 6

BM25 = Formula(
    "milvus",
    "bm25",
    fields="one_text",
    df="any",
    documents="all",
    k_plus_1=True,
    settings=(Setting("k", 1.2, 1e-3), Setting("b", 0.75, 0.0, 1.0)),
)

register_functions(BM25)

PROGRAM = '''\
"""A collection of Milvus with full-text search, as tuned by fliprank."""

from pymilvus import DataType, Function, FunctionType

FIELDS = {fields}
CONSTANTS = {constants}
ANALYZER = {analyzer}


def create(client, name, lite=False):
    """Make a collection: `docid`, and one `text` of all fields. `lite` is for Milvus Lite, a client of a file."""
    schema, index = client.create_schema(auto_id=False), client.prepare_index_params()
    schema.add_field("docid", DataType.VARCHAR, is_primary=True, max_length=512)
    analyzer = {{}} if lite else {{"analyzer_params": ANALYZER}}  # Milvus Lite has no stemmers
    schema.add_field("text", DataType.VARCHAR, max_length=65535, enable_analyzer=True, **analyzer)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(Function("bm25", FunctionType.BM25, ["text"], ["sparse"]))
    params = {{"params": CONSTANTS}} if lite else CONSTANTS  # Milvus Lite overlooks what is not in "params"
    index.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=params)
    client.create_collection(name, schema=schema, index_params=index)


def row(docid, texts):
    """A document as `client.insert` takes it: its id, and the text of each field by name."""
    return {{"docid": docid, "text": " ".join(texts.get(field) or "" for field in FIELDS)}}


def search(client, name, text, limit=10):
    """The best documents, (id, score) each; Milvus Lite gives its scores a minus sign."""
    found = client.search(name, data=[text], anns_field="sparse", limit=limit)[0]
    return [(hit["docid"], abs(hit["distance"])) for hit in found]
'''


@target("milvus", "text as one field, by bm25_k1 and bm25_b", takes_text_of("milvus"))
def write(model: EngineText, about: About) -> Export:
    """A module of Python that makes the collection and searches it; names of fields stand in it as literals."""
    value = {name: float(f"{model.params[name]:.{DIGITS}g}") for name in ("k", "b")}
    plain = about.analyzer is not None and about.analyzer.stemmer is None
    program = PROGRAM.format(
        fields=ascii(list(model.fields or ())),
        constants=ascii({"bm25_k1": value["k"], "bm25_b": value["b"]}),
        analyzer=ascii({"type": "standard" if plain else "english"}),
    )
    steps = (
        "Make a collection by `create(client, name)` of milvus_search.py and insert a `row(docid, texts)` for each "
        "document; in a collection that you have, drop the index of its sparse field and make it with CONSTANTS.",
        "Search by `search(client, name, text, limit)`.",
        "With Milvus Lite call `create(client, name, lite=True)`: version 3.2 overlooks k1 and b otherwise, and says "
        "nothing.",
    )
    lost = (
        "Milvus has no weights of fields: all fields are one text.",
        "Words are cut and stemmed by Milvus; fliprank tuned on terms of its own analyzer.",
    )
    return Export({"milvus_search.py": program}, steps, reindex=True, lost=lost)
