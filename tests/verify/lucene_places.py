"""Which Lucene a test runs: those that `make` puts into the virtual environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fliprank.engines.java import FOLDERS, newest_lucene


def use_lucene(patch: pytest.MonkeyPatch, major: int) -> None:
    """Take Lucene 8, which comes with `make test`, or 9, which comes with `make test-engines`.

    Where apt-get could not bring Lucene 8, `make` says so, and tests with it are skipped.
    """
    place = Path(sys.prefix) / ("lucene" if major == 8 else "lucene9")
    if major == 8 and not place.is_dir():
        pytest.skip("no Lucene: run `make .venv/lucene`, which takes it from Debian's packages by apt-get")
    patch.setenv(FOLDERS, str(place))
    assert newest_lucene().version[0] == major
