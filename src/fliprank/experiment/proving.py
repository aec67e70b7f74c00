"""The proof of a tuning as an object: what `fit.proof` gives in Python, and what `fliprank tune` prints and writes.

Default and tuned function are compared on queries that the tuning did not see: test rows, and the folds of the
cross-validation that weighed the recipes (each ranked by fits without it, see `tuning.py`). A verdict says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError, indented
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.results import Proof
from fliprank.experiment.verdict import ADOPT, Reference, Verdict, decide
from fliprank.measures import Measure, parse_measure
from fliprank.models import BM25, BM25F, EngineText, Fusion, Hybrid, Model
from fliprank.models.hybrid import TEXT
from fliprank.optimize.fit import Fit

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Prover", "TuningProof", "proof_on_rows", "references"]

RRF = "RRF"


@dataclass(frozen=True, eq=False, repr=False)
class TuningProof:
    """What held-out queries say of a tuned function, what to do, and what was done.

    `proofs` has "test" and "cross_validated", as far as there are. The figures (`default`, `tuned`, `difference`,
    `interval`, `p`, `queries`) are those of the measure that was tuned for, on the set that counts most: `on`. `model`
    is the tuned function if it was `adopted`, else the defaults. `references` are functions that need no tuning.
    """

    proofs: Mapping[str, Proof]
    verdict: Verdict
    adopted: bool
    model: Model
    references: tuple[Reference, ...] = ()

    @property
    def on(self) -> str:
        """The set whose figures count most: "test", or "cross_validated"."""
        if not self.proofs:
            raise UsageError("nothing was held out, so there are no figures: tune with folds=5, or give test=")
        return next(iter(self.proofs))

    @property
    def main(self) -> Proof:
        """The comparison that counts most."""
        return self.proofs[self.on]

    @property
    def word(self) -> str:
        """What to do: "adopt", "keep", "not shown" or "not proven"."""
        return self.verdict.word

    @property
    def sentence(self) -> str:
        """Why, in a sentence."""
        return self.verdict.sentence

    @property
    def also(self) -> tuple[str, ...]:
        """What else changed by more than chance gives, and functions that do better without tuning."""
        return self.verdict.also

    @property
    def default(self) -> float:
        """The mean of the measure with the default parameters."""
        return self._mean("default")

    @property
    def tuned(self) -> float:
        """The mean of the measure with the tuned parameters."""
        return self._mean("tuned")

    def _mean(self, run: str) -> float:
        return self.main.evaluation.mean(run, self.main.comparisons[0].measure)

    @property
    def difference(self) -> float:
        """Tuned minus default, on the scale on which the measure averages queries."""
        return self.main.comparisons[0].difference

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the difference."""
        return self.main.comparisons[0].interval

    @property
    def p(self) -> float:
        """The p of the randomisation test: how often chance alone gives such a difference."""
        return self.main.comparisons[0].p["randomisation"]

    @property
    def queries(self) -> int:
        """On how many held-out queries."""
        return self.main.comparisons[0].queries

    def by_query(self) -> dict[str, tuple[float, float]]:
        """{query: (default, tuned)} of the measure that was tuned for."""
        return self.main.by_query()

    def content(self) -> dict[str, Any]:
        """As in the result.json of `fliprank tune`: "proof", "verdict", "adopted"."""
        figures = {name: proof.figures() for name, proof in self.proofs.items()}
        return {"proof": figures or None, "verdict": asdict(self.verdict), "adopted": self.adopted}

    def to_frame(self) -> pl.DataFrame:
        """One row per set of held-out queries and measure: means, difference, interval, p, queries helped and hurt."""
        import polars as pl

        rows = []
        for name, proof in self.proofs.items():
            for measure, figures in proof.figures()["measures"].items():
                low, high = figures.pop("interval")
                rows.append({"on": name, "measure": measure, "low": low, "high": high, **figures})
        columns = ["on", "measure", "default", "tuned", "difference", "low", "high", "p", "better", "worse", "queries"]
        return pl.DataFrame(rows, schema=None if rows else columns).select(columns)

    def __repr__(self) -> str:
        taken = "the tuned function was adopted" if self.adopted else "the defaults were kept"
        return indented("TuningProof", self.sentence, *self.also, f"model: {taken}")


