"""The folder of a saved model: model.json, which a person can read and compare, and large arrays beside it.

Writing model.json is the last step and a single rename: before it the folder holds the old model, after it the new one.
That is why the arrays file is named after its content: both can lie side by side. Other files in the folder are left
alone. Reading trusts nothing: no pickle, no name that leads elsewhere, no array that is not complete.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> write_folder(folder, {"kind": "linear", "parameters": [{"name": "bias", "value": 0.5}]}, {})
>>> print((Path(folder) / "model.json").read_text())
{
  "fliprank": "model",
  "version": 1,
  "kind": "linear",
  "parameters": [
    {"name": "bias", "value": 0.5}
  ]
}
>>> read_folder(folder)[0].text("kind")
'linear'
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import stat
import tokenize
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fliprank.data.files import StrPath, atomic_write
from fliprank.errors import InputError

__all__ = ["Arrays", "Record", "read_folder", "write_folder"]

Arrays = dict[str, NDArray[Any]]

VERSION = 1
ARRAYS = re.compile(r"arrays-[0-9a-f]{16}\.npz")
LARGEST_JSON, LARGEST_ARRAYS = 1 << 28, 1 << 32
BROKEN_FILE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, tokenize.TokenError, SyntaxError)
BROKEN = (*BROKEN_FILE, TypeError, KeyError, MemoryError, OverflowError)
"""What Python and NumPy raise for a zip file or an array header that nobody wrote."""
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Record:
    """A JSON object that is read with checks: errors name the file, the place in it and what was expected there."""

    path: Path
    place: str
    data: dict[str, Any]

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise the error for a key whose value is not what was expected."""
        found = f"found {_shown(self.data[key])}" if key in self.data else "it is missing"
        where = f"{self.place}.{key}" if self.place else key
        raise InputError(f"{where}: expected {expected}, {found}", path=self.path)

    def has(self, key: str) -> bool:
        """Whether there is such a key."""
        return key in self.data

    def text(self, key: str) -> str:
        """A string."""
        value = self.data.get(key)
        return value if isinstance(value, str) else self.fail(key, "a string")

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; `default` where the key is missing."""
        value = self.data.get(key, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not _finite(value):
            self.fail(key, "a finite number")
        return float(value)

    def integer(self, key: str) -> int:
        """A whole number."""
        value = self.data.get(key)
        return value if type(value) is int else self.fail(key, "a whole number")

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.data.get(key)
        return value if isinstance(value, bool) else self.fail(key, "true or false")

    def record(self, key: str) -> Record:
        """An object."""
        value = self.data.get(key)
        return Record(self.path, self._below(key), value) if isinstance(value, dict) else self.fail(key, "an object")

    def records(self, key: str) -> list[Record]:
        """A list of objects."""
        value = self.data.get(key)
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self.fail(key, "a list of objects")
        return [Record(self.path, f"{self._below(key)}[{i}]", entry) for i, entry in enumerate(value)]

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def write_folder(folder: StrPath, record: dict[str, Any], arrays: Arrays) -> None:
    """Write a model to `folder`, which may be new, empty, or hold an older model."""
    target = Path(folder)
    _check_target(target)
    content = {"fliprank": "model", "version": VERSION, **record}
    before = set(_array_files(target)) if target.exists() else None
    new: Path | None = None
    try:
        if arrays:
            data = _pack(arrays)
            digest = hashlib.sha256(data).hexdigest()
            new = target / f"arrays-{digest[:16]}.npz"
            content["arrays"] = {"file": new.name, "sha256": digest}
            with atomic_write(new) as file:
                file.write(data)
        with atomic_write(target / "model.json") as file:
            file.write((_pretty(content) + "\n").encode())
    except BaseException as error:
        _undo(target, new, before)
        if isinstance(error, OSError):
            raise InputError(f"can't be written: {error.strerror or error}", path=target) from error
        raise
    for old in (before or set()) - {new}:
        old.unlink(missing_ok=True)


def _undo(target: Path, new: Path | None, before: set[Path] | None) -> None:
    """Remove what an unfinished write left behind."""
    with suppress(OSError):
        if new is not None and new not in (before or ()):
            new.unlink(missing_ok=True)
        if before is None:
            target.rmdir()


def read_folder(folder: StrPath) -> tuple[Record, Arrays]:
    """The checked content of model.json, and the arrays."""
    source = Path(folder)
    if not source.is_dir():
        raise InputError("no such model folder" if not source.exists() else "a file, not a model folder", path=source)
    record = _read_json(source / "model.json")
    if record.data.get("fliprank") != "model":
        raise InputError("not a fliprank model", path=record.path)
    if record.integer("version") != VERSION:
        record.fail("version", f"format version {VERSION}, which this fliprank reads")
    return record, _read_arrays(source, record.record("arrays")) if record.has("arrays") else {}


def _check_target(target: Path) -> None:
    """Raise if a model must not be written there: over a file, or into a folder that holds something else."""
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError("is a file; a model is a folder", path=target)
    if (target / "model.json").exists():
        try:
            ours = _read_json(target / "model.json").data.get("fliprank") == "model"
        except InputError:
            ours = False
        if not ours:
            raise InputError(
                "not a fliprank model, or a damaged one: not overwritten",
                path=target / "model.json",
                hint="remove it first",
            )
    elif strange := sorted(set(_visible(target)) - set(_array_files(target))):
        raise InputError(
            f"not a model folder: it holds {strange[0].name}",
            path=target,
            hint="name a new or an empty folder",
        )


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith("."))


def _array_files(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if ARRAYS.fullmatch(path.name)]


def _read_json(path: Path) -> Record:
    try:
        data = json.loads(_read_bounded(path, LARGEST_JSON), parse_constant=_no_constant)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=path) from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON, or cut off: {error.msg}", path=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not the JSON of a model: {error}", path=path) from error
    if not isinstance(data, dict):
        raise InputError(f"expected a JSON object, found {_shown(data)}", path=path)
    return Record(path, "", data)


def _read_bounded(path: Path, largest: int) -> bytes:
    """The bytes of a regular file that is not too large: a pipe may never end, and a device has no size."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError("not a regular file", path=path)
    if status.st_size > largest:
        raise InputError(f"{status.st_size >> 20:,} MiB: larger than any such file ({largest >> 20:,} MiB)", path=path)
    return path.read_bytes()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _pretty(value: Any, indent: str = "") -> str:
    """JSON with one line per short object or list that contains no other: a row of a table stays a row."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value:
        return flat
    inner = list(value.values()) if isinstance(value, dict) else value
    if indent and len(flat) < 160 and not any(isinstance(entry, (dict, list)) for entry in inner):
        return flat
    deeper = indent + "  "
    keys = (
        [f"{json.dumps(key, ensure_ascii=False)}: " for key in value] if isinstance(value, dict) else [""] * len(inner)
    )
    lines = [f"{deeper}{key}{_pretty(entry, deeper)}" for key, entry in zip(keys, inner, strict=True)]
    start, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return start + "\n" + ",\n".join(lines) + "\n" + indent + end


def _pack(arrays: Arrays) -> bytes:
    """An npz file like that of `numpy.savez`, but without times in it, so that equal models are equal files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy", EPOCH), member.getvalue())
    return packed.getvalue()


