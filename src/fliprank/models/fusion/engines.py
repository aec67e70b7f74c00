"""What each engine computes when it fuses lists: a registry with one small function per engine.

An entry turns the settings that a user of the engine has, by the engine's own names, into a `Rule`: how scores are
normalised, how they are combined, which parameters there are. Where a formula says nothing (a list with one hit, all
scores equal, a document that a list lacks) the rule does what the engine does; docs/fusion.md has the table, and what
of it is tested against the engine itself.

>>> rule = make_rule("opensearch", normalise="l2", combine="geometric_mean")
>>> rule.norms[0].kind, rule.combine, rule.weights
('l2', 'geometric', 'each')
>>> make_rule("opensearch", technique="l2")
Traceback (most recent call last):
fliprank.errors.UsageError: opensearch has no setting 'technique'; it has normalise, combine
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from math import inf
from typing import Any

from fliprank.errors import UsageError
from fliprank.models.fusion.combine import COMBINATIONS
from fliprank.models.fusion.normalise import NORMS, Norm
from fliprank.naming import unknown

__all__ = ["ENGINES", "Engine", "Rule", "engine_names", "make_rule"]


@dataclass(frozen=True)
class Rule:
    """How lists are fused. `norms` has one entry for all lists, or one per list.

    `weights` says which parameters weigh the lists: "each" (`weight.NAME`; `weight` is the default, 0 stands for 1 /
    the number of lists), "share" (two lists, 1 - share and share; the parameter is called `share`), or "none" (all
    count 1). `k` and `tie` are (default, lower, upper), None where the formula has none; k is no parameter where its
    bounds are equal. `whole_k` says that the engine takes whole numbers only; all is multiplied by `factor`.
    """

    norms: tuple[Norm, ...]
    combine: str = "sum"
    weights: str = "each"
    weight: float = 1.0
    share: str = "alpha"
    share_default: float = 0.5
    k: tuple[float, float, float] | None = None
    whole_k: bool = False
    tie: tuple[float, float, float] | None = None
    factor: float = 1.0

    @property
    def scale_free(self) -> bool:
        """Whether all weights times a number rank alike."""
        return self.weights == "each" and self.combine != "qdrant"


@dataclass(frozen=True)
class Engine:
    """An entry of the registry: `rule` makes the rule from settings by name, `summary` is for help pages."""

    name: str
    summary: str
    rule: Callable[..., Rule]

    @property
    def settings(self) -> dict[str, Any]:
        """{setting: its default}."""
        return {name: each.default for name, each in signature(self.rule).parameters.items()}


ENGINES: dict[str, Engine] = {}
"""Engines by name."""

RRF_K = (60.0, 1.0, inf)
RANKS = Norm("rank")


def engine(name: str) -> Callable[[Callable[..., Rule]], Callable[..., Rule]]:
    """Make an engine known."""

    def known(rule: Callable[..., Rule]) -> Callable[..., Rule]:
        ENGINES[name] = Engine(name, (rule.__doc__ or "").strip().split("\n")[0].rstrip("."), rule)
        return rule

    return known


def engine_names() -> dict[str, str]:
    """{name: what it is in a few words}, for help and errors."""
    return {name: each.summary for name, each in ENGINES.items()}


def make_rule(name: str, **settings: Any) -> Rule:
    """The rule of this engine with these settings."""
    if name not in ENGINES:
        raise unknown("engine", name, name, ENGINES)
    known = ENGINES[name].settings
    for setting in settings:
        if setting not in known:
            raise UsageError(f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}")
    return ENGINES[name].rule(**settings)


def _pick(setting: str, given: Any, known: Mapping[str, Any]) -> Any:
    """What the engine's name stands for."""
    if not isinstance(given, str) or given not in known:
        raise UsageError(f"{setting} is one of {', '.join(known)}, not {given!r}")
    return known[given]


def _each(given: Any, known: Mapping[str, Norm]) -> tuple[Norm, ...]:
    """One name for all lists, or one per list."""
    names = [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)
    if not names:
        raise UsageError(f"normalise is one of {', '.join(known)}, or one of them per list")
    return tuple(_pick("normalise", name, known) for name in names)


