"""What travels to workers and back: a JSON text and raw arrays after it, in one string of bytes.

Dask would pickle whatever it is given. It is given bytes only, and the name of one function (`worker.answer`): what is
in the bytes is read here, by classes that are listed here, and nothing in a message is executed. Models travel as they
stand in model.json, measures by their names, candidates and the like field by field.

>>> from fliprank.measures import parse_measure
>>> unpack(pack({"at": np.array([1.0, 2.0]), "by": parse_measure("nDCG@10"), "steps": (3, None)}))
{'at': array([1., 2.]), 'by': nDCG(...cutoff=10...), 'steps': (3, None)}
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.errors import FliprankError, InputError, UsageError
from fliprank.measures import Measure, parse_measure
from fliprank.measures.conventions import CONVENTIONS, Convention, Reading
from fliprank.models.base import Model, build, describe
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters

__all__ = ["Named", "Shared", "base_of", "bases_in", "model_of_base", "own_function", "pack", "unpack"]

ALIGNMENT = 16
DTYPES = ("b1", "u1", "u2", "i1", "i2", "i4", "i8", "u8", "f4", "f8")

MOST_BASES = 64
"""Models that are known without their values."""


class _Base(NamedTuple):
    """What is known of a model by the identity of its parts, which therefore are held."""

    name: str
    told: bytes
    held: Any


_BASES: dict[Any, _Base] = {}
_LOCK = Lock()

Shared = Callable[[str], Any]
"""Gives what was sent before under a name; raises KeyError where it was not."""


class Named(NamedTuple):
    """Stands for rows that a worker has, or is sent, under a name."""

    name: str


@cache
def _plain() -> dict[str, type[Any]]:
    """Classes whose fields are all there is to them, by the name under which they travel."""
    from fliprank.data.candidates import Candidates
    from fliprank.data.ids import Ids
    from fliprank.data.ranked_lists import RankedLists
    from fliprank.data.term_statistics import TermStatistics
    from fliprank.data.trec import Run
    from fliprank.experiment.trials import Trial
    from fliprank.landscape.steps import Steps
    from fliprank.objectives.base import REGISTRY
    from fliprank.optimize.fit import Epoch
    from fliprank.optimize.methods import METHODS
    from fliprank.optimize.shard import Alike, Spread, Valued
    from fliprank.text.search.queries import Queries, Whole

    known: list[type[Any]] = [Candidates, Ids, RankedLists, TermStatistics, Parameters, Queries, Whole, Reading]
    known += [Run, Steps, Alike, Spread, Valued, Epoch, Trial]
    named = {each.__name__: each for each in (*known, Named)}
    named |= {f"objective {name}": each for name, each in REGISTRY.items()}
    return named | {f"method {name}": each for name, each in METHODS.items()}


@cache
def _names() -> dict[type[Any], str]:
    return {each: name for name, each in _plain().items()}


def pack(value: Any) -> bytes:
    """A value as bytes; raises for what can't travel, such as a function of the user's own."""
    arrays = list[NDArray[Any]]()
    text = json.dumps(_encoded(value, arrays)).encode()
    table, parts, end = list[tuple[str, list[int], int]](), list[Any](), 0
    for array in arrays:
        raw = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        kind = f"{raw.dtype.kind}{raw.dtype.itemsize}"
        if kind not in DTYPES:
            raise UsageError(f"an array of {raw.dtype} can't be sent to a worker")
        table.append((kind, list(array.shape), end))
        parts += [raw.reshape(-1).view(np.uint8).data, bytes(-raw.nbytes % ALIGNMENT)]
        end += raw.nbytes + -raw.nbytes % ALIGNMENT
    head = json.dumps(table).encode()
    start = 16 + len(head) + len(text)
    sizes = len(head).to_bytes(8, "little") + len(text).to_bytes(8, "little")
    return b"".join([sizes, head, text, bytes(-start % ALIGNMENT), *parts])


def unpack(message: bytes, shared: Shared | None = None) -> Any:
    """The value that was packed; `shared` gives what was left out because it was sent before (`base_of`)."""
    data = memoryview(message).toreadonly()
    try:
        head, text = (int.from_bytes(data[at : at + 8], "little") for at in (0, 8))
        table = json.loads(bytes(data[16 : 16 + head]))
        tree = json.loads(bytes(data[16 + head : 16 + head + text]))
        base = 16 + head + text
        base += -base % ALIGNMENT
        arrays = [_array(data, base, *entry) for entry in table]
        return _decoded(tree, arrays, shared)
    except FliprankError:
        raise
    except (
        ArithmeticError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        StopIteration,
    ) as error:
        raise InputError(f"a damaged message: {type(error).__name__}: {error}") from error


def _array(data: memoryview, base: int, kind: str, shape: list[int], offset: int) -> NDArray[Any]:
    """A copy: questions may write to what they are given, as they may in one process."""
    if kind not in DTYPES or any(type(size) is not int or size < 0 for size in (*shape, offset)):
        raise ValueError(f"no array of {kind!r} and shape {shape!r} at {offset!r}")
    dtype, count = np.dtype(f"<{kind}"), math.prod(shape)
    end = base + offset + count * dtype.itemsize
    if end > len(data):
        raise ValueError("an array beyond its end")
    return np.frombuffer(data[base + offset : end], dtype, count).reshape(shape).copy()


def _encoded(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """JSON: scalars and lists as they are, all else as {what it is: what it is made of}."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, bytes):
        arrays.append(np.frombuffer(value, np.uint8))
        return {"bytes": len(arrays) - 1}
    if isinstance(value, list):
        return [_encoded(each, arrays) for each in value]
    if isinstance(value, dict):
        return {"dict": [[_encoded(key, arrays), _encoded(each, arrays)] for key, each in value.items()]}
    if isinstance(value, Measure):
        return {"measure": _round_trip(value)}
    if isinstance(value, Convention):  # what it means by each measure is code, which the worker has
        own = [value.name, value.ties, value.empty, value.missing, value.single, value.seed]
        return {"convention": own}
    if isinstance(value, Model):
        return _encoded_model(value, arrays)
    if (name := _names().get(type(value))) is not None:
        parts = value if isinstance(value, tuple) else [getattr(value, f.name) for f in fields(value) if f.init]
        return {"a": name, "of": [_encoded(each, arrays) for each in parts]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"tuple": [_encoded(each, arrays) for each in value]}
    if isinstance(value, FunctionType) and value.__module__.startswith("fliprank."):
        return {"function": f"{value.__module__}:{value.__qualname__}"}
    if callable(value):
        raise UsageError(f"{value!r:.80} is a function: workers are sent data, not code")
    raise UsageError(f"a {type(value).__name__} can't be sent to a worker")