@dataclass(frozen=True, eq=False)
class Prover:
    """How a fit is proven when someone asks for its proof: the test rows, the other measures, when to adopt it."""

    test: Candidates | None = None
    reported: tuple[str | Measure, ...] = ("AP", "RR")
    adopt: str = "proven"

    def __post_init__(self) -> None:
        if self.adopt not in ADOPT:
            raise UsageError(f"adopt: one of {', '.join(ADOPT)}, not {self.adopt!r}")
        object.__setattr__(self, "reported", tuple(str(parse_measure(name)) for name in self.reported))

    def __call__(self, fit: Fit) -> TuningProof:
        """The proof of this fit."""
        assert fit.measure is not None
        assert fit.rows is not None
        assert fit.start is not None
        measures = list(dict.fromkeys([str(fit.measure), *map(str, self.reported)]))
        proofs = proof_on_rows(fit, fit.rows, self.test, measures)
        known = references(fit, fit.rows, self.test, fit.measure)
        verdict = decide(proofs, known)
        adopted = verdict.adopted(self.adopt)
        return TuningProof(proofs, verdict, adopted, fit.model if adopted else fit.start, tuple(known))


def proof_on_rows(fit: Fit, rows: Candidates, test: Candidates | None, measures: Sequence[str]) -> dict[str, Proof]:
    """On the test rows, and on the training rows by fits that did not see them; as far as there are."""
    assert fit.start is not None
    found = dict[str, Proof]()
    if test is not None:
        found["test"] = Proof.of(test, fit.start.score(test), fit.model.score(test), list(measures))
    if fit.held_out is not None:
        found["cross_validated"] = Proof.of(rows, fit.start.score(rows), fit.held_out, list(measures))
    return found


def references(fit: Fit, train: Candidates, test: Candidates | None, measure: Measure) -> list[Reference]:
    """What costs no tuning, on the same queries as the first proof: BM25 and BM25F with their default parameters.

    Of a hybrid also each list alone, and reciprocal ranks of the default function and the lists.
    """
    rows, tuned = train, fit.held_out
    if test is not None:
        rows, tuned = test, fit.model.score(test)
    if tuned is None or rows.terms is None or isinstance(fit.model, EngineText):
        return []  # an engine has no other function than its own
    rivals = [BM25(), BM25F()] if len(rows.terms.fields) > 1 else [BM25()]
    known = {rival.kind: rival.prepared(train, 0).score(rows) for rival in rivals if rival.kind != fit.model.kind}
    how = dict.fromkeys(known, "with its default parameters")
    if isinstance(fit.start, Hybrid):
        known |= (others := _fused_rivals(fit.start, rows))
        how |= {name: "with k = 60" if name == RRF else "alone" for name in others}
    if not known:
        return []
    found = evaluate(rows, {"tuned": tuned, **known}, [str(measure)])
    means = found.means()
    return [
        Reference(c.run, means[c.run][c.measure], -measure.sign * c.difference, c.p["randomisation"], how[c.run])
        for c in found.compare("tuned")
    ]


def _fused_rivals(start: Hybrid, rows: Candidates) -> dict[str, Floats]:
    """Each list alone, what it lacks being last, and reciprocal ranks of all."""
    beside = start.with_text(rows)
    assert beside.lists is not None
    ranks = np.where(beside.lists.ranks > 0, beside.lists.ranks, np.iinfo(np.int32).max).astype(np.float64)
    alone = {f"the list {name}": -ranks[:, place] for place, name in enumerate(beside.lists.names) if name != TEXT}
    return {**alone, RRF: Fusion("plain", beside.lists.names, normalise="rank").score(beside)}
