"""One question under way: who was asked about which shards, who has answered, and who is slow, new or gone.

Each worker gets one message, with all its shards, and answers with one; or, where shards are tasks (`apart`), one
message per task, as many at a time as it has threads, from one queue for all. What a worker misses, it says, and gets.
Shards of a worker that is gone are asked of others, which read them again; a worker that takes twice as long as the
first one to answer, and over `slow` seconds, is left behind, and another one is asked the same.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fliprank.distributed.messages import pack, unpack
from fliprank.distributed.placement import AGAIN, ClusterError
from fliprank.errors import FliprankError, InputError, UsageError

if TYPE_CHECKING:
    from fliprank.distributed.cluster import Cluster

__all__ = ["Definitions", "Group", "Question"]

Definitions = Callable[[str], Mapping[str, bytes]]
"""Gives the messages that a worker misses, by the name of what it misses: that one, and what it needs itself."""

TICK = 0.2
"""Seconds to wait for an answer before looking at who is there."""

MOST_BYTES = 1 << 28
"""What is missing is sent in messages of about this size."""

MOST_TRIES = 8
"""How often the same shards are asked about when workers end, and the same thing is sent to who misses it."""

ERRORS = {each.__name__: each for each in (FliprankError, UsageError, ClusterError)}
"""What a worker's error becomes here; any other is an InputError."""


@dataclass(eq=False)
class Group:
    """The shards that one worker is asked about; `tried` are workers that did not answer."""

    numbers: list[int]
    worker: str
    sent: Mapping[str, bytes] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    losses: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    begun: float = 0.0
    size: int = 0
    told_slow: bool = False


