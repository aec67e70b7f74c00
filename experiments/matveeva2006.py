"""The multiple nested ranker on generated collections of the paper's shape: writes the figures of docs/cascade.md.

    .venv/bin/python experiments/matveeva2006.py [--quick] [numbers of the parts to run; all by default]

There are 2500 documents per query, about 30 of them rated on five levels: those that a basic ranker puts on top and a
few others. Features are weakly informative, some are counts, and their scales vary by query. The paper has 400 features
and 3,514 training queries; here it is 100 and 600, for memory. Documents have eight hidden aspects: four of match, four
of quality.

- two populations: some 5% of the documents are about the query's topic, which shows in the aspects of match; quality
  counts for these only. This is what the paper assumes: what tells documents apart at the top is not what tells them
  apart below.
- one population: utility is the same sum of all aspects for every document. It is the control: the task at the top is
  the same as below.

`--quick` runs it on small collections, to see that it works, and writes nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.data.subsample import subsample
from fliprank.experiment.cascade_analysis import (
    AfterStage,
    after_stages,
    epoch_curves,
    good_at_ranks,
    label_moves,
    opposed_query,
    reshuffled,
    top_labels,
)
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.experiment.significance import randomisation
from fliprank.experiment.telescope import telescope
from fliprank.models.cascade import Cascade
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Trees
from fliprank.text.features.features import features
from fliprank.text.index import Index

PAGE = Path(__file__).parents[1] / "docs" / "cascade.md"
START, END = "<!-- figures: written by experiments/matveeva2006.py -->", "<!-- end of figures -->"
DOCUMENTS, FEATURES, ASPECTS = 2500, 100, 8
FOUR, THREE = (2500, 1000, 100, 10), (2500, 100, 10)
HIDDEN = (0, 2, 4, 8, 16, 32)
NDCG = "nDCG(dcg='exp-log2')@10"
RANKNET: dict[str, Any] = {"objective": "ranknet", "restarts": 1, "patience": 10, "valid_sample": 1000}
"""As in the paper: RankNet, three unlabelled documents per labelled one, 1000 unlabelled ones per validation query."""


@dataclass(frozen=True)
class World:
    """How features follow from aspects: the same for all queries of all sets."""

    mix: np.ndarray
    threshold: np.ndarray
    noise: np.ndarray
    two: bool

    @classmethod
    def of(cls, two: bool, seed: int = 1) -> World:
        rng = np.random.default_rng(seed)
        mix = rng.normal(size=(ASPECTS, FEATURES)) * (rng.random((ASPECTS, FEATURES)) < 0.25)
        parts = (mix, rng.normal(0.5, 1.0, FEATURES), rng.uniform(1.0, 3.0, FEATURES))
        return cls(*(part.astype(np.float32) for part in parts), two)

    def rows(self, queries: int, seed: int) -> fr.Candidates:
        rng = np.random.default_rng(seed)
        features = np.empty((queries * DOCUMENTS, FEATURES), np.float32)
        labels = np.full(queries * DOCUMENTS, np.nan)
        for query in range(queries):
            aspects = rng.standard_normal((DOCUMENTS, ASPECTS), np.float32)
            utility = self._utility(aspects, rng)
            own = slice(query * DOCUMENTS, (query + 1) * DOCUMENTS)
            self._features(aspects, rng, features[own])
            labels[own] = _labels(utility, rng)
        names = [f"f{k + 1}" for k in range(FEATURES)]
        return fr.Candidates.of(labels, group=[DOCUMENTS] * queries, features=features, feature_names=names)

    def _utility(self, aspects: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        match, quality = aspects[:, :4].sum(axis=1) / 2, aspects[:, 4:].sum(axis=1) / 2
        if not self.two:
            return (match + quality) / np.sqrt(2) + 0.0
        topical = rng.random(DOCUMENTS) < rng.beta(2, 38)
        aspects[topical, :4] += 1.5
        return np.where(topical, 1.5 + 0.5 * match + quality, 0.5 * match - 1.0)

    def _features(self, aspects: np.ndarray, rng: np.random.Generator, out: np.ndarray) -> None:
        """One quarter each: plain, cut off at 0, heavy-tailed counts, logarithms of counts."""
        np.multiply(rng.standard_normal((DOCUMENTS, FEATURES), np.float32), self.noise, out=out)
        out += aspects @ self.mix
        out *= np.exp(0.3 * rng.standard_normal(FEATURES, np.float32))  # scales vary by query
        out += 0.5 * rng.standard_normal(FEATURES, np.float32) - self.threshold
        _, cut, counts, logs = (out[:, k : k + FEATURES // 4] for k in range(0, FEATURES, FEATURES // 4))
        np.maximum(cut, 0, out=cut)
        counts[:] = np.floor(np.exp(np.minimum(0.5 * counts, 6)))
        logs[:] = np.log1p(np.maximum(np.floor(3 * logs), 0))


def _labels(utility: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rated are the top 22 or so of a basic ranker and some 8 others; judges err, and are strict or kind by query."""
    order = np.argsort(-(utility + 0.4 * rng.standard_normal(DOCUMENTS)))
    top = max(5, rng.poisson(22))
    rated = np.concatenate([order[:top], rng.choice(order[top:], rng.poisson(8), replace=False)])
    judged = utility[rated] + 0.4 * rng.standard_normal(len(rated)) + 0.3 * rng.standard_normal()
    labels = np.full(DOCUMENTS, np.nan)
    labels[rated] = np.searchsorted([0.6, 1.6, 2.4, 3.2], judged)
    return labels


