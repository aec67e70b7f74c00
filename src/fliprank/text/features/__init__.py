"""Hundreds of named features per row, from an index."""
