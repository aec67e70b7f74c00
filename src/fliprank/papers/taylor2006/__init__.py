"""Taylor, Zaragoza, Craswell, Robertson & Burges 2006: Optimisation methods for ranking functions with multiple
parameters."""

# In the order of the paper.
# isort: off
from fliprank.papers.taylor2006 import surfaces, curves, features, cost

__all__ = ["cost", "curves", "features", "surfaces"]
