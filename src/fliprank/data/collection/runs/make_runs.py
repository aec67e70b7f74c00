"""Make the three demonstration runs of this folder with SQLite FTS5: python make_runs.py"""

import json
import re
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIELDS = ("url", "title", "headings", "body", "anchor")
RUNS: dict[str, dict[str, float]] = {
    "body": {"body": 1.0},
    "flat": {"url": 1.0, "title": 1.0, "headings": 1.0, "body": 1.0, "anchor": 1.0},
    "title": {"url": 1.0, "title": 5.0, "headings": 3.0, "body": 1.0, "anchor": 4.0},
}
DEPTH = 20


def read(name: str) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file one folder up."""
    lines = (HERE.parent / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def build_index(pages: list[dict[str, Any]]) -> sqlite3.Connection:
    """An FTS5 table of the pages; the anchor field is the texts of all links that point to a page."""
    anchors: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        for link in page["links"]:
            anchors[link["target"]].append(link["text"])
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE page USING fts5(id UNINDEXED, {', '.join(FIELDS)}, tokenize='porter unicode61')")
    rows = [(p["_id"], p["url"], p["title"], p["headings"], p["text"], "\n".join(anchors[p["_id"]])) for p in pages]
    db.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", rows)
    return db


def search(db: sqlite3.Connection, text: str, weights: dict[str, float]) -> list[tuple[str, float]]:
    """The best pages for the OR of the words of a query, looking only at the fields that have a weight."""
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text.lower()))
    values = ", ".join(str(weights.get(field, 0.0)) for field in FIELDS)
    sql = f"SELECT id, -bm25(page, 0.0, {values}) AS score FROM page WHERE page MATCH ? ORDER BY score DESC, id LIMIT ?"
    return list(db.execute(sql, (f"{{{' '.join(weights)}}} : ({words})", DEPTH)))


if __name__ == "__main__":
    index, queries = build_index(read("corpus.jsonl")), read("queries.jsonl")
    for tag, weights in RUNS.items():
        with (HERE / f"{tag}.run").open("w", encoding="utf-8", newline="\n") as out:
            for query in queries:
                for rank, (page_id, score) in enumerate(search(index, query["text"], weights), start=1):
                    out.write(f"{query['_id']} Q0 {page_id} {rank} {score:.6f} {tag}\n")
