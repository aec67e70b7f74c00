"""Ways to fit, one file each: by gradient down a smooth objective, or on the measure itself."""

from fliprank.optimize.methods.adam import Adam
from fliprank.optimize.methods.base import METHODS, Method, make_method, method_name, register
from fliprank.optimize.methods.coordinate_ascent import Brent, CoordinateAscent, Exact, Golden, Line, Sampled
from fliprank.optimize.methods.evolution import Evolution
from fliprank.optimize.methods.grid import Grid
from fliprank.optimize.methods.lbfgs import Lbfgs
from fliprank.optimize.methods.metzler2007 import Metzler2007
from fliprank.optimize.methods.powell import Powell
from fliprank.optimize.methods.taylor2006 import Taylor2006
from fliprank.optimize.methods.taylor2008 import Taylor2008

__all__ = [
    "METHODS",
    "Adam",
    "Brent",
    "CoordinateAscent",
    "Evolution",
    "Exact",
    "Golden",
    "Grid",
    "Lbfgs",
    "Line",
    "Method",
    "Metzler2007",
    "Powell",
    "Sampled",
    "Taylor2006",
    "Taylor2008",
    "make_method",
    "method_name",
    "register",
]
