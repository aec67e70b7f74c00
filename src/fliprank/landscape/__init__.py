"""What a measure looks like from parameter space: flips, and the exact trajectory of a measure along a line.

Robertson & Zaragoza 2007: a rank-based measure changes only where two documents of a query swap places.
"""

from fliprank.landscape.flips import Flips, find_flips
from fliprank.landscape.trajectory import Plateau, Trajectory, score_trajectory

__all__ = ["Flips", "Plateau", "Trajectory", "find_flips", "score_trajectory"]
