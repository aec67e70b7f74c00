"""The same cluster as for the tests beside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from clusters_here import local_client

    with local_client(2) as here:
        yield here


@pytest.fixture
def doomed() -> Iterator[Any]:
    """A cluster of its own for each test that kills: a nanny whose worker is killed as it starts may give up."""
    from clusters_here import local_client

    with local_client(2) as here:
        yield here
