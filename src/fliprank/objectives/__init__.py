"""Smooth objectives to train on: each gives a value and its exact gradient by score, and has a name that round-trips.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of(labels=[2, 0, 1], qid=["a", "a", "b"])
>>> parse_objective("softndcg(sigma=0.3)").per_query([0.1, 0.7, 0.3], rows).round(6)
array([0.659957, 0.      ])
"""

from fliprank.objectives.base import REGISTRY, Objective
from fliprank.objectives.lambdarank import LambdaRank
from fliprank.objectives.logistic import Logistic
from fliprank.objectives.mse import MSE
from fliprank.objectives.names import parse_objective
from fliprank.objectives.rank_distribution import rank_distribution
from fliprank.objectives.ranknet import RankNet
from fliprank.objectives.softap import SoftAP
from fliprank.objectives.softndcg import SoftNDCG
from fliprank.objectives.softp import SoftP, SoftRecall
from fliprank.objectives.softrank import SoftRank
from fliprank.objectives.softrr import SoftRR

__all__ = [
    "MSE",
    "REGISTRY",
    "LambdaRank",
    "Logistic",
    "Objective",
    "RankNet",
    "SoftAP",
    "SoftNDCG",
    "SoftP",
    "SoftRR",
    "SoftRank",
    "SoftRecall",
    "parse_objective",
    "rank_distribution",
]
