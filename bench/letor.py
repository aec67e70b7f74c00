"""Reading LETOR files: speed against scikit-learn, the second load against the first, peak memory against the matrix.

`python bench/letor.py` prints the table; bench/run.py collects `rows()`. Times are minima over repeats, warm.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import Row, show

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "letor" / "MQ2008" / "Fold1" / "train.txt.gz"
LARGE = 200_000_000
REPEATS = 10


def rows() -> list[Row]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"generated, 200 MB": generate(Path(folder) / "large.txt", LARGE)}
        if DATA.is_file():
            files["MQ2008 train"] = Path(folder) / "train.txt"
            files["MQ2008 train"].write_bytes(gzip.decompress(DATA.read_bytes()))
            files["MQ2008 train, gzipped"] = Path(folder) / "train.txt.gz"
            files["MQ2008 train, gzipped"].write_bytes(DATA.read_bytes())
        else:
            print(f"no MQ2008 at {DATA}: skipped", file=sys.stderr)
        time.sleep(3)  # a file that has just been written is hashed at each load: not what is measured here
        found = []
        for name, path in files.items():
            repeats = 3 if name.startswith("generated") else REPEATS
            found += [parse_row(name, path, repeats), cache_row(name, path, repeats)]
        return [*found, memory_row("generated, 200 MB", files["generated, 200 MB"])]


def generate(path: Path, size: int) -> Path:
    """A dense file of about `size` bytes that looks like MQ2008: 46 features of 6 decimals, a docid comment."""
    values = np.random.default_rng(0).random((512, 46)).round(6)
    block = [" ".join(f"{i + 1}:{value:.6f}" for i, value in enumerate(row)) for row in values]
    count = size // (len(block[0]) + 40)
    with path.open("w") as file:
        file.writelines(f"{r % 3} qid:{r // 40} {block[r % 512]} #docid = GX{r:011d}\n" for r in range(count))
    return path


def parse_row(name: str, path: Path, repeats: int) -> Row:
    from sklearn.datasets import load_svmlight_file

    from fliprank.data.letor import read_letor

    ours, theirs = fastest(
        repeats,
        lambda: read_letor(path, cache=False),
        lambda: load_svmlight_file(str(path), query_id=True),
    )
    return Row(f"parse {name}", "sklearn load_svmlight_file", theirs / ours, ">= 3")


def cache_row(name: str, path: Path, repeats: int) -> Row:
    from fliprank.data.letor import read_letor
    from fliprank.data.store import cache_path

    def first() -> None:
        if (cache := cache_path(path)) is not None:
            cache.unlink(missing_ok=True)
        read_letor(path)

    slow, quick = fastest(repeats, first, lambda: read_letor(path))
    return Row(f"second load of {name}", "the first load", slow / quick, ">= 30")


MEMORY = """
import sys
from fliprank.data.letor import read_letor

def peak():  # not ru_maxrss: a child starts with that of the process that started it
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

read_letor(sys.argv[1], cache=False)
before = peak()
features = read_letor(sys.argv[2], cache=False).features
print((peak() - before) / features.nbytes)
"""


def memory_row(name: str, path: Path) -> Row:
    """Growth of the peak of resident memory over that of a process that has read a small file."""
    small = generate(path.with_name("small.txt"), 10_000)
    run = subprocess.run([sys.executable, "-c", MEMORY, str(small), str(path)], capture_output=True, check=True)
    return Row(f"peak memory of parsing {name}", "the float32 matrix", float(run.stdout), "<= 1.5")


def fastest(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """The shortest time of each call. They take turns, equally often, so that noise is no one's advantage."""
    times = np.empty((repeats + 1, len(calls)))
    for turn in times:
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            turn[k] = time.perf_counter() - start
    return [float(value) for value in times[1:].min(0)]  # the first turn warms up


if __name__ == "__main__":
    show(rows())
