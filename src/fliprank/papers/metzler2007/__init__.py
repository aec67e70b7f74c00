"""Metzler 2007: Using gradient descent to optimize language modeling smoothing parameters."""

from fliprank.papers.metzler2007 import estimates, table1

__all__ = ["estimates", "table1"]