@dataclass(frozen=True)
class Sets:
    """Training, validation and test queries."""

    train: fr.Candidates
    valid: fr.Candidates
    test: fr.Candidates

    @classmethod
    def of(cls, world: World, sizes: tuple[int, int, int]) -> Sets:
        return cls(*(world.rows(size, 10 + i) for i, size in enumerate(sizes)))

    def telescoped(self, stages: list[fr.Model], sizes: tuple[int, ...], **options: Any) -> list[AfterStage]:
        return after_stages(self.cascade(stages, sizes, **options), self.test, NDCG)

    def cascade(self, stages: list[fr.Model], sizes: tuple[int, ...], **options: Any) -> Cascade:
        start = time.perf_counter()
        fit = telescope(Cascade(stages, sizes), self.train, self.valid, **{**RANKNET, **options})
        print(f"{[s.kind for s in stages]} {sizes} {options}: {time.perf_counter() - start:.0f} s", flush=True)
        assert isinstance(fit.model, Cascade)
        return fit.model


def net(hidden: int) -> fr.Model:
    return fr.Network(hidden=hidden) if hidden else fr.Linear()


def stage_tables(sets: Sets, sizes: tuple[int, ...], hidden: tuple[int, ...]) -> Iterator[str]:
    """Tables 2 and 4: one line per number of hidden nodes, one column per stage."""
    yield f"| nH | {' | '.join(f'top {size}' for size in sizes)} | gain | p | relevant lost |"
    yield "|" + "---|" * (len(sizes) + 4)
    for nodes in hidden:
        yield _line(str(nodes), sets.telescoped([net(nodes)] * len(sizes), sizes), sizes)


def _line(name: str, rows: list[AfterStage], sizes: tuple[int, ...]) -> str:
    """One line of a table; a stage that was left out has a dash."""
    by_size = {r.size: f"{r.value:.4f} (± {(r.interval[1] - r.interval[0]) / 2:.3f})" for r in rows}
    cells = [by_size.get(size, "-") for size in sizes]
    lost = ", ".join(f"{100 * r.lost:.1f}%" for r in rows[1:])
    last = f"{rows[-1].gain:+.4f} | {_p(rows[-1].p)} | {lost}"
    print(name, *cells, last, flush=True)
    return f"| {name} | {' | '.join(cells)} | {last} |"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 1e-4 else "< 0.0001"


def mixed(sets: Sets) -> Iterator[str]:
    """Richer models at later stages, and today's objective."""
    few = [f"f{k + 1}" for k in range(0, FEATURES, 4)]
    choices: dict[str, tuple[list[fr.Model], dict[str, Any]]] = {
        "linear, linear, network 4, network 8": ([fr.Linear(), fr.Linear(), fr.Network(4), fr.Network(8)], {}),
        "linear on a quarter of the features, then linear": ([FeatureSubset(fr.Linear(), few), *[fr.Linear()] * 3], {}),
        "linear, linear, trees, linear": (
            [fr.Linear(), fr.Linear(), Trees(leaves=7, rate=0.05), fr.Linear()],
            {"options": [{}, {}, {"objective": "lightgbm", "sweep": False}, {}]},
        ),
        "linear, LambdaRank@10 at every stage": ([fr.Linear()] * 4, {"objective": "lambdarank@10"}),
    }
    for nodes in (0, 8):
        name = f"nH {nodes}, each started from the one before, left out where it does not help"
        choices[name] = ([net(nodes)] * 4, {"warm": True, "only_better": True})
    for times in (0, 10):
        choices[f"linear, {times} unlabelled per labelled"] = ([fr.Linear()] * 4, {"sample": times})
    yield f"| stages | {' | '.join(f'top {size}' for size in FOUR)} | gain | p | relevant lost |"
    yield "|" + "---|" * 8
    for name, (stages, options) in choices.items():
        yield _line(name, sets.telescoped(stages, FOUR, **options), FOUR)