def _read_arrays(folder: Path, record: Record) -> Arrays:
    name = record.text("file")
    if not ARRAYS.fullmatch(name):
        record.fail("file", "the name of an arrays file in the same folder")
    path = folder / name
    try:
        data = _read_bounded(path, LARGEST_ARRAYS)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=path) from error
    if hashlib.sha256(data).hexdigest() != record.text("sha256"):
        raise InputError("not the arrays that were saved with model.json: the checksum differs", path=path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if sum(member.file_size for member in file.infolist()) > len(data):  # some share their bytes
                raise ValueError("its arrays are larger than the file")
            return {m.filename.removesuffix(".npy"): _member(file, m, len(data)) for m in file.infolist()}
    except (*BROKEN, ValueError, OSError) as error:
        raise InputError(f"not an arrays file: {error}", path=path) from error


def _member(file: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> NDArray[Any]:
    """One array, after checking that all its bytes are there: a header alone could ask for any amount of memory."""
    if member.compress_type != zipfile.ZIP_STORED or member.file_size > size:
        raise ValueError(f"{member.filename} is compressed")
    content = io.BytesIO(file.read(member))
    if np.lib.format.read_magic(content) != (1, 0):
        raise ValueError(f"{member.filename} is of another format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(content)
    if fortran or dtype.kind not in "fi" or math.prod(shape) * dtype.itemsize != member.file_size - content.tell():
        raise ValueError(f"{member.filename} is not an array of numbers, or cut off")
    return np.frombuffer(content.read(), dtype).reshape(shape)