class Question:
    """`request(some)` is what is asked about some of the shards; `done` is told each answer as it comes."""

    def __init__(
        self,
        cluster: Cluster,
        do: str,
        request: Callable[[list[int]], Any],
        definitions: Definitions,
        label: str,
        apart: bool,
        done: Callable[[int, Any], None] | None,
    ) -> None:
        self.cluster, self.do, self.request, self.definitions = cluster, do, request, definitions
        self.label, self.apart, self.done = label, apart, done
        self.answers: dict[int, Any] = {}
        self.pending: dict[Future[bytes], Group] = {}
        self.queue: deque[Group] = deque()
        self.parcels: dict[str, set[str]] = {}
        """Of tasks: what is on its way to a worker, or there, by its address."""
        self.parked: dict[Future[bytes], tuple[Group, list[Group]]] = {}
        """Of tasks: a parcel, and those that wait for it."""
        self.begun, self.first = time.monotonic(), 0.0

    def put(self, numbers: Sequence[int], sent: Mapping[str, bytes]) -> list[Any]:
        """The answers, in the order of these shards."""
        if self.apart:
            self.queue.extend(Group([number], "", sent) for number in numbers)
            self._deal()
        else:
            for worker, own in self.cluster.place(numbers).items():
                self._send(Group(own, worker, sent))
        while len(self.answers) < len(numbers):
            ready, _ = wait([*self.pending, *self.parked], timeout=TICK, return_when=FIRST_COMPLETED)
            for future in ready:
                if future in self.parked:
                    self._delivered(future)
                else:
                    self._take(future, self.pending.pop(future))
            if not ready:
                self._watch()
            if self.queue:
                self._deal()
        return [self.answers[number] for number in numbers]

    # Sending

    def _send(self, group: Group) -> None:
        future = self.cluster.send(self.do, group, pack(self.request(group.numbers)))
        self.pending[future] = group

    def _deal(self) -> None:
        """Give tasks to workers that have a thread to spare; who joined late is among them."""
        busy = Counter(group.worker for group in self.pending.values())
        busy.update(group.worker for _, groups in self.parked.values() for group in groups)
        for worker, threads in sorted(self.cluster.able().items()):
            for _ in range(threads - busy[worker]):
                if not self.queue:
                    return
                group = self.queue.popleft()
                group.worker = worker
                self.cluster.give(group.numbers, worker)
                self._send(group)

    def _send_missing(self, group: Group, missing: Sequence[str]) -> None:
        """Send what a worker misses along with the question again; to who works on several tasks, once for all."""
        if not self.apart:
            group.sent = self._defined(missing)
            self._count_sent(group, missing)
            self._send(group)
            return
        on_the_way = self.parcels.setdefault(group.worker, set())
        wanted = [name for name in missing if name not in on_the_way or group.missed[name]]
        waiting = next((groups for parcel, groups in self.parked.values() if parcel.worker == group.worker), None)
        if wanted:
            parcel = Group([], group.worker, self._defined(wanted))
            group.sent = parcel.sent
            self._count_sent(group, wanted)
            on_the_way.update(parcel.sent)
            self.parked[self.cluster.send("echo", parcel, pack([]))] = (parcel, [group])
        elif waiting is not None:
            waiting.append(group)
        else:  # it has arrived meanwhile; if it is gone again, it is sent again
            group.missed.update(missing)
            self._send(group)

    def _count_sent(self, group: Group, missing: Sequence[str]) -> None:
        """Note what is sent since it was missed; raise where that happens again and again."""
        group.missed.update(name for name in missing if name in group.sent)
        if max(group.missed.values()) > MOST_TRIES:
            raise ClusterError(f"worker {group.worker} misses {missing[:3]} again and again")

    def _defined(self, names: Sequence[str]) -> dict[str, bytes]:
        found, size = dict[str, bytes](), 0
        for name in dict.fromkeys(names):
            own = {} if name in found else self.definitions(name)
            found |= own
            size += sum(map(len, own.values()))
            if size > MOST_BYTES:  # the worker will say what it still misses
                break
        return found

    def _delivered(self, future: Future[bytes]) -> None:
        """A parcel has arrived, or its worker is gone."""
        parcel, groups = self.parked.pop(future)
        data = self._data(future, groups[0])
        if data is None:
            for group in groups[1:]:
                self._again(group)
            return
        passed = time.monotonic() - parcel.begun
        self.cluster.costs.add("send rows", [], parcel.size, len(data), passed, unpack(data))
        self.cluster.costs.waited("send rows", passed)
        for group in groups:
            group.sent = {}
            self._send(group)

    # Answers

    def _take(self, future: Future[bytes], group: Group) -> None:
        """Note an answer, send what is missing, or ask another worker where there is none."""
        if all(number in self.answers for number in group.numbers):
            return  # another worker was asked too, and was first
        data = self._data(future, group)
        if data is None:
            return
        told = unpack(data)
        if "missing" in told:
            self._send_missing(group, told["missing"])
            return
        if "error" in told:
            raise ERRORS.get(told["error"], InputError)(told["message"])
        if len(told["told"]) != len(group.numbers):
            raise ClusterError(
                f"worker {group.worker} answered about {len(told['told'])} of {len(group.numbers)} shards"
            )
        cluster, passed = self.cluster, time.monotonic() - group.begun
        cluster.costs.add(self.label, group.numbers, group.size, len(data), passed, told)
        self.first = self.first or passed
        self.answers.update(zip(group.numbers, told["told"], strict=True))
        cluster.give(group.numbers, group.worker)
        if self.done is not None:
            for number in group.numbers:
                self.done(number, self.answers[number])

    def _data(self, future: Future[bytes], group: Group) -> bytes | None:
        """What a worker answered; None where it is gone, and its shards are asked of others."""
        try:
            return future.result()
        except Exception as error:
            self.cluster.check_scheduler(error)
            here = group.worker in self.cluster.workers(look=True)
            if here and not isinstance(
                error, OSError | KeyError
            ):  # OSError: what was a connection; KeyError: no answer
                why = f"{type(error).__name__}: {error}"
                raise ClusterError(
                    f"worker {group.worker} can't run fliprank ({why}): is the same one there?"
                ) from error
            self._without(group, error)
            self._again(group)
            return None

    def _without(self, group: Group, error: Exception | None) -> None:
        """Say that a worker is gone; raise where that happens to the same shards again and again."""
        many = max(1, len(group.numbers))
        shards = f"{many} shard{'s' if many > 1 else ''}"
        group.tried.add(group.worker)
        group.losses += 1
        self.parcels.pop(group.worker, None)
        self.cluster.lose(group.worker)
        why = "" if error is None else f" ({type(error).__name__})"
        self.cluster.say(f"worker {group.worker} is gone{why}: its {shards} are read again elsewhere")
        if group.losses > MOST_TRIES:
            raise ClusterError(
                f"{MOST_TRIES} workers ended while they had the same {shards}: not enough memory? {AGAIN}"
            )

    def _again(self, group: Group) -> None:
        """Ask other workers about the same shards."""
        if self.apart:
            self.queue.append(Group(group.numbers, "", tried=group.tried, losses=group.losses))
            return
        for worker, own in self.cluster.place(group.numbers, avoid=group.tried).items():
            self._send(Group(own, worker, tried=set(group.tried), losses=group.losses))

    def _watch(self) -> None:
        """Nobody answered for a while: ask others in place of who is gone; say who is slow, and leave it behind."""
        self.cluster.check_scheduler(None)
        for future in [f for f, (parcel, _) in self.parked.items() if parcel.worker not in self.cluster.workers()]:
            _, groups = self.parked.pop(future)
            self._without(groups[0], None)
            for group in groups:
                self._again(group)
        for future, group in list(self.pending.items()):
            if group.worker not in self.cluster.workers():  # its scheduler knows sooner than who tries to reach it
                del self.pending[future]
                self._without(group, None)
                self._again(group)
            elif self.answers and not self.apart:
                self._hurry(future, group)

    def _hurry(self, future: Future[bytes], group: Group) -> None:
        passed, usual = time.monotonic() - group.begun, max(self.cluster.slow, self.first)
        if passed > usual and not group.told_slow:
            group.told_slow = True
            told = f"worker {group.worker} has not answered for {passed:.0f} s; {len(self.answers)} shards have"
            self.cluster.say(told)
        if passed > 2 * usual and group.worker not in group.tried and len(self.cluster.workers()) > 1:
            group.tried.add(group.worker)
            self.cluster.leave_behind(group.worker, future)
            self.cluster.say(f"worker {group.worker} is left behind: others are asked the same")
            self._again(group)
