"""One browser for all tests, and the reports that they look at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import DESKTOP, Browser, chromium
from pages import hostile_page, large_page, other_pages


@pytest.fixture(scope="session")
def tab() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(tab: Browser) -> Browser:
    tab.screen(DESKTOP)
    return tab


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `fliprank demo` writes."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    subprocess.run([sys.executable, "-m", "fliprank", "demo", "--quiet", "--out", str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_page(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_page(tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="session")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return other_pages(tmp_path_factory.mktemp("others"))