def shuffles(sets: Sets, runs: int) -> Iterator[str]:
    """Table 3. By Adam, which sees the order of queries; L-BFGS does not."""
    cascade, options = Cascade([fr.Linear()] * 4, FOUR), {**RANKNET, "method": "adam", "l2": 0.01}
    found = reshuffled(cascade, sets.train, sets.valid, sets.test, runs=runs, **options)
    yield "By Adam, l2 0.01.\n"
    yield "| stage | mean | standard deviation |\n|---|---|---|"
    for size, mean, deviation in zip(FOUR, found.means, found.deviations, strict=True):
        yield f"| top {size} | {mean:.4f} | {deviation:.4f} |"


def epochs(sets: Sets) -> Iterator[str]:
    """Figures 4 and 5: at the first stage, over 30 epochs, pairs counted with unlabelled documents rated 0."""
    rows, valid = subsample(sets.train, 0, times=3, at_most=None), subsample(sets.valid, 1, 1000)
    curves = epoch_curves(fr.Linear(), rows, valid, epochs=30, method="adam", rate=0.003)
    where = opposed_query(curves.scores[1], curves.scores[2], valid)
    moves = label_moves(curves.scores[1], curves.scores[2], valid, where)
    steps = np.sign(np.diff(curves.values, axis=0))
    against = int((steps[:, 0] * steps[:, 1] < 0).sum())
    found = [
        [m.per_query(curves.scores[e], valid)[where] for e in (1, 2)] for m in map(fr.parse_measure, curves.measures)
    ]
    low, risen = moves.labels <= 1, moves.before - moves.after
    up, fallen = int((low & (risen > 0)).sum()), int((~low & (risen < 0)).sum())
    yield f"Over {len(curves.values) - 1} epochs the correlation of nDCG@10 and pairs in the right order is"
    yield f"{curves.correlation:.3f} on the validation queries (paper: 0.946); in {against} epochs one rises, the other"
    yield "falls. The query where they do so most between epochs 1 and 2: nDCG@10 from {:.3f} to {:.3f},".format(
        *found[0]
    )
    yield "pairs from {:.4f} to {:.4f};".format(*found[1]) + f" {up} documents with label 0 or 1 rise, one by"
    yield f"{int(risen[low].max())} ranks; of those with labels 2 to 4, {fallen} of {int((~low).sum())} fall."


def tops(cascade: Cascade, test: fr.Candidates) -> Iterator[str]:
    """Figures 6 and 7."""
    labels = top_labels(cascade, test)
    names = ["unlabelled" if np.isnan(level) else f"label {level:g}" for level in labels.labels]
    yield "Change of the number of documents among the top ten (figure 6):\n"
    yield f"| stage | {' | '.join(names)} |\n|---|{'---|' * len(names)}"
    for size, line in zip(FOUR[1:], labels.differences, strict=True):
        yield f"| top {size} | {' | '.join(f'{change:+.3f}' for change in line)} |"
    yield "\nShare of queries with a document labelled 3 or 4 at each rank (figure 7):\n"
    yield f"| stage | {' | '.join(map(str, range(1, 11)))} |\n|---|{'---|' * 10}"
    for size, shares in zip(FOUR, good_at_ranks(cascade, test), strict=True):
        yield f"| top {size} | {' | '.join(f'{share:.2f}' for share in shares)} |"


def frontier(sets: Sets) -> Iterator[str]:
    """Cut-offs chosen on the validation queries, for prices that are given, measured on the test queries."""
    few = [f"f{k + 1}" for k in range(0, FEATURES, 4)]
    costs = (1.0, 4.0, 64.0)  # multiplications per document, in units of the first stage's
    cascade = sets.cascade([FeatureSubset(fr.Linear(), few), fr.Linear(), fr.Network(16)], (2500, 500, 50))
    grid = (10, 20, 50, 100, 200, 500, 1000)
    found = choose_cutoffs(cascade, sets.valid, costs=costs, measure=NDCG, grid=grid)
    measure = fr.parse_measure(NDCG)
    guessed = measure.per_query(cascade.score(sets.test), sets.test)
    line = "| {} | {} | {:,.0f} | {} | {:.4f} | {} | {} |"
    yield "| choice | documents by stage | cost per query | nDCG@10, validation | test | p to guess | relevant lost |"
    yield "|---|---|---|---|---|---|---|"
    price = sum(c * n for c, n in zip(costs, cascade.sizes, strict=True))
    yield line.format("guessed", "2500, 500, 50", price, "-", guessed.mean(), "-", "-")
    for choice in found.frontier:
        tested = measure.per_query(found.apply(choice).score(sets.test), sets.test)
        seen = [str(dict(zip(choice.stages, choice.sizes, strict=True)).get(s, "-")) for s in range(3)]
        lost = ", ".join(f"{100 * share:.1f}%" for share in choice.lost[1:]) or "-"
        p = _p(randomisation(tested - guessed))
        told = ("frontier", ", ".join(seen), choice.cost, f"{choice.value:.4f}", tested.mean(), p, lost)
        yield line.format(*told)


