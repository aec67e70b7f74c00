"""Matveeva et al. 2006: sets do not overlap, cascades are kept, and Figure 3 is as by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest

from fliprank.data.candidates import concat
from fliprank.data.generate import generate
from fliprank.experiment.cascade_analysis import AfterStage
from fliprank.papers import PARTS
from fliprank.papers.matveeva2006.figures import PERFECT, swapped
from fliprank.papers.matveeva2006.sets import BLOCK, Scale, Sets, net, of_one_population, sets_of, stage_row, trained
from fliprank.papers.part import Setting

pytestmark = pytest.mark.long

SMALL = Scale(40, 5, 6, 60, 8, (60, 30, 20, 10))


def test_the_papers_sizes_are_those_of_its_first_table() -> None:
    scale = Scale.of("first", Setting(quick=False))
    assert (scale.train, scale.valid, scale.test) == (3514, 691, 688)
    assert (scale.documents, scale.features, scale.sizes) == (2500, 400, (2500, 1000, 100, 10))
    assert scale.fewer == (2500, 100, 10)
    assert of_one_population(scale).populations == 1


def test_sets_are_different_stretches_of_one_list_of_queries() -> None:
    sets = Sets(SMALL, 3)
    train = concat(*sets.blocks())
    assert train.queries == 40
    every = [*train.qids.tolist(), *sets.valid.qids.tolist(), *sets.test.qids.tolist()]
    assert len(set(every)) == 51
    assert not np.isnan(sets.valid.labels).any()  # unlabelled ones are rated 0
    assert np.isnan(sets.test.labels).any()


def test_rows_in_a_file_are_those_that_the_generator_gives(tmp_path: Path) -> None:
    sets = Sets(replace(SMALL, train=BLOCK + 6), 3, tmp_path)
    first, second = sets.blocks()
    assert (first.queries, second.queries) == (BLOCK, 6)
    assert not list(tmp_path.iterdir())  # the file has no name: it can't be left behind
    whole = generate(BLOCK + 6, model=sets.model).rows
    for name in ("features", "labels"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(part, name) for part in sets.blocks()]), getattr(whole, name)
        )
    assert [*first.qids.tolist(), *second.qids.tolist()] == whole.qids.tolist()
    assert next(sets.blocks()) is first


def test_only_the_last_collection_is_kept() -> None:
    setting = Setting(quick=True)
    sets = sets_of(setting, SMALL)
    assert sets_of(setting, SMALL) is sets
    sets_of(setting, replace(SMALL, train=3))
    assert sets_of(setting, SMALL) is not sets


def test_three_stages_begin_with_the_first_of_four(tmp_path: Path) -> None:
    setting = Setting(quick=True, cache=tmp_path / "table4" / "key")
    sets = Sets(SMALL, 0, tmp_path)
    four = trained(setting, sets, [net(0)] * 4, SMALL.sizes, "linear", epochs=3)
    alone = trained(setting, sets, [net(0)] * 3, SMALL.fewer, "from the start", epochs=3)
    three = trained(setting, sets, [net(0)] * 3, SMALL.fewer, "linear", four.stages[0], epochs=3)
    np.testing.assert_array_equal(three.params.values, alone.params.values)
    assert not list(setting.shared.glob("* epochs"))


def test_what_the_first_stage_learns_from_has_three_unlabelled_documents_per_rated_one() -> None:
    sets = Sets(Scale(6, 1, 1, 300, 4, (300, 30, 20, 10)), 0)
    rated = [int((~np.isnan(block.labels)).sum()) for block in sets.blocks()]
    assert len(sets.sampled()) == 4 * sum(rated)


def test_a_cascade_is_trained_once_and_then_read(tmp_path: Path) -> None:
    told: list[str] = []
    setting = Setting(quick=True, cache=tmp_path / "table2" / "key", progress=told.append)
    sets = Sets(SMALL, 0)
    first = trained(setting, sets, [net(0)] * 2, (60, 10), "linear", epochs=3)
    other = Setting(quick=True, cache=tmp_path / "figure6" / "key", progress=told.append)
    again = trained(other, sets, [net(0)] * 2, (60, 10), "linear", epochs=3)
    assert told == ["training linear"]
    np.testing.assert_array_equal(first.score(sets.test), again.score(sets.test))


def test_figure_3_is_as_by_hand() -> None:
    gains = [2**label - 1 for label in PERFECT]
    ideal = sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
    for place, value in enumerate(swapped()):
        moved = list(gains)
        moved[0], moved[place] = moved[place], moved[0]
        assert value == pytest.approx(sum(gain / log2(rank + 1) for rank, gain in enumerate(moved, 1)) / ideal)
    linear = [
        sum(label / log2(rank + 1) for rank, label in enumerate(order, 1))
        for order in (PERFECT, (2, *PERFECT[1:4], 4, *PERFECT[5:]))
    ]
    assert 1 - linear[1] / linear[0] == pytest.approx(0.099, abs=5e-4)  # as the note says
    assert PARTS["matveeva2006", "figure3"].run(Setting(quick=True)).verdict == "does not hold"


def test_a_line_of_a_table_has_a_dash_for_a_stage_that_was_left_out() -> None:
    def after(stage: int, size: int, value: float, gain: float, p: float) -> AfterStage:
        return AfterStage(stage, size, value, (value - 0.01, value + 0.03), gain, p, gain, p, 0.125, np.zeros(2))

    found = [after(1, 100, 0.4, 0.0, 1.0), after(2, 10, 0.5, 0.1, 0.00001)]
    assert stage_row("net", found, (100, 50, 10)) == (
        "net",
        "0.4000 (± 0.020)",
        "-",
        "0.5000 (± 0.020)",
        "+0.1000",
        "1e-05",
        "12.5%",
    )
