"""Robertson & Zaragoza 2007, On rank-based effectiveness measures and optimization.

`examples` has the paper's two examples with Figures 1 to 5; `optima` Theorem 1, what measures share, and how optima
change with the number of queries, on real training sets; `conditions` Theorem 2, jitter, and the steps of an optimiser.
"""

from fliprank.papers.robertson2007 import examples, optima, conditions  # noqa: F401, I001 (in the paper's order)
