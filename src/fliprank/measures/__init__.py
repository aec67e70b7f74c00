"""How a ranking is judged: one small file per measure, one law for all of them (`law.py`), names that round-trip.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of(labels=[2, 0, 1], qid=["a", "a", "b"])
>>> measure = parse_measure("nDCG@10")
>>> measure.per_query([0.1, 0.7, 0.3], rows)
array([0.63092975, 1.        ])
"""

from fliprank.measures.average_precision import AP
from fliprank.measures.base import REGISTRY, Measure, RankMeasure
from fliprank.measures.bpref import Bpref
from fliprank.measures.correct_pairs import CorrectPairs
from fliprank.measures.dcg import DCG, nDCG
from fliprank.measures.err import ERR
from fliprank.measures.geometric_mean import GM, GMAP
from fliprank.measures.judged import Judged
from fliprank.measures.names import parse_measure
from fliprank.measures.precision import P
from fliprank.measures.r_precision import Rprec
from fliprank.measures.rbp import RBP
from fliprank.measures.recall import R
from fliprank.measures.reciprocal_rank import RR
from fliprank.measures.search_length import ESL
from fliprank.measures.set_based import SetF, SetP, SetR, SetU
from fliprank.measures.success import Success

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "ESL",
    "GM",
    "GMAP",
    "RBP",
    "REGISTRY",
    "RR",
    "Bpref",
    "CorrectPairs",
    "Judged",
    "Measure",
    "P",
    "R",
    "RankMeasure",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "SetU",
    "Success",
    "nDCG",
    "parse_measure",
]
