"""The three rankers of Taylor et al. 2006 (section 3.2), with the paper's starting values (sections 4.1 and 4.2).

All start from k = 1, b = 0.5 for every field and w = 1 for every field; these values are also the parameters' defaults.
The paper leaves open which query-independent feature it uses ("the quality of the document according to the link
structure of the web"), in what form, and its weight: here it is log(1 + feature) with weight 1, unless told otherwise.

>>> model = nine_parameter()
>>> len(model.params.free_names), model.params["body.w"], model.params["body.b"], model.params["pagerank.weight"]
(9, 1.0, 0.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from fliprank.models.base import Model
from fliprank.models.bm25 import BM25, BM25F
from fliprank.models.document_feature import Feature
from fliprank.models.stack import AllFeatures, Stack

__all__ = ["FIELDS", "many_parameter", "nine_parameter", "two_parameter"]

FIELDS = ("anchor", "url", "title", "body")
"""Incoming anchor text, URL, title and body."""
K, W, B = 1.0, 1.0, 0.5

M = TypeVar("M", bound=Model)


def two_parameter(feature: str | None = None, weight: float = 1.0) -> Model:
    """BM25 of all fields joined; free: k from 1.0 and b from 0.5 (section 4.1).

    The paper's score also has the query-independent feature, with one fixed weight: it is added if `feature` is named.
    """
    model = _starting(BM25(), {"k": K, "b": B})
    return model if feature is None else Stack(model, _static(feature), weights={feature: weight})


def nine_parameter(fields: Sequence[str] = FIELDS, feature: str = "pagerank", weight: float = 1.0) -> Stack:
    """BM25F plus the query-independent feature; free: w from 1.0 and b from 0.5 per field, and the feature's weight.

    k is fixed, since it is redundant beside the weights; the paper does not say at which value: 1.0 here, as in the
    2-parameter ranker. The feature's weight starts from `weight`, which the paper takes from the 2-parameter ranker.
    """
    return _starting(Stack(_bm25f(fields), _static(feature)), {f"{feature}.weight": weight})


def many_parameter(fields: Sequence[str] = FIELDS) -> Stack:
    """BM25F plus a weight for each feature of the rows: 375 free parameters with the paper's 4 fields and 367 features.

    BM25F starts as in the 9-parameter ranker and its own weight is fixed at 1: the ranker without BM25F has 367
    parameters, which leaves 8 for BM25F. The paper does not describe the features, nor the start of their weights: here
    features are standardised and weights start at 0, so that the ranker starts as BM25F.
    """
    return Stack(_bm25f(fields), AllFeatures())


def _bm25f(fields: Sequence[str]) -> BM25F:
    model = BM25F((fields,) if isinstance(fields, str) else tuple(fields))
    return _starting(
        model, {name: B if name.endswith(".b") else W if name != "k" else K for name in model.params.names}
    )


def _static(feature: str) -> Feature:
    return Feature(feature, transform="log", k=1.0)


def _starting(model: M, values: Mapping[str, float]) -> M:
    """`model` with these values, as its defaults too."""
    params = model.params.replace(values)
    return model.at(replace(params, default=params.values))
