"""One real cluster of two processes for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clusters_here import local_client


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    with local_client(2) as here:
        yield here


@pytest.fixture
def doomed() -> Iterator[Any]:
    """A cluster of its own for each test that kills."""
    with local_client(2) as here:
        yield here
