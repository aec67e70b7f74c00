"""The section to read where there is time for one: what to do, before and after, and what lies in the folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fliprank.experiment.results import Proof
from fliprank.experiment.verdict import Verdict
from fliprank.report.page.section import Section

__all__ = ["measure_rows", "verdict_section"]

WORDS = {
    "adopt": "Adopt the tuned function",
    "keep": "Keep what you have",
    "not shown": "Not shown to be better",
    "not proven": "Nothing was held out to prove it",
}
SETS = {
    "test": "Test queries, which tuning did not see",
    "cross_validated": "Training queries, ranked by fits that did not see them",
}


def verdict_section(
    verdict: Verdict,
    proofs: Mapping[str, Proof],
    adopted: bool,
    written: Sequence[tuple[str, str]],
    names: tuple[str, str] = ("default", "tuned"),
) -> Section:
    """`written` are (what, what for): files of the folder, commands that use them; `names` are those of the sides."""
    sets = [{"title": SETS[on], "measures": measure_rows(proof)} for on, proof in proofs.items()]
    data = {
        "word": verdict.word,
        "headline": WORDS[verdict.word],
        "also": list(verdict.also),
        "adopted": adopted,
        "sets": sets,
        "names": list(names),
        "written": [list(each) for each in written],
    }
    return Section("verdict", "Verdict", verdict.sentence, data)


def measure_rows(proof: Proof) -> list[dict[str, Any]]:
    """Each measure before and after, as result.json has it, and which way is better."""
    signs = {reading.label: reading.measure.sign for reading in proof.evaluation.readings}
    return [{"measure": name, "sign": signs[name], **figures} for name, figures in proof.figures()["measures"].items()]
