"""What BM25, BM25F and the sum of BM25 share: the fields, their average lengths, and how both are saved.

The average length of a field is that of the collection where it is known, else of the training rows. A subclass names
its parameters (`_parameters`), says where its kernels find them (`_places`) and which kernels they are (`function`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models.base import UNKNOWN, Model, Seed
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import RowFunction
from fliprank.models.term_rows import average_lengths, field_names, restored_fields, statistics_of, term_rows

__all__ = ["FieldModel"]


@dataclass(frozen=True, eq=False)
class FieldModel(Model):
    """A model of the lengths of fields. `average` is the average length of each, in the collection or training rows.

    Where `fields` is None, the fields are those of the training rows. `joined`: all of them are one text.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"terms"})
    joined: ClassVar[bool]
    function: ClassVar[int]
    fields: tuple[str, ...] | None = None
    average: Floats | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", field_names(self.fields))
        if self.average is not None:
            object.__setattr__(self, "average", frozen(self.average, np.float64))
        if self.params is UNKNOWN and (self.joined or self.fields is not None):
            object.__setattr__(self, "params", self._parameters(self.fields or ()))

    @abstractmethod
    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        """The parameters of a model of these fields, at their defaults."""

    @abstractmethod
    def _places(self) -> tuple[Ints, Floats]:
        """(places, constants before 1 / average length) of what the kernels compute with; see `RowFunction`."""

    @property
    def ready(self) -> bool:
        return self.average is not None

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields and average lengths of these rows (or of their collection, where known), unless it has them.

        Parameters are kept.
        """
        fields = self.fields or statistics_of(train).fields
        term_rows(train, fields, self.joined)  # rows that lack what it reads are an error now
        if self.average is not None:
            return self
        return replace(self, fields=fields, average=average_lengths(train, fields, self.joined))

    def initial(self, rng: np.random.Generator) -> Floats:
        """Around the defaults: b plus a random number, all others times a random factor."""
        params, noise = self.params, rng.normal(size=len(self.params))
        is_b = np.array([name == "b" or name.endswith(".b") for name in params.names], bool)
        moved = np.where(is_b, params.default + 0.2 * noise, params.default * np.exp(0.5 * noise))
        return np.clip(moved, params.lower, params.upper)

    @property
    def penalty_weights(self) -> Floats:
        """Weights may well be off by a factor of e, k by half of that (in logarithms), a by 0.3, b by a quarter."""
        firm = {"w": 1.0, "k": 2.0, "a": 11.0, "b": 16.0}
        return np.array([firm[name.rpartition(".")[2]] for name in self.params.names])

    def _known(self) -> tuple[tuple[str, ...], Floats]:
        if self.fields is None or self.average is None:
            raise UsageError(f"this {self.kind} model knows no lengths yet: train it, or call prepared(train, rng)")
        return self.fields, self.average

    def row_function(self, candidates: Candidates) -> RowFunction:
        """As kernels see it; built once per `Candidates` for the same fields and averages."""
        fields, average = self._known()
        key = ("row function", self.kind, fields, average.tobytes())
        if key not in candidates.memo:
            inverse = np.divide(1.0, average, out=np.zeros(len(average)), where=average > 0)
            places, constants = self._places()
            lengths = len(self.params) + len(constants) + np.arange(len(average))
            theta = np.concatenate([places, lengths]), np.concatenate([constants, inverse])
            lines = term_rows(candidates, fields, self.joined)
            candidates.memo[key] = RowFunction(self.function, *theta, lines=lines)
        found: RowFunction = candidates.memo[key]
        return found

    def length_ratio(self, length: Floats) -> Floats:
        """Lengths (documents x fields; one column where fields are joined) over average lengths; 1 without either."""
        average = self._known()[1]
        ratio = np.divide(length, average, out=np.ones(length.shape), where=average > 0)
        return np.where(ratio > 0, ratio, 1.0)

    def structure(self) -> dict[str, Any]:
        fields, average = self._known()
        if self.joined:
            return {"fields": [{"name": name} for name in fields], "average": float(average[0])}
        columns = zip(fields, average.tolist(), strict=True)
        return {"fields": [{"name": name, "average": mean} for name, mean in columns]}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        fields, records = restored_fields(structure)
        average = [entry.number("average") for entry in ([structure] if cls.joined else records)]
        if min(average) < 0:
            raise InputError("an average length is negative", path=structure.path)
        return cls(fields, average=np.array(average))
