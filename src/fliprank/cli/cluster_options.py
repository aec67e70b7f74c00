"""The options that say which cluster to ask, for the commands that can ask one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.clusters.cluster import Cluster
    from fliprank.clusters.task import ClusterTask
    from fliprank.clusters.template import Template
    from fliprank.data.trec import Run

__all__ = ["ClusterOptions"]


@dataclass(frozen=True)
class ClusterOptions:
    """Where a cluster is. Credentials come from the environment."""

    url: Annotated[
        str | None, typer.Option(help="With --engine: a cluster to ask, http(s)://host:port; only reads.")
    ] = None
    index: Annotated[str | None, typer.Option(help="With --url: the name of its index.")] = None
    template: Annotated[
        Path | None, typer.Option(help="With --url: a JSON request, {{query}} in place of the query's text.")
    ] = None
    id_field: Annotated[
        str | None, typer.Option(help="With --url: the field that has the ids of judgements, if not the engine's own.")
    ] = None
    timeout: Annotated[float, typer.Option(min=0.1, help="With --url: seconds to wait for an answer.")] = 30.0

    @property
    def asked(self) -> bool:
        """Whether a cluster is to be asked; raises where only a part of what it takes was given."""
        if self.url is None:
            for name in ("index", "template", "id_field"):
                if getattr(self, name) is not None:
                    raise UsageError(f"--{name.replace('_', '-')} goes with --url, the address of a cluster")
            return False
        if self.index is None:
            raise UsageError("--url takes --index, the name of the index")
        return True

    @property
    def name(self) -> str:
        """What its answers are called in tables."""
        return str(self.index) if self.template is None else self.template.stem

    def cluster(self, engine: str | None) -> Cluster:
        """The cluster, not asked yet."""
        from fliprank.clusters.access import Access
        from fliprank.clusters.cluster import connect

        if engine is None:
            raise UsageError(
                "--url takes --engine, which says what runs there: elasticsearch, opensearch, solr or vespa"
            )
        return connect(
            engine, Access.of(self.url or "", self.index or "", timeout=self.timeout, id_field=self.id_field)
        )

    def read_template(self) -> Template | None:
        """The template; None without one."""
        from fliprank.clusters.template import read_template

        return None if self.template is None else read_template(self.template)

    def task(
        self,
        engine: str | None,
        queries: Path | None,
        qrels: Path | None,
        test: str | None,
        fields: str | None,
        depth: int,
        folder: Path,
    ) -> ClusterTask:
        """Rows to tune on, fetched from the cluster; what was fetched is kept in `folder`."""
        from fliprank import console
        from fliprank.cli.documents import IndexOptions
        from fliprank.clusters.task import task_of_cluster
        from fliprank.experiment.task import read_judged_queries

        if qrels is None:
            raise UsageError("--url takes --queries and --qrels")
        cluster, template = self.cluster(engine), self.read_template()
        judged = read_judged_queries(queries, qrels, None, test)
        with console.counting("asking the cluster") as progress:
            console.show(cluster.described())
            return task_of_cluster(
                cluster,
                judged,
                fields=IndexOptions(fields).wanted,
                template=template,
                depth=depth,
                folder=folder / "cluster",
                progress=progress,
            )

    def run(self, engine: str | None, queries: Path | None, depth: int) -> Run:
        """What the cluster answers now: by the template, or to the words in all text fields."""
        from fliprank import console
        from fliprank.clusters.pull import answers
        from fliprank.data.trec import Run
        from fliprank.text.search.queries import read_queries

        if queries is None:
            raise UsageError("--url takes --queries, the texts to search for")
        cluster, template = self.cluster(engine), self.read_template()
        fields = {} if template is not None else dict.fromkeys(cluster.fields(), 1.0)
        with console.counting("asking the cluster") as progress:
            found = answers(cluster, read_queries(queries), template, fields, depth, progress=progress)
        return Run.of(found)
