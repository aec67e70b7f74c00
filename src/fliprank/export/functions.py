"""The text functions of engines, by name: what `tune --engine` fits. Each engine's own file registers them.

>>> engine_model("sqlite", fields=["title", "body"]).params.free_names
('title.w', 'body.w')
>>> engine_model("sqlite", "bm25f")
Traceback (most recent call last):
fliprank.errors.UsageError: unknown function of sqlite 'bm25f'; did you mean bm25?
"""

from __future__ import annotations

from collections.abc import Sequence

from fliprank.checked import checked
from fliprank.export.target import Takes
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula, TsRank
from fliprank.naming import unknown

__all__ = ["FUNCTIONS", "engine_model", "engine_names", "register_functions", "takes_text_of"]

FUNCTIONS: dict[str, dict[str, Formula]] = {}
"""By engine, its functions by name; the first is what the engine's users mostly have."""


def register_functions(*formulas: Formula) -> None:
    """Make functions of an engine known."""
    for formula in formulas:
        FUNCTIONS.setdefault(formula.engine, {})[formula.function] = formula


def engine_names() -> dict[str, str]:
    """{engine: its functions}, for help and errors."""
    return {name: ", ".join(functions) for name, functions in sorted(FUNCTIONS.items())}


@checked
def engine_model(engine: str, function: str | None = None, fields: Sequence[str] | None = None) -> EngineText:
    """The text function of an engine over these fields (by default those of the rows that it is fitted to)."""
    from fliprank import export  # noqa: F401  (its modules register themselves)

    if engine not in FUNCTIONS:
        raise unknown("engine", engine, engine, FUNCTIONS)
    functions = FUNCTIONS[engine]
    chosen = next(iter(functions)) if function is None else function
    if chosen not in functions:
        raise unknown(f"function of {engine}", chosen, chosen, functions)
    formula = functions[chosen]
    kind = next(each for each in (EngineText, TsRank) if formula.term in each.terms)
    return kind(formula, None if fields is None else tuple(fields))


def takes_text_of(engine: str, *functions: str) -> Takes:
    """Whether a target takes a model: None for a text function of this engine, else the reason why not."""

    def takes(model: Model) -> str | None:
        if not isinstance(model, EngineText):
            return f"{engine} computes functions of its own: tune one by `fliprank tune --engine {engine}`"
        if model.formula.engine != engine:
            return f"this function was tuned for {model.formula.engine}, tune {engine}'s by `--engine {engine}`"
        known = functions or tuple(FUNCTIONS[engine])
        return None if model.formula.function in known else f"it takes {', '.join(known)}"

    return takes