def _number(setting: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not -inf < given < inf:
        raise UsageError(f"{setting} is a number, not {given!r}")
    return float(given)


@engine("plain")
def _plain(
    normalise: str | Sequence[str] = "minmax",
    combine: str = "sum",
    missing: float | None = 0.0,
    lower: float | None = None,
    upper: float | None = None,
) -> Rule:
    """No engine's: any normalisation under any combination.

    `missing` is what a document counts that is not in a list; None leaves the list out of a mean.
    """
    if combine not in COMBINATIONS or combine in ("qdrant", "dismax"):
        raise UsageError(f"combine is one of sum, arithmetic, geometric, harmonic, max, not {combine!r}")
    counts = None if missing is None else _number("missing", missing)
    ends = [None if end is None else _number("a bound", end) for end in (lower, upper)]
    known = {name: Norm(name, flat=0.0 if name == "zscore" else 0.5, missing=counts) for name in NORMS}
    known["minmax"] = replace(known["minmax"], lower=ends[0], upper=ends[1])
    norms = _each(normalise, known)
    if any(end is not None for end in ends) and all(norm.kind != "minmax" for norm in norms):
        raise UsageError("lower and upper are bounds of minmax")
    if any(norm.kind == "rank" for norm in norms) and counts != 0.0:
        raise UsageError("a document that a list lacks has no rank there: with ranks, missing is 0")
    combined = "sum" if combine == "arithmetic" and counts is not None else combine
    free = "none" if combine == "max" else "each"
    even = 0.0 if combine in ("arithmetic", "geometric", "harmonic") else 1.0
    k = RRF_K if any(norm.kind == "rank" for norm in norms) else None
    return Rule(norms, combined, free, even, k=k)


@engine("elasticsearch-linear")
def _elasticsearch_linear(normalise: str | Sequence[str] = "none") -> Rule:
    """Elasticsearch's `linear` retriever: a weighted sum; normalise is none, minmax or l2_norm, also per retriever."""
    minmax = Norm("minmax", flat_as="raw", tolerance=1e-6)
    known = {"none": Norm(), "minmax": minmax, "l2_norm": Norm("l2", flat_as="raw", tolerance=1e-6)}
    return Rule(_each(normalise, known))


@engine("elasticsearch-rrf")
def _elasticsearch_rrf() -> Rule:
    """Elasticsearch's `rrf` retriever: w / (rank_constant + rank)."""
    return Rule((RANKS,), k=RRF_K, whole_k=True)


@engine("opensearch")
def _opensearch(normalise: str = "min_max", combine: str = "arithmetic_mean") -> Rule:
    """OpenSearch's `normalization-processor`: min_max, l2 or z_score; arithmetic_, geometric_ or harmonic_mean."""
    known = {
        "min_max": Norm("minmax", floor=0.001),
        "l2": Norm("l2", flat=0.0),
        "z_score": Norm("zscore", floor=0.001),
    }
    means = {"arithmetic_mean": "sum", "geometric_mean": "geometric", "harmonic_mean": "harmonic"}
    return Rule((_pick("normalise", normalise, known),), _pick("combine", combine, means), weight=0.0)


@engine("opensearch-rrf")
def _opensearch_rrf() -> Rule:
    """OpenSearch's `score-ranker-processor`: w / (rank_constant + rank)."""
    return Rule((RANKS,), k=(60.0, 1.0, 10000.0), whole_k=True)


@engine("weaviate")
def _weaviate(method: str = "relativeScore") -> Rule:
    """Weaviate's hybrid search (text, vector): alpha under relativeScore or ranked fusion."""
    known = {"relativeScore": Norm("minmax"), "ranked": Norm("rank", first=0)}
    norm = _pick("method", method, known)
    k = (60.0, 60.0, 60.0) if method == "ranked" else None
    return Rule((norm,), weights="share", share_default=0.75, k=k)


@engine("qdrant")
def _qdrant(method: str = "rrf") -> Rule:
    """Qdrant's fusion: rrf with weights inside, 1 / (k - 1 + rank / w), or dbsf, which has no weights."""
    if _pick("method", method, {"rrf": True, "dbsf": False}):
        return Rule((RANKS,), "qdrant", k=(2.0, 1.0, inf), whole_k=True)
    return Rule((Norm("dbsf", flat=0.5, sample=True),), weights="none")


@engine("milvus")
def _milvus(method: str = "weighted", normalise: str | Sequence[str] = ("bm25", "cosine")) -> Rule:
    """Milvus: WeightedRanker with the metric of each list (cosine, ip, bm25, l2; none: norm_score off), or rrf."""
    if method == "rrf":
        return Rule((RANKS,), weights="none", k=(60.0, 1.0, 16383.0))
    _pick("method", method, {"weighted": True, "rrf": True})
    known = {"none": Norm(), "l2": Norm("distance"), **{name: Norm(name) for name in ("cosine", "ip", "bm25")}}
    return Rule(_each(normalise, known), weight=0.0)


@engine("vespa")
def _vespa(method: str = "normalize_linear") -> Rule:
    """Vespa's global phase: a weighted sum of normalize_linear or reciprocal_rank."""
    if _pick("method", method, {"normalize_linear": True, "reciprocal_rank": False}):
        return Rule((Norm("minmax", flat=0.5),))
    return Rule((RANKS,), k=RRF_K)


@engine("solr")
def _solr(method: str = "rrf") -> Rule:
    """Solr: the combined query's rrf, which has no weights, or edismax over the lists: max + tie x the rest."""
    if _pick("method", method, {"rrf": True, "edismax": False}):
        return Rule((RANKS,), weights="none", k=RRF_K, whole_k=True)
    return Rule((Norm(),), "dismax", tie=(0.0, 0.0, 1.0))


@engine("typesense")
def _typesense() -> Rule:
    """Typesense's hybrid search (text, vector): (1 - alpha) / rank + alpha / rank."""
    return Rule((RANKS,), weights="share", share_default=0.3, k=(0.0, 0.0, 0.0))


@engine("lancedb")
def _lancedb(method: str = "linear") -> Rule:
    """LanceDB (text, vector): weight x (1 - distance) + (1 - weight) x BM25, or rrf, which has no weights."""
    if _pick("method", method, {"linear": True, "rrf": False}):
        return Rule((Norm(), Norm("inverse")), weights="share", share="weight", share_default=0.7)
    return Rule((RANKS,), weights="none", k=RRF_K, whole_k=True)


@engine("langchain")
def _langchain() -> Rule:
    """LangChain's EnsembleRetriever: w / (c + rank)."""
    return Rule((RANKS,), weight=0.0, k=RRF_K, whole_k=True)


@engine("llamaindex")
def _llamaindex(method: str = "reciprocal_rerank") -> Rule:
    """LlamaIndex's QueryFusionRetriever: reciprocal_rerank (no weights), relative_score or dist_based_score."""
    ranked = Rule((Norm("rank", first=0),), weights="none", k=(60.0, 60.0, 60.0))
    known = {
        "reciprocal_rerank": ranked,
        "relative_score": Rule((Norm("minmax", flat_as="sign"),), weight=0.0),
        "dist_based_score": Rule((Norm("dbsf", flat_as="sign"),), weight=0.0),
    }
    rule: Rule = _pick("method", method, known)
    return rule


@engine("haystack")
def _haystack(method: str = "reciprocal_rank_fusion") -> Rule:
    """Haystack's DocumentJoiner: reciprocal_rank_fusion, merge (raw scores) or distribution_based_rank_fusion."""
    known = {
        "reciprocal_rank_fusion": Rule((Norm("rank", first=0),), weight=0.0, k=(61.0, 61.0, 61.0), factor=61.0),
        "merge": Rule((Norm(),), weight=0.0),
        "distribution_based_rank_fusion": Rule((Norm("dbsf", flat_as="raw", missing=None),), "max", weights="none"),
    }
    rule: Rule = _pick("method", method, known)
    return rule
