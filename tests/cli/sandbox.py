"""A folder with all the files that the examples of help and docs name, small enough to run every one of them."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl

import fliprank as fr
from fliprank.cli import run
from fliprank.data.builtin import collection

TOPICS = ("shoes", "hats", "scarves", "bags", "gloves", "coats", "belts", "socks")
COLOURS = ("red", "blue", "green", "white", "black")


TUNED = {"--docs": "docs.jsonl", "--queries": "queries.tsv", "--qrels": "qrels.txt", "--out": "tuned"}
TUNING = ["--method", "lbfgs", "--set", "epochs=2", "--folds", "2", "--no-curve", "--quiet"]
"""How the folder `tuned` was made."""


def make_sandbox(folder: Path) -> Path:
    """Write everything; the models `fit`, `before`, `after`, `tuned` and `hybrid` are made of these files."""
    _text(folder)
    _letor(folder)
    _statistics(folder)
    _models(folder)
    (folder / "collections").mkdir()
    return folder


def _text(folder: Path) -> None:
    """A shop's documents, queries, judgements in all the shapes that examples use, and two runs."""
    pairs = [(colour, topic) for topic in TOPICS for colour in COLOURS]
    docs = [
        {"_id": f"d{i}", "title": f"{colour} {topic}", "body": f"{topic} in {colour} for all who like {TOPICS[i % 8]}"}
        for i, (colour, topic) in enumerate(pairs)
    ]
    for name in ("docs.jsonl", "seiten.jsonl"):
        (folder / name).write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    sold = [doc | {"sales": float(i % 7 + 1), "price": 2.0 ** (i % 9)} for i, doc in enumerate(docs)]
    (folder / "products.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in sold))
    (folder / "documents").mkdir()
    for part in range(2):
        (folder / "documents" / f"{part}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs[part::2]))
    rows = "".join(f"{doc['_id']},{doc['title']},{doc['body']}\n" for doc in docs)
    (folder / "catalogue.csv").write_text("id,title,body\n" + rows)
    texts = {f"q{i}": f"{colour} {topic}" for i, (colour, topic) in enumerate(pairs)}
    for name in ("queries.tsv", "anfragen.tsv"):
        (folder / name).write_text("".join(f"{qid}\t{text}\n" for qid, text in texts.items()))
    judged = [(f"q{i}", f"d{j}", 2 if i == j else int(i // 5 == j // 5)) for i in range(40) for j in _near(i)]
    cuts = {"qrels.txt": (0, 30), "train.qrels": (0, 24), "valid.qrels": (24, 32), "test.qrels": (32, 40)}
    for name, (low, high) in (cuts | {"test-qrels.txt": (30, 40)}).items():
        some = [each for each in judged if low <= int(each[0][1:]) < high]
        (folder / name).write_text("".join(f"{qid} 0 {docid} {label}\n" for qid, docid, label in some))
    lines = (f"{texts[qid]},{docid},{label}\n" for qid, docid, label in judged)
    (folder / "judgements.csv").write_text("query,docid,rating\n" + "".join(lines))
    (folder / "links.tsv").write_text("d1\tred boots\nd2\tblue boots\n")
    for name, shift in (("bm25.run", 1), ("tuned.run", 0), ("dense.run", 2)):
        ranked = [(q, (q + shift + rank) % 40, rank) for q in range(40) for rank in range(5)]
        hits = {f"q{q}": [{"_id": f"d{d}", "_score": 5.0 - r} for p, d, r in ranked if p == q] for q in range(40)}
        by_text = {texts[qid].replace(" ", "_"): {"hits": {"hits": found}} for qid, found in hits.items()}
        (folder / name.replace(".run", ".json")).write_text(json.dumps(by_text))
        (folder / name).write_text("".join(f"q{q} Q0 d{d} {rank + 1} {5 - rank} x\n" for q, d, rank in ranked))
    shutil.copytree(collection(), folder / "scifact")


def _near(i: int) -> list[int]:
    return sorted({(i + step) % 40 for step in (-2, -1, 0, 1, 7)})


def _letor(folder: Path) -> None:
    """Rows with 46 features, as MQ2008 has, and its folds."""
    rng = np.random.default_rng(0)

    def rows(queries: int) -> fr.Candidates:
        x = rng.normal(size=(queries * 8, 46))
        labels = np.clip(np.round(x[:, 0] - x[:, 1] + 0.5 * rng.normal(size=len(x))), 0, 2)
        return fr.Candidates.of(labels, group=[8] * queries, features=x)

    for name, queries in {"train.txt": 20, "vali.txt": 10, "test.txt": 10, "new.txt": 5, "rows.txt": 40}.items():
        fr.write_letor(folder / name, rows(queries))
    with gzip.open(folder / "test.letor.gz", "wb") as file:
        file.write((folder / "test.txt").read_bytes())
    (folder / "costs.txt").write_text("*=2\n")
    (folder / "scores.txt").write_text("".join(f"{value}\n" for value in rng.normal(size=80)))
    fr.write_parquet(folder / "rows.parquet", rows(20))
    pl.read_parquet(folder / "rows.parquet").write_csv(folder / "rows.csv")
    fr.convert(folder / "train.txt", folder / "shards")
    for fold in ("Fold1", "Fold2"):
        (folder / "MQ2008" / fold).mkdir(parents=True)
        for part in ("train", "vali", "test"):
            fr.write_letor(folder / "MQ2008" / fold / f"{part}.txt", rows(10))


def _statistics(folder: Path) -> None:
    """Term statistics of the shop's queries, with a column."""
    index = fr.Index.build(folder / "docs.jsonl")
    rng = np.random.default_rng(1)
    for name, qrels in (("terms", "train"), ("train", "train"), ("dev", "test"), ("test", "valid")):
        found = index.candidates(folder / "queries.tsv", folder / f"{qrels}.qrels", depth=10)
        column = np.abs(np.nan_to_num(found.labels) + rng.normal(size=len(found)))[:, None]
        rows = fr.Candidates(found.offsets, found.labels, found.qids, found.docids, column, ("clicks",), found.terms)
        fr.write_statistics(folder / f"{name}.jsonl", rows)
        if name == "test":
            (folder / "best.txt").write_text("".join(f"{value}\n" for value in np.nan_to_num(found.labels)))


def _models(folder: Path) -> None:
    """What `fliprank train` and `tune` would have left."""
    rows, terms = fr.read_letor(folder / "train.txt"), fr.read_statistics(folder / "train.jsonl")
    fit = fr.train(fr.Linear(), rows, objective="ranknet", method="lbfgs", epochs=3)
    for name in ("fit", "ranker"):
        write_fit(folder / name, fit)
    bm25f = fr.BM25F().prepared(terms, 0)
    for name, weight in (("before", 1.0), ("after", 2.0), ("old", 1.0), ("new", 2.0)):
        values = bm25f.params.values.copy()
        values[bm25f.params.names.index("title.w")] = weight
        bm25f.at(bm25f.params.at(values)).save(folder / name / "model")
    fr.BM25().prepared(terms, 0).save(folder / "tuned-bm25" / "model")
    fr.Fusion("plain", ["bm25", "dense"]).save(folder / "fused" / "model")
    given = {name: str(folder / file) for name, file in TUNED.items()}
    code = run(["tune", *(part for pair in given.items() for part in pair), *TUNING])
    assert code == 0
    fused = given | {"--model": "hybrid", "--run": str(folder / "dense.run"), "--out": str(folder / "hybrid")}
    assert run(["tune", *(part for pair in fused.items() for part in pair), *TUNING]) == 0
    own = given | {"--engine": "sqlite", "--out": str(folder / "tuned-sqlite")}
    assert run(["tune", *(part for pair in own.items() for part in pair), *TUNING]) == 0


def write_fit(folder: Path, fit: fr.Fit) -> None:
    from fliprank.experiment.fit_folder import write_fit as write
    from fliprank.experiment.fit_folder import write_json

    write(folder, fit)
    write_json(folder / "result.json", {"measure": str(fit.measure), "settings": {}, "notes": []})
