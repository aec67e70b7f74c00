"""The folder of an export: the engine's files, README.md for a person, export.json and model/ for `fliprank verify`.

export.json names the files that were written, so that a later export replaces those and nothing else. While they are
being written it says that it is unfinished: what a killed command left is no export, and can be written to again.

>>> import tempfile
>>> from fliprank.models.fusion import Fusion
>>> place = write_export(tempfile.mkdtemp(), Fusion("weaviate", ["bm25", "dense"]), "weaviate")
>>> sorted(path.name for path in place.iterdir())
['README.md', 'export.json', 'hybrid.graphql', 'model']
>>> read_export(place).target
'weaviate'
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from fliprank import __version__
from fliprank.checked import checked
from fliprank.data.files import StrPath, atomic_write, check_writable
from fliprank.data.json_files import read_json
from fliprank.errors import InputError, printable
from fliprank.experiment.folder_lock import LOCK, locked
from fliprank.export.about import About, read_model
from fliprank.export.target import Export, find_target
from fliprank.models import Model, load_model

__all__ = ["Exported", "check_export_folder", "export_model", "read_export", "write_export"]

VERSION = 1
RECORD, README, MODEL = "export.json", "README.md", "model"


@dataclass(frozen=True)
class Exported:
    """An export that was read back: the name of its target, the model, and the settings that its writer left."""

    folder: Path
    target: str
    model: Model
    settings: Mapping[str, Any]
    files: tuple[str, ...]
    lost: tuple[str, ...]


@checked
def export_model(model: Model | StrPath, to: str, folder: StrPath, *, force: bool = False) -> Path:
    """Write a model to `folder` as the engine called `to` takes it, with a README that says what to do; the folder.

    `model` is a model, its folder, or a folder that `train`, `tune` or `fuse` wrote. Raises if that engine can't
    compute this model, and says which can. `force` replaces files that fliprank did not write.
    """
    known, about = (model, About()) if isinstance(model, Model) else read_model(model)
    return write_export(folder, known, to, about, force=force)


def write_export(folder: StrPath, model: Model, to: str, about: About | None = None, *, force: bool = False) -> Path:
    """The same for a model about which something is known."""
    about = About() if about is None else about
    export = find_target(to, model).write(model, about)
    with locked(check_export_folder(folder, export.files, force=force)) as place:
        before = set() if force and not _is_record(place) else _files_before(place)
        record = _described(to, model, export, about)
        _write_record(place, {**record, "files": sorted(before | set(export.files)), "unfinished": True})
        model.save(place / MODEL)
        for name, content in {**export.files, README: readme(to, model, export, about)}.items():
            with atomic_write(place / name) as file:
                file.write(content.encode() if isinstance(content, str) else content)
        for name in before - {*export.files, README}:
            (place / name).unlink(missing_ok=True)
        _write_record(place, record)
    return place


def _described(to: str, model: Model, export: Export, about: About) -> dict[str, Any]:
    """export.json"""
    record: dict[str, Any] = {
        "fliprank": "export",
        "version": VERSION,
        "made_by": __version__,
        "target": to,
        "kind": model.kind,
    }
    record |= {"files": sorted(export.files), "reindex": export.reindex, "lost": list(export.lost)}
    return record | {"gain": about.gain or None, "settings": dict(export.settings)}


def _write_record(place: Path, record: dict[str, Any]) -> None:
    with atomic_write(place / RECORD) as file:
        file.write((json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def check_export_folder(folder: StrPath, files: Iterable[str] = (), *, force: bool = False) -> Path:
    """A folder to export to, that may be written to: new, empty, or an earlier export; others only with `force`."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("is a file; an export is a folder", path=place)
    check_writable(place, folder=True)
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts or parts[0] in (RECORD, README, MODEL):
            raise InputError(f"an engine's file can't be called {name!r}", path=place)
    if force or not place.exists():
        return place
    ours = (place / RECORD).is_file()
    there = [each for each in place.iterdir() if each.name != LOCK and not fnmatch(each.name, ".*.part")]
    strangers = sorted(
        each.name
        for each in there
        if not ours or (each.name in {PurePosixPath(name).parts[0] for name in files} - _tops(place))
    )
    if strangers:
        hint = "give a new or an empty folder, or --force"
        raise InputError(
            f"holds other things ({strangers[0]}), which this command did not write", path=place, hint=hint
        )
    return place


