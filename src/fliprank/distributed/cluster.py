"""Asking workers: what each must be sent, and what happens when one is slow, new or gone.

Each worker gets one message per question, with all its shards, and answers with one. Shards of a worker that is gone
are given to others, which read them again; one that says nothing for long is left behind, and another is asked the
same; one that joins late takes over shards of those that have most. Answers are put in the order of shards, whoever
gave them: so the result is the same, bit for bit, whatever happened on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fliprank.distributed.costs import Costs
from fliprank.distributed.messages import pack, unpack
from fliprank.distributed.placement import AGAIN, ClusterError, Placement
from fliprank.distributed.worker import answer
from fliprank.errors import FliprankError, InputError, UsageError

__all__ = ["Cluster", "ClusterError", "Definitions"]

Definitions = Callable[[str], Mapping[str, bytes]]
"""Gives the messages that a worker misses, by the name of what it misses: that one, and what it needs itself."""

TICK = 0.2
"""Seconds to wait for an answer before looking at who is there."""


ERRORS = {each.__name__: each for each in (FliprankError, UsageError, ClusterError)}
"""What a worker's error becomes here; any other is an InputError."""


@dataclass(eq=False)
class _Group:
    """The shards that one worker is asked about, and the message; `tried` are workers that did not answer."""

    numbers: list[int]
    worker: str
    begun: float = 0.0
    sent: Mapping[str, bytes] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    rounds: int = 0
    told_slow: bool = False
    size: int = 0


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
        self._pool = ThreadPoolExecutor(64, thread_name_prefix="fliprank-cluster")

    def __repr__(self) -> str:
        return f"Cluster: {len(self.workers(True))} workers, {len(self.owner)} shards"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workers; a cluster that was started for this (`local:4`) ends."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._close is not None:
            self._close()

    # Asking

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
        placed = list(self._place(numbers).items())
        if apart:
            placed = [(worker, [number]) for worker, own in placed for number in own]
        groups = [_Group(own, worker, sent=sent or {}, told_slow=apart) for worker, own in placed]
        begun, answers = time.monotonic(), dict[int, Any]()
        pending = {self._send(do, group, request): group for group in groups}
        while len(answers) < len(numbers):
            ready, _ = wait(pending, timeout=TICK, return_when=FIRST_COMPLETED)
            for future in ready:
                before = len(answers)
                group = pending.pop(future)
                self._take(future, group, answers, pending, (do, request, definitions, label or do))
                if done is not None and len(answers) > before:
                    for number in group.numbers:
                        done(number, answers[number])
            if not ready:
                self._watch(pending, answers, begun, (do, request, apart))
        self.costs.waited(label or do, time.monotonic() - begun)
        return [answers[number] for number in numbers]

    def _send(self, do: str, group: _Group, request: Callable[[list[int]], Any]) -> Future[bytes]:
        """Ask one worker about its shards."""
        with self._lock:
            self._met.add(group.worker)
            gone = [self.dead.pop() for _ in range(len(self.dead))]  # others may add to it meanwhile
            for address in self._met if gone else ():
                self._gone.setdefault(address, []).extend(gone)
            forget = self._gone.pop(group.worker, [])
        envelope = {"do": do, "session": self.session, "forget": forget, "sent": dict(group.sent)}
        message = pack({**envelope, "request": pack(request(group.numbers))})
        group.begun, group.size = time.monotonic(), len(message)
        return self._pool.submit(self._run, group.worker, message)

    def _run(self, worker: str, message: bytes) -> bytes:
        found = self.client.run(answer, message, workers=[worker])
        told: bytes = found[worker]
        return told

    def _take(
        self, future: Future[bytes], group: _Group, answers: dict[int, Any], pending: dict[Any, _Group], asked: Any
    ) -> None:
        """Note an answer, send what is missing, or ask another worker where there is none."""
        do, request, definitions, label = asked
        if all(number in answers for number in group.numbers):
            return  # another worker was asked too, and was first
        try:
            data = future.result()
        except Exception as error:
            self._without(group, error)
            for again in self._elsewhere(group):
                pending[self._send(do, again, request)] = again
            return
        told = unpack(data)
        if "missing" in told:
            group.sent = {name: part for each in told["missing"] for name, part in definitions(each).items()}
            group.rounds += 1
            if group.rounds > 1000:
                raise ClusterError(f"worker {group.worker} misses {told['missing']} again and again")
            pending[self._send(do, group, request)] = group
            return
        if "error" in told:
            raise ERRORS.get(told["error"], InputError)(told["message"])
        self.costs.add(label, group.numbers, group.size, len(data), time.monotonic() - group.begun, told)
        answers.update(zip(group.numbers, told["told"], strict=True))
        with self._lock:
            for number in group.numbers:
                self._give(number, group.worker)

    def _without(self, group: _Group, error: Exception | None) -> None:
        """A worker did not answer: it is gone, or the scheduler is."""
        self._check_scheduler(error)
        self._met.discard(group.worker)
        group.tried.add(group.worker)
        self.costs.lost += 1
        shards = f"{len(group.numbers)} shard{'s' if len(group.numbers) > 1 else ''}"
        why = "" if error is None else f" ({type(error).__name__})"
        self.say(f"worker {group.worker} is gone{why}: its {shards} are read again elsewhere")
        if len(group.tried) > 8:
            raise ClusterError(f"8 workers ended while they had the same {shards}: not enough memory? {AGAIN}")

    def _check_scheduler(self, error: BaseException | None) -> None:
        """Raise where the scheduler does not answer; a client notices that before long."""
        until = time.monotonic() + 5.0
        while self.client.status != "running":
            if time.monotonic() > until or self.client.status in ("closed", "closing"):
                raise self._lost(error)
            time.sleep(0.1)
        self.workers(look=True)

    def _elsewhere(self, group: _Group) -> list[_Group]:
        """The same shards, asked of other workers."""
        placed = self._place(group.numbers, avoid=group.tried)
        return [_Group(own, worker, tried=set(group.tried)) for worker, own in placed.items()]

    def _watch(self, pending: dict[Any, _Group], answers: dict[int, Any], begun: float, asked: Any) -> None:
        """Nobody answered for a while: say who is slow, and after twice that time ask another worker, too."""
        do, request, apart = asked
        self._check_scheduler(None)
        others = time.monotonic() - begun if not answers else self.slow
        for future, group in list(pending.items()):
            passed = time.monotonic() - group.begun
            if group.worker not in self._workers:  # its scheduler knows sooner than who tries to reach it
                del pending[future]
                self._without(group, None)
                for again in self._elsewhere(group):
                    pending[self._send(do, again, request)] = again
                continue
            if passed > max(self.slow, 0.0) and not group.told_slow and answers:
                group.told_slow = True
                self.say(f"worker {group.worker} has not answered for {passed:.0f} s; {len(answers)} shards have")
            late = group.told_slow and not apart and passed > 2 * others and group.worker not in group.tried
            if late and len(self.workers()) > 1:
                group.tried.add(group.worker)
                self.say(f"worker {group.worker} is left behind: others are asked the same")
                for again in self._elsewhere(group):
                    pending[self._send(do, again, request)] = again
