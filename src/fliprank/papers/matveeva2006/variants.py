"""What Matveeva et al. 2006 mention or leave open: other samples, other stages, one population, real collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fliprank.data.candidates import Candidates, concat
from fliprank.experiment.cascade_analysis import AfterStage, after_stages
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.experiment.significance import p_value, randomisation
from fliprank.experiment.telescope import telescope
from fliprank.measures import parse_measure
from fliprank.models import Cascade, FeatureSubset, Linear, Model, Network, Trees
from fliprank.papers.checkpoint import finished
from fliprank.papers.data import data_path, some_queries, text_collection
from fliprank.papers.matveeva2006.sets import NDCG, RANKNET, Scale, net, of_one_population, sets_of, stage_row, trained
from fliprank.papers.matveeva2006.tables import READING, columns
from fliprank.papers.part import Finding, Setting, Verdict, part
from fliprank.papers.rules import Claims, alike, as_good, difference, larger
from fliprank.text.features.features import features
from fliprank.text.index import Index

__all__ = ["COSTS"]

COSTS = (1.0, 4.0, 64.0)
"""Of scoring a document by each stage of `cutoffs`: multiplications, in units of the first stage's."""
REAL = ("scifact", "npl", "icecat")


@part("matveeva2006", "unlabelled", "Unlabelled documents per labelled one", minutes=0.4)
def unlabelled(setting: Setting) -> Finding:
    """Linear stages that learn from 0, 1, 3 and 10 unlabelled documents for each labelled one."""
    times = (0, 3) if setting.quick else (0, 1, 3, 10)
    found = _variants(setting, {f"{n} per labelled": ([Linear()] * 4, {"sample": n}) for n in times})
    last, claims = {name: rows[-1] for name, rows in found.items()}, Claims()
    three = last["3 per labelled"]
    claims.add("3 per labelled less none", larger, three.values, last["0 per labelled"].values)
    for n in times:
        if n not in (0, 3):
            claims.add(f"{n} per labelled less 3", alike, last[f"{n} per labelled"].values, three.values)
    return _finding(
        setting,
        found,
        "Without unlabelled documents the performance is not satisfactory; 1, 3 and 10 per labelled one are alike.",
        f"After the last stage nDCG@10 is {last['0 per labelled'].value:.4f} without and {three.value:.4f} with three"
        f" per labelled one. {claims.sentence}",
        claims.verdict,
        notes=claims.notes,
    )


@part("matveeva2006", "populations", "One population of documents: the control", minutes=0.4)
def populations(setting: Setting) -> Finding:
    """Where the task at the top is the same as below, there is less to gain from stages of their own."""
    scale = of_one_population(Scale.of("small", setting))
    sets, found = sets_of(setting, scale), {}
    for nodes in (0,) if setting.quick else (0, 8):
        cascade = trained(setting, sets, [net(nodes)] * 4, scale.sizes, f"one population, {nodes} hidden nodes")
        found[f"{nodes} hidden nodes"] = after_stages(cascade, sets.test, NDCG, seed=setting.seed)
    linear = found["0 hidden nodes"][-1]
    return _finding(
        setting,
        found,
        "Telescoping helps since each stage learns a new distribution of documents, not the same task again.",
        f"Where utility is one sum of all aspects, stages change nDCG@10 of the linear net by {linear.gain:+.4f} (p"
        f" {linear.p:.2g}).",
        "does not hold" if linear.p < 0.05 and linear.gain > 0 else "can't be told at this size",
        scale,
    )


@part("matveeva2006", "stages", "Richer models at later stages, warm starts", minutes=1.5)
def stages(setting: Setting) -> Finding:
    """The paper expects more sophisticated rankers to help at later stages, where documents are few."""
    linear: list[Model] = [Linear()] * 4
    choices: dict[str, tuple[list[Model], dict[str, Any]]] = {
        "linear": (linear, {}),
        "linear, linear, network 4, network 8": ([Linear(), Linear(), Network(4), Network(8)], {}),
    }
    if not setting.quick:
        few = [f"f{k + 1}" for k in range(0, Scale.of("small", setting).features, 4)]
        kept = {"warm": True, "only_better": True}
        choices |= {
            "linear on a quarter of the features, then linear": ([FeatureSubset(Linear(), few), *linear[1:]], {}),
            "linear, linear, trees, linear": (
                [Linear(), Linear(), Trees(leaves=7, rate=0.05), Linear()],
                {"options": [{}, {}, {"objective": "lightgbm"}, {}]},
            ),
            "linear, LambdaRank@10 at every stage": (linear, {"objective": "lambdarank@10"}),
            "linear, warm, left out where it does not help": (linear, kept),
            "network 8": ([net(8)] * 4, {}),
            "network 8, warm, left out where it does not help": ([net(8)] * 4, kept),
        }
    found = _variants(setting, choices)
    one, other = (found[name][-1] for name in ("linear", "linear, linear, network 4, network 8"))
    p = randomisation(other.values - one.values, seed=setting.seed)
    better: Verdict = "holds" if other.value > one.value else "does not hold"
    return _finding(
        setting,
        found,
        "As training sets shrink from stage to stage, more sophisticated algorithms can be used at later stages.",
        f"Nets in the last two stages end at {other.value:.4f}, linear ones at {one.value:.4f} (p {p:.2g}).",
        better if p < 0.05 else "can't be told at this size",
    )


