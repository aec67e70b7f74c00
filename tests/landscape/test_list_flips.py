"""The flips between two lists add up to the change of the measure, each is what the swap of two neighbours is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.list_flips import ListFlips, TwoLists, has_flips, list_flips, payments
from fliprank.measures import REGISTRY, Measure, RankMeasure, parse_measure

NAMES = ["nDCG@10", "nDCG@3", "nDCG", "nDCG(dcg='exp-log2')@5", "AP", "AP@4", "RR", "RR(rel=2)@3", "ERR", "ERR@4"]
NAMES += ["P@5", "R@3", "Rprec", "Success@2", "Bpref", "RBP(p=0.8,rel=1)", "DCG@5", "nDCG(judged_only=True)"]
NAMES += ["AP(judged_only=True)@3"]


class Case:
    """A query: labels of documents 0 to n - 1 (NaN: unjudged), labels of judged ones in neither list, two lists."""

    def __init__(self, seed: int, size: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, size).astype(float)
        self.labels[rng.random(size) < 0.3] = np.nan
        self.missed = rng.integers(0, 4, rng.integers(0, 3)).astype(float)
        both = [rng.permutation(size)[: rng.integers(0, size + 1)].tolist() for _ in range(2)]
        if rng.random() < 0.5:  # lists of the same documents
            both[1] = rng.permutation(both[0]).tolist()
        self.before, self.after = both
        self.every = sorted({*self.before, *self.after})

    def rows(self) -> tuple[Candidates, TwoLists]:
        """The documents of either list as rows, and their two orders."""
        place = {document: row for row, document in enumerate(self.every)}
        gone = [document for document in self.before if document not in self.after]
        new = [document for document in self.after if document not in self.before]
        orders = [np.array([place[d] for d in each], np.int64) for each in (self.before + new, self.after + gone)]
        labels = self.labels[self.every] if self.every else np.empty(0)
        rows = Candidates(
            [0, len(labels)],
            labels,
            Candidates.of([], group=[0]).qids,
            missed_offsets=[0, len(self.missed)],
            missed_labels=self.missed,
        )
        held = [np.array([len(each)], np.int64) for each in (self.before, self.after)]
        return rows, TwoLists(orders[0], held[0], orders[1], held[1])

    def value(self, measure: Measure, documents: Sequence[int]) -> float:
        """The measure of any list, asked as any other ranking is: what the list lacks was not retrieved."""
        absent = [d for d in self.every if d not in documents]
        missed = [label for label in self.labels[absent] if not np.isnan(label)] if absent else []
        rows = Candidates(
            [0, len(documents)],
            self.labels[list(documents)] if documents else np.empty(0),
            Candidates.of([], group=[0]).qids,
            missed_offsets=[0, len(missed) + len(self.missed)],
            missed_labels=[*missed, *self.missed],
        )
        return float(measure.per_query(-np.arange(len(documents), dtype=float), rows)[0])


def one_by_one(case: Case, measure: Measure) -> list[tuple[int, int, int, float]]:
    """Every step in plain Python, each list on the way judged from scratch; -1 for the end of a list."""
    steps, order, value = [], list(case.before), case.value(measure, case.before)

    def step(up: int, down: int, rank: int) -> None:
        nonlocal value
        now = case.value(measure, order)
        steps.append((up, down, rank, now - value))
        value = now

    for document in case.after:
        if document not in order:
            order.append(document)
            step(document, -1, len(order))
    for target, document in enumerate(case.after):
        for i in range(order.index(document) - 1, target - 1, -1):
            down = order[i]
            order[i], order[i + 1] = document, down
            step(document, down, i + 1)
    while len(order) > len(case.after):
        gone = order.pop()
        step(-1, gone, len(order) + 1)
    return steps


def named(case: Case, found: ListFlips) -> list[tuple[int, int, int, float]]:
    ids = [*case.every, -1]
    columns = (found.up.tolist(), found.down.tolist(), found.rank.tolist(), found.worth.tolist())
    return [(ids[u], ids[d], r, w) for u, d, r, w in zip(*columns, strict=True)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 12))
def test_each_flip_is_worth_what_the_measure_of_the_list_after_it_says(name: str, seed: int, size: int) -> None:
    case, measure = Case(seed, size), parse_measure(name)
    found = named(case, list_flips(measure, *case.rows()))
    expected = [step for step in one_by_one(case, measure) if abs(step[3]) > 1e-12]
    assert [step[:3] for step in found if abs(step[3]) > 1e-12] == [step[:3] for step in expected]
    np.testing.assert_allclose(
        [step[3] for step in found if abs(step[3]) > 1e-12], [s[3] for s in expected], atol=1e-12
    )
    change = case.value(measure, case.after) - case.value(measure, case.before)
    assert sum(step[3] for step in found) == pytest.approx(change, abs=1e-12)
    pairs = [{step[0], step[1]} for step in found if -1 not in step[:2]]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)  # no pair flips twice


@pytest.mark.parametrize("name", NAMES)
def test_what_is_paid_for_documents_adds_up_to_the_measure(name: str) -> None:
    measure = parse_measure(name)
    for seed in range(40):
        case = Case(seed, seed % 13)
        rows, lists = case.rows()
        for order, held, documents in ((lists[0], lists[1], case.before), (lists[2], lists[3], case.after)):
            paid = payments(measure, rows, order, held)
            assert paid.sum() == pytest.approx(case.value(measure, documents), abs=1e-12)


def test_long_lists_agree_with_their_measures() -> None:
    rng = np.random.default_rng(3)
    for name in ("AP", "nDCG@10", "ERR"):
        measure, case = parse_measure(name), Case(5, 400)
        case.before, case.after = (rng.permutation(400).tolist() for _ in range(2))
        case.every = list(range(400))
        change = case.value(measure, case.after) - case.value(measure, case.before)
        assert list_flips(measure, *case.rows()).worth.sum() == pytest.approx(change, abs=1e-9)


def test_a_flip_is_worth_something_only_if_it_moves_the_higher_label_up() -> None:
    for seed in range(50):
        case = Case(seed, 12)
        rows, lists = case.rows()
        found, labels = list_flips(parse_measure("nDCG@10"), rows, lists), np.nan_to_num(rows.labels)
        pairs = (found.up >= 0) & (found.down >= 0)
        better = labels[found.up[pairs]] - labels[found.down[pairs]]
        assert (np.sign(found.worth[pairs]) == np.sign(better)).all()


def test_measures_without_a_law_say_so() -> None:
    lawful = {name for name, measure in REGISTRY.items() if issubclass(measure, RankMeasure)} - {"ESL"}
    for name in ("nDCG", "AP", "RR", "P", "ERR", "Bpref"):
        assert name in lawful
    for name in ("ESL", "CorrectPairs", "GMAP"):
        assert not has_flips(parse_measure(name))
        with pytest.raises(UsageError, match="what a flip is worth"):
            list_flips(parse_measure(name), *Case(1, 4).rows())
