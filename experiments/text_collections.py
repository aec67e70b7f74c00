"""Default against tuned on judged text collections: writes docs/text-collections.md.

    .venv/bin/python experiments/text_collections.py [folder of the collections] [collections] [stanford] [metzler]

Cranfield, CACM, CISI, NPL and SciFact: nested five-fold cross-validation over queries. stanford-web: tuned on
2014-train, tested on 2014-dev and 2013. Metzler 2007, Table 1: two-stage language model, direct search or RankNet.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.results import Proof
from fliprank.experiment.significance import Comparison, compare_values
from fliprank.experiment.task import Task, open_index, task_of_documents
from fliprank.experiment.trials import Trial
from fliprank.experiment.tuning import cross_validate, optimal, tune
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, Feature, Model, Stack, TwoStageLM
from fliprank.objectives import RankNet
from fliprank.optimize.methods import Metzler2007, Sampled
from fliprank.text.analysis import Analyzer

ROOT = Path(__file__).parents[1]
COLLECTIONS = {
    "cranfield": ("test", ["title", "author", "bib", "body"]),
    "cacm": ("test", ["title", "abstract", "author", "keywords"]),
    "cisi": ("test", ["title", "author", "body"]),
    "npl": ("test", ["body"]),
    "scifact": ("train", ["title", "abstract"]),
}
MODELS: dict[str, Model] = {"BM25": BM25(), "BM25F": BM25F(), "two-stage LM": TwoStageLM()}
METZLER = ("AP", "Bpref", "P@10")
PARTS = ("collections", "stanford", "metzler")
METZLER_WORDS = """\
The two-stage language model, λ and mu, five folds. *Direct*: sampled line searches on the measure; *RankNet*:
coordinate descent on its cost summed over all pairs (`metzler2007`), both without a prior and from one start.
*Optimal*: the best on the test queries themselves, an upper bound and no result. * : direct and RankNet differ
(p < 0.05).
"""
INTRODUCTION = """\
# Tuning on judged text collections

Written by `python experiments/text_collections.py`. nDCG@10 with exponential gain. *Default* is k = 1.2, w = 1,
b = 0.75, or λ = 0.1, mu = 2000. *Tuned* figures of the first table are by nested cross-validation: five folds of
the queries, each ranked by a model that was tuned, and for which recipes were weighted, on the others alone. The
interval is of the difference (95%, bootstrap), p of a randomisation test over queries.

How far to trust it: how `tune` works (priors, weights of recipes, the rows that a fit looks at, scores in units of
their spread) was settled with sight of held-out folds of Cranfield, CACM, CISI, NPL, the built-in collection and
2014-train, in several dozen settings, so these rows are optimistic. No setting was chosen by SciFact, 2014-dev or
2013, but they are not untouched: five versions of `tune` were measured on them before this one. BM25F + PageRank gave
0.863, 0.868, 0.865, 0.867 and 0.867 on 2014-dev; the third made its author look for what was wrong (a prior in the
wrong unit), and work stopped after the fourth, which passed the 0.867 that was aimed at. Its 97 queries can't tell
these values apart. Moving `tune` to the engine that `train` uses changed details (the order in which parameters are
searched, where random starts are); nothing was chosen by the figures below.
"""
CONCLUSION = """\
## What it shows

Where pages have fields that differ in value (url, title, headings, link text, body), tuning helps by far more than
chance gives. The abstracts of the first table have nearly all in one field, and k = 1.2, b = 0.75 suit them: tuning
gains a little on nearly every row, but a few dozen or hundred queries with binary judgements do not show it. The
language model's usual mu of 2000 is far off for short texts (Cranfield, NPL), and tuning mends that.

