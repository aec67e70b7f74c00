"""After a fork: what needs threads that are gone raises at once; a child of an unused parent works as usual."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fliprank

FORK = """
import os, signal, sys
import numpy as np
import fliprank as fr

def rows():
    return fr.Candidates.of(np.arange(400) % 3, group=[40] * 10)

def measure():
    return fr.parse_measure("AP").value(np.arange(400) % 7, rows())

def index():
    return fr.Index.build([{"_id": "a", "title": "red shoes"}, {"_id": "b", "title": "sky"}]).terms.tolist()

def letor():
    fr.write_letor(sys.argv[3], rows())
    return len(fr.read_letor(sys.argv[3], cache=False))

before, after = (globals().get(name) for name in sys.argv[1:3])
if before is not None:
    before()
child = os.fork()
if child == 0:
    signal.alarm(300)  # ends a child that waits forever
    try:
        print("child:", after(), flush=True)
    except fr.FliprankError as error:
        print("refused:", error, flush=True)
    os._exit(0)
print("status:", os.waitpid(child, 0)[1], flush=True)
print("parent:", after(), flush=True)
"""


def forked(before: str, after: str, place: Path) -> list[str]:
    """What child and parent say if the parent did `before` ahead of the fork, and both do `after` then."""
    command = [sys.executable, "-c", FORK, before, after, str(place / "rows.txt")]
    environment = os.environ | {"PYTHONPATH": str(Path(fliprank.__file__).parent.parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    ("before", "after"), [("measure", "measure"), ("rows", "measure"), ("index", "index"), ("index", "letor")]
)
def test_a_child_whose_threads_are_gone_says_so_and_the_parent_goes_on(before: str, after: str, tmp_path: Path) -> None:
    child, status, parent = forked(before, after, tmp_path)
    assert child.startswith("refused: fliprank was used before this process was forked")
    assert "spawn" in child
    assert status == "status: 0"
    assert parent.startswith("parent: ")


@pytest.mark.parametrize("after", ["measure", "index", "letor"])
def test_a_child_of_a_process_that_had_no_threads_yet_works(after: str, tmp_path: Path) -> None:
    child, status, parent = forked("nothing", after, tmp_path)
    assert child.removeprefix("child: ") == parent.removeprefix("parent: ")
    assert status == "status: 0"


UNCACHED = """
import warnings
warnings.simplefilter("always")
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # as where neither the package's folder nor the user's can be written to
from fliprank.kernels import kernel, parallel_kernel
one, two = kernel(lambda x: x + 1), parallel_kernel(lambda x: x + 2)
print(one(1), two(1))
"""


def test_kernels_work_where_they_cant_be_cached_and_that_is_said_once() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(fliprank.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", UNCACHED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "3"]
    assert done.stderr.count("compiled kernels can't be kept") == 1
