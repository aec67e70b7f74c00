"""The five papers by command: one file per paper, one function per table, figure or theorem."""

# They register their parts.
from fliprank.papers import matveeva2006, metzler2007, robertson2007, taylor2006, taylor2008  # noqa: F401
from fliprank.papers.part import PARTS, Finding, Part, Setting, find_parts

__all__ = ["PARTS", "Finding", "Part", "Setting", "find_parts"]
