"""What a model is: named parameters, a score for each row, and its exact gradient by reverse mode.

A model never changes. `prepared(train, rng)` gives one that knows what it must know about its training rows and has
values to start from; `at(values)` gives the same structure with other parameter values. A new kind of model is one
file with a class under `@register` and one line in `__init__.py`; saving and loading then follow from `structure` and
`restore`.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> model = Linear().prepared(rows, 0).at([0.5, 2.0])
>>> model.params.names, model.score(rows).tolist(), model.pullback(rows, [1.0, 0.0]).tolist()
(('bias', 'w.bm25'), [2.5, -1.5], [1.0, 1.0])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.errors import InputError, UsageError, printable
from fliprank.models.folder import Record, read_folder, write_folder
from fliprank.models.parameter_rows import from_rows, to_rows
from fliprank.models.parameters import Parameters
from fliprank.naming import same

__all__ = [
    "KINDS",
    "UNKNOWN",
    "Model",
    "Seed",
    "build",
    "describe",
    "full_text",
    "load_model",
    "register",
    "row_gradient",
]

KINDS: dict[str, type[Model]] = {}
"""Models by the name of their kind in model.json."""

FEW = 12
"""Parameters up to which a model shows their values."""

Seed = int | np.random.Generator
M = TypeVar("M", bound="type[Model]")


class _Unknown(Parameters):
    """The parameters of a model that must see rows before it has any: asking for one is an error that says so."""

    def _fail(self) -> NoReturn:
        raise UsageError(
            "this model has no parameters yet: which it has depends on the rows. Call prepared(train, rng) first, or "
            "name the fields of a text model: BM25F(['title', 'body'])"
        )

    def positions(self, name: str) -> Ints:
        self._fail()

    def at(self, vector: ArrayLike) -> Self:
        return super().at(vector) if np.size(vector) == 0 else self._fail()


UNKNOWN = _Unknown((), np.empty(0))


def register(model: M) -> M:
    """Make a kind of model known to `load_model`."""
    KINDS[model.kind] = model
    return model


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """A ranking function with parameters. Subclasses are frozen dataclasses.

    `params` is there from construction where it does not depend on the rows; else it is `UNKNOWN` until `prepared`.
    """

    kind: ClassVar[str]
    summary: ClassVar[str] = ""
    """One line for lists of models in help pages."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """What it reads of the rows: "features", "terms" (term statistics), "lists", or several of these."""
    linear_in_params: ClassVar[bool] = False
    """Whether scores are linear in the parameters, so that an exact line search applies along any line of them."""

    scales_freely: ClassVar[bool] = False
    """Whether parameters can make all scores larger alike; if not, objectives see scores in units of their spread."""

    whole_queries: ClassVar[bool] = False
    """Whether a row's score depends on the other rows of its query, so that none of them may be left out."""

    prepared_in_parts: ClassVar[bool] = False
    """Whether `prepared` takes rows that are not in one memory (`ScatteredRows`), too."""

    params: Parameters = field(default=UNKNOWN, kw_only=True)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__repr__" not in vars(cls):  # a dataclass would write one that shows arrays
            cls.__repr__ = Model.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        if not self.ready:
            return f"{type(self).__name__}({', '.join(_settings(self))})"
        names, values = self.params.names, self.params.values
        shown = ", ".join(f"{name}={value:.4g}" for name, value in zip(names, values, strict=True))
        return printable(f"{type(self).__name__}({shown if len(names) <= FEW else f'{len(names):,} parameters'})")

    @abstractmethod
    def score(self, candidates: Candidates) -> Floats:
        """The score of each row."""

    @abstractmethod
    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        """The gradient with respect to `params.values` of a quantity whose gradient by the scores is `dscores`."""

    @abstractmethod
    def structure(self) -> dict[str, Any]:
        """All but the parameters, as JSON: what `restore` builds the model from."""

    @classmethod
    @abstractmethod
    def restore(cls, structure: Record) -> Self:
        """The model of this structure, with default parameters; `structure` comes from a file and is not trusted."""

    @property
    def all_but_values(self) -> tuple[Any, ...]:
        """What a model is made of but for the values of its parameters: the same objects in all that a search makes of
        it, so that what depends on nothing else can be kept by their identity, along with them."""
        params = self.params
        layout = (params.names, params.lower, params.upper, params.default, params.slots, params.free_names)
        return (type(self), *(getattr(self, f.name) for f in fields(self) if f.name != "params"), *layout)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """Ready to train: with what it must know about the training rows, and parameter values to start from.

        A model that is `ready` keeps what it knows (average lengths, scaler, parameter values). Raises if these rows
        lack what the model reads.
        """
        return self

    @property
    def ready(self) -> bool:
        """Whether it can score. A model that must be prepared first is ready from then on."""
        return True

    def initialised(self, rng: Seed) -> Self:
        """With new initial values of the free parameters: random where the model needs them to be."""
        return self.at(self.params.with_free(self.params.at(self.initial(np.random.default_rng(rng))).free_values))

    def initial(self, rng: np.random.Generator) -> Floats:
        """Values of all parameters to start from."""
        return self.params.default

    @property
    def penalty_weights(self) -> Floats:
        """How firmly a prior holds each parameter to its default: 1 / (how far off that may well be)², 0 for biases.

        Distances are in the coordinates of a search (`Space`): of logarithms where factors count.
        """
        return np.ones(len(self.params))

    def linear_along(self, direction: ArrayLike) -> bool:
        """Whether scores are linear in x along `params.free_values + x * direction`."""
        return self.linear_in_params

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        """How fast each score rises along a direction of the free vector, where `linear_along` says that it is linear.

        >>> from fliprank.models import Linear
        >>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
        >>> Linear().prepared(rows, 0).slope(rows, [0.0, 2.0]).tolist()
        [2.0, -2.0]
        """
        if not self.linear_along(direction):
            raise UsageError(f"the scores of this {self.kind} model are not linear along this direction")
        return self.at(self.params.direction(direction)).score(candidates)

    def at(self, values: ArrayLike | Parameters) -> Self:
        """With other parameter values; with `Parameters`, also other bounds, fixed and shared ones."""
        return replace(self, params=self.params_at(values))

    def params_at(self, values: ArrayLike | Parameters) -> Parameters:
        """The parameters of this model at other values; raises if given `Parameters` that are another model's."""
        params = values if isinstance(values, Parameters) else self.params.at(values)
        if params.names is not self.params.names and params.names != self.params.names:
            raise UsageError(f"these are not the parameters of this {self.kind} model: they have other names")
        return params

    def save(self, folder: StrPath) -> None:
        """Write the model to `folder`: whole or not at all. An older model there is replaced."""
        if not self.ready:
            raise UsageError(f"this {self.kind} model has nothing to save yet: train it, or call prepared(train, rng)")
        rows, arrays = to_rows(self.params)
        write_folder(folder, {**describe(self), "parameters": rows}, arrays)


