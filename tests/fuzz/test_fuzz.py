"""Whatever a file holds, reading it gives data or one of our own errors: a brief run of the fuzzer, and all inputs that
once failed (`kept/READER/NAME/`). `make fuzz` is the long run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fuzz_targets
import fuzz_toys
import pytest
from fuzz_runner import FINE, Runner, fill, kind_of, minimised
from run_fuzz import fuzz, input_of

pytestmark = pytest.mark.long

KEPT = Path(__file__).parent / "kept"
CASES = sorted(path for path in KEPT.glob("*/*") if path.is_dir())


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner("fuzz_targets") as started:
        yield started


def files_in(folder: Path) -> dict[str, bytes]:
    """The input in a folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "outcome.txt")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_inputs_that_once_failed(case: Path, runner: Runner) -> None:
    assert runner.outcome(case.parent.name, files_in(case)) in FINE


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_valid_inputs_are_read_and_changed_ones_read_or_refused(name: str, runner: Runner) -> None:
    assert {runner.outcome(name, files) for files in fuzz_targets.TARGETS[name].seeds()} == {"read"}
    counts, failures = fuzz(runner, name, 100)
    assert not failures
    assert counts["refused"] > 0 or name == "letor-cache"  # a damaged cache is no reason to refuse the file


def test_the_same_seed_gives_the_same_inputs() -> None:
    targets = fuzz_targets.TARGETS
    for name in ("letor", "term-statistics", "index", "model"):
        inputs = [input_of(targets, name, 3, number) for number in range(20)]
        assert inputs == [input_of(targets, name, 3, number) for number in range(20)]
        assert inputs != [input_of(targets, name, 4, number) for number in range(20)]


def test_every_way_to_fail_is_noticed() -> None:
    with Runner("fuzz_toys", seconds=1.0) as toys:
        found = {word: toys.outcome("toy", {"x": word.encode()}) for word in ("fine", "refuse", "KeyError", "memory")}
        assert found["fine"] == "read"
        assert found["refuse"] == "refused"
        assert found["KeyError"].startswith("KeyError at fuzz_toys.py:")
        assert found["memory"].startswith("MemoryError at fuzz_toys.py:")
        assert toys.outcome("toy", {"x": b"loop"}) in ("takes too long", "hangs")  # which, is up to other processes
        assert toys.outcome("toy", {"x": b"crash"}) == "dies of signal 6"
        assert toys.outcome("toy", {"x": b"fine"}) == "read"


def test_a_failure_is_found_and_made_small(tmp_path: Path) -> None:
    with Runner("fuzz_toys") as toys:
        counts, failures = fuzz(toys, "mined", 100)
        assert counts["failed"] > 1
        (found,) = failures.values()
        assert found["x"] == b"KeyError"
        fill(tmp_path / "found", found)
        assert files_in(tmp_path / "found") == {"x": b"KeyError"}
        large = {"x": b"many words " * 50 + b"KeyError" + b"\n" * 50}
        assert minimised(toys, "toy", large) == {"x": b"KeyError"}
        assert kind_of(toys.outcome("toy", large)) == kind_of(found["outcome.txt"].decode())


def test_a_reader_that_sleeps_is_ended() -> None:
    assert fuzz_toys.TARGETS["toy"].read is fuzz_toys.toy
    with Runner("fuzz_toys", seconds=0.2) as toys:
        assert toys.outcome("toy", {"x": b"fine"}) == "read"
        assert toys.outcome("toy", {"x": b"sleep"}) == "hangs"
