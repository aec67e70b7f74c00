"""The rooms of text/: index arrays, then build and search, then features, then the Index that users see."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import fliprank

SRC = Path(fliprank.__file__).parents[1]
ROOMS = [("analysis", "vocabulary", "words", "index_arrays"), ("build", "search"), ("features", "titles"), ("index",)]
"""A room imports from itself and from earlier lines, never from its own line's other room or from later lines."""


def modules() -> dict[str, Path]:
    """The modules of text/ by their full names."""
    paths = (SRC / "fliprank" / "text").rglob("*.py")
    return {".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of text/ that a module imports: anywhere, inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known.keys()


def level(module: str) -> tuple[int, str]:
    """The line of a module's room in ROOMS, and the room."""
    room = module.split(".")[2]
    return next(i for i, rooms in enumerate(ROOMS) if room in rooms), room


def test_no_module_of_text_imports_itself_through_others() -> None:
    known = modules()
    TopologicalSorter({name: imports(path, known) for name, path in known.items()}).prepare()  # raises at a cycle


def test_rooms_of_text_import_only_from_rooms_before_them() -> None:
    known = modules()
    pairs = [(name, other) for name, path in known.items() for other in imports(path, known) if name.count(".") > 1]
    assert len(pairs) > 30
    for name, other in pairs:
        (own_level, own), (other_level, room) = level(name), level(other)
        first = own_level == other_level == 0
        assert own == room or first or other_level < own_level, f"{name} imports {other}"
