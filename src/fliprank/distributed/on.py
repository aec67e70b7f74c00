"""The cluster that work is done on: `fr.on(client)` from Python, `--cluster` on the command line.

    with fr.on("local:4") as cluster:                      # or a dask.distributed.Client, or "tcp://host:8786"
        rows = cluster.read("shards/*.rows")                # read by the workers, never gathered
        fit = fr.train(fr.Linear(), rows)
        index = cluster.index("docs/*.jsonl")               # an index per file
        tuned = fr.tune("bm25f", index.candidates(queries, qrels))
        print(cluster.explain())

Certificates for tls:// are those of Dask's own configuration (`distributed.comm.tls`, or in the environment
`DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT` and so on); a `Client` that was made with others is taken as it is.
"""

from __future__ import annotations

import glob
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.distributed.cluster import Cluster, ClusterError
from fliprank.distributed.index_shards import IndexShards
from fliprank.distributed.rows import ClusterRows, cut_rows
from fliprank.distributed.whole_tasks import WholeTasks
from fliprank.errors import InputError, MissingExtraError, UsageError, WrongTypeError, indented
from fliprank.experiment.elsewhere import ELSEWHERE
from fliprank.text.analysis import Analyzer

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OnCluster", "on"]

CONNECT = 30.0
"""Seconds to wait for a scheduler."""


@checked
def on(
    client: Any, *, slow: float = 60.0, patience: float = 120.0, say: Callable[[str], None] | None = None
) -> OnCluster:
    """The cluster of a Dask client, or of an address: "tcp://host:8786", "tls://host:8786", or "local:4" for so many
    processes on this machine.

    A worker that has not answered for `slow` seconds when others have is reported, and left behind after twice that;
    a cluster without workers is waited for `patience` seconds. `say` is told what happens; by default it is a warning.
    """
    if say is not None and not callable(say):
        raise WrongTypeError("say", say, "a function that takes a text, or None")
    if isinstance(client, str):
        return OnCluster(_connected(client, slow, patience, say))
    kind = _distributed().Client
    if not isinstance(client, kind):
        raise WrongTypeError("client", client, "a dask.distributed.Client, or an address such as tcp://host:8786")
    if client.asynchronous:
        raise UsageError("client is asynchronous: make it by Client(..., asynchronous=False)")
    return OnCluster(Cluster(client, slow=slow, patience=patience, say=say))


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("dask.distributed", "cluster") from None
    return distributed