def scifact() -> Iterator[str]:
    """Real text: 1000 candidates per query by BM25, all features of the index, 10 unlabelled rows per labelled."""
    folder = Path(__file__).parents[2] / "shared" / "data" / "text" / "scifact"
    index, asked = Index.build(folder / "corpus.jsonl.gz"), folder / "queries.jsonl"
    both = []
    for part in ("train", "test"):
        pool = index.candidates(asked, folder / "qrels" / f"{part}.tsv", depth=1000)
        both.append(features(index, pool, asked))
    sets, sizes = Sets(*both[0].split(0.75, 0.25), both[1]), (1000, 100, 10)
    count, told = len(sets.train.feature_names), [each.queries for each in (sets.train, sets.valid, sets.test)]
    yield "{} training, {} validation and {} test queries".format(*told) + f", {count} features, labels 0 and 1.\n"
    yield f"| stages | {' | '.join(f'top {size}' for size in sizes)} | gain | p | relevant lost |"
    yield "|" + "---|" * 7
    choices: dict[str, tuple[fr.Model, dict[str, Any]]] = {
        "linear, RankNet, 10 unlabelled per labelled": (fr.Linear(), {"sample": 10}),
        "network 4, RankNet, 10 unlabelled per labelled": (fr.Network(4), {"sample": 10}),
        "linear, LambdaRank@10, 100 unlabelled per labelled": (
            fr.Linear(),
            {"sample": 100, "objective": "lambdarank@10"},
        ),
    }
    for name, (model, options) in choices.items():
        yield _line(name, sets.telescoped([model] * 3, sizes, valid_sample=None, **options), sizes)


def main(quick: bool, only: list[int]) -> None:
    sizes, hidden, runs = ((60, 30, 40), (0, 2), 2) if quick else ((600, 150, 500), HIDDEN, 11)
    control, two = (cache(partial(Sets.of, World.of(two=kind), sizes)) for kind in (False, True))
    work: dict[str, Callable[[], Iterator[str]]] = {
        "One population, four stages": lambda: stage_tables(control(), FOUR, (0, 8)),
        "Two populations, four stages (table 2)": lambda: stage_tables(two(), FOUR, hidden),
        "The top ten, linear (figures 6 and 7)": lambda: tops(two().cascade([fr.Linear()] * 4, FOUR), two().test),
        "Without the second stage (table 4)": lambda: stage_tables(two(), THREE, (0, 4)),
        "Epochs (figures 4 and 5)": lambda: epochs(two()),
        "Cut-offs from data": lambda: frontier(two()),
        f"{runs} reshufflings, linear (table 3)": lambda: shuffles(two(), runs),
        "Other stages": lambda: mixed(two()),
        "SciFact": scifact,
    }
    for number, (title, lines) in enumerate(work.items(), 1):
        if not only or number in only:
            start = time.perf_counter()
            part = "\n".join(lines())
            print(f"## {number}. {title}: {time.perf_counter() - start:.0f} s\n{part}", flush=True)
            if not quick:
                write(title, part, list(work))
        control.cache_clear()


def write(title: str, part: str, order: list[str]) -> None:
    """Put one part into the page, in the place of the one that has its title; the others stay."""
    text = PAGE.read_text()
    before, _, rest = text.partition(START)
    body, _, after = rest.partition(END)
    parts = dict(each.split("\n\n", 1) for each in body.strip().split("### ")[1:])
    parts[title] = part
    told = "\n\n".join(f"### {name}\n\n{parts[name].strip()}" for name in order if name in parts)
    PAGE.write_text(f"{before}{START}\n\n{told}\n\n{END}{after}")


if __name__ == "__main__":
    given = sys.argv[1:]
    main("--quick" in given, [int(word) for word in given if word.isdigit()])
