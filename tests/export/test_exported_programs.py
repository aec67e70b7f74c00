"""Programs that exports write for engines: valid Python, in which names from the user's files are nothing but names."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from fliprank.export import About, engine_model
from fliprank.export.target import find_target
from fliprank.models import EngineText

NAMES = ("title", 'x"); import os #', "{curly}", "back\\slash", "ü\n'''", "42")


@pytest.mark.parametrize(
    ("engine", "constant"), [("xapian", "PREFIXES"), ("xapian", "WEIGHTS"), ("lancedb", "BOOSTS"), ("milvus", "FIELDS")]
)
def test_names_of_fields_are_literals(engine: str, constant: str) -> None:
    formula = engine_model(engine).formula
    model = EngineText(formula, NAMES, tokens=np.ones(len(NAMES)), counted=np.ones(len(NAMES)))
    (program,) = find_target(engine, model).write(model, About()).files.values()
    tree = ast.parse(program)
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert tuple(values[constant]) == NAMES
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not any("os" in (alias.name for alias in node.names) for node in imports)
