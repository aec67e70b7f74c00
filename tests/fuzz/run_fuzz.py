"""Fuzzing: every reader is given inputs that nobody meant to write, and must return or raise one of our own errors.

    make fuzz                       20,000 inputs per reader
    make fuzz N=1000 ONLY=letor,run
    make fuzz SEED=7                others

Inputs are valid files with something changed (`fuzz_mutations.py`), the same for the same seed. A failure is made small
and written to FOUND/READER/NAME, with `outcome.txt` beside its files. Once it is mended, the folder belongs in
`tests/fuzz/kept/READER/`, which `make test` runs.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fuzz_targets
from fuzz_mutations import Files
from fuzz_runner import FINE, Runner, fill, kind_of, minimised

__all__ = ["fuzz", "input_of"]


def input_of(targets: dict[str, fuzz_targets.Target], name: str, seed: int, number: int) -> Files:
    """Input `number` of a target."""
    rng = random.Random(f"{seed} {name} {number}")
    target = targets[name]
    return target.change(rng, rng.choice(target.seeds()))


def fuzz(runner: Runner, name: str, inputs: int, seed: int = 0) -> tuple[Counter[str], dict[str, Files]]:
    """How often each outcome came, and the first input of each kind of failure, made small."""
    import importlib

    targets = importlib.import_module(runner.module).TARGETS
    counts, failures = Counter[str](), dict[str, Files]()
    for number in range(inputs):
        files = input_of(targets, name, seed, number)
        outcome = runner.outcome(name, files)
        counts[outcome if outcome in FINE else "failed"] += 1
        if outcome not in FINE and kind_of(outcome) not in failures:
            failures[kind_of(outcome)] = {**minimised(runner, name, files), "outcome.txt": outcome.encode()}
    return counts, failures


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000, help="inputs per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers, with commas between them; all by default")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="folder for inputs that failed")
    parser.add_argument("--jobs", type=int, default=2, help="readers at once")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name] or list(fuzz_targets.TARGETS)
    if unknown := set(names) - fuzz_targets.TARGETS.keys():
        parser.error(f"no reader {sorted(unknown)[0]!r}; there are {', '.join(fuzz_targets.TARGETS)}")

    def one(name: str) -> int:
        begun = time.perf_counter()
        with Runner("fuzz_targets") as runner:
            counts, failures = fuzz(runner, name, given.inputs, given.seed)
        for kind, files in failures.items():
            place = given.found / name / hashlib.sha256(kind.encode()).hexdigest()[:8]
            if not place.exists():
                fill(place, files)
            print(f"  {name}: {files['outcome.txt'].decode()[:160]!r}: {place}")
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        print(f"{name}: {told} ({time.perf_counter() - begun:.0f} s)", flush=True)
        return len(failures)

    with ThreadPoolExecutor(given.jobs) as pool:
        failed = sum(pool.map(one, names))
    sys.exit(f"{failed} kinds of failures: see {given.found}" if failed else 0)


if __name__ == "__main__":
    main()
