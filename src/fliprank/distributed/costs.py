"""What a cluster costs: bytes sent and brought back, milliseconds of work, and of waiting, by question and by shard.

>>> costs = Costs()
>>> costs.add("echo", [0, 1], 100, 60, 0.004, {"told": [None, None], "seconds": 0.001})
>>> costs.by_shard()[0]
{'shard': 0, 'questions': 1, 'sent': 50.0, 'received': 30.0, 'work_ms': 0.5}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

__all__ = ["Costs"]


@dataclass(eq=False)
class _Line:
    """Totals of one question, or of one shard."""

    times: int = 0
    sent: float = 0.0
    received: float = 0.0
    work: float = 0.0
    waited: float = 0.0


@dataclass(eq=False)
class Costs:
    """Totals, kept while a cluster is asked. `lost` counts messages that a worker did not live to answer."""

    questions: dict[str, _Line] = field(default_factory=lambda: defaultdict(_Line))
    shards: dict[int, _Line] = field(default_factory=lambda: defaultdict(_Line))
    lost: int = 0
    _lock: Lock = field(default_factory=Lock)

    def add(self, do: str, numbers: Sequence[int], sent: int, received: int, seconds: float, told: Any) -> None:
        """Note the answer of one worker about its shards, each of which has its share of the message."""
        each = [part["seconds"] if isinstance(part, dict) and "seconds" in part else None for part in told["told"]]
        share = 1 / max(len(numbers), 1)
        with self._lock:
            line = self.questions[do]
            line.sent, line.received, line.work = (
                line.sent + sent,
                line.received + received,
                line.work + told["seconds"],
            )
            for number, own in zip(numbers, each, strict=True):
                line = self.shards[number]
                line.times += 1
                line.sent += share * sent
                line.received += share * received
                line.work += share * told["seconds"] if own is None else own

    def waited(self, do: str, seconds: float) -> None:
        """Note how long a question took until all had answered."""
        with self._lock:
            line = self.questions[do]
            line.times += 1
            line.waited += seconds

    def by_shard(self) -> list[dict[str, Any]]:
        """Per shard, means per question: bytes sent and received, and milliseconds of work on its worker."""
        return [
            {
                "shard": number,
                "questions": line.times,
                "sent": line.sent / line.times,
                "received": line.received / line.times,
                "work_ms": 1000 * line.work / line.times,
            }
            for number, line in sorted(self.shards.items())
        ]

    def by_question(self) -> list[dict[str, Any]]:
        """Per question, means per time it was asked: bytes of all shards, work of all, and how long it took."""
        return [
            {
                "question": name,
                "times": line.times,
                "sent": line.sent / max(line.times, 1),
                "received": line.received / max(line.times, 1),
                "work_ms": 1000 * line.work / max(line.times, 1),
                "waited_ms": 1000 * line.waited / max(line.times, 1),
            }
            for name, line in sorted(self.questions.items())
        ]
