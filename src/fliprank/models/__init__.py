"""Ranking functions: score = g(row; parameters), one file per kind. All are trained, saved and loaded in the same way.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> Network(hidden=4).prepared(rows, rng=0).score(rows).shape
(2,)
"""

from fliprank.models.base import KINDS, Model, load_model
from fliprank.models.blend import Blend
from fliprank.models.bm25 import BM25, BM25F
from fliprank.models.bm25_sum import BM25Sum
from fliprank.models.cascade import Cascade
from fliprank.models.document_feature import Feature
from fliprank.models.engine import EngineText, Formula
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.fusion import AdaptiveFusion, Fusion
from fliprank.models.hybrid import Hybrid
from fliprank.models.language_model import Dirichlet, JelinekMercer, TwoStageLM
from fliprank.models.linear import Linear
from fliprank.models.network import Network
from fliprank.models.parameters import Parameters
from fliprank.models.scaler import Scaler
from fliprank.models.stack import AllFeatures, Stack
from fliprank.models.trees import Trees

__all__ = [
    "BM25",
    "BM25F",
    "KINDS",
    "AdaptiveFusion",
    "AllFeatures",
    "BM25Sum",
    "Blend",
    "Cascade",
    "Dirichlet",
    "EngineText",
    "Feature",
    "FeatureSubset",
    "Formula",
    "Fusion",
    "Hybrid",
    "JelinekMercer",
    "Linear",
    "Model",
    "Network",
    "Parameters",
    "Scaler",
    "Stack",
    "Trees",
    "TwoStageLM",
    "load_model",
]
