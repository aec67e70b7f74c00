"""Ranking functions: score = g(row; parameters), one file a kind. All can be trained, saved and loaded alike.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> Network(hidden=4).prepared(rows, rng=0).score(rows).shape
(2,)
"""

from fliprank.models.base import KINDS, Model, load_model
from fliprank.models.linear import Linear
from fliprank.models.network import Network
from fliprank.models.parameters import Parameters
from fliprank.models.standardise import Scaler

__all__ = ["KINDS", "Linear", "Model", "Network", "Parameters", "Scaler", "load_model"]
