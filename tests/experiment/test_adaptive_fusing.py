"""A weight per query is taken where it is better than one for all, and only there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.errors import InputError, UsageError
from fliprank.experiment.fusing import Fused, fuse, write_fused
from fliprank.export.fusion import fusion_settings
from fliprank.measures import parse_measure
from fliprank.models.fusion import AdaptiveFusion

MEASURE = "nDCG@10"


def collection(seed: int, told: bool, queries: int = 60, third: bool = False) -> tuple[Any, Any, dict[str, str]]:
    """Two lists, one good and one poor, by query; where `told`, queries of one word are those of the first list."""
    rng = np.random.default_rng(seed)
    lists: dict[str, dict[str, dict[str, float]]] = {"text": {}, "vectors": {}} | ({"clicks": {}} if third else {})
    judged, texts = {}, {}
    for q in range(queries):
        labels, first = rng.choice([0, 0, 0, 0, 1, 2], 40), bool(rng.random() < 0.5)
        for number, name in enumerate(lists):
            sees = 0.5 if number == 2 else 1.6 if (number == 0) == first else 0.1
            scores = sees * labels + rng.normal(size=40)
            lists[name][f"q{q}"] = {f"d{d}": float(s) for d, s in enumerate(scores)}
        judged[f"q{q}"] = {f"d{d}": int(label) for d, label in enumerate(labels)}
        short = first if told else bool(rng.random() < 0.5)
        texts[f"q{q}"] = "shoes" if short else "what are good shoes for long walks in the mountains"
    return lists, judged, texts


def fused_of(seed: int, told: bool, **options: Any) -> Fused:
    lists, judged, texts = collection(seed, told, third=options.pop("third", False))
    given = {"measure": MEASURE, "settings": {"normalise": "minmax"}, "adaptive": True, "queries": texts, **options}
    return fuse(lists, judged, **given)


@pytest.fixture(scope="module")
def better() -> Fused:
    return fused_of(1, told=True)


def test_it_is_taken_where_the_query_tells_which_list_is_good(better: Fused) -> None:
    assert better.verdict.word == "adopt"
    assert better.per_query is not None
    assert better.per_query.adopted
    assert better.per_query.difference > 0.02
    assert "A weight per query is better than one for all (nDCG@10 +" in better.verdict.sentence
    model = better.model
    assert isinstance(model, AdaptiveFusion)
    assert model.params["slope.text.terms"] < 0 < model.params["slope.vectors.terms"]
    weights = np.array(list(better.per_query.weights.values()))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights[:, 0].max() > 0.6 > 0.4 > weights[:, 0].min()
    assert better.content()["adaptive"]["adopted"]


def test_it_works_for_three_lists_too() -> None:
    found = fused_of(1, told=True, third=True)
    assert found.per_query is not None
    assert found.per_query.adopted


def test_its_figure_is_that_of_scores_that_did_not_see_the_fold(better: Fused) -> None:
    """The proof of the result is of the nested choice: by the fold's own labels nothing was chosen."""
    assert better.per_query is not None
    fit, rows = better.per_query.fit, better.fit.rows
    assert rows is not None
    assert better.fit.held_out is not None
    assert fit.held_out is not None
    measure = parse_measure(MEASURE)
    found = better.proofs["cross_validated"].evaluation.mean("tuned", MEASURE)
    assert found == pytest.approx(measure.value(better.fit.held_out, rows), abs=1e-12)
    own = measure.value(better.model.score(rows), rows)
    assert own > measure.value(fit.held_out, rows)  # what saw the labels is higher: it is not what is shown


def test_one_weight_is_kept_where_the_query_tells_nothing() -> None:
    """Texts that say nothing; the lists themselves still differ by query, of which agreement and spread tell little."""
    taken = 0
    for seed in range(4):
        lists, judged, texts = collection(seed, told=False, queries=30)
        rng = np.random.default_rng(seed)
        for name in lists:  # alike in all queries
            for query, own in lists[name].items():
                lists[name][query] = {d: judged[query][d] + float(rng.normal()) for d in own}
        found = fuse(lists, judged, measure=MEASURE, settings={"normalise": "minmax"}, adaptive=True, queries=texts)
        assert found.per_query is not None
        taken += found.per_query.adopted
        if not found.per_query.adopted:
            assert not isinstance(found.model, AdaptiveFusion)
            assert found.verdict.sentence.endswith("one weight is used.")
            assert found.per_query.weights == {}
    assert taken <= 1


