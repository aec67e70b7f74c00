"""Cascades by name, as on the command line: sizes and models separated by commas, one for each stage.

A model is `linear`, `network:HIDDEN`, `trees:LEAVES`, or any other kind by its name, such as `bm25f`. A single name
stands for all stages. Features are separated by commas, and those of two stages by a semicolon; `*` stands for any
letters.

>>> nested = parse_cascade("2500,100,10", "linear,network:4,network:8", features="bm25*,clicks;*;*")
>>> nested.sizes, [stage.kind for stage in nested.stages], nested.stages[0].features, nested.stages[2].hidden
((2500, 100, 10), ['feature_subset', 'network', 'network'], ('bm25*', 'clicks'), 8)
"""

from __future__ import annotations

import re

from fliprank.errors import UsageError
from fliprank.models.base import KINDS, Model
from fliprank.models.cascade import Cascade
from fliprank.models.feature_subset import FeatureSubset

__all__ = ["by_stage", "parse_cascade"]

COUNTED = {"network": "hidden", "trees": "leaves"}
"""What the number after the name of a model means."""


def parse_cascade(sizes: str, models: str = "linear", features: str | None = None) -> Cascade:
    """The cascade, not trained yet; raises an error that shows the wrong word."""
    words = [word.strip() for word in sizes.split(",")]
    if wrong := [word for word in words if not re.fullmatch(r"[1-9]\d{0,8}", word, re.ASCII)]:
        raise UsageError(f"stages {sizes!r}: {wrong[0]!r} is not a number of documents")
    stages = [_model(word) for word in by_stage(models, len(words), "models")]
    if features is not None:
        shown = by_stage(features, len(words), "features", mark=";")
        stages = [_of_features(stage, names) for stage, names in zip(stages, shown, strict=True)]
    return Cascade(stages, [int(word) for word in words])


def by_stage(text: str, count: int, what: str, mark: str = ",") -> list[str]:
    """The word of each stage: the text split at marks outside brackets; a single word is for all stages.

    >>> by_stage("ranknet,softndcg(sigma=0.3,discount=0)", 2, "objectives")
    ['ranknet', 'softndcg(sigma=0.3,discount=0)']
    """
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == mark and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    words = [word.strip() for word in words]
    if len(words) == 1:
        words *= count
    if len(words) != count:
        raise UsageError(f"{what} {text!r}: {len(words)} for {count} stages; give one for each, or one for all")
    return words


def _model(word: str) -> Model:
    kind, colon, number = word.partition(":")
    known = sorted(KINDS.keys() - {"cascade", "feature_subset", "feature", "stack", "blend"})
    if kind not in known:
        raise UsageError(f"unknown model {word!r} of a stage; there are {', '.join(known)}")
    if not colon:
        return KINDS[kind]()
    if kind not in COUNTED or not re.fullmatch(r"\d{1,9}", number, re.ASCII):
        raise UsageError(f"stage model {word!r}: a number follows network: (hidden nodes) or trees: (leaves)")
    return KINDS[kind](**{COUNTED[kind]: int(number)})  # type: ignore[arg-type]


def _of_features(model: Model, names: str) -> Model:
    return model if names == "*" else FeatureSubset(model, [name.strip() for name in names.split(",")])
