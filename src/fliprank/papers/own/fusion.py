"""`fliprank fuse` against what people have and what others search with, on held-out queries (docs/fusion.md).

Everything that is fitted sees the judgements of the training queries alone, and each test query is ranked once. Where
a collection has no test queries of its own, five folds are tested in turn: `fuse` is run on the queries of the other
four, with a cross-validation of its own among them, as if the fifth did not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from fliprank.data.fusion_rows import fused_run, fusion_rows
from fliprank.data.trec import Qrels
from fliprank.experiment.adaptive_fusing import with_query_traits
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.fusing import TUNED, Fused, fuse
from fliprank.experiment.significance import holm, randomisation
from fliprank.experiment.verdict import decide
from fliprank.models.fusion import Fusion
from fliprank.papers.checkpoint import kept
from fliprank.papers.own.fusion_peers import MEASURE, PEERS, Fuser, Peer, fused_by
from fliprank.papers.own.fusion_sets import SETS, FusionSet, fusion_set
from fliprank.papers.part import Finding, Setting, Verdict, part

__all__ = ["fusion"]

OURS, ADAPTIVE, ALWAYS = "`fuse`", "`fuse --adaptive`", "a weight per query, proven or not"
WRITTEN = "what `fuse` writes: tuned or kept"
ENGINES = ("opensearch", "weaviate", "typesense", "qdrant", "vespa")
"""Engines that come with weights, a k or a way to normalise of their own; RRF with k = 60 is the default of others."""
SURE = 0.05

Values = dict[str, dict[str, float]]
"""{ranking: {query: measure}}"""


@part("fliprank", "fusion", "Fusions on held-out queries, beside peers", needs=SETS, minutes=45, only_by_name=True)
def fusion(setting: Setting) -> Finding:
    """Every collection: lists alone, what people have, peers, and ours, with a test of ours against each."""
    values, notes, budgets = dict[str, Values](), list[str](), dict[str, str]()
    for name in ("dl19", "cacm") if setting.quick else SETS:
        data = fusion_set(setting, name)
        values[name], budgets[name] = _values(setting, data), data.budget
        notes += kept(setting, f"{name}, verdict", partial(_verdicts, setting, data))
    return _finding(setting, values, notes, budgets)


def _values(setting: Setting, data: FusionSet) -> Values:
    """The measure of each test query by each ranking, peers and ours."""
    found = Values()
    for number, (train, test) in enumerate(data.splits, 1):
        for what, peer in PEERS.items():
            if len(data.runs) == 2 or not what.startswith("OpenSearch"):
                name = f"{data.name}, {what}, split {number}"
                one = kept(setting, name, partial(_peer, setting, data, peer, train, test))
                found.setdefault(what, {}).update(one)
        ours = kept(setting, f"{data.name}, ours, split {number}", partial(_ours, setting, data, train, test))
        for what, each in ours.items():
            found.setdefault(what, {}).update(each)
    return found


def _peer(setting: Setting, data: FusionSet, peer: Peer, train: Qrels, test: Qrels) -> dict[str, float]:
    return _measured(test, peer(data.runs, train, setting.seed))


def _measured(test: Qrels, fuser: Fuser) -> dict[str, float]:
    found = evaluate(test, {"run": fuser(test)}, [MEASURE])
    return dict(zip(found.qids.tolist(), found.values["run"][MEASURE].tolist(), strict=True))


def _ours(setting: Setting, data: FusionSet, train: Qrels, test: Qrels) -> Values:
    """What people have, engines as they come, and what `fuse` makes of the training queries."""
    plain = _fused(setting, data, train, test=test)
    qids, values = plain.evaluation.qids.tolist(), plain.evaluation.values
    out = {name: dict(zip(qids, each[MEASURE].tolist(), strict=True)) for name, each in values.items()}
    for engine in ENGINES:
        if len(data.runs) == 2 or engine not in ("weaviate", "typesense"):
            run = partial(fused_by, Fusion(engine, tuple(data.runs)), data.runs)
            out[f"{engine} as it comes"] = _measured(test, run)
    # The verdict on training queries decides what is written, as it does for a person without test queries.
    proof = {"cross_validated": plain.proofs["cross_validated"]}
    tuned = out.pop(TUNED)
    written = tuned if decide(proof).adopted("proven") else out[plain.kept]
    return {**out, OURS: tuned, **_per_query(setting, data, train, test), WRITTEN: written}


def _per_query(setting: Setting, data: FusionSet, train: Qrels, test: Qrels) -> Values:
    """Weights that depend on the query: where they are proven on the training queries, and in any case."""
    found = _adaptive(setting, data, train, test=test)
    assert found.per_query is not None
    rows = with_query_traits(fusion_rows(data.runs, test), data.texts or None, data.index)
    always = fused_run(rows, found.per_query.fit.model.score(rows))
    return {
        ADAPTIVE: _measured(test, lambda _: found.run),
        ALWAYS: _measured(test, lambda _: always),
    }


def _fused(setting: Setting, data: FusionSet, train: Qrels, **options: Any) -> Fused:
    return fuse(data.runs, train, measure=MEASURE, reported=(), seed=setting.seed, **options)


def _adaptive(setting: Setting, data: FusionSet, train: Qrels, **options: Any) -> Fused:
    """With all that is known of the queries: texts and an index, where there are any."""
    return _fused(setting, data, train, adaptive=True, queries=data.texts or None, index=data.index, **options)


def _verdicts(setting: Setting, data: FusionSet) -> list[str]:
    """What the command says, on the training queries of the collection or, with folds, on all of its queries."""
    judged = data.splits[0][0] if len(data.splits) == 1 else _joined([test for _, test in data.splits])
    found = _adaptive(setting, data, judged)
    return [f"{data.name}, against {found.kept}: {found.verdict.sentence}"]


def _joined(parts: list[Qrels]) -> Qrels:
    return Qrels.of({query: own for part in parts for query, own in part.to_dict().items()})


def _finding(setting: Setting, values: dict[str, Values], notes: list[str], budgets: dict[str, str]) -> Finding:
    order = dict.fromkeys(what for each in values.values() for what in each if what not in (*PEERS, *_own(each)))
    rows, against = list[tuple[Any, ...]](), dict[str, dict[str, tuple[float, float]]]()
    for name, each in values.items():
        against[name] = {what: _compared(each, what) for what in each if what != OURS}
        corrected = holm([p for _, p in against[name].values()]).tolist()
        against[name] = {w: (d, p) for (w, (d, _)), p in zip(against[name].items(), corrected, strict=True)}
    for what in (*order, *PEERS, *_own(next(iter(values.values())))):
        cells: list[Any] = []
        for name, each in values.items():
            there = what in each
            cells += [float(np.mean(list(each[what].values()))) if there else None]
            cells += [against[name][what][1] if there and what != OURS else None]
        rows.append((what, *cells))
    better, worse = ([_told(against, sign)] for sign in (1, -1))
    verdict: Verdict = "does not hold" if worse[0] else "holds" if better[0] else "can't be told at this size"
    return Finding(
        ("ranking", *(column for name in values for column in (name, f"p {name}"))),
        tuple(rows),
        "Weights from `fuse` are on held-out queries nowhere worse than what people have or what peers find.",
        f"Of {sum(len(each) for each in against.values())} comparisons on held-out queries, `fuse` is significantly"
        f" better in {len(better[0])} and worse in {len(worse[0])}"
        f"{': ' + '; '.join(worse[0]) if worse[0] else ''} (p < {SURE}, randomisation over queries, corrected by Holm"
        " in each collection).",
        verdict,
        {"measure": MEASURE, "seed": setting.seed, "queries": budgets},
        notes=(
            f"{MEASURE}, linear gain. p: `fuse` against this ranking, by randomisation over queries, two-sided,"
            " corrected by Holm for all rankings of the collection.",
            *(f"{name}: {budget}." for name, budget in budgets.items()),
            *(f"`fuse --adaptive` says on training queries of {note}" for note in notes),
        ),
    )


def _own(each: Mapping[str, Any]) -> list[str]:
    return [name for name in (OURS, ADAPTIVE, ALWAYS, WRITTEN) if name in each]


def _compared(values: Values, what: str) -> tuple[float, float]:
    """(`fuse` less this ranking, p)."""
    gap = np.array([value - values[what][query] for query, value in values[OURS].items()])
    return float(gap.mean()), randomisation(gap)


def _told(against: Mapping[str, Mapping[str, tuple[float, float]]], sign: int) -> list[str]:
    def found() -> Iterator[str]:
        for name, each in against.items():
            for what, (gap, p) in each.items():
                if sign * gap > 0 and p < SURE:
                    yield f"{name}, {what}: {gap:+.4f}"

    return list(found())
