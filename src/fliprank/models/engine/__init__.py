"""The text scoring of search engines as a model: `formula.py` (what an engine computes), `kernels.py`, `model.py`;
`ts_rank.py` is PostgreSQL's, which is like no other."""

from fliprank.models.engine.formula import Formula, Setting
from fliprank.models.engine.model import EngineText
from fliprank.models.engine.ts_rank import TsRank

__all__ = ["EngineText", "Formula", "Setting", "TsRank"]
