"""Smooth objectives to train on: one shape for all of them, value and exact gradient by score; names that round-trip.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of(labels=[2, 0, 1], qid=["a", "a", "b"])
>>> parse_objective("softndcg(sigma=0.3)").per_query([0.1, 0.7, 0.3], rows).round(6)
array([0.659957, 0.      ])
"""

from fliprank.objectives.base import REGISTRY, Objective
from fliprank.objectives.lambdarank import LambdaRank
from fliprank.objectives.mse import MSE
from fliprank.objectives.names import parse_objective
from fliprank.objectives.rank_distribution import rank_distribution
from fliprank.objectives.ranknet import RankNet
from fliprank.objectives.reciprocal import SoftAP, SoftRR
from fliprank.objectives.softrank import SoftNDCG, SoftP, SoftRecall

__all__ = [
    "MSE",
    "REGISTRY",
    "LambdaRank",
    "Objective",
    "RankNet",
    "SoftAP",
    "SoftNDCG",
    "SoftP",
    "SoftRR",
    "SoftRecall",
    "parse_objective",
    "rank_distribution",
]
