"""Is tuning ever a loss? Many small sets of judged queries, each tuned on, each judged on the other queries.

    .venv/bin/python experiments/tune_verdicts.py [number of sets; 200 by default]

Each set has 20 to 60 queries of one of the shared collections (training queries only), and BM25, BM25F and the
language model are tuned on it as `fliprank tune` does. What the verdict then writes, the tuned function or the
defaults, is compared with the defaults on all other queries of the collection. Every finished line is kept in
docs/tune-verdicts.csv, so that a killed run goes on; docs/tune-verdicts.md is written from it.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.results import Proof
from fliprank.experiment.task import open_index, task_of_documents
from fliprank.experiment.tuning import tune
from fliprank.experiment.verdict import SURE, decide
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, Model, TwoStageLM
from fliprank.text.analysis import Analyzer

ROOT = Path(__file__).parents[1]
DATA, TABLE = ROOT.parent / "shared" / "data" / "text", ROOT / "docs" / "tune-verdicts.csv"
COLLECTIONS = {
    "cranfield": ("test", ["title", "author", "bib", "body"]),
    "cacm": ("test", ["title", "abstract", "author", "keywords"]),
    "cisi": ("test", ["title", "author", "body"]),
    "npl": ("test", ["body"]),
    "scifact": ("train", ["title", "abstract"]),
    "icecat": ("train", None),
    "stanford-web": ("2014-train", None),
}
MODELS: dict[str, Model] = {"BM25": BM25(), "BM25F": BM25F(), "two-stage LM": TwoStageLM()}
FIELDS = ["set", "collection", "queries", "function", "word", "tuned", "written", "p"]
MEASURE = parse_measure(DEFAULT_MEASURE)


@cache
def rows_of(name: str, place: Path) -> Candidates:
    split, fields = COLLECTIONS[name]
    if name == "stanford-web":
        return read_statistics(DATA / name / f"{split}.jsonl")
    index = open_index(DATA / name, place, fields, Analyzer())
    return task_of_documents(index, DATA / name, DATA / name / "qrels" / f"{split}.tsv").train.rows


def one_set(number: int, place: Path) -> list[dict[str, object]]:
    """One line per function: the verdict, and what tuning and what was written change on the other queries."""
    name = list(COLLECTIONS)[number % len(COLLECTIONS)]
    rows, rng = rows_of(name, place), np.random.default_rng(number)
    order = rng.permutation(rows.queries)
    size = int(rng.integers(20, min(60, rows.queries // 2) + 1))
    seen, others = rows.select(np.sort(order[:size])), rows.select(np.sort(order[size:]))
    found = []
    for function, model in MODELS.items():
        assert rows.terms is not None
        if (function == "BM25F" and len(rows.terms.fields) == 1) or (function[-2:] == "LM" and name == "stanford-web"):
            continue  # it is BM25; there are no collection statistics
        fit = tune(model, seen, measure=MEASURE)
        assert fit.start is not None
        assert fit.held_out is not None
        known = Proof.of(seen, fit.start.score(seen), fit.held_out, [str(MEASURE)])
        verdict = decide({"cross_validated": known})
        after = Proof.of(others, fit.start.score(others), fit.model.score(others), [str(MEASURE)])
        written = after.gain if verdict.adopted("proven") else 0.0
        p = after.comparisons[0].p["randomisation"] if verdict.adopted("proven") else 1.0
        values = [number, name, size, function, verdict.word, f"{after.gain:.6f}", f"{written:.6f}", f"{p:.6f}"]
        found.append(dict(zip(FIELDS, values, strict=True)))
    return found


def page(lines: list[dict[str, str]], sets: int) -> str:
    told = [
        "# Is tuning ever a loss?",
        "",
        f"Written by `python experiments/tune_verdicts.py {sets}` from docs/tune-verdicts.csv. Each of {sets} sets has",
        "20 to 60 training queries of one of seven collections. *Tuned* is the mean change of nDCG@10 (exponential",
        "gain) on the other queries of the collection if the tuned function was always taken, *written* that of what",
        "`fliprank tune` writes: the tuned function where cross-validation shows that it is better, else the defaults.",
        "*Worse*: sets in which what was written is significantly worse than the defaults on the other queries.",
        "",
    ]
    return "\n".join([*told, *table(lines, "function"), "", *table(lines, "collection")]) + "\n"


def table(lines: list[dict[str, str]], by: str) -> list[str]:
    """One row per function, or per collection."""
    told = [f"| {by} | sets | adopted | tuned | written | worse |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(line[by] for line in lines):
        mine = [line for line in lines if line[by] == name]
        adopted = [line for line in mine if line["word"] == "adopt"]
        worse = [line for line in adopted if float(line["written"]) < 0 and float(line["p"]) < SURE]
        tuned, written = (np.mean([float(line[key]) for line in mine]) for key in ("tuned", "written"))
        share = f"{len(worse)} ({len(worse) / len(mine):.1%})"
        told.append(f"| {name} | {len(mine)} | {len(adopted)} | {tuned:+.4f} | {written:+.4f} | {share} |")
    return told


def main(sets: int) -> None:
    lines: list[dict[str, str]] = []
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            lines = list(csv.DictReader(file))
    done = {int(line["set"]) for line in lines}
    with tempfile.TemporaryDirectory() as place:
        for number in range(sets):
            if number in done:
                continue
            found = one_set(number, Path(place))
            with TABLE.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerows(found)
            lines += [{key: str(value) for key, value in line.items()} for line in found]
            print(*(" ".join(line.values()) for line in lines[-len(found) :]), sep="\n", flush=True)
    kept = [line for line in lines if int(line["set"]) < sets]
    (ROOT / "docs" / "tune-verdicts.md").write_text(page(kept, sets))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
