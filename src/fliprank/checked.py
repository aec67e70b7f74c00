"""Arguments of the wrong type are refused at the door, in a sentence that says what was expected.

`@checked` reads a function's own annotations: what they say of an argument is what it must be. Types are known by their
name, so that this module imports none of them. What an annotation says that is not in WORDS is left to the function.

>>> @checked
... def double(seed: int, path: str | PathLike = "") -> int:
...     return 2 * seed
>>> double(7)
14
>>> double("7")
Traceback (most recent call last):
fliprank.errors.WrongTypeError: seed must be a whole number; '7' was given (str)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from fliprank.errors import WrongTypeError

__all__ = ["checked", "is_numeric"]

P = ParamSpec("P")
T = TypeVar("T")

ROWS = "Candidates, such as fr.read_letor, fr.Candidates.of or index.candidates gives"
WORDS = {
    "Candidates": ROWS,
    "ScatteredRows": "rows in files, such as fr.open_rows gives",
    "Blocks": "a function that gives blocks of Candidates",
    "Measure": "a name such as 'nDCG@10' or a Measure",
    "Objective": "a name such as 'lambdarank@10' or an objective",
    "Method": "a name such as 'lbfgs' or a method",
    "Model": "a model, such as fr.Linear() or fit.model",
    "EngineText": "the text function of an engine: fr.engine_model('sqlite'), tuned or prepared",
    "Cascade": "a cascade of models: fr.Cascade([...], sizes=[...])",
    "Convention": "a name such as 'trec_eval' or a Convention",
    "Qrels": "judgements, such as fr.read_qrels or fr.Qrels.of gives",
    "Run": "a run, such as fr.read_run, fr.Run.of or index.search gives",
    "IndexArrays": "an index, such as fr.Index.build or fr.Index.open gives",
    "Index": "an index, such as fr.Index.build or fr.Index.open gives",
    "WebModel": "a WebModel",
    "Ranker": "a Ranker, or rankers by name",
    "ParameterSettings": "ParameterSettings",
    "StageCosts": "costs per stage",
    "Recipes": "a list of trials",
    "Progress": "a function that is told how far the work is",
    "OpenProgress": "a function that is told how far the work is",
    "Ranking": "a run, its file, scores by query and document, a frame, or a model",
    "JudgedLike": "judgements, their file, labels by query and document, a frame, or rows with labels",
    "QueriesLike": "query texts by id, or the path of a file of queries",
    "QrelsLike": "judgements, labels by query and document, or the path of a file of judgements",
    "Direction": "the name of a parameter, rates by name, or a vector of rates",
    "StrPath": "a path",
    "PathLike": "a path",
    "ArrayLike": "numbers",
    "FeatureCosts": "a number, or costs by name",
    "Mapping": "a mapping",
    "Sequence": "a list",
    "Iterable": "a list",
    "Generator": "a random generator",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
}
"""What each word of an annotation asks for; if one has several, the first that stands here says it."""


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose arguments are compared with its annotations when it is called."""
    signature = inspect.signature(function)
    wanted = {name: _alternatives(str(p.annotation)) for name, p in signature.parameters.items()}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # too many arguments, or too few: Python says so better
            return function(*args, **kwargs)
        for name, value in given.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for each in value if several else (value,):
                _check(name, each, wanted[name])
        return function(*args, **kwargs)

    return call


def _alternatives(annotation: str) -> tuple[str, ...]:
    """The words of `A | B[...] | None`; none if one of them is not known."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", annotation)) != annotation:
        annotation = shorter
    words = tuple(word.strip().rpartition(".")[2] for word in annotation.split("|"))
    return words if all(word in WORDS or word in ("None", "Fitter") for word in words) else ()


def _check(name: str, value: Any, wanted: tuple[str, ...]) -> None:
    if wanted and not any(_fits(value, word) for word in wanted):
        expected = next(said for word, said in WORDS.items() if word in wanted)
        if "None" in wanted:
            expected += ", or None"
        raise WrongTypeError(name, value, expected)


def _fits(value: Any, word: str) -> bool:
    """Whether a value is what one word of an annotation asks for. True and False are no numbers."""
    boolean = isinstance(value, bool) or type(value).__name__ == "bool_"
    if word in SIMPLE:
        return SIMPLE[word](value) and not (boolean and word in ("int", "float", "ArrayLike"))
    if word in ALIASES:
        return any(_fits(value, each) for each in ALIASES[word])
    return any(kind.__name__ == word for kind in type(value).__mro__)


ALIASES = {
    "Ranking": ("Run", "Model", "StrPath", "Mapping", "DataFrame"),
    "JudgedLike": ("Qrels", "Candidates", "StrPath", "Mapping", "DataFrame"),
    "QueriesLike": ("Mapping", "StrPath"),
    "QrelsLike": ("Qrels", "Mapping", "StrPath"),
    "Direction": ("str", "Mapping", "ArrayLike"),
    "FeatureCosts": ("float", "Mapping"),
    "Recipes": ("Mapping", "Sequence"),
}
"""Names that stand for several types."""


def is_numeric(value: Any) -> bool:
    """Whether NumPy can make numbers of it."""
    import numpy as np

    try:
        return bool(np.issubdtype(np.asarray(value).dtype, np.number) or np.asarray(value).dtype == bool)
    except ValueError:  # lists of different lengths
        return False


def _whole(value: Any) -> bool:
    """Whether it can count: an int, or one of NumPy's."""
    return hasattr(value, "__index__")


def _listed(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


SIMPLE: dict[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool) or type(value).__name__ == "bool_",
    "str": lambda value: isinstance(value, str),
    "int": _whole,
    "float": lambda value: hasattr(value, "__float__"),
    "StrPath": lambda value: isinstance(value, str | PathLike),
    "PathLike": lambda value: isinstance(value, PathLike),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Sequence": _listed,
    "Iterable": _listed,
    "ArrayLike": is_numeric,
    "Progress": callable,
    "OpenProgress": callable,
    "Blocks": callable,
    "Fitter": callable,
}