def _connected(address: str, slow: float, patience: float, say: Callable[[str], None] | None) -> Cluster:
    """A client of the scheduler at an address, or of one that is started here."""
    dask = _distributed()
    kind, _, number = address.partition(":")
    if kind == "local":
        if not number.isdigit() or not 1 <= int(number) <= 1024:
            raise UsageError(f"cluster {address!r}: a number of processes follows, as in local:4")
        threads = max(1, (os.cpu_count() or 1) // int(number))
        how = {"n_workers": int(number), "threads_per_worker": threads, "processes": True, "dashboard_address": ":0"}
        with _ignoring_interrupts():
            started = dask.LocalCluster(**how, silence_logs=logging.CRITICAL)
        client = dask.Client(started)
    elif "://" in address:
        started = None
        try:
            client = dask.Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise ClusterError(f"no scheduler answers at {address}: {error}") from error
    else:
        raise UsageError(f"cluster {address!r}: an address such as tcp://host:8786 or tls://host:8786, or local:4")

    def close() -> None:
        client.close()
        if started is not None:
            started.close()

    return Cluster(client, slow=slow, patience=patience, say=say, close=close)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes that are started in this block do not hear Ctrl-C: this one does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class OnCluster:
    """Workers to put rows and documents on. In a `with` block, trials on rows in memory are run there, too."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._before = list[Any]()

    def __enter__(self) -> OnCluster:
        self._before.append(ELSEWHERE.set(WholeTasks(self.cluster)))
        return self

    def __exit__(self, *_: object) -> None:
        ELSEWHERE.reset(self._before.pop())
        self.close()

    def __repr__(self) -> str:
        workers = self.cluster.workers(True)
        told = [f"{address}, {threads} threads" for address, threads in sorted(workers.items())[:8]]
        more = [f"... {len(workers)} in all"] if len(workers) > 8 else []
        return indented(f"Cluster of {len(workers)} workers", *told, *more)

    def close(self) -> None:
        """Let go of the workers; those that were started for this end."""
        self.cluster.close()

    def read(self, path: StrPath | Iterable[StrPath], shards: int | None = None) -> ClusterRows:
        """Rows that the workers read themselves, from files that they see under the same names.

        `path` is a file, a folder, a pattern such as "shards/*.rows", or several of these. Where there are fewer files
        than workers, each is cut into parts; `shards` says into how many in all.
        """
        files = files_of(path, (".rows", ".parquet", ".txt", ".txt.gz"))
        sources = [{"file": str(file), "queries": None} for file in files]
        whole = ClusterRows(self.cluster, sources, [file.name for file in files])
        wanted = shards or len(self.cluster.workers())
        if len(files) >= wanted:
            return whole
        share = np.maximum(1, np.round(wanted * whole.row_counts / max(len(whole), 1)).astype(int))
        parts, labels = list[dict[str, Any]](), list[str]()
        for file, sizes, many in zip(files, whole.sizes, share.tolist(), strict=True):
            ends = np.cumsum(sizes)
            cuts = np.searchsorted(ends, (ends[-1] if len(ends) else 0) * np.arange(1, many) / many) + 1
            limits = np.unique([0, *cuts[cuts < len(sizes)], len(sizes)]).tolist()
            for low, high in pairwise(limits):
                parts.append({"file": str(file), "queries": (low, high)})
                labels.append(f"{file.name}, queries {low + 1} to {high}")
        return ClusterRows(self.cluster, parts, labels) if len(parts) > len(files) else whole

    def send(self, rows: Candidates, shards: int | None = None) -> ClusterRows:
        """Rows in memory, sent to the workers in shards of whole queries; one per thread by default."""
        wanted = shards or sum(self.cluster.workers(True).values()) or 1
        return ClusterRows(self.cluster, [{"rows": part} for part in cut_rows(rows, wanted)])

    def index(
        self,
        docs: StrPath | Iterable[StrPath],
        *,
        fields: Sequence[str] | None = None,
        analyzer: Analyzer | None = None,
        positions: bool = True,
        folder: StrPath | None = None,
    ) -> IndexShards:
        """Documents in files that the workers read, an index per file; indexes that were built before are opened.

        `docs` is a file, a folder, a pattern such as "docs/*.jsonl", or several of these. Indexes are kept in `folder`,
        under the same name on every worker, or in each worker's folder for temporary files.
        """
        kinds = (".index", ".jsonl", ".jsonl.gz", ".csv", ".tsv", ".parquet", ".trec", ".trec.gz")
        files = files_of(docs, kinds)
        how: dict[str, Any] = {"fields": None if fields is None else list(fields), "positions": positions}
        how |= {"analyzer": (analyzer or Analyzer()).to_json(), "folder": None if folder is None else str(folder)}
        sources = [{"file": str(file), "index": file.suffix == ".index", **how} for file in files]
        return IndexShards(self.cluster, sources)

    def explain(self) -> pl.DataFrame:
        """What it cost so far, by question: bytes and milliseconds, means per time that it was asked."""
        import polars as pl

        return pl.DataFrame(self.cluster.costs.by_question())

    def explain_shards(self) -> pl.DataFrame:
        """What it cost so far, by shard: bytes and milliseconds of work, means per question."""
        import polars as pl

        return pl.DataFrame(self.cluster.costs.by_shard())


def files_of(path: StrPath | Iterable[StrPath], kinds: Sequence[str]) -> list[Path]:
    """The files that a path, a folder, a pattern or several of these stand for, with their whole names."""
    out = list[Path]()
    for each in [path] if isinstance(path, str | os.PathLike) else path:
        given = Path(each)
        if given.is_dir():
            found = next((own for kind in kinds if (own := sorted(given.glob(f"*{kind}")))), [])
            if not found:
                raise InputError(f"the folder has none of *{', *'.join(kinds)}", path=given)
        elif not given.exists() and glob.has_magic(str(given)):
            found = sorted(map(Path, glob.glob(str(given))))
            if not found:
                raise InputError("no file fits this pattern", path=given)
        else:
            found = [resolve(given)]
        out += [file.resolve() for file in found]
    return out
