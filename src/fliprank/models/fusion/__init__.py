"""Several ranked lists fused to one, as search engines do it: see `model.py`, and docs/fusion.md for the formulas."""

from fliprank.models.fusion.adaptive import AdaptiveFusion
from fliprank.models.fusion.engines import ENGINES, engine_names, make_rule
from fliprank.models.fusion.model import Fusion

__all__ = ["ENGINES", "AdaptiveFusion", "Fusion", "engine_names", "make_rule"]
