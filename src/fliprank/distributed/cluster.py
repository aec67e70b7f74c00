"""The workers of a Dask client: messages to them and back, what that costs, and who has which shard.

Answers are put in the order of shards, whoever gave them: so the result is the same, bit for bit, whatever happened on
the way (see `question.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any
from uuid import uuid4

import fliprank
from fliprank.distributed.costs import Costs
from fliprank.distributed.messages import pack
from fliprank.distributed.placement import ClusterError, Placement
from fliprank.distributed.question import Definitions, Group, Question
from fliprank.distributed.worker import END, answer

__all__ = ["Cluster", "ClusterError", "Definitions"]

FAREWELL = 2.0
"""Seconds to wait, at most, until workers have heard that a client is done."""


class Cluster(Placement):
    """The workers of a Dask client, and which of them has which shards."""

    def __init__(
        self,
        client: Any,
        *,
        slow: float = 60.0,
        patience: float = 120.0,
        say: Callable[[str], None] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(client, patience, say)
        self.slow, self._close = slow, close
        self.session, self.costs = uuid4().hex, Costs()

    def __repr__(self) -> str:
        return f"Cluster: {len(self.workers(True))} workers, {len(self.owner)} shards"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workers, who drop what they keep; a cluster that was started for this (`local:4`) ends."""
        if self._met and self.client.status == "running":
            farewell = Thread(target=self._say_goodbye, args=(sorted(self._met),), daemon=True)
            farewell.start()
            farewell.join(FAREWELL)
        if self._close is not None:
            self._close()

    def _say_goodbye(self, workers: list[str]) -> None:
        with suppress(Exception):  # who does not hear it is gone, or forgets in time
            self.client.run(answer, END + self.session.encode(), workers=workers, on_error="ignore")

    def ask(
        self,
        do: str,
        numbers: Sequence[int],
        request: Callable[[list[int]], Any],
        definitions: Definitions,
        sent: Mapping[str, bytes] | None = None,
        label: str = "",
        apart: bool = False,
        done: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """What workers answer about these shards, in their order; `request(some)` is what is asked about some.

        `sent` goes along with the question; what else a worker misses, it says, and gets by `definitions`. With
        `apart`, each shard has a message of its own, and none is called slow: they are tasks of any length. `done` is
        told each answer as it comes.
        """
        question = Question(self, do, request, definitions, label or do, apart, done)
        answers = question.put(numbers, sent or {})
        self.costs.waited(label or do, time.monotonic() - question.begun)
        return answers

    def send(self, do: str, group: Group, request: bytes) -> Future[bytes]:
        """Ask one worker. A thread per message waits for it, which may be for ever if a worker hangs."""
        with self._lock:
            self._met.add(group.worker)
            gone = [self.dead.pop() for _ in range(len(self.dead))]  # others may add to it meanwhile
            for address in self._met if gone else ():
                self._gone.setdefault(address, []).extend(gone)
            forget = self._gone.pop(group.worker, [])
        envelope = {"do": do, "session": self.session, "version": fliprank.__version__, "forget": forget}
        message = pack({**envelope, "sent": dict(group.sent), "request": request})
        group.begun, group.size = time.monotonic(), len(message)
        future = Future[bytes]()
        Thread(target=self._carry, args=(future, group.worker, message), daemon=True).start()
        return future

    def _carry(self, future: Future[bytes], worker: str, message: bytes) -> None:
        try:
            future.set_result(self._run(worker, message))
        except BaseException as error:
            future.set_exception(error)

    def _run(self, worker: str, message: bytes) -> bytes:
        found = self.client.run(answer, message, workers=[worker])
        told: bytes = found[worker]
        return told

    def check_scheduler(self, error: BaseException | None) -> None:
        """Raise where the scheduler does not answer; a client notices that before long."""
        until = time.monotonic() + 5.0
        while self.client.status != "running":
            if time.monotonic() > until or self.client.status in ("closed", "closing"):
                raise self._lost(error)
            time.sleep(0.1)
        self.workers(look=True)

    def lose(self, worker: str) -> None:
        """Note that a worker ended with a question that it had not answered."""
        self._met.discard(worker)
        self.costs.lost += 1
