"""What a person is told of a tuning: a verdict that the figures bear out, and who gained and lost."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from fliprank.cli.result_tables import tuning_tables
from fliprank.data.candidates import Candidates
from fliprank.experiment.results import FoldResult, Proof, Result
from fliprank.experiment.verdict import decide
from fliprank.measures import parse_measure
from fliprank.models import Linear
from fliprank.optimize.fit import Epoch, Fit, Tried


def told(proof: Proof | None, texts: dict[str, str] | None = None) -> str:
    """All that is shown."""
    rows = Candidates.of([1, 0], features=[[1.0], [2.0]])
    model = Linear().prepared(rows, 0)
    epoch = Epoch(0, 0.0, 0.5, 0.5)
    tried = (Tried("ranknet by lbfgs", 0.6, 0.75), Tried("keep the defaults", 0.5, 0.25))
    fit = Fit(model, epoch, (epoch,), "done", start=model, measure=parse_measure("RR"), tried=tried, rows=rows)
    proofs = {} if proof is None else {"test": proof}
    result = Result({"": FoldResult(fit, {})}, {}, proofs, decide(proofs), texts=texts or {})
    screen = Console(width=200, file=(text := io.StringIO()))
    for thing in tuning_tables(result):
        screen.print(thing, markup=False) if isinstance(thing, str) else screen.print(thing)
    return text.getvalue()


def proof_of(ranks: list[int], measures: list[str]) -> Proof:
    """Queries of five rows; by default the relevant one is third, once tuned at these ranks."""
    rows = Candidates.of([1, 0, 0, 0, 0] * len(ranks), group=[5] * len(ranks))
    tuned = np.tile([0.0, 4, 3, 2, 1], len(ranks))
    tuned[::5] = [5.5 - rank for rank in ranks]
    return Proof.of(rows, np.tile([2.5, 4, 3, 2, 1], len(ranks)), tuned, measures)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([1] * 12, "Better: RR +0.6667 on 12 queries that tuning did not see, p = 0.0005."),
        ([5] * 12, "Worse: RR -0.1333 on 12 queries that tuning did not see, p = 0.0005. Keep the defaults."),
        ([1, 5] * 3 + [3] * 6, "Not shown to be better: RR +0.1333 on 12 queries that tuning did not see"),
        ([4, 3] * 2, "Not better: RR -0.0417 on 4 queries that tuning did not see"),
    ],
)
def test_the_verdict_is_what_the_figures_say(ranks: list[int], said: str) -> None:
    assert said in told(proof_of(ranks, ["RR"]))


def test_a_measure_that_is_better_when_small_is_read_so() -> None:
    text = told(proof_of([1] * 12, ["ESL"]))
    assert "Better: ESL -2.0000" in text
    line = next(line for line in text.splitlines() if "│ ESL" in line)
    assert [cell.strip() for cell in line.split("│")][-3:-1] == ["12", "0"]


def test_another_measure_that_falls_is_told() -> None:
    text = told(proof_of([2] * 8 + [5] * 8, ["nDCG@2", "P@4"]))
    assert "Better: nDCG@2" in text
    assert "But P@4 falls by 0.1250, p = " in text
    assert "But" not in told(proof_of([1] * 12, ["nDCG@2", "P@4"]))


def test_those_who_gained_and_lost_most_are_named() -> None:
    text = told(proof_of([1, 5, 3, 2, 4, 1, 1, 1], ["RR"]), {"1": "red [bold]shoes[/]", "2": "hats " * 40})
    moved = text[text.index("Most helped") :]
    rows = [line for line in moved.splitlines() if line.startswith("│")]
    shown = [line.split("│")[1].strip() for line in rows[:5]]
    assert shown[0] == "1: red [bold]shoes[/]"
    assert shown[-1].startswith("2: hats hats")
    assert len(shown) == 5
    assert not any(line.startswith("3 ") for line in shown)  # neither gained nor lost


def test_without_figures_there_is_no_verdict() -> None:
    text = told(None)
    assert "etter" not in text
    assert "How: a mean of 2 recipes, weighted by cross-validation: ranknet" in text
