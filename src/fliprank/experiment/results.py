"""What came of a fit, for people and programs: figures of each set, the proof on held-out queries, what was tried.

result.json: {"measure", "train"|"valid"|"test": {MEASURE: mean}, "params", "tried": [...], "settings": {...},
              "proof": {"test"|"cross_validated": {"default", "tuned", "difference", "interval", "p", ...}},
              "verdict": {"word", "sentence", "also"}, "adopted", "outlook": {"verdict", "sentence", "gains", ...},
              "moved": {"on", "helped": [...], "hurt": [...], "notes"},
              "stages": [{"stage", "size", "value", "interval", "step", "step_p", "lost", ...}],
              "cutoffs": {"chosen", "frontier", "cost_includes", ...}, "folds": [...], "notes": [...], "interrupted"}

Of a cascade, "stages" has the ranking after each stage, on the queries that "on" names. "cutoffs" is there where sizes
were chosen: what each choice on the frontier costs per query and gives, and what a cost includes.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from fliprank.data.trec import Run
from fliprank.experiment.cascade_analysis import AfterStage
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.evaluation import Evaluation, evaluate
from fliprank.experiment.saturation import Outlook
from fliprank.experiment.significance import Comparison
from fliprank.experiment.task import Task
from fliprank.experiment.tuning_moves import TuningMoves
from fliprank.experiment.verdict import SURE, Verdict
from fliprank.optimize.fit import Fit
from fliprank.optimize.ranges import Range

__all__ = ["Figures", "FoldResult", "Proof", "Result"]

MOST_PARAMS = 1000
"""Parameters up to which result.json lists them; more are in the model's own file."""

Figures = dict[str, dict[str, float]]
"""{"train"|"valid"|"test": {measure: mean}}"""


