"""What a process compiles and what it finds on disk give the same numbers, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

GRADIENTS = """
import numpy as np
from fliprank.data.candidates import Candidates
from fliprank.objectives import REGISTRY, parse_objective

rng = np.random.default_rng(0)
sizes = rng.integers(1, 25, 60)
rows = Candidates.of(rng.integers(0, 4, sizes.sum()), group=sizes, features=np.zeros((sizes.sum(), 1)))
scores = rng.normal(size=len(rows))
known = sorted(REGISTRY.keys() - {"softp", "softrecall"})
for name in (*known, "softp@5", "softrecall@5", "lambdarank@5", "softndcg@5"):
    value, by_score = parse_objective(name).value_and_grad(scores, rows)
    print(name, np.append(by_score, value).tobytes().hex())
"""


def test_kernels_that_are_compiled_and_those_on_disk_give_the_same_gradients(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GRADIENTS]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, on_disk = (
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
        for _ in range(2)
    )
    assert len(compiled) > 10
    assert compiled == on_disk
