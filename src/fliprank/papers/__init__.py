"""The five papers by command, and our own tables: one file or folder per paper, one function per table or figure."""

# They register their parts.
from fliprank.papers import matveeva2006, metzler2007, own, robertson2007, taylor2006, taylor2008  # noqa: F401
from fliprank.papers.part import PARTS, Finding, Part, Setting, find_parts

__all__ = ["PARTS", "Finding", "Part", "Setting", "find_parts"]
