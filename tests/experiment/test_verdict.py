"""A verdict says what the figures say: adopt, keep, not shown, not proven; and what else changed."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.results import Proof
from fliprank.experiment.verdict import Reference, Verdict, decide

QUERIES = 40


def proof(helped: int, hurt: int, measures: tuple[str, ...] = ("RR",)) -> Proof:
    """Of 40 queries of two documents, so many go from rank 2 to rank 1, and so many the other way."""
    rows = Candidates.of([1, 0] * QUERIES, group=[2] * QUERIES)
    default = np.tile([1.0, 0.0], QUERIES)
    default[: 2 * helped] = np.tile([0.0, 1.0], helped)
    tuned = np.tile([1.0, 0.0], QUERIES)
    tuned[2 * helped : 2 * (helped + hurt)] = np.tile([0.0, 1.0], hurt)
    return Proof.of(rows, default, tuned, list(measures))


@pytest.mark.parametrize(
    ("helped", "hurt", "word", "begins"),
    [
        (15, 1, "adopt", "Better: RR +0.1750 on 40 queries"),
        (1, 15, "keep", "Worse: RR -0.1750"),
        (3, 1, "not shown", "Not shown to be better: RR +0.0250"),
        (1, 3, "keep", "Not better: RR -0.0250"),
        (0, 0, "keep", "No difference: RR of all 40 held-out queries"),
    ],
)
def test_one_proof_decides(helped: int, hurt: int, word: str, begins: str) -> None:
    found = decide({"test": proof(helped, hurt)})
    assert (found.word, found.sentence.startswith(begins)) == (word, True), found.sentence


def test_a_second_proof_can_make_sure_or_forbid() -> None:
    better, perhaps, worse = proof(15, 1), proof(3, 1), proof(1, 15)
    assert decide({"test": perhaps, "cross_validated": better}).word == "adopt"
    assert decide({"test": perhaps, "cross_validated": worse}).word == "keep"
    assert decide({"test": proof(1, 3), "cross_validated": better}).word == "keep"  # the test says: not better
    assert decide({"test": perhaps, "cross_validated": perhaps}).word == "not shown"


def test_where_both_are_sure_and_disagree_nothing_is_adopted() -> None:
    assert decide({"test": proof(15, 1), "cross_validated": proof(1, 15)}).word == "keep"


def test_without_a_proof_nothing_is_proven() -> None:
    found = decide({})
    assert (found.word, found.adopted("proven"), found.adopted("always")) == ("not proven", False, True)


def test_other_measures_that_change_are_named_those_that_fall_first() -> None:
    found = decide({"test": proof(15, 1, ("RR", "P@1", "ESL"))})
    assert [said.split()[:3] for said in found.also] == [["Also,", "P@1", "rises"], ["Also,", "ESL", "falls"]]
    found = decide({"test": proof(1, 15, ("RR", "ESL", "P@1"))})
    assert [said.split()[:3] for said in found.also] == [["But", "ESL", "rises"], ["But", "P@1", "falls"]]
    assert decide({"test": proof(3, 1, ("RR", "P@1"))}).also == ()


def test_a_rival_that_needs_no_tuning_is_named_if_it_is_better() -> None:
    rivals = [Reference("bm25", 0.3, 0.1, 0.001), Reference("bm25f", 0.5, -0.1, 0.001)]
    found = decide({"test": proof(15, 1)}, rivals)
    assert found.also == (
        "But bm25f with its default parameters gives 0.5000 on the same queries: significantly more by 0.1000, "
        "p = 0.0010.",
    )
    assert decide({"test": proof(15, 1)}, rivals[:1]).also == ()


def test_adopting_can_be_asked_for_or_refused() -> None:
    word = Verdict("adopt", "")
    assert [word.adopted(when) for when in ("proven", "always", "never")] == [True, True, False]
    with pytest.raises(UsageError, match="one of proven, always, never, not 'perhaps'"):
        word.adopted("perhaps")