@part("matveeva2006", "late-stages", "Why nets lose at late stages", minutes=1)
def late_stages(setting: Setting) -> Finding:
    """A net at every stage: as in the paper, and with one thing changed at a time."""
    scale = Scale.of("small", setting)
    hidden = 2 if setting.quick else 8
    *before, last = scale.sizes
    choices: dict[str, tuple[Scale, tuple[int, ...], dict[str, Any]]] = {
        "as in the paper": (scale, scale.sizes, {}),
        "the last stage learns from more documents": (scale, (*before, 2 * last), {}),
        "10 unlabelled per labelled": (scale, scale.sizes, {"sample": 10}),
        "each stage starts where the one before ended": (scale, scale.sizes, {"warm": True}),
        "twice the training queries": (replace(scale, train=2 * scale.train), scale.sizes, {}),
    }
    if setting.quick:
        choices = dict(list(choices.items())[:2])
    rows, sure = [], []
    for name, (own, sizes, options) in choices.items():
        sets = sets_of(setting, own)
        cascade = trained(setting, sets, [net(hidden)] * 4, sizes, f"{hidden} hidden nodes, {name}", **options)
        third, end = after_stages(cascade, sets.test, NDCG, seed=setting.seed)[2:]
        rows.append((name, sizes[-1], third.value, end.value, end.step, end.step_p))
        sure += [name] if end.step < 0 and end.step_p < 0.05 else []
    first, best = rows[0], max(rows[1:], key=lambda row: row[4])
    verdict: Verdict = "holds" if first[4] < 0 else "does not hold"
    return Finding(
        ("variant", "documents at the end", "third stage", "last stage", "step", "p"),
        tuple(rows),
        "The last stage can lower nDCG of two-layer nets (4 and 8 hidden nodes in Table 2), insignificantly.",
        f"A net of {hidden} as in the paper changes by {first[4]:+.4f} at the last stage (p {first[5]:.2g});"
        f" significant losses: {'; '.join(sure) or 'none'}. What changes it most: {best[0]} ({best[4]:+.4f}, p"
        f" {best[5]:.2g}).",
        verdict if first[5] < 0.05 else "can't be told at this size",
        scale.settings() | {"hidden": hidden, "seed": setting.seed},
        notes=(
            "Why: the last stage learns all its weights anew, from some ten documents per query, which are alike. A"
            " loss that shrinks with twice the queries, and is none where the stage starts from the weights before it,"
            " says that it has too little to learn from.",
        ),
    )


