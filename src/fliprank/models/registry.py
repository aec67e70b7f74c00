"""Models by name, for commands: what each is called, what rows it reads, how it is made for given rows.

Every kind of model under `@register` is here by its kind. Some have a builder, which looks at the rows: a stack takes
BM25F and the columns that the documents have. Others are made with the settings that they know.

>>> import numpy as np

from fliprank.data.candidates import Candidates
>>> make_model("network", Candidates.of([1, 0], features=[[3.0], [1.0]]), hidden=3).hidden
3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.scattered import ScatteredRows
from fliprank.errors import UsageError
from fliprank.models.base import KINDS, Model
from fliprank.models.blend import Blend
from fliprank.models.bm25 import BM25F
from fliprank.models.cascade_names import parse_cascade
from fliprank.models.column_curves import column_curves, is_date
from fliprank.models.fusion import Fusion
from fliprank.models.hybrid import WINDOW, Hybrid
from fliprank.models.language_model import Dirichlet, JelinekMercer, TwoStageLM
from fliprank.models.linear import Linear
from fliprank.models.network import Network
from fliprank.models.stack import AllFeatures, Stack
from fliprank.models.taylor2006 import many_parameter, nine_parameter, two_parameter
from fliprank.models.trees import Trees
from fliprank.naming import unknown

__all__ = ["MODELS", "Builder", "check_rows", "make_model", "model_names", "register_builder", "stack_notes"]

Builder = Callable[..., Model]
"""Makes a model for some rows, from settings by name."""

MODELS: dict[str, Builder] = {}
"""Names that are no kind, or kinds that look at the rows before they are made."""

FEW_COLUMNS = 12
"""Columns of documents up to which a stack gives each a curve of its own; more are standardised and weighted."""

PARTS = ("feature", "feature_subset", "blend", "engine", "ts_rank")
"""Kinds that need other models, are parts of them, or need an engine: no models to fit by their name alone."""


def register_builder(name: str) -> Callable[[Builder], Builder]:
    """Make a model known by a name of its own."""

    def known(builder: Builder) -> Builder:
        MODELS[name] = builder
        return builder

    return known


def model_names() -> dict[str, str]:
    """{name: what it is in a few words}, for help and errors."""
    kinds = {kind: model.summary for kind, model in KINDS.items() if kind not in PARTS}
    built = {name: (builder.__doc__ or "").strip().split("\n")[0].rstrip(".") for name, builder in MODELS.items()}
    return dict(sorted({**kinds, **built}.items()))


def make_model(name: str, rows: Candidates, **given: Any) -> Model:
    """The model of this name for these rows; settings that are None were not given."""
    settings = {key: value for key, value in given.items() if value is not None}
    if name not in model_names():
        raise unknown("model", name, name, model_names())
    if name in MODELS:
        model = MODELS[name](rows, **settings)
    else:
        known = {f.name for f in fields(KINDS[name]) if f.init} - {"params"}
        if wrong := sorted(settings.keys() - known):
            takes = [other for other in model_names() if _takes(other, wrong[0])]
            raise UsageError(f"{name} has no {wrong[0]}; models that have: {', '.join(takes) or 'none'}")
        model = KINDS[name](**settings)
    check_rows(model, rows)
    return model


def _takes(name: str, setting: str) -> bool:
    if name in MODELS:
        code = MODELS[name].__code__
        return setting in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return setting in {f.name for f in fields(KINDS[name]) if f.init}


def check_rows(model: Model, rows: Candidates | ScatteredRows) -> None:
    """Raise an error that says why, where a model makes no sense for these rows."""
    if "terms" in model.needs and rows.terms is None:
        have = "features" if rows.feature_names else "labels"
        raise UsageError(f"{model.kind} reads term statistics, and these rows have only {have}: take linear or network")
    if model.kind == "hybrid" and rows.lists is None:
        raise UsageError("hybrid fuses text with other lists, and these rows have none: see `fliprank tune --run`")
    if "lists" in model.needs and rows.lists is None:
        raise UsageError(f"{model.kind} ranks what several retrievers returned: make rows of runs by fusion_rows")
    if "features" in model.needs and isinstance(rows, Candidates) and rows.features is None:
        raise UsageError(f"{model.kind} reads features, and these rows have none: take bm25f, or give them columns")
    if rows.terms is not None and "terms" not in model.needs:
        raise UsageError(
            f"{model.kind} reads features only, and would leave out the term statistics of these rows: "
            "--model stack takes both, with --hidden as a net"
        )


@register_builder("lm")
def _language_model(rows: Candidates, *, mixture: bool = False) -> Model:
    """The two-stage language model: Jelinek-Mercer and Dirichlet smoothing in one."""
    return TwoStageLM(mixture=mixture)


@register_builder("dirichlet")
def _dirichlet(rows: Candidates, *, mixture: bool = False) -> Model:
    """The language model with Dirichlet smoothing alone."""
    return Dirichlet(mixture=mixture)


@register_builder("jelinek-mercer")
def _jelinek_mercer(rows: Candidates, *, mixture: bool = False) -> Model:
    """The language model with Jelinek-Mercer smoothing alone."""
    return JelinekMercer(mixture=mixture)


@register_builder("stack")
def _stack(rows: Candidates, *, hidden: int = 0) -> Model:
    """BM25F and the documents' columns (numbers, dates) under a weighted sum, or with hidden nodes under a net."""
    if len(rows.feature_names) > FEW_COLUMNS:
        return Stack(BM25F(), AllFeatures(), hidden=hidden)
    parts, notes = column_curves(rows)
    if not parts and not hidden:
        have = "; ".join(notes) or "these have none"
        raise UsageError(f"a stack needs columns of the documents, such as pagerank: {have}; take bm25f")
    return Stack(BM25F(), *parts, hidden=hidden)


