"""Rows and documents on local clusters of 1, 2 and 4 workers: what that costs over one process, and how it grows.

    python bench/cluster.py                          # the tables of make bench
    python bench/cluster.py --page docs/cluster.md   # the same and the plan for many machines, into that page

Workers have one thread each, and so has the one process that they are compared with. `--rows` takes fewer (millions).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import fliprank as fr
from fliprank.data.row_file import write_rows
from fliprank.optimize.problem import Problem

FEATURES, PER_QUERY, SHARD, DEPTH = 136, 120, 250_000, 1000
MACHINES, THREADS = 100, 32
ROW = 4 * FEATURES + 3 * 8
"""Bytes of a row: its features, label, score and slope."""
PER_TB = 1e12 / ROW / 1e9
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def shard(number: int, rows: int) -> fr.Candidates:
    """Rows of MSLR-WEB30K's shape: five grades that depend on some features, not linearly."""
    rng, queries = np.random.default_rng(number), rows // PER_QUERY
    features = rng.normal(size=(queries * PER_QUERY, FEATURES)).astype(np.float32)
    truth = features[:, 0] + np.tanh(features[:, 1]) * features[:, 2] + rng.normal(size=len(features))
    labels = np.digitize(truth, [0.5, 1.5, 2.3, 3.2]).astype(float)
    qids = np.repeat(np.arange(number * queries, (number + 1) * queries), PER_QUERY)
    return fr.Candidates.of(labels, qid=qids, features=features)


def median(function: Callable[[], Any], times: int = 5) -> float:
    """Milliseconds, warm."""
    function()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        taken.append(1000 * (time.perf_counter() - begun))
    return float(np.median(taken))


def steps_of(rows: Any, model: fr.Model) -> dict[str, float]:
    """Milliseconds of a gradient, a measure and an exact line."""
    problem = Problem.of(model, rows, "nDCG@10", fr.LambdaRank())
    rng, at = np.random.default_rng(0), model.initialised(0).params.free_values

    def moved() -> Any:
        return at + 0.01 * rng.normal(size=len(at))

    place, along = problem.place(at), np.eye(len(at))[5]
    return {
        "gradient": median(lambda: problem.value_and_grad(moved())),
        "measure": median(lambda: problem.measure_at(moved())),
        "exact line": median(lambda: problem.trajectory(place, along, resolution=1e-3), 3),
    }


def on_cluster(paths: list[Path], model: fr.Model, workers: int) -> dict[str, Any]:
    """The same on a local cluster, with what a trip and an exact line bring along."""
    os.environ["NUMBA_NUM_THREADS"] = "1"
    with fr.on(f"local:{workers}") as cluster:
        begun = time.perf_counter()
        rows = cluster.read(paths, shards=len(paths))
        read = time.perf_counter() - begun
        found: dict[str, Any] = {**steps_of(rows, model), "read": 1000 * read}
        found["trip"] = median(
            lambda: cluster.cluster.ask("echo", rows.numbers, lambda some: some, lambda name: {}), 20
        )
        costs = {line["question"]: line for line in cluster.cluster.costs.by_question()}
        work = [line["work_ms"] for line in cluster.cluster.costs.by_shard()]
        found["spread"] = max(work) / (sum(work) / len(work))
        for name in ("value_and_grad_of", "steps_of"):
            found[f"{name} bytes"] = costs[name]["sent"] + costs[name]["received"]
    return found


