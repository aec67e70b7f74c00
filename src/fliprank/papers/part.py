"""A part of a paper: one of its tables, figures or theorems, computed anew on data that anyone can have.

A part is a function from a `Setting` (how large, on which data) to a `Finding` (the table, the paper's claim, what came
of it, and a verdict), registered under the paper's own number.

>>> @part("taylor1999", "table1", "An example")
... def table1(setting: Setting) -> Finding:
...     return Finding(("runs",), ((2,),), "Two runs.", "Two runs.", "holds", {})
>>> PARTS.pop(("taylor1999", "table1")).title
'An example'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fliprank.errors import UsageError

__all__ = ["PARTS", "VERDICTS", "Finding", "Part", "Setting", "Verdict", "find_parts", "part"]

Verdict = Literal["holds", "does not hold", "can't be told at this size"]
VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "can't be told at this size")


@dataclass(frozen=True)
class Setting:
    """How a part is run."""

    quick: bool
    """Seconds instead of minutes, on small data."""
    data: Mapping[str, Path] = field(default_factory=dict)
    """Where data sets are, by name: those that the part needs, and others that a person gave."""
    cache: Path = Path("cache")
    """Folder for checkpoints of long work: a killed run goes on from here."""
    seed: int = 0
    progress: Callable[[str], None] | None = None
    shared_fits: Path | None = None
    """Where all parts of a paper keep their fits; without it, each part has its own."""

    @property
    def shared(self) -> Path:
        """A folder for what several parts of a paper need, for the same version, size, seed and data."""
        return self.cache.parent.parent / "shared" / self.cache.name

    @property
    def fits(self) -> Path:
        """A folder for fits that several parts of a paper make: each is named for all that it depends on."""
        return self.cache / "fits" if self.shared_fits is None else self.shared_fits

    def say(self, what: str) -> None:
        """Tell the person who waits what is being done."""
        if self.progress is not None:
            self.progress(what)


@dataclass(frozen=True)
class Finding:
    """What came of a part."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]
    """The table. Numbers stay numbers: the writer formats them, those of columns named p as p-values."""
    claim: str
    """What the paper says, in one sentence."""
    found: str
    """Our figure and the test, in one or two sentences."""
    verdict: Verdict
    settings: dict[str, Any]
    """All that is needed to run it again: data, queries, seeds, methods."""
    figure: Any | None = None
    """An Altair chart, or a function that draws one: it is called only where Altair is installed."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UsageError(f"verdict {self.verdict!r}: expected one of {', '.join(VERDICTS)}")
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise UsageError(f"row {number} has {len(row)} cells, but there are {len(self.columns)} columns")


@dataclass(frozen=True)
class Part:
    """A table, figure or theorem of a paper, with what it takes to compute it."""

    paper: str
    name: str
    """The paper's own number: table1, figure2, theorem1."""
    title: str
    needs: tuple[str, ...]
    """The data sets; none where everything is generated."""
    minutes: float
    """An estimate, on two cores."""
    run: Callable[[Setting], Finding]
    only_by_name: bool = False
    """Whether it is left out of `all`, and run only if its paper is named."""


PARTS: dict[tuple[str, str], Part] = {}
"""Every part, by paper and name, in the order of the papers."""


def part(
    paper: str,
    name: str,
    title: str,
    *,
    needs: tuple[str, ...] = (),
    minutes: float = 1.0,
    only_by_name: bool = False,
) -> Callable[[Callable[[Setting], Finding]], Callable[[Setting], Finding]]:
    """Register a function `run(setting)` as a part of a paper."""

    def register(run: Callable[[Setting], Finding]) -> Callable[[Setting], Finding]:
        if (paper, name) in PARTS:
            raise UsageError(f"{paper} has a part {name} already: {PARTS[paper, name].title}")
        PARTS[paper, name] = Part(paper, name, title, needs, minutes, run, only_by_name)
        return run

    return register


def find_parts(paper: str, names: list[str] | None = None) -> list[Part]:
    """The parts of a paper with these names, or every one; of `all`, without those that are run only by name.

    Raises if there is no such part.
    """
    papers = dict.fromkeys(each for each, _ in PARTS)
    if paper != "all" and paper not in papers:
        raise UsageError(f"no paper {paper!r}; there are: {', '.join([*papers, 'all'])}")
    every = [each for each in PARTS.values() if each.paper == paper or (paper == "all" and not each.only_by_name)]
    known = dict.fromkeys(each.name for each in every)
    for name in names or []:
        if name not in known:
            raise UsageError(f"{paper} has no part {name!r}; it has: {', '.join(known)}")
    return [each for each in every if not names or each.name in names]