def _tops(place: Path) -> set[str]:
    """The first parts of the names of the files that an earlier export wrote."""
    return {PurePosixPath(name).parts[0] for name in _files_before(place)}


def _files_before(place: Path) -> set[str]:
    """The files that an earlier export wrote, by its own record: names that stay inside the folder."""
    if not (place / RECORD).is_file():
        return set()
    names = _record(place).get("files")
    known = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return {name for name in known if name and not PurePosixPath(name).is_absolute() and ".." not in Path(name).parts}


def _is_record(place: Path) -> bool:
    try:
        return bool(_record(place))
    except InputError:
        return False


def _record(place: Path) -> dict[str, Any]:
    record = read_json(place / RECORD)
    if not isinstance(record, dict) or record.get("fliprank") != "export":
        raise InputError("not an export of fliprank's, or a damaged one", path=place / RECORD, hint="remove it first")
    return record


@checked
def read_export(folder: StrPath) -> Exported:
    """What `write_export` wrote, with its model."""
    place = Path(folder)
    if not (place / RECORD).is_file():
        hint = "give the folder that `fliprank export` wrote"
        raise InputError("not a folder of an export: it has no export.json", path=place, hint=hint)
    record = _record(place)
    if record.get("version") != VERSION:
        raise InputError(f"version: expected {VERSION}, which this fliprank reads", path=place / RECORD)
    if record.get("unfinished"):
        raise InputError("an export that was not finished", path=place, hint="run `fliprank export` again")
    target, settings = record.get("target"), record.get("settings")
    if not isinstance(target, str) or not isinstance(settings, dict):
        raise InputError("target and settings are missing", path=place / RECORD)
    lost, files = record.get("lost"), tuple(sorted(_files_before(place)))
    told = tuple(map(str, lost)) if isinstance(lost, list) else ()
    return Exported(place, target, load_model(place / MODEL), settings, files, told)


def readme(to: str, model: Model, export: Export, about: About) -> str:
    """README.md: what to run, what needs new indexing, what was lost, what was measured."""
    return "\n".join(_lines(to, model, export, about)) + "\n"


def _lines(to: str, model: Model, export: Export, about: About) -> Iterator[str]:
    yield f"# {_told(f'A {model.kind} model for {to}')}"
    yield ""
    yield f"Written by `fliprank export --to {to}`, version {__version__}. `model/` is the model itself, for fliprank."
    yield from ("", "## What was measured", "")
    yield from map(_told, _measured(about))
    yield from ("", "## What to do", "")
    for number, step in enumerate(export.steps, 1):
        if step.startswith("$ "):
            yield from (f"{number}. Run:", "", f"       {printable(step[2:])}", "")
        else:
            yield f"{number}. {_told(step)}"
    yield from ("", "## Indexing", "")
    yield (
        "Documents must be indexed again: the settings above change what the index holds."
        if export.reindex
        else "No document needs to be indexed again."
    )
    yield from ("", "## What was lost or changed", "")
    yield from [f"- {_told(each)}" for each in export.lost] or ["Nothing: the engine computes the same function."]
    yield from ("", "## Files", "")
    yield from (f"- `{printable(name)}`" for name in sorted(export.files))


def _measured(about: About) -> Iterator[str]:
    if about.gain:
        yield f"{about.gain}. {about.verdict}".strip()
        if not about.adopted:
            yield ""
            yield "The tuned function was not adopted: what is exported here are the settings from before."
        return
    for part, means in about.figures.items():
        told = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
        yield f"On {part} queries: {told}. It was compared with nothing."
        return
    yield "Nothing is known: the model came without the result.json of `tune`, `train` or `fuse`."


def _told(text: str) -> str:
    """Text in which names from files can't be markup: one line, and no HTML."""
    return printable(text).replace("<", "&lt;")
