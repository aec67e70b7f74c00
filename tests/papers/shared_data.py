"""Where the data of development is, and settings for quick runs on it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fliprank.papers import Setting
from fliprank.papers.data import find_data

FOLDER = Path(__file__).parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no shared data at {FOLDER}")


def quick(cache: Path, needs: Iterable[str], seed: int = 0) -> Setting:
    """How a test runs a part."""
    return Setting(True, find_data(needs, {}, FOLDER), cache, seed)
