"""Targets of the fuzzer that are no text: Parquet, models, indexes, caches, checkpoints."""

from __future__ import annotations

import hashlib
import io
import os
import random
import tempfile
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import Files, json_text, mutated, raw, spoilt_npz, spoilt_store
from fuzz_target import ROWS, TARGETS, Target, add, build, index, only, rank
from fuzz_text_targets import LETOR, STATISTICS, convert_and_read

import fliprank as fr
from fliprank.data.row_file import write_rows
from fliprank.data.store import cache_path, read_arrays
from fliprank.models.trees import Forest
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import Lbfgs
from fliprank.optimize.problem import Problem

__all__: list[str] = []


def frames(rng: random.Random, files: Files) -> Files:
    """A Parquet file with other columns, or with other values in them; sometimes bytes of it are changed."""
    import polars as pl

    columns: list[list[Any]] = [
        ["a", "b"],
        ["1", "2"],
        [1, 2],
        [1, None],
        [None, None],
        [1.5, float("nan")],
        [float("inf"), 1e39],
        [True, False],
        [[1], [2, 3]],
        [{"x": 1}, {"x": 2}],
        [b"\xff", b"a"],
        ["x", "x"],
        [],
        ["", ""],
        [2**63, 1],
        [-1, 0],
        [1e308, 0],
    ]
    chosen: dict[str, list[Any]] = {
        "qid": ["a", "b"],
        "docid": ["x", "y"],
        "label": [1, 0],
        "bm25": [0.5, 2.0],
        "_id": ["1", "2"],
        "title": ["red", ""],
    }
    for name in rng.sample([*chosen, "x"], rng.choice([0, 1, 1, 2, 4])):
        chosen[name] = rng.choice(columns)
    for name in rng.sample(list(chosen), rng.choice([0, 1, 2])):
        del chosen[name]
    rows = min((len(values) for values in chosen.values()), default=0)
    file = io.BytesIO()
    pl.DataFrame({name: values[:rows] for name, values in chosen.items()}, strict=False).write_parquet(file)
    return {"x.parquet": file.getvalue()}


