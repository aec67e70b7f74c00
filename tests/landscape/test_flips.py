"""Flips against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from lines import Line, between, crossings, lines

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.landscape import find_flips


def plain_flips(line: Line, low: float, high: float) -> list[tuple[float, int, int, int, int]]:
    out = []
    labels = np.nan_to_num(line.rows.labels)
    for q, (begin, end) in enumerate(zip(line.rows.offsets, line.rows.offsets[1:], strict=False)):
        for upper in range(begin, end):
            for lower in range(begin, end):
                if line.slope[lower] > line.slope[upper]:
                    x = (line.base[upper] - line.base[lower]) / (line.slope[lower] - line.slope[upper])
                    if low < x < high:
                        out.append((x, q, upper, lower, int(np.sign(labels[lower] - labels[upper]))))
    return sorted(out)


@settings(max_examples=100, deadline=None)
@given(lines())
def test_flips_are_those_of_every_pair_of_documents(line: Line) -> None:
    for low, high in ((-np.inf, np.inf), (-1.0, 0.5)):
        found = find_flips(line.base, line.slope, line.rows, low, high)
        rows = zip(found.x, found.query, found.upper, found.lower, found.kind, strict=True)
        assert sorted(rows) == plain_flips(line, low, high)
        assert np.all(np.diff(found.x) >= 0)


@settings(max_examples=50, deadline=None)
@given(lines())
def test_upper_ranks_above_lower_before_the_flip_and_below_it_after(line: Line) -> None:
    found = find_flips(line.base, line.slope, line.rows)
    for x in between(crossings(line)):
        lead = (line.base + x * line.slope)[found.upper] - (line.base + x * line.slope)[found.lower]
        np.testing.assert_array_equal(lead > 0, x < found.x)


def test_an_unjudged_document_counts_as_label_0() -> None:
    found = find_flips([1, 0, 0], [0, 1, 2], Candidates.of([np.nan, 0, 1]))
    assert found.kind.tolist() == [1, 1, 0]  # over the first at 1/2, over the second at 0; then the first two
    assert found.x.tolist() == [0.0, 0.5, 1.0]


def test_a_line_that_makes_no_sense_is_refused() -> None:
    rows = Candidates.of([1, 0])
    with pytest.raises(InputError, match="shape"):
        find_flips([1.0], [1.0, 2.0], rows)
    with pytest.raises(InputError, match="slope of row 1"):
        find_flips([1.0, 2.0], [1.0, np.nan], rows)
    with pytest.raises(UsageError, match="nothing between"):
        find_flips([1.0, 2.0], [1.0, 2.0], rows, 3, 2)
