"""Rows and documents on other machines: the same questions, asked of Dask workers (extra `cluster`)."""
