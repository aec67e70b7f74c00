"""Models of features as a Vespa rank profile: ranking expressions, a cascade as its phases.

Vespa computes in float64. Linear models and nets are written in the features' own units; trees are nested ifs that ask
x < threshold, which Vespa runs fast; where a missing value (NaN) goes to the lower side they ask x >= threshold, which
it is not. The expressions are in files of their own, which the profile names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fliprank.errors import printable
from fliprank.export.about import About
from fliprank.export.additive import Additive, Curve, Stage, fold_tree, stages_of, unfit
from fliprank.export.float32 import below
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.trees import Node

__all__ = ["expression", "function_names"]

PHASES = ("first-phase", "second-phase", "global-phase")
NAME = "fliprank"


def _takes(model: Model) -> str | None:
    reason = unfit(model, lambda function: None)
    stages = getattr(model, "stages", ())
    if reason is None and len(stages) > len(PHASES):
        return f"Vespa ranks in {len(PHASES)} phases, this cascade has {len(stages)} stages"
    return reason


@target("vespa", "linear models, nets, trees, curves, their sums, and cascades of three stages", _takes)
def write(model: Model, about: About) -> Export:
    """The rank profile, and an expression per stage."""
    stages = stages_of(model)
    called = function_names(dict.fromkeys(name for stage in stages for name in stage.function.features))
    files = {f"{NAME}.profile": "\n".join(_profile(stages, called)) + "\n"}
    lost = list[str]()
    for phase, stage in zip(PHASES, stages, strict=False):
        files[f"{_file(phase)}.expression"] = expression(stage.function, called) + "\n"
        lost += [f"{phase}: {each}" if stage.size else each for each in stage.function.lost()]
    return Export(files, _steps(stages), lost=tuple(lost), settings={"features": dict(called)})


def _file(phase: str) -> str:
    return f"{NAME}-{phase}"


def function_names(features: Iterable[str]) -> dict[str, str]:
    """{feature: the name of its function in the profile}: letters, digits and underscores, and no two alike.

    >>> function_names(["title.bm25", "title-bm25", "7"])
    {'title.bm25': 'f_title_bm25', 'title-bm25': 'f_title_bm25_2', '7': 'f_7'}
    """
    out = dict[str, str]()
    for feature in features:
        plain = "f_" + re.sub(r"\W", "_", feature, flags=re.ASCII)
        name, number = plain, 2
        while name in out.values():
            name, number = f"{plain}_{number}", number + 1
        out[feature] = name
    return out


def expression(function: Additive, called: dict[str, str]) -> str:
    """The ranking expression of a sum, one term per line."""
    bias, weights = function.raw()
    terms = [(w, called[name]) for w, name in zip(weights.tolist(), function.features, strict=True) if w]
    raw = function.w21 * function.scale
    inner = function.b2 - raw @ function.mean
    for w32, start, row in zip(function.w32.tolist(), inner.tolist(), raw, strict=True):
        parts = [(w, called[name]) for w, name in zip(row.tolist(), function.features, strict=True) if w]
        terms.append((w32, f"tanh({_sum(start, parts, ' ')})"))
    terms += [(curve.weight, _curve(curve, called)) for curve in function.curves]
    trees = [(1.0, _tree(tree, called)) for tree in function.trees]
    return _sum(bias, [*terms, *trees], "\n")


def _sum(start: float, terms: list[tuple[float, str]], space: str) -> str:
    """start + weight * term - weight * term ..., without signs that follow one another."""
    out = [repr(start)]
    for weight, term in terms:
        sign, factor = ("-", -weight) if weight < 0 else ("+", weight)
        out.append(f"{sign} {term}" if factor == 1.0 else f"{sign} {factor!r} * {term}")
    return space.join(out)


def _tree(tree: list[dict[str, object]], called: dict[str, str]) -> str:
    def leaf(place: int, value: float) -> str:
        return repr(value)

    def split(place: int, node: Node, low: str, high: str) -> str:
        name, threshold = called[node["feature"]], repr(float(below(node["at_most"])))
        if node.get("missing") == "at_most":
            return f"if ({name} >= {threshold}, {high}, {low})"
        return f"if ({name} < {threshold}, {low}, {high})"

    return fold_tree(tree, leaf, split)


def _curve(curve: Curve, called: dict[str, str]) -> str:
    """A curve of docs/features.md; values below 0 count as 0 where it is of values that have no sign."""
    model, name = curve.feature, called[curve.feature.name]
    values = dict(zip(model.params.names, model.params.values.tolist(), strict=True))
    k = repr(values[f"{model.name}.k"])
    if model.transform == "log":
        return f"log(if ({name} > 0, {name}, 0) + {k})"
    if model.transform == "saturate":
        return f"if ({name} > 0, {name} / ({name} + {k}), 0)"
    if model.transform == "signed":
        return f"({name} / (fabs({name}) + {k}))"
    if model.transform == "recency":
        newest = repr(model.newest)
        return f"if ({name} > 0, if ({name} < {newest}, {k} / ({newest} - {name} + {k}), 1), 0)"
    return f"if ({name} > 0, 1 / (1 + pow({name} / {k}, {-values[f'{model.name}.a']!r})), 0)"


def _profile(stages: list[Stage], called: dict[str, str]) -> Iterator[str]:
    yield f"rank-profile {NAME} {{"
    for feature, name in called.items():
        yield f"    # {printable(feature)}"
        yield f"    function {name}() {{"
        yield "        expression: FILL_IN"
        yield "    }"
    for phase, stage in zip(PHASES, stages, strict=False):
        yield f"    {phase} {{"
        if phase != PHASES[0]:
            yield f"        rerank-count: {stage.size}"
        yield f"        expression: file:{_file(phase)}.expression"
        yield "    }"
    yield "}"


def _steps(stages: list[Stage]) -> tuple[str, ...]:
    steps = [
        f"Put {NAME}.profile into the schema's folder (schemas/SCHEMA/) of your application, and the .expression files "
        "beside it.",
        "Put the rank feature of each function in the place of FILL_IN, such as bm25(title) or attribute(clicks): it "
        "must give the numbers that the model was trained on. Vespa refuses the profile as it is.",
        "$ vespa deploy",
        f"Search with ranking.profile={NAME}.",
    ]
    if len(stages) > 1:
        steps.append(
            f"The first phase ranks all matches; the model expects about {stages[0].size}. rerank-count of the second "
            "phase counts per content node."
        )
    return tuple(steps)
