"""What was tuned here, in the words of the engine that people run: one file per engine, one line here.

target.py, about.py         what a target is, and what it may know about a model
folder.py                   the folder that an export is written to, and read back from
functions.py                the text functions of engines, by name: what `tune --engine` fits
fusion*.py                  ranked lists, fused by the engine's own formula
additive.py, float32.py     models of features as sums that plug-ins compute, and numbers as they keep them
*_ltr.py, onnx_graph.py     learning-to-rank models
others                      an engine each: its functions, and its settings as files
"""

from fliprank.export import (  # noqa: F401
    duckdb,
    elasticsearch,
    elasticsearch_ltr,
    fusion_targets,
    lancedb,
    lucene,
    lunr,
    milvus,
    minisearch,
    onnx_graph,
    opensearch,
    orama,
    postgresql,
    solr,
    solr_ltr,
    sqlite,
    tantivy,
    vespa,
    vespa_ltr,
    whoosh,
    xapian,
)
from fliprank.export.about import About
from fliprank.export.folder import export_model, read_export, write_export
from fliprank.export.functions import engine_model, engine_names
from fliprank.export.target import Export, target, target_names, targets_for

__all__ = [
    "About",
    "Export",
    "engine_model",
    "engine_names",
    "export_model",
    "read_export",
    "target",
    "target_names",
    "targets_for",
    "write_export",
]