def parquet_seeds() -> list[Files]:
    """Rows, and documents."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "x.parquet")
        rows = fr.Candidates.of([1, 0, 2], qid=["a", "a", "b"], docids=["x", "y", "z"], features=[[0.5], [2], [3]])
        fr.write_parquet(path, rows)
        return [{"x.parquet": path.read_bytes()}]


def read_parquets(folder: Path) -> None:
    """Rows or documents, whichever they are."""
    found = []
    for read in (lambda: rank(fr.read_parquet(only(folder))), lambda: build(folder)):
        try:
            read()
        except fr.FliprankError as error:
            found.append(error)
    if found:
        raise found[0]


TARGETS["parquet"] = Target(cache(parquet_seeds), frames, read_parquets)
TARGETS["parquet-bytes"] = Target(cache(parquet_seeds), partial(mutated, change=raw), read_parquets)


def shard_seeds() -> list[Files]:
    """A file of rows, with ids of documents and judged ones that are not among the rows, and one without."""
    with tempfile.TemporaryDirectory() as name:
        rows = fr.Candidates.of([1, 0, 2], qid=["a", "a", "b"], docids=["x", "y", "z"], features=[[0.5], [2], [3]])
        found = list[Files]()
        for part in (rows.take([0, 2]), fr.Candidates.of([1, 0], features=[[1.0], [2.0]])):
            write_rows(Path(name, "x.rows"), part)
            found.append({"x.rows": Path(name, "x.rows").read_bytes()})
        return found


def read_shards(folder: Path) -> None:
    rows = fr.open_rows(folder / "x.rows", memory=300)
    for part in rows.each(lambda part: part):
        rank(part)
    rank(rows.gather(np.arange(rows.queries)))


TARGETS["shards"] = Target(cache(shard_seeds), partial(mutated, change=spoilt_store), read_shards)
TARGETS["shards-bytes"] = Target(cache(shard_seeds), partial(mutated, change=raw), read_shards)


def folder_seeds() -> list[Files]:
    """A folder as `convert` writes it, with the statistics of its features."""
    with tempfile.TemporaryDirectory() as name:
        fr.convert(fr.Candidates.of([1, 0, 2], features=[[1.0], [2.0], [4.0]]), Path(name, "shards"))
        return [{path.name: path.read_bytes() for path in Path(name, "shards").iterdir()}]


def change_statistics(rng: random.Random, files: Files) -> Files:
    """What is said of the shard changed, which is no reason to refuse it; now and then the shard itself."""
    which, change = ("00000.rows", raw) if rng.random() < 0.2 else ("rows.json", json_text)
    return files | mutated(rng, {which: files[which]}, change)


TARGETS["shards-statistics"] = Target(
    cache(folder_seeds), change_statistics, lambda folder: fr.Linear().prepared(fr.open_rows(folder), 0)
)


TARGETS["convert-parquet"] = Target(cache(parquet_seeds), frames, lambda folder: convert_and_read(folder / "x.parquet"))


def model_seeds() -> list[Files]:
    """Saved models of several kinds, with arrays beside them and without."""
    forest = fr.Trees(forest=_forest())
    models = [
        fr.Linear().prepared(ROWS, 1), fr.Network(3).prepared(ROWS, 2), fr.Network(400).prepared(ROWS, 3), forest,
        fr.Cascade([fr.Linear(), fr.Network(2)], sizes=[5, 2]).prepared(ROWS, 1), fr.BM25F().prepared(_terms(), 0),
        fr.Stack(fr.BM25F(), fr.Feature("pagerank", transform="log")).prepared(_terms(), 0),
        fr.TwoStageLM().prepared(_terms(), 0),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        for number, model in enumerate(models):
            model.save(Path(name, str(number)))
        return [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in sorted(Path(name).iterdir())]


def _forest() -> Any:
    names = ROWS.feature_names
    nodes = [{"feature": names[0], "at_most": 2.5, "above": 2, "missing": "above"}, {"value": -1.0}, {"value": 0.5}]
    return Forest.of([nodes, [{"value": 0.25}]])


@cache
def _terms() -> fr.Candidates:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "x")
        path.write_bytes(STATISTICS)
        return fr.read_statistics(path)


def change_model(rng: random.Random, files: Files) -> Files:
    """model.json changed; or the arrays, with the checksum in model.json right again."""
    arrays = next((name for name in files if name.endswith(".npz")), None)
    if arrays is None or rng.random() < 0.4:
        return mutated(rng, {"model.json": files["model.json"]}, json_text) | {
            n: files[n] for n in files if n == arrays
        }
    data = files[arrays]
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = spoilt_npz(rng, data)
    old, new = (hashlib.sha256(content).hexdigest().encode() for content in (files[arrays], data))
    return {"model.json": files["model.json"].replace(old, new), arrays: data}


def read_model(folder: Path) -> None:
    """Load the model, and score the rows that it needs."""
    model = fr.load_model(folder)
    model.score(_terms() if "terms" in model.needs else ROWS)


TARGETS["model"] = Target(cache(model_seeds), change_model, read_model)


def index_seeds() -> list[Files]:
    """An index as `tune` writes it."""
    with tempfile.TemporaryDirectory() as name:
        index().save(Path(name, "x.index"))
        return [{"x.index": Path(name, "x.index").read_bytes()}]


@add("index", spoilt_store, index_seeds)
def _index(folder: Path) -> None:
    opened = fr.Index.open(only(folder), check=True)
    opened.search({"q": "red sky"}, depth=3)
    rows = opened.candidates({"q": "blue shoes that are red"}, {"q": {"d1": 1}}, depth=3)
    fr.BM25F().prepared(rows, 0).score(rows)
    fr.feature_rows(opened, {"q": "red shoes"}, depth=2)


@cache
def _letor_file() -> Path:
    path = Path(tempfile.mkdtemp()) / "rows.txt"
    path.write_bytes(LETOR)
    return path


def cache_seeds() -> list[Files]:
    """The cache of a LETOR file."""
    fr.read_letor(_letor_file())
    found = cache_path(_letor_file())
    assert found is not None
    return [{"x": found.read_bytes()}]


@add("letor-cache", spoilt_store, cache_seeds)
def _letor_cache(folder: Path) -> None:
    """Whatever the cache holds, the rows are those of the file, or those of a cache that somebody made to fit it."""
    place = cache_path(_letor_file())
    assert place is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(only(folder).read_bytes() if any(folder.iterdir()) else b"")
    with suppress(Exception):  # no time that a file can have: the cache is then not trusted
        written = int(read_arrays(place)[0]["written"])
        os.utime(place, ns=(written, written))
    rank(fr.read_letor(_letor_file()))


def recorder(place: Path) -> Recorder:
    """The recorder of a run whose checkpoint is at `place`."""
    rows = fr.Candidates.of([1, 0, 2, 0] * 3, group=[4] * 3, features=np.arange(24.0).reshape(12, 2) % 7)
    problem = Problem.of(
        fr.Linear().prepared(rows, 1), rows, fr.parse_measure("nDCG@10"), fr.parse_objective("ranknet")
    )
    return Recorder(problem, checkpoint=place, key="k")


def checkpoint_seeds() -> list[Files]:
    """A run that was ended after two epochs."""
    with tempfile.TemporaryDirectory() as name:
        kept = recorder(Path(name, "x"))
        Lbfgs(epochs=2).run(kept.problem, kept, np.random.default_rng(0))
        return [{"x": Path(name, "x").read_bytes()}]


@add("checkpoint", spoilt_store, checkpoint_seeds)
def _checkpoint(folder: Path) -> None:
    again = recorder(only(folder))
    if again.resume() and not again.finished:
        Lbfgs(epochs=3).run(again.problem, again, np.random.default_rng(0))
    again.finish()
    if again.best is not None:
        again.fit()
