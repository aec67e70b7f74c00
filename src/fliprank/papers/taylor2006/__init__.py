"""Taylor, Zaragoza, Craswell, Robertson & Burges 2006: Optimisation methods for ranking functions with multiple
parameters."""

from fliprank.papers.taylor2006 import cost, curves, features, surfaces

__all__ = ["cost", "curves", "features", "surfaces"]
