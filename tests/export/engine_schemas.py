"""JSON Schemas of what engines take, written from their documentation; no property is allowed that it does not name.

Elasticsearch: retrievers, rescore. OpenSearch: search pipelines. The learning-to-rank plug-ins: feature sets, models,
sltr. Solr: feature store, model store. Qdrant: query points. Read in November 2026.
"""

from __future__ import annotations

from typing import Any

NUMBER: dict[str, Any] = {"type": "number"}
TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
DECIMAL: dict[str, Any] = {"type": "string", "pattern": r"^-?\d+(\.\d+)?([eE][-+]?\d+)?$"}


def shape(optional: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object with these properties and no others."""
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def many(items: Any, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


ANY_QUERY = {"type": "object", "minProperties": 1, "maxProperties": 1}

FEATURE_SET = shape(
    featureset=shape(
        name=TEXT,
        features=many(
            shape(
                name=TEXT, params={"type": "array", "items": TEXT}, template_language={"enum": ["mustache"]},
                template=ANY_QUERY,
            )
        ),
    )
)  # fmt: skip

NORMALIZER = {
    "oneOf": [
        shape(standard=shape(mean=NUMBER, standard_deviation={"type": "number", "exclusiveMinimum": 0})),
        shape(min_max=shape(minimum=NUMBER, maximum=NUMBER)),
    ]
}
CREATED_MODEL = shape(
    model=shape(
        name=TEXT,
        model=shape(
            ("feature_normalizers",),
            type={"enum": ["model/linear", "model/ranklib", "model/xgboost+json"]},
            feature_normalizers={"type": "object", "additionalProperties": NORMALIZER},
            definition=TEXT,
        ),
    )
)
LINEAR_DEFINITION = {"type": "object", "additionalProperties": NUMBER, "minProperties": 1}
TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "oneOf": [
                shape(nodeid={"type": "integer"}, leaf=NUMBER),
                shape(
                    nodeid={"type": "integer"}, depth={"type": "integer"}, split=TEXT, split_condition=NUMBER,
                    yes={"type": "integer"}, no={"type": "integer"}, missing={"type": "integer"},
                    children={"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 2, "maxItems": 2},
                ),
            ]
        }
    },
    "type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 1,
}  # fmt: skip

SLTR_SEARCH = shape(
    query=ANY_QUERY,
    rescore=many(
        shape(
            window_size={"type": "integer", "minimum": 1},
            query=shape(
                ("query_weight", "rescore_query_weight", "score_mode"),
                rescore_query=shape(sltr=shape(params={"type": "object"}, model=TEXT)),
                query_weight=NUMBER, rescore_query_weight=NUMBER,
                score_mode={"enum": ["total", "multiply", "avg", "max", "min"]},
            ),
        )
    ),
)  # fmt: skip

SOLR_FEATURES = many(shape(store=TEXT, name=TEXT, params={"type": "object"}, **{"class": TEXT}))
_NORM = shape(
    params=shape(avg=DECIMAL, std=DECIMAL), **{"class": {"const": "org.apache.solr.ltr.norm.StandardNormalizer"}}
)
_LAYER = shape(
    matrix=many(many(NUMBER)),
    bias=many(NUMBER),
    activation={"enum": ["identity", "relu", "leakyrelu", "sigmoid", "tanh"]},
)
SOLR_MODEL: dict[str, Any] = {
    "$defs": {
        "node": {
            "oneOf": [
                shape(value=DECIMAL),
                shape(
                    feature=TEXT, threshold=DECIMAL, left={"$ref": "#/$defs/node"}, right={"$ref": "#/$defs/node"}
                ),
            ]
        }
    },
    **shape(
        ("store",), name=TEXT, store=TEXT, features=many(shape(("norm",), name=TEXT, norm=_NORM)),
        params={"type": "object"},
        **{"class": {"pattern": r"^org\.apache\.solr\.ltr\.model\.(Linear|NeuralNetwork|MultipleAdditiveTrees)Model$"}},
    ),
    "oneOf": [
        {"properties": {"params": shape(weights=LINEAR_DEFINITION)}},
        {"properties": {"params": shape(layers=many(_LAYER))}},
        {"properties": {"params": shape(trees=many(shape(weight=DECIMAL, root={"$ref": "#/$defs/node"})))}},
    ],
}  # fmt: skip

_RETRIEVER = {"type": "object", "minProperties": 1, "maxProperties": 1}
_WEIGHT = {"type": "number", "minimum": 0}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
ELASTICSEARCH_LINEAR = shape(
    retriever=shape(
        linear=shape(
            ("rank_window_size",),
            retrievers=many(
                shape(retriever=_RETRIEVER, weight=_WEIGHT, normalizer={"enum": ["none", "minmax", "l2_norm"]})
            ),
            rank_window_size={"type": "integer", "minimum": 1},
        )
    )
)
ELASTICSEARCH_RRF = shape(
    retriever=shape(
        rrf=shape(
            retrievers=many(shape(retriever=_RETRIEVER, weight=_WEIGHT)),
            rank_constant={"type": "integer", "minimum": 1},
        )
    )
)
OPENSEARCH_NORMALIZATION = shape(
    phase_results_processors=many(
        shape(
            **{
                "normalization-processor": shape(
                    normalization=shape(technique={"enum": ["min_max", "l2", "z_score"]}),
                    combination=shape(
                        technique={"enum": ["arithmetic_mean", "geometric_mean", "harmonic_mean"]},
                        parameters=shape(weights=many(_SHARE, 2)),
                    ),
                )
            }
        )
    )
)
OPENSEARCH_RRF = shape(
    phase_results_processors=many(
        shape(
            **{
                "score-ranker-processor": shape(
                    combination=shape(
                        technique={"const": "rrf"},
                        rank_constant={"type": "integer", "minimum": 1, "maximum": 10000},
                        parameters=shape(weights=many(_SHARE, 2)),
                    )
                )
            }
        )
    )
)
QDRANT = shape(query=shape(rrf=shape(k={"type": "integer", "minimum": 1}, weights=many(_WEIGHT, 2))))