def documents_of(folder: Path, many: int) -> tuple[list[Path], dict[str, str]]:
    """Four files of generated documents, and queries."""
    rng, words = np.random.default_rng(0), np.array([f"word{i}" for i in range(20_000)])
    share = 1 / np.arange(1, len(words) + 1)
    paths = []
    for part in range(4):
        paths.append(folder / f"docs-{part}.jsonl")
        with paths[-1].open("w") as file:
            for number in range(many // 4):
                text = " ".join(words[rng.choice(len(words), 80, p=share / share.sum())])
                file.write(json.dumps({"_id": f"{part}-{number}", "title": text[:40], "body": text}) + "\n")
    return paths, {f"q{i}": f"word{7 * i} word{50 + i}" for i in range(200)}


def documents_table(folder: Path, many: int) -> tuple[list[str], dict[str, float]]:
    """Candidates of 200 queries from one index, and from four on one and two workers."""
    paths, queries = documents_of(folder, many)
    told = [f"| documents | index | candidates, {len(queries)} queries x {DEPTH} |", "|---|---:|---:|"]
    begun = time.perf_counter()
    lines = [json.loads(line) for path in paths for line in path.open()]
    one = fr.Index.build(lines)
    built = time.perf_counter() - begun
    pooled = median(lambda: one.candidates(queries, depth=DEPTH), 3)
    told.append(f"| {many:,}, one index, one process | {built:.1f} s | {pooled:,.0f} ms |")
    found: dict[str, float] = {}
    for workers in (1, 2):
        with fr.on(f"local:{workers}") as cluster, tempfile.TemporaryDirectory() as place:
            begun = time.perf_counter()
            index = cluster.index(paths, folder=place)
            built = time.perf_counter() - begun
            size = sum(file.stat().st_size for file in Path(place).iterdir())
            pooled = median(lambda index=index: index.candidates(queries, depth=DEPTH), 3)  # type: ignore[misc]
            costs = {line["question"]: line for line in cluster.cluster.costs.by_question()}
            told.append(f"| {many:,}, 4 shards, {_workers(workers)} | {built:.1f} s | {pooled:,.0f} ms |")
        if workers == 1:
            top, rows = costs["documents: top"], costs["documents: rows"]
            found = {"build": built / many, "size": size / many, "search": top["work_ms"] / len(queries) / many}
            found |= {"top": top["received"] / 4 / len(queries), "rows": rows["received"] / len(queries)}
    told += ["", f"An index has {found['size']:,.0f} bytes per document; the candidates that come back have "]
    told[-1] += f"{found['rows'] * len(queries) / 1e6:.1f} MB."
    return told, found


def tables(folder: Path, millions: float, many: int) -> tuple[list[str], dict[str, Any]]:
    shards = max(4, int(millions * 1e6 / SHARD))
    size, paths = int(millions * 1e6 / shards), list[Path]()
    for number in range(shards):
        paths.append(folder / f"part-{number:03d}.rows")
        write_rows(paths[-1], shard(number, size))
    first = fr.Linear().prepared(shard(0, size), 0)
    numba.set_num_threads(1)
    told = [
        "| rows x 136 | where | gradient | measure | exact line | over one process |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    found: dict[str, Any] = {}
    for share in (1 / 8, 1 / 2, 1):
        some = paths[: max(1, round(shards * share))]
        here = [fr.read_candidates(path) if path.suffix != ".rows" else _mapped(path) for path in some]
        alone, count = steps_of(here, first), sum(map(len, here))
        told.append(f"| {count:,} | one process | {_ms(alone)} | |")
        for workers in (1, 2, 4):
            far = on_cluster(some, first, workers)
            ratio = far["gradient"] / alone["gradient"]
            told.append(f"| {count:,} | {_workers(workers)} | {_ms(far)} | {ratio:.2f} |")
            found[f"{share} {workers}"] = far
        found["alone"], found["rows"] = alone, count
    trips = {workers: found[f"1 {workers}"]["trip"] for workers in (1, 2, 4)}
    told += ["", "Milliseconds, medians. A question that asks nothing takes " + _trips(trips) + "."]
    lines, found["documents"] = documents_table(folder, many)
    return [*told, "", *lines], found


def _mapped(path: Path) -> fr.Candidates:
    from fliprank.data.row_file import RowFile

    file = RowFile(path)
    return file.part(0, file.queries)


def _ms(found: dict[str, float]) -> str:
    return " | ".join(f"{found[name]:,.1f}" for name in ("gradient", "measure", "exact line"))


def _trips(trips: dict[int, float]) -> str:
    return ", ".join(f"{ms:.1f} ms with {_workers(workers)}" for workers, ms in trips.items())


def _workers(many: int) -> str:
    return f"{many} worker{'s' if many > 1 else ''}"


def plan(found: dict[str, Any]) -> list[str]:
    """10^9 rows and 10^8 documents on 100 machines, from what was measured here."""
    far, alone, rows = found["1 4"], found["alone"], found["rows"]
    per_trip = max(far["trip"] - found["1 1"]["trip"], 0.1) / 3 * MACHINES + found["1 1"]["trip"]
    own = 1e9 / MACHINES / THREADS / rows
    gradient, line = own * alone["gradient"], own * alone["exact line"]
    bytes_back = far["value_and_grad_of bytes"] * MACHINES / 4
    steps = far["steps_of bytes"] * 1e9 / rows
    memory = 1e9 / MACHINES * ROW / 1e9
    return [
        f"From the figures above, for {MACHINES} machines of {THREADS} threads, and a network of 10 Gbit/s:",
        "",
        "| 10⁹ rows x 136 | per step | limit |",
        "|---|---:|---|",
        f"| memory of a machine: features, labels, scores | {memory:.1f} GB | memory: {PER_TB:.1f} x 10⁹ rows per TB |",
        f"| gradient: work of a thread | {gradient:,.0f} ms | rows per thread |",
        f"| gradient: {MACHINES} messages of {bytes_back / MACHINES / 1000:.1f} kB, one scheduler | {per_trip:,.0f} ms "
        "| network: latency, by message |",
        f"| gradient: slowest shard over the mean, as measured | x {far['spread']:.2f} | stragglers |",
        f"| exact line: work of a thread | {line:,.0f} ms | rows per thread |",
        f"| exact line: {steps / 1e9:,.1f} GB of steps to one process | {steps / 1.25e9:,.1f} s | network: bandwidth |",
        "",
        *documents_plan(found["documents"]),
    ]


def documents_plan(found: dict[str, float]) -> list[str]:
    """10^8 documents with one shard per machine, a round of candidates for 1,000 queries."""
    own, queries = 1e8 / MACHINES, 1000
    top, rows = MACHINES * queries * found["top"], queries * found["rows"]
    search = own * queries * found["search"] / 1000 / THREADS
    return [
        f"| 10⁸ documents, one shard per machine; {queries:,} queries x {DEPTH:,} | per round | limit |",
        "|---|---:|---|",
        f"| index of a machine, mapped from its disk | {own * found['size'] / 1e9:,.2f} GB | disk, then memory |",
        f"| building it, once, one thread | {own * found['build']:,.0f} s | documents per machine |",
        f"| search: work of a machine | {search:,.1f} s | postings per thread |",
        f"| search: the best {DEPTH:,} of every shard, {top / 1e9:,.1f} GB to one process | {top / 1.25e9:,.1f} s "
        "| network: bandwidth, by shards |",
        f"| rows to tune on, {rows / 1e6:,.0f} MB to one process | {rows / 1.25e9:,.2f} s "
        "| memory of the one process that tunes |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=4.0, help="millions of rows")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told, found = tables(Path(folder), given.rows, given.documents)
    if given.page is None:
        print("\n".join(told))
        return
    text = given.page.read_text()
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    given.page.write_text("\n".join([head + BEGIN, "", *told, "", *plan(found), "", END]) + tail)


if __name__ == "__main__":
    main()
