"""Matveeva et al. 2006, High accuracy retrieval with multiple nested ranker.

`sets` has the generated collections and the cascades trained on them; `tables` Tables 2 to 7, `figures` Figures 3 to 7,
`variants` what the paper only mentions or leaves open, and the same on real collections; `generated` says how like real
collections the generated ones are.
"""

# Parts that share a collection follow one another: it is generated once.
from fliprank.papers.matveeva2006 import figures, tables, variants, generated  # noqa: F401, I001