@part("matveeva2006", "cutoffs", "Cut-offs chosen from data", minutes=0.3)
def cutoffs(setting: Setting) -> Finding:
    """Sizes chosen on the validation queries for given prices, measured on the test queries."""
    scale = Scale.of("small", setting)
    sets, chosen = sets_of(setting, scale), parse_measure(NDCG)
    few = [f"f{k + 1}" for k in range(0, scale.features, 4)]
    sizes = (scale.documents, scale.documents // 5, scale.documents // 10 if setting.quick else scale.documents // 50)
    models: list[Model] = [FeatureSubset(Linear(), few), Linear(), Network(2 if setting.quick else 16)]
    cascade = trained(setting, sets, models, sizes, "a quarter of the features, linear, net")
    grid = tuple(size for size in (10, 20, 50, 100, 200, 500, 1000) if size < scale.documents)
    valid = concat(*sets.whole_valid())  # with all documents, which cost something
    found = choose_cutoffs(cascade, valid, costs=COSTS, measure=NDCG, grid=grid)
    guessed = chosen.per_query(cascade.score(sets.test), sets.test)
    price, least = (
        sum(cost * size for cost, size in zip(COSTS, sizes, strict=True)),
        chosen.value(cascade.score(valid), valid),
    )
    rows: list[tuple[Any, ...]] = [
        ("guessed", ", ".join(map(str, sizes)), round(price), least, float(guessed.mean()), "-")
    ]
    enough = [choice for choice in found.frontier if choice.value >= least] or list(found.frontier)[-1:]
    cheapest = min(enough, key=lambda choice: choice.cost)
    for choice in found.frontier:
        tested = chosen.per_query(found.apply(choice).score(sets.test), sets.test)
        apart = difference(tested, guessed)
        by_stage = dict(zip(choice.stages, choice.sizes, strict=True))
        seen = ", ".join(str(by_stage.get(stage, "-")) for stage in range(3))
        name = "chosen" if choice is cheapest else "frontier"
        rows.append((name, seen, round(choice.cost), choice.value, float(tested.mean()), p_value(apart.p)))
        if choice is cheapest:
            told, verdict = apart, as_good(apart)
    return Finding(
        ("choice", "documents by stage", "cost per query", "validation", "test", "p to the guess"),
        tuple(rows),
        "The number of stages was arbitrary, and the exact number is not crucial for the performance.",
        f"The cheapest sizes that are no worse than guessed ones on validation queries cost {cheapest.cost:,.0f} per"
        f" query instead of {price:,.0f}; on test queries nDCG@10 changes by {told}.",
        verdict if cheapest.cost < price else "does not hold",
        scale.settings() | {"costs": list(COSTS), "grid": list(grid), "seed": setting.seed},
        notes=("Costs are multiplications per query, in units of the first stage's for one document.",),
    )


@part("matveeva2006", "collections", "Real collections, by features of their indexes", needs=REAL, minutes=0.5)
def collections(setting: Setting) -> Finding:
    """Deep candidates by BM25, every feature of the index, three stages."""
    depth, sizes = (100, (100, 30, 10)) if setting.quick else (1000, (1000, 100, 10))
    rows, linear = [], []
    for name in REAL[:1] if setting.quick else REAL:
        setting.say(f"features of {name}")
        train, valid, test = _real(setting, name, depth)
        for what, model in {"linear": Linear(), "network 4": Network(4)}.items():
            if setting.quick and what != "linear":
                continue
            options = RANKNET | {"sample": 10, "sweep": not setting.quick}
            fit = finished(telescope(Cascade([model] * 3, sizes), train, valid, seed=setting.seed, **options))
            assert isinstance(fit.model, Cascade)
            found = after_stages(fit.model, test, NDCG, seed=setting.seed)
            rows.append((name, test.queries, *stage_row(what, found, sizes)))
            linear += [found[-1]] if what == "linear" else []
    sure = [each for each in linear if each.p < 0.05]
    verdict: Verdict = "can't be told at this size" if not sure else "holds" if sure[0].gain > 0 else "does not hold"
    return Finding(
        ("collection", "test queries", *columns(sizes, "stages")),
        tuple(rows),
        "Telescoping improves the top ten (on the paper's web queries).",
        f"Linear stages change nDCG@10 significantly on {len(sure)} of {len(linear)} collections.",
        verdict,
        {"data": list(REAL), "depth": depth, "sizes": list(sizes), "sample": 10, "seed": setting.seed, **RANKNET},
        notes=(READING, "Own test queries (scifact, icecat), or a quarter; of the others a quarter is for validation."),
    )


def _real(setting: Setting, name: str, depth: int) -> list[Candidates]:
    """Training, validation and test queries of a collection, with all features of its index."""
    task = text_collection(setting, name, depth=depth)
    asked = data_path(setting, name) / "queries.jsonl"
    assert isinstance(task.index, Index)
    parts = [part.rows for part in (task.train, task.test) if part is not None]
    if setting.quick:
        parts = [some_queries(rows, 60, setting.seed) for rows in parts]
    sets = [features(task.index, rows, asked) for rows in parts]
    if len(sets) == 1:
        sets = list(sets[0].split(0.75, 0.25))
    return [*sets[0].split(0.75, 0.25), sets[1]]


def _variants(setting: Setting, choices: dict[str, tuple[list[Model], dict[str, Any]]]) -> dict[str, list[AfterStage]]:
    """Cascades of four stages on the small collection, after each stage."""
    scale = Scale.of("small", setting)
    sets, found = sets_of(setting, scale), {}
    for name, (models, options) in choices.items():
        cascade = trained(setting, sets, models, scale.sizes, name, **options)
        found[name] = after_stages(cascade, sets.test, NDCG, seed=setting.seed)
    return found


def _finding(
    setting: Setting,
    found: dict[str, list[AfterStage]],
    claim: str,
    told: str,
    verdict: Verdict,
    scale: Scale | None = None,
    notes: tuple[str, ...] = (),
) -> Finding:
    scale = scale or Scale.of("small", setting)
    return Finding(
        columns(scale.sizes, "stages"),
        tuple(stage_row(name, rows, scale.sizes) for name, rows in found.items()),
        claim,
        told,
        verdict,
        scale.settings() | {"seed": setting.seed},
        notes=(READING, *notes),
    )
