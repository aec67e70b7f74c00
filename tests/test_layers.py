"""One direction only: a package imports from those before it, never from those after it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import fliprank

ROOT = Path(fliprank.__file__).parent
ORDER = ["data", "models", "text", "measures", "objectives", "landscape", "optimize", "experiment", "distributed"]
ORDER += ["export", "engines", "clusters", "report", "papers", "integrations", "console", "cli"]
EVERYWHERE = {"arrays", "checked", "defaults", "errors", "forks", "kernels", "naming", "parallel", "random_words"}


def imports(path: Path) -> set[str]:
    """The parts of fliprank that a module imports, also inside functions, but not for type checkers only."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "fliprank":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fliprank."):
            names.add((node.module or "").split(".")[1])
    return names - EVERYWHERE - {"__version__"}


def test_packages_import_only_from_those_before_them() -> None:
    checked = 0
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part in ORDER:
            later = {name for name in imports(path) if ORDER.index(name) > ORDER.index(part)}
            assert not later, f"{path.relative_to(ROOT)} imports {later}"
            checked += 1
        elif part in EVERYWHERE:
            assert not imports(path), f"{path.relative_to(ROOT)} imports {imports(path)}"
    assert checked > 20


def test_help_needs_none_of_the_heavy_packages() -> None:
    code = "import sys, fliprank.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "numba", "scipy", "polars"} & set(loaded)


def test_every_public_name_loads() -> None:
    for name in fliprank.__all__:
        assert getattr(fliprank, name) is not None