Metzler found RankNet never significantly better than direct search, and often worse. The same holds here: direct
search is significantly better for AP on all five collections, for Bpref on Cranfield, and for P@10 on three; RankNet
is never significantly better. Direct search comes within 0.006 of the best possible on the test queries for AP.
RankNet's cost is of raw scores, as the paper prints it: parameters of a language model also stretch its scores, and
scores that are close together are less wrong. Bpref needs documents that were judged not relevant: only Cranfield has
some.
"""


def task_of(folder: Path, name: str, place: Path) -> Task:
    split, fields = COLLECTIONS[name]
    index = open_index(folder / name, place, fields, Analyzer())
    return task_of_documents(index, folder / name, folder / name / "qrels" / f"{split}.tsv")


def line(name: str, what: str, c: Comparison, means: dict[str, dict[str, float]]) -> str:
    low, high = c.interval
    counts, p = f"{c.better}/{c.worse}", f"{c.p['randomisation']:.2g}"
    shown = c.p["randomisation"] < 0.05
    sure = ("yes" if c.difference > 0 else "no: worse") if shown else "not shown"
    return (
        f"| {name} | {what} | {means['default'][c.measure]:.4f} | {means['tuned'][c.measure]:.4f} "
        f"| {c.difference:+.4f} | {low:+.3f} to {high:+.3f} | {p} | {counts} | {sure} |"
    )


HEAD = [
    "| collection | function | default | tuned | difference | interval | p | helped/hurt | better? |",
    "|---|---|---|---|---|---|---|---|---|",
]


def cross_validated(tasks: dict[str, Task]) -> list[str]:
    told = list(HEAD)
    for name, task in tasks.items():
        for what, model in MODELS.items():
            if what == "BM25F" and len(task.train.rows.terms.fields) == 1:
                continue  # it is BM25
            begun, rows = time.perf_counter(), task.train.rows
            found = cross_validate(model, rows, measure=DEFAULT_MEASURE)
            proof = Proof.of(rows, found.default, found.tuned, [DEFAULT_MEASURE])
            told.append(line(name, what, proof.comparisons[0], proof.evaluation.means()))
            print(told[-1], f"{time.perf_counter() - begun:.0f} s", flush=True)
    return told


def stanford(folder: Path) -> list[str]:
    told = list(HEAD)
    parts = {
        name: read_statistics(folder / "stanford-web" / f"{name}.jsonl") for name in ("2014-train", "2014-dev", "2013")
    }
    models = {"BM25F": BM25F(), "BM25F + PageRank": Stack(BM25F(), Feature("pagerank", transform="log"))}
    for what, model in models.items():
        begun = time.perf_counter()
        found = tune(model, parts["2014-train"], measure=DEFAULT_MEASURE)
        assert found.start is not None
        for name in ("2014-dev", "2013"):
            rows = parts[name]
            proof = Proof.of(rows, found.start.score(rows), found.model.score(rows), [DEFAULT_MEASURE])
            told.append(line(name, what, proof.comparisons[0], proof.evaluation.means()))
            print(told[-1], f"{time.perf_counter() - begun:.0f} s", flush=True)
    return told


def metzler(tasks: dict[str, Task]) -> list[str]:
    """Held-out folds ranked by parameters from a direct search on each measure, and from RankNet; the best possible."""
    told = ["| measure | estimate | " + " | ".join(tasks) + " |", "|---|---|" + "---|" * len(tasks)]
    descent = Metzler2007(tolerance=1e-4, samples=12)
    ways = {"direct": [Trial(None, (Sampled(),))], "RankNet": [Trial(RankNet(), (descent,))]}
    for name in METZLER:
        measure, values = parse_measure(name), {way: [] for way in (*ways, "optimal")}
        for task in tasks.values():
            rows = task.train.rows
            if name == "Bpref" and not (rows.labels == 0).any():
                for each in values.values():
                    each.append("-")
                continue
            scores = {
                way: cross_validate(TwoStageLM(), rows, measure=measure, recipes=recipe, restarts=1).tuned
                for way, recipe in ways.items()
            }
            found = evaluate(rows, scores, [name])
            [c] = compare_values({way: {name: found.values[way][name]} for way in ways}, "RankNet")
            mark = "*" if c.p["randomisation"] < 0.05 else ""
            for way in ways:
                values[way].append(f"{found.means()[way][name]:.4f}{mark if way == 'direct' else ''}")
            values["optimal"].append(f"{optimal(TwoStageLM(), rows, measure).best.train:.4f}")
        told += [f"| {name} | {way} | " + " | ".join(each) + " |" for way, each in values.items()]
        print(*told[-3:], sep="\n", flush=True)
    return told


def main(folder: Path, wanted: list[str]) -> None:
    """Compute the wanted parts (all by default) and write the page; tables of other parts stay as they are."""
    page = ROOT / "docs" / "text-collections.md"
    before = dict(zip(PARTS, tables(page.read_text()), strict=True)) if wanted else {}
    with tempfile.TemporaryDirectory() as place:
        tasks = {name: task_of(folder, name, Path(place)) for name in COLLECTIONS}
        made = {
            "collections": lambda: cross_validated(tasks),
            "stanford": lambda: stanford(folder),
            "metzler": lambda: metzler(tasks),
        }
        found = {part: before[part] if wanted and part not in wanted else made[part]() for part in PARTS}
    sections = [
        INTRODUCTION,
        *found["collections"],
        "\n## Web pages: stanford-web\n",
        "Tuned on the 295 queries of 2014-train, tested on others (see above for how far these were looked at).\n",
        *found["stanford"],
        "\n## Direct search or RankNet? (Metzler 2007, Table 1)\n",
        METZLER_WORDS,
        *found["metzler"],
        "",
        CONCLUSION.rstrip(),
    ]
    page.write_text("\n".join(sections) + "\n")


def tables(text: str) -> list[list[str]]:
    """The tables of a page, each as its lines."""
    found: list[list[str]] = [[]]
    for each in text.splitlines():
        if each.startswith("|"):
            found[-1].append(each)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word in PARTS]
    folders = [Path(word) for word in sys.argv[1:] if word not in PARTS]
    main(folders[0] if folders else ROOT.parent / "shared" / "data" / "text", given)
