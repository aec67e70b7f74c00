"""Reports of collections that try to break them: hostile text everywhere, and thousands of queries."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import fliprank as fr
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.experiment.fusing import write_fused
from fliprank.experiment.jobs import train_and_write, tune_and_write
from fliprank.experiment.task import Queries, Task
from fliprank.models import BM25F
from fliprank.report.page import (
    evaluation_page,
    findings_page,
    fusing_page,
    training_page,
    tuning_page,
    write_page,
)

__all__ = ["TEXTS", "hostile_page", "large_page", "other_pages"]

TEXTS = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    '"><svg onload=window.hacked=3>',
    "javascript:window.hacked=4",
    "' onmouseover='window.hacked=5' \" `${window.hacked=6}`",
    "שלום עולם \u202eright to left\u202c مرحبا",
    "🙂🏳️‍🌈👩‍👩‍👧‍👦 emoji",
    "w" * 10_000,
    "terminal \x1b[2J\x1b[31mred\x07 escapes",
    "{{script}} {{content}} &lt;b&gt; &amp; <!-- <![CDATA[ ]]> -->",
    "'); DROP TABLE documents; -- =cmd|' /C calc'!A0",
    "https://example.org/?q=<script>window.hacked=7</script>",
]


def hostile_page(folder: Path) -> Path:
    """What `fliprank tune` writes of documents, queries and ids of the worst kind, as a person would run it."""
    docs = [
        {
            "_id": f"d{i}-{text.replace(' ', '_')[:90]}",
            "title": f"{text} title{i % 3}",
            "body": f"{text} body{i % 5} word{i}",
        }
        for i, text in enumerate(TEXTS * 3)
    ]
    queries = {f"q{i}": f"{text[:400]} title{i % 3} body{i % 5}" for i, text in enumerate(TEXTS)}
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    lines = (json.dumps({"_id": qid, "text": text}) + "\n" for qid, text in queries.items())
    (folder / "queries.jsonl").write_text("".join(lines))
    judged = [
        {"query": f"q{q}", "doc": doc["_id"], "label": int(i % 3 == q % 3) + int(i % 5 == q % 5)}
        for q in range(len(TEXTS))
        for i, doc in enumerate(docs)
        if (i + q) % 2
    ]
    text = "query-id\tcorpus-id\tscore\n"
    text += "".join(f"{each['query']}\t{each['doc']}\t{each['label']}\n" for each in judged)
    (folder / "qrels.tsv").write_text(text)
    files = ["--docs", "docs.jsonl", "--queries", "queries.jsonl", "--qrels", "qrels.tsv", "--folds", "2"]
    command = [sys.executable, "-m", "fliprank", "tune", *files, "--no-curve", "--quiet", "--out", "tuned"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "tuned" / "report.html"


def large_page(folder: Path, queries: int = 2000, size: int = 100) -> Path:
    """The report of a tuning on many queries of a hundred documents each."""
    rng, count = np.random.default_rng(0), queries * size
    tf = np.stack([rng.poisson(0.5, count), rng.poisson(3.0, count)], axis=1)
    length = np.stack([rng.integers(2, 9, count), rng.integers(20, 200, count)], axis=1) + tf
    ones = np.arange(queries + 1)
    terms = TermStatistics(
        ("title", "body"), ones, Ids.of(f"term{i}" for i in range(queries)), rng.uniform(1, 4, queries),
        np.arange(count + 1), tf, length,
    )  # fmt: skip
    labels = np.where(tf[:, 0] + rng.normal(0, 0.5, count) > 1, 2.0, 0.0)
    labels[rng.random(count) < 0.3] = np.nan
    docids = Ids.of(f"document-{i % 30_000}-{i // 30_000}" for i in range(count))
    rows = fr.Candidates(ones * size, labels, Ids.of(f"query-{i}" for i in range(queries)), docids, terms=terms)
    texts = {f"query-{i}": f"what people type number {i} into a box" for i in range(queries)}
    how = {"measure": "nDCG@10", "folds": 2, "curve": False, "recipes": None}
    task = Task(Queries(rows, texts))
    result = tune_and_write(BM25F(), task, folder, lambda _: nullcontext(None), **how)
    return write_page(folder / "report.html", tuning_page(result, "tuned", "fliprank tune"))


def other_pages(folder: Path) -> dict[str, Path]:
    """Small reports of a fusion, a training, a cascade, an evaluation and a paper."""
    rng = np.random.default_rng(0)
    labels = {f"q{q}": {f"d{i}": int(label) for i, label in enumerate(rng.integers(0, 3, 12))} for q in range(20)}
    lists = {
        name: {qid: {d: label + rng.normal(0, noise) for d, label in own.items()} for qid, own in labels.items()}
        for name, noise in (("text", 1.5), ("dense", 1.0))
    }
    fused = fr.fuse(lists, labels, measure="nDCG@5", folds=2)
    table = rng.normal(size=(240, 3))
    relevant = (table[:, 0] - table[:, 1] > 0.5).astype(float)
    rows = fr.Candidates.of(relevant, group=[12] * 20, features=table)
    task = Task(Queries(rows.select(range(12))), Queries(rows.select(range(12, 20))))
    how = {"measure": "nDCG@5", "objective": "ranknet", "restarts": 1, "epochs": 5, "method": "adam"}
    models = {"training": fr.Linear(), "cascade": fr.Cascade([fr.Linear(), fr.Linear()], sizes=[12, 4])}
    qrels, runs = fr.Qrels.of(labels), {name: fr.Run.of(own) for name, own in lists.items()}
    judged = fr.evaluate(qrels, runs, ["nDCG@5", "AP"])
    finding = {
        "paper": "someone2001", "part": "table1", "title": "A table", "claim": "It rises.", "found": "It rose.",
        "verdict": "holds", "columns": ["size", "value"], "rows": [[10, 0.25], [20, 0.5]], "notes": [],
        "command": "fliprank reproduce someone2001",
    }  # fmt: skip
    pages = {
        "fusion": fusing_page(fused, write_fused(folder / "fused", fused), "fused", "fliprank fuse"),
        "evaluation": evaluation_page(judged, judged.compare(), qrels, runs, command="fliprank evaluate"),
        "papers": findings_page([finding]),
    }
    for name, model in models.items():
        made = train_and_write(lambda _, m=model: m, [task], folder / name, lambda _: nullcontext(None), **how)
        pages[name] = training_page(made, name, "fliprank train")
    return {name: write_page(folder / f"{name}.html", page) for name, page in pages.items()}
