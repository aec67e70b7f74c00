"""Taylor, Guiver, Robertson & Minka 2008: SoftRank, optimizing non-smooth rank metrics."""

from fliprank.papers.taylor2008 import discounts, distributions, sweep, tables

__all__ = ["discounts", "distributions", "sweep", "tables"]
