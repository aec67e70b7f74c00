"""What to do with a tuned function: adopt it, keep the defaults, or say that nothing was shown.

A proof is a comparison on queries that the fit did not see (`results.Proof`): test queries, or the folds of a
cross-validation. To be adopted, the tuned function must be better by more than chance gives in one of them and worse
in none. A verdict also says what else changed by more than chance gives, and whether another function that needs no
tuning would have done better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from fliprank.errors import UsageError
from fliprank.experiment.significance import Comparison, p_value

if TYPE_CHECKING:
    from fliprank.experiment.results import Proof

__all__ = ["ADOPT", "SURE", "Reference", "Verdict", "decide"]

SURE = 0.05
"""The p below which a difference counts as shown."""

ADOPT = ("proven", "always", "never")
"""When the tuned function becomes the result: where the verdict says so, or always, or never."""

Word = Literal["adopt", "keep", "not shown", "not proven"]


class Reference(NamedTuple):
    """Another function that needs no tuning, on the same queries: its mean, tuned minus it, and p; `how` it is set."""

    name: str
    value: float
    difference: float
    p: float
    how: str = "with its default parameters"


@dataclass(frozen=True)
class Verdict:
    """One word to act upon, the sentence that says why, and what else a person should know before acting."""

    word: Word
    sentence: str
    also: tuple[str, ...] = ()

    def adopted(self, when: str) -> bool:
        """Whether the tuned function is to be taken, with `when` one of `ADOPT`."""
        if when not in ADOPT:
            raise UsageError(f"adopt: one of {', '.join(ADOPT)}, not {when!r}")
        return when == "always" or (when == "proven" and self.word == "adopt")


def decide(proofs: Mapping[str, Proof], references: Sequence[Reference] = (), kept: str = "the defaults") -> Verdict:
    """The verdict of these proofs, of which the first counts most. `references` are its rivals.

    `kept` is what stays where the tuned function is not adopted.
    """
    if not proofs:
        return Verdict("not proven", "Not proven: there were neither test queries nor a cross-validation.")
    main, *others = proofs.values()
    word, sentence = _main(main, others, kept)
    return Verdict(word, sentence, (*_also(proofs), *_rivals(references)))


def _main(main: Proof, others: Sequence[Proof], kept: str) -> tuple[Word, str]:
    first = main.comparisons[0]
    told = f"{first.measure} {first.difference:+.4f} on {first.queries} queries that tuning did not see"
    told += f", p = {p_value(first.p['randomisation'])}"
    if not first.better and not first.worse:
        return (
            "keep",
            f"No difference: {first.measure} of all {first.queries} held-out queries is as with {kept}.",
        )
    if main.gain <= 0:
        return "keep", f"{'Worse' if main.sure else 'Not better'}: {told}. Keep {kept}."
    for other in others:
        c = other.comparisons[0]
        beside = f"{c.difference:+.4f} on {c.queries} others, p = {p_value(c.p['randomisation'])}"
        if other.sure and other.gain < 0:
            return "keep", f"Worse: {beside}, though {told}. Keep {kept}."
        if other.sure and not main.sure:
            return "adopt", f"Better: {told}; {beside}."
    if main.sure:
        return "adopt", f"Better: {told}."
    return "not shown", f"Not shown to be better: {told}, which may be chance. Keep {kept}, or judge more queries."


def _also(proofs: Mapping[str, Proof]) -> Iterator[str]:
    """Each other measure that changed by more than chance gives; those that fell first."""
    found: dict[str, tuple[bool, str]] = {}
    for name, proof in proofs.items():
        for c, reading in list(zip(proof.comparisons, proof.evaluation.readings, strict=True))[1:]:
            if c.measure not in found and c.p["randomisation"] < SURE and not c.measure.startswith("Judged"):
                worse = reading.measure.sign * c.difference < 0
                found[c.measure] = worse, _change(c, worse, name)
    yield from (said for _, said in sorted(found.values(), key=lambda each: not each[0]))


def _change(c: Comparison, worse: bool, proof: str) -> str:
    moved = f"{'rises' if c.difference > 0 else 'falls'} by {abs(c.difference):.4f}"
    where = " (cross-validated)" if proof == "cross_validated" else ""
    return f"{'But' if worse else 'Also,'} {c.measure} {moved}{where}, p = {p_value(c.p['randomisation'])}."


def _rivals(references: Sequence[Reference]) -> Iterator[str]:
    """Functions with default parameters that are above the tuned one, the best first."""
    for rival in sorted(references, key=lambda each: each.difference)[:1]:
        if rival.difference < 0:
            sure = "significantly " if rival.p < SURE else ""
            yield (
                f"But {rival.name} {rival.how} gives {rival.value:.4f} on the same queries: "
                f"{sure}more by {-rival.difference:.4f}, p = {p_value(rival.p)}."
            )
