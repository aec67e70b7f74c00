"""Names of measures round-trip, agree with ir_measures, and fail with words that help."""

from __future__ import annotations

import contextlib

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fliprank as fr
from fliprank.errors import UsageError
from fliprank.measures import REGISTRY, nDCG, parse_measure

IR_MEASURES = [
    "nDCG", "nDCG@10", "nDCG(dcg='exp-log2')@10", "nDCG(gains={1:3,2:7})@5", "nDCG(judged_only=True)@10", "AP",
    "AP(rel=2)", "AP(rel=2)@100", "P@5", "P(rel=2,judged_only=True)@5", "R@1000", "Rprec", "RR", "RR@10", "RR(rel=3)",
    "Success@5", "Bpref", "Bpref(rel=2)", "ERR@20", "RBP", "RBP(p=0.5,rel=1)", "Judged@10", "SetP", "SetR", "SetF",
    "SetF(beta=0.5)",
]  # fmt: skip
OURS = ["GMAP", "GMAP(eps=0.001)", "ESL(n=3)", "CorrectPairs", "DCG(dcg='exp-letor')@10", "SetU(threshold=0.5)"]
OURS += ["GM(AP)", "GM(nDCG@10,eps=0.001)", "GM(nDCG(gains={1:3,2:7},base=10)@5)", "GM(P(rel=2)@5)", "GMAP(rel=2)"]
OURS += ["nDCG(base=10)@10", "nDCG(discount=(1,0.5,0.25))", "DCG(discount=(1,))@3", "nDCG(discount=0.5)@10"]
OURS += ["nDCG(dcg='exp-log2',discount=-1.0)", "ERR(max=2)@5", "AP(norm='cutoff')@10", "P(norm='retrieved')@10"]


@pytest.mark.parametrize("name", [*IR_MEASURES, *OURS])
def test_names_round_trip(name: str) -> None:
    measure = parse_measure(name)
    assert str(measure) == name
    assert parse_measure(str(measure)) == measure
    assert hash(parse_measure(str(measure))) == hash(measure)


@pytest.mark.parametrize("name", IR_MEASURES)
def test_names_are_those_of_ir_measures(name: str) -> None:
    assert str(ir_measures.parse_measure(name)) == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("ndcg_cut_10", "nDCG@10"), ("ndcg_cut.10", "nDCG@10"), ("ndcg", "nDCG"), ("map", "AP"), ("map_cut_5", "AP@5"),
        ("recip_rank", "RR"), ("P_10", "P@10"), ("P.10", "P@10"), ("recall_100", "R@100"), ("gm_map", "GMAP"),
        ("success_1", "Success@1"), ("bpref", "Bpref"), ("set_P", "SetP"), ("set_F", "SetF"),
        ("ndcg@10", "nDCG@10"), ("ndcg_burges@10", "nDCG(dcg='exp-log2')@10"), ("mrr@10", "RR@10"),
        ("precision@5", "P@5"), ("recall@5", "R@5"), ("hit_rate@3", "Success@3"), ("r-precision", "Rprec"),
        ("rbp.95", "RBP(p=0.95)"), ("map@10-l2", "AP(rel=2)@10"), ("MAP", "AP"), ("MRR@5", "RR@5"),
        ("NDCG@1", "nDCG@1"),
        ("Recall@2", "R@2"), ("Precision@2", "P@2"), (" nDCG( dcg = 'exp-log2' )@10 ", "nDCG(dcg='exp-log2')@10"),
    ],
)  # fmt: skip
def test_other_tools_spellings_are_understood(spelling: str, name: str) -> None:
    assert str(parse_measure(spelling)) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nDGC@10", "did you mean .*nDCG"),
        ("P", "P needs a cut-off, such as P@10"),
        ("P@0", "a cut-off is a rank from 1"),
        ("AP(level=2)", "AP has no level; its parameters: cutoff, rel"),
        ("AP(rel='x')", "rel='x' is not a float"),
        ("AP(judged_only=1)", "judged_only=1 is not a bool"),
        ("nDCG(dcg='log10')", "dcg is one of 'log2', 'exp-log2'"),
        ("nDCG(gains={1})", "can't read the map"),
        ("nDCG(rel", "unknown measure"),
        ("AP(rel=)", "can't read 'rel='"),
        ("RBP(p=1.5)", "p is a probability below 1"),
        ("nDCG(base=1)", r"nDCG\(base=1\): the base of a logarithm is above 1"),
        ("nDCG(base=2,discount=0.5)", "base and discount both set the discount"),
        ("nDCG(discount=2)", "bends the discount from -1 to 1"),
        ("nDCG(discount=(1,2))", "may not rise"),
        ("nDCG(discount=())", "the first above 0"),
        ("nDCG(discount=(1,x))", "'x' is not a number"),
        ("nDCG(discount='log3')", "'log2', a number from -1 to 1, or a tuple by rank"),
        ("GM(GMAP)", "is a geometric mean already"),
        ("GM(AP)@10", "GM has no cutoff"),
        ("GM(nDGC@10)", "did you mean .*nDCG"),
        ("GM(AP,RR)", "can't read 'RR'"),
        ("AP(2)", "can't read '2'"),
        ("AP(rel=2')", '"2\'" is not a number'),
        ("GM(" * 500 + "AP" + ")" * 500, "too many brackets"),
        ("GMAP(eps=0)", "eps must be above 0"),
        ("P@99999999999999999999", "the cut-off is too large"),
        ("AP(rel=nan)", "not a number"),
        ("", "unknown measure"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_measure(name)


@given(st.text(alphabet="nDCGAPRr@()={}',.:0123456789-_le ", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_measure(str(parse_measure(text))) == parse_measure(text)


def test_at_sets_the_cutoff() -> None:
    assert nDCG(dcg="exp-log2") @ 10 == parse_measure("nDCG(dcg='exp-log2')@10")
    assert fr.nDCG @ 10 == parse_measure("nDCG@10")
    assert parse_measure("P@5") == fr.P @ 5
    for measure in (fr.ESL, fr.ESL(n=2)):
        with pytest.raises(UsageError, match="ESL has no cut-off"):
            measure @ 5


def test_every_measure_is_a_name_of_the_package() -> None:
    for measure in REGISTRY.values():
        assert getattr(fr, measure.name) is measure
    assert issubclass(fr.nDCG, fr.Measure)


def test_equal_discounts_are_one_measure_however_they_are_given() -> None:
    found = {nDCG(discount=given) for given in ((1, 0.5), [1.0, 0.5], np.array([1, 0.5]))}
    assert found == {parse_measure("nDCG(discount=(1,0.5))")}


def test_every_measure_says_what_it_means() -> None:
    for measure in REGISTRY.values():
        needs_cutoff = measure.name in ("P", "R", "Success")
        assert len(measure(**({"cutoff": 1} if needs_cutoff else {})).meaning()) > 20