def test_test_queries_are_ranked_by_their_own_traits(better: Fused) -> None:
    lists, judged, texts = collection(2, told=True, queries=90)
    train, test = ({q: judged[q] for q in list(judged)[half]} for half in (slice(60), slice(60, None)))
    options: Any = {"measure": MEASURE, "settings": {"normalise": "minmax"}, "adaptive": True, "queries": texts}
    found = fuse(lists, train, test=test, **options)
    assert found.per_query is not None
    assert set(found.per_query.weights) == set(test)
    rows = fr.with_query_traits(fr.fusion_rows(lists, test), texts)
    own = parse_measure(MEASURE).value(found.model.score(rows), rows)
    assert found.evaluation.mean("tuned", MEASURE) == pytest.approx(own, abs=1e-12)


def test_what_is_written_ranks_new_queries(better: Fused, tmp_path: Path) -> None:
    write_fused(tmp_path, better)
    model = fr.load_model(tmp_path / "model")
    lists, _, texts = collection(5, told=True, queries=10)
    rows = fr.with_query_traits(fr.fusion_rows(lists), texts)
    np.testing.assert_array_equal(model.score(rows), better.model.score(rows))
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["adaptive"]["sentence"] in content["verdict"]["sentence"]
    with (tmp_path / "weights.csv").open() as file:
        head, *lines = csv.reader(file)
    assert head == ["query", "text", "vectors"]
    assert better.per_query is not None
    assert {line[0]: [float(x) for x in line[1:]] for line in lines} == better.per_query.weights
    write_fused(tmp_path, better, "never")
    assert not (tmp_path / "weights.csv").exists()


def test_the_settings_have_the_formula(better: Fused) -> None:
    """What a person needs to compute the weights of a query: recomputed here from the settings alone."""
    told = json.loads(fusion_settings(better.model))
    assert better.per_query is not None
    assert isinstance(better.model, AdaptiveFusion)
    rows = fr.with_query_traits(*_rows_and_texts())
    assert rows.lists is not None
    assert rows.lists.traits is not None
    for q, query in enumerate(rows.qids.tolist()):
        weights = []
        for j, name in enumerate(rows.lists.names):
            factor = 1.0
            for t, (trait, each) in enumerate(told["traits"][name].items()):
                assert trait == rows.lists.trait_names[t]
                away = (rows.lists.traits[q, j, t] - each["mean"]) / each["deviation"]
                factor += each["slope"] * min(max(away, -3.0), 3.0)
            weights.append(told["settings"]["parameters"][f"weight.{name}"] * max(0.05, factor))
        expected = np.array(weights) / sum(weights)
        np.testing.assert_allclose(better.per_query.weights[query], expected, atol=2e-3)


def _rows_and_texts() -> tuple[fr.Candidates, dict[str, str]]:
    lists, judged, texts = collection(1, told=True)
    return fr.fusion_rows(lists, judged), texts


def test_terms_and_idf_are_those_of_the_texts() -> None:
    docs = [{"_id": f"d{i}", "text": text} for i, text in enumerate(["red shoes", "red hats", "blue socks", "red"])]
    index = fr.Index.build(docs, fields=["text"])
    rows = fr.fusion_rows({"a": {"p": {"d0": 1.0}, "q": {"d1": 2.0}}, "b": {"p": {"d2": 1.0}, "q": {"d3": 1.0}}})
    found = fr.with_query_traits(rows, {"p": "red red socks", "q": "hats"}, index).lists
    assert found is not None
    assert found.traits is not None
    assert found.trait_names[3:] == ("terms", "idf")

    def idf(df: int) -> float:
        return float(np.log(1 + (4 - df + 0.5) / (df + 0.5)))

    for column in (0, 1):  # the same for both lists
        assert found.traits[0, column, 3:] == pytest.approx([np.log(4), (2 * idf(3) + idf(1)) / 3])
        assert found.traits[1, column, 3:] == pytest.approx([np.log(2), idf(1)])


def test_what_makes_no_sense_is_said() -> None:
    lists, judged, texts = collection(3, told=True, queries=6)
    with pytest.raises(UsageError, match="weights that depend on the query"):
        fuse(lists, judged, queries=texts)
    with pytest.raises(InputError, match="1 of 6 queries have no text"):
        fuse(lists, judged, adaptive=True, queries={q: t for q, t in texts.items() if q != "q3"})
    with pytest.raises(UsageError, match="beside the index"):
        fr.with_query_traits(fr.fusion_rows(lists), index="some.index")
    with pytest.raises(UsageError, match="needs weights"):
        fuse(lists, judged, adaptive=True, engine="solr", settings={"method": "rrf"})
