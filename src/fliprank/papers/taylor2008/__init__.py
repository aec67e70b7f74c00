"""Taylor, Guiver, Robertson & Minka 2008: SoftRank, optimizing non-smooth rank metrics."""

# In the order of the paper.
# isort: off
from fliprank.papers.taylor2008 import distributions, readings, sweep, tables, discounts

__all__ = ["discounts", "distributions", "readings", "sweep", "tables"]
