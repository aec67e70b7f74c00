"""What a measure looks like from parameter space: flips, trajectories, regions, surfaces.

Robertson & Zaragoza 2007: a rank-based measure changes only where two documents of a query swap places.
"""

from fliprank.landscape.flips import Flips, find_flips
from fliprank.landscape.gains import FlipGain, flip_gains
from fliprank.landscape.model_trajectory import ModelTrajectory, between, trajectory
from fliprank.landscape.regions import Region, Regions, regions, score_regions
from fliprank.landscape.step_flips import Flip
from fliprank.landscape.step_function import Plateau, StepFunction, step_function
from fliprank.landscape.surface import Surface, surface
from fliprank.landscape.theorem import Agreement, Difference, share_optima
from fliprank.landscape.ties import tied_share
from fliprank.landscape.trail import Leg, Trail, along_trail, read_trail
from fliprank.landscape.trajectory import ScoreTrajectory, Trajectory, score_trajectory

__all__ = [
    "Agreement",
    "Difference",
    "Flip",
    "FlipGain",
    "Flips",
    "Leg",
    "ModelTrajectory",
    "Plateau",
    "Region",
    "Regions",
    "ScoreTrajectory",
    "StepFunction",
    "Surface",
    "Trail",
    "Trajectory",
    "along_trail",
    "between",
    "find_flips",
    "flip_gains",
    "read_trail",
    "regions",
    "score_regions",
    "score_trajectory",
    "share_optima",
    "step_function",
    "surface",
    "tied_share",
    "trajectory",
]
