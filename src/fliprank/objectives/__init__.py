"""Smooth objectives."""
