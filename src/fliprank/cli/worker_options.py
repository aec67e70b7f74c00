"""The options that say which Dask workers to run on, for the commands that can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.documents import IndexOptions
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.distributed.on import OnCluster
    from fliprank.experiment.task import Task
    from fliprank.text.index import Searchable

__all__ = ["WorkerOptions", "index_on", "task_on"]


@dataclass(frozen=True)
class WorkerOptions:
    """Which workers, and whether to say what they cost."""

    cluster: Annotated[
        str | None,
        typer.Option(help="Run on Dask workers: tcp://host:8786, tls://..., or local:4; shards are read there."),
    ] = None
    explain_cluster: Annotated[
        bool, typer.Option("--explain-cluster", help="With --cluster: then print bytes and milliseconds per step.")
    ] = False

    @contextmanager
    def open(self) -> Iterator[OnCluster | None]:
        """The workers for the time of a block, after which their costs are printed if that was asked for; or None."""
        if self.cluster is None:
            if self.explain_cluster:
                raise UsageError("--explain-cluster goes with --cluster")
            yield None
            return
        from fliprank import console
        from fliprank.distributed.on import on

        with on(self.cluster, say=console.show) as workers:
            yield workers
            if self.explain_cluster:
                _explain(workers)


def task_on(
    workers: OnCluster, train: Path, valid: Any = None, test: Any = None, n_features: int | None = None
) -> Task:
    """A task from files of rows: shards are read by the workers, other files here."""
    from fliprank.data.open_rows import is_shards
    from fliprank.data.readers import read_candidates
    from fliprank.experiment.task import task_of

    def read(path: Any) -> Any:
        return workers.read(path) if is_shards(path) else read_candidates(path, n_features)

    return task_of(read, train, valid, test)


def index_on(workers: OnCluster, docs: Path, options: IndexOptions) -> Searchable:
    """An index per file of documents, on the workers."""
    if options.anchors is not None or options.links is not None:
        raise UsageError("--anchors and --links need all documents in one place: leave them out, or --cluster")
    return workers.index(docs, fields=options.wanted, analyzer=options.analyzer())


def _explain(workers: OnCluster) -> None:
    """Print what the cluster cost, by question and by shard."""
    from fliprank import console

    costs = workers.cluster.costs
    by_question = console.new_table(
        "The cluster, per step", ["what", "times", "bytes sent", "received", "ms of work", "ms until all answered"]
    )
    for line in costs.by_question():
        sizes = (f"{line[name]:,.0f}" for name in ("times", "sent", "received"))
        by_question.add_row(line["question"], *sizes, *(f"{line[name]:,.2f}" for name in ("work_ms", "waited_ms")))
    by_shard = console.new_table(
        "By shard, per question", ["shard", "questions", "bytes sent", "bytes received", "ms of work"]
    )
    for line in costs.by_shard():
        figures = f"{line['sent']:,.0f}", f"{line['received']:,.0f}", f"{line['work_ms']:,.2f}"
        by_shard.add_row(str(line["shard"]), f"{line['questions']:,}", *figures)
    console.show(by_question, by_shard)
    console.result(cluster={"questions": costs.by_question(), "shards": costs.by_shard(), "lost": costs.lost})
