"""An engine that runs here: it is given documents, and answers queries with its own scores.

Documents and queries come as words that every engine's tokenizer leaves as they are (`coded_texts.py`), so that only
the scoring is compared. An engine is one file with a class under `@register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from fliprank.errors import UsageError
from fliprank.models.engine import EngineText

__all__ = ["RUNNERS", "Runner", "missing_package", "register", "runner_of"]

Texts = Mapping[str, Mapping[str, str]]
"""By document id, the words of each field with spaces between them; a field without words is the empty string."""

RUNNERS: dict[str, type[Runner]] = {}
"""Engines that can be run here, by the name under which they are exported."""

C = TypeVar("C", bound="type[Runner]")


class Runner(ABC):
    """One index of documents in the engine itself; a context manager, since some engines must be shut down."""

    name: ClassVar[str]
    functions: ClassVar[tuple[str, ...]] = ()
    """The functions of the engine that it computes; all, if none are named."""
    tolerance: ClassVar[float] = 1e-5
    """How far its scores may be from ours, relative to them: float32 or less."""

    @abstractmethod
    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        """Index these documents. What can be set only when indexing is taken from `model`."""

    @abstractmethod
    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        """The best `depth` documents with some of these words, best first, with the engine's scores.

        `model` has the parameters to search with; a word may be there twice.
        """

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Name and version of what runs; raises if it is not installed, saying what to install."""

    def close(self) -> None:  # noqa: B027
        """Give back what the engine holds."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def register(runner: C) -> C:
    """Make an engine known."""
    RUNNERS[runner.name] = runner
    return runner


def runner_of(name: str) -> type[Runner]:
    """The engine of this name; raises an error that names those that run here."""
    from fliprank import engines  # noqa: F401  (its modules register themselves)

    if name not in RUNNERS:
        raise UsageError(f"{name} can't be run here; these can: {', '.join(sorted(RUNNERS))}")
    return RUNNERS[name]


def missing_package(engine: str, install: str) -> Callable[[Exception], UsageError]:
    """The error for an engine whose package is not installed."""
    return lambda error: UsageError(f"{engine} is not installed here ({error}): {install}")