def own_function(name: str) -> Callable[..., Any]:
    """The function of fliprank's own that has this name, module:function; raises for anything else."""
    module, _, function = name.partition(":")
    found = getattr(import_module(module), function, None) if module.startswith("fliprank.") else None
    if not isinstance(found, FunctionType) or found.__module__ != module:
        raise InputError(f"a message names {name!r:.80}, which is no function of this fliprank: is it another version?")
    return found


def _round_trip(measure: Measure) -> str:
    name = str(measure)
    if parse_measure(name) != measure:
        raise UsageError(f"{name}: this measure can't be read back from its name, and so can't be sent to a worker")
    return name


def _encoded_model(model: Model, arrays: list[NDArray[Any]]) -> Any:
    """The values, and the name of all else, which is sent once (`base_of`)."""
    if not model.ready:
        raise UsageError(
            f"this {model.kind} model is not ready: what it learns from rows must be known before it is sent"
        )
    return {"model": base_of(model)[0], "values": _encoded(model.params.values, arrays)}


def base_of(model: Model) -> tuple[str, bytes]:
    """(a name made of its content, the message) of all of a model but its values: sent once, named from then on."""
    params, parts = model.params, model.all_but_values
    key = tuple(map(id, parts))  # a search moves the values only, thousands of times
    with _LOCK:
        known = _BASES.get(key)
    if known is None:
        layout = [params.names, params.lower, params.upper, params.default, params.slots, params.free_names]
        told = pack({"describe": json.dumps(describe(model)), "layout": layout})
        known = _Base("model-" + blake2b(told, digest_size=16).hexdigest(), told, parts)
        with _LOCK:
            while len(_BASES) >= MOST_BASES:
                _BASES.pop(next(iter(_BASES)))
            _BASES[key] = known
    return known.name, known.told


def bases_in(value: Any) -> dict[str, bytes]:
    """What a worker must have been sent once to read this value: the models in it, without their values."""
    if isinstance(value, Model):
        return dict([base_of(value)])
    if isinstance(value, dict):
        value = list(value.values())
    found = dict[str, bytes]()
    for each in value if isinstance(value, list | tuple) else ():
        found |= bases_in(each)
    return found


def model_of_base(message: bytes) -> Model:
    """The model of `base_of`, at its defaults."""
    told = unpack(message)
    model = build(Record(Path("message"), "", json.loads(told["describe"])))
    names, lower, upper, default, slots, free = told["layout"]
    return model.at(Parameters(names, default, lower, upper, default, slots, free))


def _decoded(tree: Any, arrays: list[NDArray[Any]], shared: Shared | None) -> Any:
    if isinstance(tree, list):
        return [_decoded(each, arrays, shared) for each in tree]
    if not isinstance(tree, dict):
        return tree
    kind = next(iter(tree))
    inside = tree[kind]
    if kind == "float":
        return float(inside)
    if kind == "array":
        return arrays[inside]
    if kind == "bytes":
        return arrays[inside].tobytes()
    if kind == "dict":
        return {_decoded(key, arrays, shared): _decoded(each, arrays, shared) for key, each in inside}
    if kind == "tuple":
        return tuple(_decoded(each, arrays, shared) for each in inside)
    if kind == "function":
        return own_function(inside)
    if kind == "measure":
        return parse_measure(inside)
    if kind == "convention":
        name, *rest = inside
        named = dict(zip(("ties", "empty", "missing", "single", "seed"), rest, strict=True))
        return replace(CONVENTIONS[name], **named)
    if kind == "model":
        if shared is None:
            raise InputError("a damaged message: a model without all but its values")
        return shared(inside).at(arrays[tree["values"]["array"]])
    return _made(inside, [_decoded(each, arrays, shared) for each in tree["of"]])


def _made(name: str, parts: list[Any]) -> Any:
    known = _plain().get(name)
    if known is None:
        raise InputError(f"a message with a {name!r}, which this fliprank does not know: is it another version?")
    if issubclass(known, tuple):
        return known(*parts)
    return known(**dict(zip((f.name for f in fields(known) if f.init), parts, strict=True)))
