"""Names of objectives, like those of measures: `name(field=value, ...)@cutoff`.

>>> parse_objective("softndcg(sigma=0.3)@10")
SoftNDCG(sigma=0.3, anneal=None, tol=1e-06, cutoff=10, gain='exp', discount='log2')
>>> str(parse_objective("softndcg(sigma=0.3, gain='exp')@10"))
'softndcg(sigma=0.3)@10'
"""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from typing import Any

from fliprank.checked import checked
from fliprank.errors import UsageError
from fliprank.naming import unknown
from fliprank.objectives.base import REGISTRY, Objective

__all__ = ["parse_objective"]

_NAME = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<inside>\(.*\))?\s*(?:@\s*(?P<cutoff>\d{1,9}))?\s*", re.ASCII | re.DOTALL
)


@checked
def parse_objective(name: str | Objective) -> Objective:
    """The objective of this name; raises an error that shows similar names if there is none."""
    if isinstance(name, Objective):
        return name
    found = _NAME.fullmatch(name)
    if not found:
        raise UsageError(f"objective {name!r}: can't read it; objectives look like softndcg(sigma=0.3)@10")
    key = found["name"].lower()
    if key not in REGISTRY:
        raise unknown("objective", name, key, REGISTRY)
    kind, given = REGISTRY[key], _parameters(found["inside"] or "()", name)
    if found["cutoff"]:
        given["cutoff"] = int(found["cutoff"])
    options = {f.name: str(f.type) for f in fields(kind)}
    if odd := sorted(given.keys() - options.keys()):
        raise UsageError(f"objective {name!r}: {key} has no {' or '.join(odd)}; its parameters: {_list(options)}")
    for field, value in given.items():
        if not _fits(value, options[field]):
            raise UsageError(f"objective {name!r}: {field}={value!r} is not {options[field]}")
    return kind(**given)


def _parameters(text: str, name: str) -> dict[str, Any]:
    """`(a=1, b='x', c=(1, 0.5))` as a dict; values are Python's literals."""
    try:
        call = ast.parse(f"f{text}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
            raise ValueError
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        hint = "parameters look like (sigma=0.3,gain='linear')"
        raise UsageError(f"objective {name!r}: can't read {text!r}; {hint}") from None


def _fits(value: Any, annotation: str) -> bool:
    """Whether a literal is of a type that the field's annotation names."""
    kinds = {
        "None": value is None,
        "str": isinstance(value, str),
        "float": isinstance(value, int | float) and not isinstance(value, bool) and value == value,
        "int": isinstance(value, int) and not isinstance(value, bool),
        "dict": isinstance(value, dict),
        "tuple": isinstance(value, tuple | list) and all(isinstance(x, int | float) for x in value),
    }
    return any(fits for kind, fits in kinds.items() if kind in annotation)


def _list(options: dict[str, str]) -> str:
    return ", ".join(options) or "none"