def stack_notes(rows: Candidates) -> tuple[str, ...]:
    """What to tell a person about columns of these rows that a stack made by name leaves out."""
    return column_curves(rows).notes if len(rows.feature_names) <= FEW_COLUMNS else ()


def _static_columns(rows: Candidates) -> list[str]:
    """The columns that are no dates: the rankers of 2006 take the first as their static feature."""
    if rows.features is None:
        return []
    return [
        name for i, name in enumerate(rows.feature_names) if not is_date(name, rows.features[:, i].astype(np.float64))
    ]


@register_builder("cascade")
def _cascade(
    rows: Candidates,
    *,
    stages: str = "2500,1000,100,10",
    stage_model: str = "linear",
    stage_features: str | None = None,
) -> Model:
    """Nested rankers: each stage orders the top of the one before."""
    return parse_cascade(stages, stage_model, stage_features)


@register_builder("fusion")
def _fusion(
    rows: Candidates,
    *,
    engine: str = "plain",
    fusion_method: str | None = None,
    normalise: str | None = None,
    combine: str | None = None,
) -> Model:
    """Ranked lists fused as a search engine does it."""
    given = {"method": fusion_method, "normalise": normalise, "combine": combine}
    settings = {name: value for name, value in given.items() if value is not None}
    return Fusion(engine, () if rows.lists is None else rows.lists.names, **settings)


@register_builder("hybrid")
def _hybrid(
    rows: Candidates,
    *,
    engine: str = "plain",
    engine_settings: Mapping[str, Any] | None = None,
    window: int = WINDOW,
) -> Model:
    """BM25F fused with other lists (tune --run): its parameters and the weights in one fit."""
    return Hybrid(BM25F(), Fusion(engine, **(engine_settings or {})), window)


@register_builder("auto")
def _auto(rows: Candidates, *, hidden: int = 10) -> Model:
    """Linear, net and trees, each trained, and blended where validation queries say that it helps."""
    return Blend([Linear(), Network(hidden), Trees()])


@register_builder("taylor2006-2")
def _two_parameters(rows: Candidates) -> Model:
    """The 2-parameter ranker of Taylor et al. 2006: BM25 with its k and b, and a static feature if there is one."""
    return two_parameter(next(iter(_static_columns(rows)), None))


@register_builder("taylor2006-9")
def _nine_parameters(rows: Candidates) -> Model:
    """The 9-parameter ranker of Taylor et al. 2006: BM25F over four fields and one static feature."""
    fields_of, columns = () if rows.terms is None else rows.terms.fields, _static_columns(rows)
    if not fields_of or not columns:
        raise UsageError("the 9-parameter ranker needs term statistics by field and a column such as pagerank")
    return nine_parameter(fields_of, columns[0])


@register_builder("taylor2006-375")
def _many_parameters(rows: Candidates) -> Model:
    """The 375-parameter ranker of Taylor et al. 2006: BM25F and a weight for each of many features."""
    if rows.terms is None or rows.features is None:
        raise UsageError("the 375-parameter ranker needs term statistics by field and features")
    return many_parameter(rows.terms.fields)