@dataclass(frozen=True, eq=False)
class Proof:
    """Default against tuned on queries that the fit did not see: means, and each measure's comparison."""

    evaluation: Evaluation
    comparisons: list[Comparison]

    @classmethod
    def of(cls, judged: Any, default: Any, tuned: Any, measures: list[str]) -> Proof:
        found = evaluate(judged, {"default": default, "tuned": tuned}, measures)
        return cls(found, found.compare())

    @property
    def sign(self) -> float:
        """1.0 where larger values of the first measure are better, else -1.0."""
        return self.evaluation.readings[0].measure.sign

    @property
    def gain(self) -> float:
        """By how much the measure that was tuned for is better; below 0 where it is worse."""
        return self.sign * self.comparisons[0].difference

    @property
    def sure(self) -> bool:
        """Whether that is more than chance gives (5%)."""
        return self.comparisons[0].p["randomisation"] < SURE

    def by_query(self) -> dict[str, tuple[float, float]]:
        """{query: (default, tuned)} of the measure that was tuned for."""
        name = self.comparisons[0].measure
        columns = (self.evaluation.values[run][name].tolist() for run in ("default", "tuned"))
        return dict(zip(self.evaluation.qids.tolist(), zip(*columns, strict=True), strict=True))

    def figures(self) -> dict[str, Any]:
        """For programs: those of the measure that was tuned for, under `measures` all, and it query by query."""
        means = self.evaluation.means()
        every = {
            c.measure: {
                "default": means["default"][c.measure],
                "tuned": means["tuned"][c.measure],
                "difference": c.difference,
                "interval": list(c.interval),
                "p": c.p["randomisation"],
                "better": c.better,
                "worse": c.worse,
                "queries": c.queries,
            }
            for c in self.comparisons
        }
        return {**next(iter(every.values())), "measures": every, "by_query": self.by_query()}


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The fit of one fold, its figures, and of a cascade the ranking after each stage."""

    fit: Fit
    figures: Figures
    stages: tuple[AfterStage, ...] = ()

    def content(self) -> dict[str, Any]:
        """For programs."""
        fit = self.fit
        chosen = {**fit.settings, "epoch": fit.best.number, "stopped": fit.stopped}
        cutoffs = {"cutoffs": chosen.pop("cutoffs")} if "cutoffs" in chosen else {}
        stages = [{"on": self.stages_on, **asdict(stage)} for stage in self.stages]
        for stage in stages:
            del stage["values"]
        tried = [asdict(each) for each in fit.tried]
        return {**self.figures, "settings": chosen, "tried": tried, "stages": stages, **cutoffs}

    @property
    def stages_on(self) -> str:
        """The set that `stages` was measured on: the first of test, valid and train that there is."""
        return next(part for part in ("test", "valid", "train") if part in self.figures)


@dataclass(frozen=True, eq=False)
class Result:
    """What came of a command. `proofs` has "test" and "cross_validated" where they were asked for and not cut short.

    `verdict` says what to do with a tuned function, `adopted` whether that was done, and `outlook` whether more
    judgements would help. `moves` has the queries that were helped and hurt most, with what moved in them. `texts` has
    the texts of queries, where they are known; `new_documents` says how many documents that had not been fitted to came
    to the top, round by round. `task`, `runs` (of a tuning: "default" and "tuned") and `curve` are what reports show
    beside these figures; result.json does not have them.
    """

    folds: dict[str, FoldResult]
    settings: dict[str, Any]
    proofs: dict[str, Proof] = field(default_factory=dict)
    verdict: Verdict | None = None
    adopted: bool = True
    outlook: Outlook | None = None
    moves: TuningMoves | None = None
    ranges: dict[str, Range] = field(default_factory=dict)
    new_documents: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    task: Task | None = field(default=None, repr=False)
    runs: dict[str, Run] = field(default_factory=dict, repr=False)
    curve: LearningCurve | None = field(default=None, repr=False)

    @property
    def fit(self) -> Fit:
        """The fit; of the first fold, where there are several."""
        return next(iter(self.folds.values())).fit

    def means(self) -> Figures:
        """The mean over folds of each figure."""
        first, *_ = self.folds.values()
        return {
            part: {m: math.fsum(f.figures[part][m] for f in self.folds.values()) / len(self.folds) for m in measures}
            for part, measures in first.figures.items()
        }

    def content(self) -> dict[str, Any]:
        """The content of result.json."""
        several = "" not in self.folds
        folds = [{"fold": name, **fold.content()} for name, fold in self.folds.items()]
        out: dict[str, Any] = {"measure": str(self.fit.measure), **self.means(), "proof": None}
        if self.proofs:
            out["proof"] = {name: proof.figures() for name, proof in self.proofs.items()}
        if self.verdict is not None:
            out |= {"verdict": asdict(self.verdict), "adopted": self.adopted}
        if self.moves is not None:
            out["moved"] = self.moves.content()
        if self.outlook is not None:
            out["outlook"] = asdict(self.outlook)
        if several:
            out |= {"folds": folds, "settings": self.settings}
        else:
            only = folds[0]
            out |= {"params": self._params()}
            out |= {name: only[name] for name in ("tried", "stages", "cutoffs") if name in only}
            out["settings"] = {**self.settings, **only["settings"]}
        out |= {"new_documents": list(self.new_documents), "notes": list(self.notes), "interrupted": self.interrupted}
        return out

    def _params(self) -> dict[str, Any] | None:
        fitted, start = self.fit.model.params, self.fit.start
        if len(fitted) > MOST_PARAMS:
            return None
        values = {"fitted": dict(zip(fitted.names, fitted.values.tolist(), strict=True))}
        if start is not None and start.params.names == fitted.names:
            values = {"default": dict(zip(fitted.names, start.params.values.tolist(), strict=True)), **values}
        as_good = {name: [found.low, found.high] for name, found in self.ranges.items()}
        # Ends of ranges that are only where the search ended, as [low, high].
        searched = {name: [bool(end) for end in found[2:]] for name, found in self.ranges.items() if any(found[2:])}
        return {**values, "free": list(fitted.free_names), "as_good": as_good, "as_good_open": searched}