@checked
def load_model(folder: StrPath) -> Model:
    """The model that `save` wrote to `folder`."""
    record, arrays = read_folder(folder)
    try:
        model = build(record)
    except RecursionError:
        raise InputError("models within models without end", path=record.path) from None
    return model.at(from_rows(record, model.params.names, arrays))


def describe(model: Model) -> dict[str, Any]:
    """Kind and structure, as JSON; a model made of models includes these of its parts."""
    return {"kind": model.kind, "structure": model.structure()}


def full_text(model: Any) -> str:
    """All that tells a model that is not ready from another, as text: `repr` leaves most of it out."""
    if isinstance(model, Model):
        told = ", ".join(f"{f.name}={full_text(getattr(model, f.name))}" for f in fields(model))
        return f"{type(model).__name__}({told})"
    if isinstance(model, Parameters):
        return str([model.names, *(x.tolist() for x in (model.values, model.lower, model.upper, model.slots))])
    if isinstance(model, tuple | list):
        return f"[{', '.join(map(full_text, model))}]"
    return repr(model)


def _settings(model: Model) -> Iterator[str]:
    """What a model was made with, as far as it is not the default."""
    for each in fields(model):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        value = getattr(model, each.name)
        if each.name != "params" and not isinstance(value, np.ndarray) and not same(value, default):
            yield f"{each.name}={value!r}"


def build(record: Record) -> Model:
    """The model that `describe` gave, with default parameters."""
    kind = KINDS.get(record.text("kind"))
    if kind is None:
        record.fail("kind", f"one of {', '.join(sorted(KINDS))}")
    try:
        return kind.restore(record.record("structure"))
    except UsageError as error:
        raise InputError(f"structure: {error}", path=record.path) from error


def row_gradient(candidates: Candidates, dscores: ArrayLike) -> Floats:
    """`dscores` as a vector, after checking that there is one number per row."""
    given = np.asarray(dscores, np.float64)
    if given.shape != (len(candidates),):
        raise UsageError(f"dscores: expected a number for each of {len(candidates)} rows, got shape {given.shape}")
    vector: Floats = frozen(given, np.float64)
    return vector
