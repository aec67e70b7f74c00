"""Generated collections beside real ones: writes the table of docs/generator.md.

    .venv/bin/python experiments/generator.py [folder of the data]

Without a folder, `shared/data` beside the project: stanford-web (term statistics) and MSLR's sample (features).
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import fliprank as fr
from fliprank.data.generate import WebModel
from fliprank.experiment.realism import mslr_profile, profile, side_by_side

PAGE = Path(__file__).parents[1] / "docs" / "generator.md"
START, END = "<!-- figures: written by experiments/generator.py -->", "<!-- end of figures -->"
QUERIES, WIDE, PAPER = 200, 128, 23_407
NDCG = fr.parse_measure("nDCG(dcg='exp-log2')@10")


def realism(folder: Path) -> Iterator[str]:
    """The same figures of generated and real collections."""
    made = {
        f"{name} population{'s' * (n > 1)}": fr.generate(QUERIES, populations=n) for n, name in ((2, "two"), (1, "one"))
    }
    profiles = {name: profile(each.rows) for name, each in made.items()}
    for name, each in made.items():
        profiles[name]["nDCG@10 of true utility, all rows"] = NDCG.value(each.utility, each.rows)
    web = fr.read_statistics(folder / "text" / "stanford-web" / "2014-train.jsonl")
    letor = fr.read_letor(folder / "letor" / "MSLR-sample" / "rankeval_5k" / "msn1.fold1.train.5k.txt")
    yield from side_by_side({**profiles, "stanford-web": profile(web), "MSLR": mslr_profile(letor)})


def speed() -> Iterator[str]:
    """Rows per second, and the memory of a first stage over blocks of the paper's width."""
    fr.generate(1, documents=10, weak=4)  # compiled
    yield "| what | rows per second |\n|---|---:|"
    for name, settings in (
        ("term statistics and PageRank", {}),
        ("400 weak features and PageRank", {"weak": 400, "text": False}),
        ("both", {"weak": 400}),
    ):
        start = time.perf_counter()
        rows = sum(len(part.rows) for part in fr.generate_blocks(WIDE, block=32, model=WebModel(**settings)))  # type: ignore[arg-type]
        yield f"| {name} | {round(rows / (time.perf_counter() - start), -3):,.0f} |"
    model, kept = WebModel(weak=400, text=False), []
    start = time.perf_counter()
    ranker = fr.Linear()
    for part in fr.generate_blocks(WIDE, block=32, model=model):
        ranker = ranker if ranker.ready else ranker.prepared(part.rows, 0).at(np.ones(402))
        kept.append(part.rows.top(ranker.score(part.rows), 100))
    seconds = (time.perf_counter() - start) / WIDE * PAPER
    per_query = sum(rows.features.nbytes for rows in kept if rows.features is not None) / WIDE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield ""
    yield f"A first stage over 2,500 candidates with 400 features, its top 100 kept: {PAPER:,} queries would take about"
    yield f"{seconds / 60:.0f} minutes and keep {per_query * PAPER / 2**30:.1f} GB; the process that measured this"
    yield f"peaked at {peak:.1f} GB."


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data"
    quick = list(speed())  # before anything large is in memory
    lines = [START, "", *realism(folder), "", "## Speed", "", "Two cores.", "", *quick, "", END]
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(before + "\n".join(lines) + rest.split(END)[1])


if __name__ == "__main__":
    main()
