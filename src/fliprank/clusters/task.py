"""A task to tune on, from a cluster: training queries, test queries, and where its parameters stand now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fliprank.clusters.cluster import Cluster
from fliprank.clusters.pull import Progress, Pulled, pull
from fliprank.clusters.template import Template
from fliprank.experiment.task import JudgedQueries, Queries, Task
from fliprank.models import EngineText

__all__ = ["ClusterTask", "parity_note", "task_of_cluster"]

TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class ClusterTask:
    """The task, and what the cluster's settings are now; `function` is the one by which it was asked to rank."""

    task: Task
    pulled: Pulled
    function: str

    def start(self, model: EngineText) -> dict[str, float]:
        """The parameters of the model that the cluster has settings for, as they are there."""
        known = self.pulled.start()
        if not any(setting.each and setting.name in "kb" for setting in model.formula.settings):
            first = next(iter(self.pulled.settings.values()))
            known = {"k": first.k, "b": first.b} if len({s[2:] for s in self.pulled.settings.values()}) == 1 else {}
        names = {setting.name for setting in model.formula.settings if setting.free}
        return {name: value for name, value in known.items() if name.rpartition(".")[2] in names}


def task_of_cluster(
    cluster: Cluster,
    judged: JudgedQueries,
    *,
    fields: Sequence[str] | None = None,
    template: Template | None = None,
    depth: int = 100,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> ClusterTask:
    """Rows of training and test queries, fetched from a cluster; what was fetched is kept in `folder`."""
    parts, notes, first = dict[str, Queries](), dict[str, None](), None
    for part, (_, qrels) in judged.judged.items():
        found = pull(
            cluster,
            judged.texts,
            qrels,
            fields=fields,
            template=template,
            depth=depth,
            folder=None if folder is None else folder / part,
            progress=progress,
        )
        parts[part], first = Queries(found.rows, dict(judged.texts), qrels), first or found
        notes |= dict.fromkeys(found.notes)
    assert first is not None
    return ClusterTask(
        Task(parts["train"], parts.get("valid"), parts.get("test"), notes=tuple(notes)), first, cluster.function
    )


def parity_note(model: EngineText, pulled: Pulled) -> str:
    """Whether our scores, at the cluster's settings, are those that it answered with: in a sentence."""
    hits = pulled.run.to_dict()
    rows = pulled.rows
    pairs = zip(rows.qids.take(rows.query_of_rows()).tolist(), rows.document_ids().tolist(), strict=True)
    scores = dict(zip(pairs, model.score(rows).tolist(), strict=True))
    errors = [
        abs(scores[qid, docid] - score) / max(abs(score), 1e-9)
        for qid, found in hits.items()
        for docid, score in found.items()
        if (qid, docid) in scores
    ]
    worst = max(errors, default=0.0)
    if worst <= TOLERANCE:
        return f"our scores of {len(errors):,} documents are the cluster's own, to {worst:.0e} of each"
    return (
        f"our scores differ from the cluster's own by up to {worst:.0%}: is there something in its request, its shards "
        "or its mapping that is not in the function?"
    )
