"""A set of MSLR-WEB30K's shape, in memory and out of core, against LightGBM's 500 trees in the same run.

    python bench/scale.py            # 31,000 queries, 3.7 million rows, 136 features
    python bench/scale.py 0.05       # a twentieth of it

The set is generated block by block into shards: five grades, a truth that is not linear, as many rows per query as
there. Every piece of work runs in a process of its own, which compiles on some queries first, and tells its time and
its peak memory. In memory, rows are read from the shards before the clock starts; out of core they stay there, and are
read within it, again in each epoch.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import Row, show

import fliprank as fr
from fliprank.data.row_file import write_rows

QUERIES, FEATURES, MEAN_ROWS, BLOCK, TREES = 31_000, 136, 119.4, 500, 500
MEMORY = "2GB"
SMALL = 200
"""Queries to compile on: enough rows for the kernels that cut them into chunks."""
MEASURE = "nDCG(dcg='exp-log2')@10"
PLAIN: dict[str, Any] = {"restarts": 1, "sweep": False, "measure": MEASURE}
FITS: dict[str, tuple[fr.Model, dict[str, Any]]] = {
    "LambdaRank": (fr.Linear(), {"objective": "lambdarank@10"}),
    "SoftNDCG": (fr.Linear(), {"objective": "softndcg(sigma=0.3)"}),
    "exact ascent": (fr.Linear(), {"method": "exact", "directions": "axes", "epochs": 2}),
    "network of 10": (fr.Network(10), {"objective": "softndcg(sigma=0.3)", "epochs": 60}),
}


def block(first: int, count: int) -> fr.Candidates:
    """Queries from `first` on; each block depends on its number alone."""
    rng, weights = np.random.default_rng([1, first]), np.random.default_rng(0).normal(size=(4, FEATURES))
    sizes = np.clip(rng.gamma(2.2, MEAN_ROWS / 2.2, count), 1, 1200).round().astype(np.int64)
    x = rng.standard_normal((int(sizes.sum()), FEATURES), np.float32)
    a, b, c, d = (x @ weights.T.astype(np.float32) / np.sqrt(FEATURES)).T
    hidden = a + np.tanh(2 * b) * c + 0.7 * np.maximum(d, 0) + np.repeat(0.5 * rng.normal(size=count), sizes)
    labels = np.digitize(hidden + 0.8 * rng.normal(size=len(hidden)), [0.4, 1.6, 2.9, 3.7])
    np.exp(x[:, ::3], out=x[:, ::3])  # a third of the columns have long tails, as counts do
    x[:, 1::3] = np.round(4 * x[:, 1::3]) / 4
    return fr.Candidates.of(labels, qid=np.repeat(np.arange(first, first + count), sizes), features=x)


def write_set(folder: Path, queries: int, first: int = 0) -> None:
    folder.mkdir(parents=True)
    for number, begin in enumerate(range(first, first + queries, BLOCK)):
        write_rows(folder / f"{number:04d}.rows", block(begin, min(BLOCK, first + queries - begin)))


def in_memory(folder: Path) -> fr.Candidates:
    rows = fr.open_rows(folder)
    return rows.gather(np.arange(rows.queries))


# Pieces of work, each in a process of its own


def job(name: str, where: str, folder: Path) -> dict[str, float]:
    """Time, peak memory and, of a model, its test measure."""
    with tempfile.TemporaryDirectory() as small:
        write_set(Path(small, "train"), SMALL, 10**6)
        _work(name, fr.open_rows(Path(small, "train")) if where == "files" else in_memory(Path(small, "train")), small)
    start = time.perf_counter()
    rows: Any = fr.open_rows(folder / "train", memory=MEMORY) if where == "files" else in_memory(folder / "train")
    read = time.perf_counter() - start
    start = time.perf_counter()
    model = _work(name, rows, folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    test = in_memory(folder / "test")
    value = float("nan") if model is None else fr.parse_measure(MEASURE).value(model.score(test), test)
    return {"seconds": seconds, "read": read, "peak": peak, "measure": value, "rows": len(rows)}


def _work(name: str, rows: Any, folder: str | Path) -> Any:
    if name == "trees":
        return _trees(rows)
    if name == "rank":
        near = isinstance(rows, fr.Candidates)
        model = fr.Linear().prepared((rows.select if near else rows.gather)(np.arange(5)), 0)
        parts: Iterator[Any] = iter([model.score(rows)]) if near else rows.each(_score, model)
        assert all(len(scores) for scores in parts)
        return None
    model, options = FITS[name]
    return fr.train(model, rows, **PLAIN, **options).model


def _score(part: fr.Candidates, model: fr.Model) -> np.ndarray:
    return model.score(part)


def _trees(rows: fr.Candidates) -> Any:
    """LightGBM by itself: its data set is made within the clock, of a matrix that is there."""
    import lightgbm

    settings = {"objective": "lambdarank", "lambdarank_truncation_level": 10, "verbosity": -1, "seed": 0}
    data = lightgbm.Dataset(rows.features, rows.labels, group=rows.sizes)
    grown = lightgbm.train(settings, data, TREES if rows.queries > SMALL else 2)

    class Grown:
        def score(self, test: fr.Candidates) -> np.ndarray:
            return np.asarray(grown.predict(test.features))

    return Grown()


def _asked(name: str, where: str, folder: Path) -> dict[str, float]:
    print(f"  {name}, {where} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, __file__, "job", name, where, folder], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    print(f"  {found}", file=sys.stderr, flush=True)
    return found


def rows(share: float) -> list[Row]:
    queries = max(SMALL + 1, round(QUERIES * share))
    with tempfile.TemporaryDirectory(prefix="fliprank-scale-") as place:
        folder, out = Path(place), list[Row]()
        start = time.perf_counter()
        write_set(folder / "train", queries)
        write_set(folder / "test", max(50, queries // 10), 2 * 10**6)
        print(f"  generated in {time.perf_counter() - start:.0f} s", file=sys.stderr)
        trees = _asked("trees", "memory", folder)
        size = f"{queries:,} queries, {trees['rows']:,.0f} rows x {FEATURES}"
        peer = f"LightGBM, {TREES} trees"
        out.append(Row(f"{size}: {peer}, peak GB (nDCG@10 {trees['measure']:.4f})", "-", trees["peak"] / 1e9, "-"))
        for name in (*FITS, "rank"):
            near, far = (_asked(name, where, folder) for where in ("memory", "files"))
            fitted = name in FITS
            told, less = f" (nDCG@10 {near['measure']:.4f})" if fitted else "", far["measure"] - near["measure"]
            out += [
                Row(f"{name} in memory{told}", peer, trees["seconds"] / near["seconds"], "above 1"),
                Row(f"{name} within {MEMORY}", peer, trees["seconds"] / far["seconds"], "above 1"),
                Row(f"time of {name} within {MEMORY}", "in memory", far["seconds"] / near["seconds"], "<= 2"),
                Row(f"peak GB of {name} in memory", "-", near["peak"] / 1e9, "<= 8"),
                Row(f"peak GB of {name} within {MEMORY}", "-", far["peak"] / 1e9, "<= 2"),
            ]
            out += [Row(f"test nDCG@10 of {name} within {MEMORY}, less", "in memory", less, "0")] if fitted else []
        read = in_memory(folder / "train")
        out.append(_text_row(read, folder, trees["seconds"], peer))
    return out


def _text_row(rows: fr.Candidates, folder: Path, seconds: float, peer: str) -> Row:
    """Reading the set as LETOR text, a block at a time, into shards."""
    few = rows.select(np.arange(max(1, rows.queries // 10)))
    fr.write_letor(folder / "train.txt", few)
    start = time.perf_counter()
    fr.convert(folder / "train.txt", folder / "shards")
    ratio = seconds / (time.perf_counter() - start)
    return Row(f"convert a tenth of it from LETOR text ({len(few):,} rows)", peer, ratio, "above 1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["job"]:
        print(json.dumps(job(sys.argv[2], sys.argv[3], Path(sys.argv[4]))))
    else:
        show(rows(float(sys.argv[1]) if sys.argv[1:] else 1.0))
