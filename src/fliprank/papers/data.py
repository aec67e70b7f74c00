"""Data sets by name, as the parts of the papers read them.

A name stands for a file or folder that a person has: `--data NAME=PATH`, or any folder of that name (upper and lower
case alike) in the folder that `--data-folder` gives, or one level below. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.readers import read_candidates
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.data.trec import read_run
from fliprank.errors import InputError, UsageError
from fliprank.experiment.task import DEPTH, Queries, Task, open_index, task_of_documents
from fliprank.papers.ir_datasets_folder import PREFIX, write_ir_dataset
from fliprank.papers.part import Setting
from fliprank.text.analysis import Analyzer

__all__ = [
    "COLLECTIONS",
    "data_path",
    "find_data",
    "fingerprint",
    "letor_folds",
    "other_collections",
    "parse_data",
    "some_queries",
    "stanford_web",
    "text_collection",
]

COLLECTIONS: dict[str, tuple[str, ...]] = {
    "cranfield": ("title", "author", "bib", "body"),
    "cacm": ("title", "abstract", "author", "keywords"),
    "cisi": ("title", "author", "body"),
    "npl": ("body",),
    "scifact": ("title", "abstract"),
    "icecat": ("title", "text", "supplier", "attributes"),
}
"""Judged text collections in BEIR's layout, and the fields of text that are indexed."""

PART_NAMES = (("train", "trainingset"), ("vali", "validationset", "valid"), ("test", "testset"))
"""What files of training, validation and test rows are called."""
NORMALISED = "QueryLevelNorm"
"""Where LETOR 3 has features on one scale per query."""

ENDS = 1 << 16
"""Bytes at either end of a file that its fingerprint looks at."""


def parse_data(given: Iterable[str], folder: StrPath = ".cache") -> dict[str, Path]:
    """Paths by name. What is given as `ir_datasets:ID` is written to `folder`, once.

    >>> parse_data(["robust=."])["robust"].as_posix()
    '.'
    """
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--data {text}: expected NAME=PATH, such as cranfield=collections/cranfield")
        if path.startswith(PREFIX):
            found[name.lower()] = write_ir_dataset(path.removeprefix(PREFIX), Path(folder) / "ir_datasets")
            continue
        if not Path(path).exists():
            raise InputError("no such file or folder", path=path, hint=f"given by --data {text}")
        found[name.lower()] = Path(path)
    return found


def find_data(needs: Iterable[str], given: Mapping[str, Path], folder: StrPath | None = None) -> dict[str, Path]:
    """Where the needed data sets are, beside all that were given; raises if one is nowhere."""
    found = dict(given)
    missing = [name for name in needs if name not in found]
    if missing and folder is not None:
        if not Path(folder).is_dir():
            raise InputError("no such folder", path=folder, hint="given by --data-folder")
        places = [*sorted(Path(folder).iterdir()), *sorted(Path(folder).glob("*/*"))]
        known = {place.name.lower(): place for place in reversed(places) if place.is_dir()}
        found |= {name: known[name] for name in missing if name in known}
    for name in missing:
        if name not in found:
            hint = f"say where it is: --data {name}=PATH, or --data-folder DIR with a folder {name} in it"
            raise InputError(f"the data set {name} is needed", path=folder, hint=hint)
    return found


def data_path(setting: Setting, name: str) -> Path:
    """Where a data set is."""
    return find_data([name], setting.data)[name]


def fingerprint(path: StrPath) -> str:
    """What tells one copy of a data set from another: names, sizes, and both ends of each file, not where it lies."""
    place, told = Path(path), blake2b(digest_size=8)
    files = [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())
    for file in files:
        if file.name.startswith("."):
            continue  # ours, beside a file that is slow to read
        size = file.stat().st_size
        told.update(f"{file.relative_to(place).as_posix()} {size}\n".encode())
        with file.open("rb") as raw:
            told.update(raw.read(ENDS))
            raw.seek(max(0, size - ENDS))
            told.update(raw.read(ENDS))
    return told.hexdigest()


def letor_folds(setting: Setting, name: str = "mq2008") -> list[Task]:
    """The folds of a folder of features: LETOR 4 and MSLR (train, vali and test in Fold1 to Fold5), LETOR 3
    (trainingset, validationset and testset, perhaps below QueryLevelNorm), Istella (train, perhaps vali, and test,
    without folds: one fold; where nothing is for validation, a fifth of the training queries is)."""
    folder = data_path(setting, name)
    for place in (folder, folder / NORMALISED):
        if folds := sorted(path for path in place.glob("Fold*") if path.is_dir()):
            return [_letor_fold(fold, fold.name, setting.seed) for fold in folds]
    return [_letor_fold(folder, "Fold1", setting.seed)]


def _letor_fold(folder: Path, name: str, seed: int) -> Task:
    train, valid, test = (_letor_part(folder, names) for names in PART_NAMES)
    if train is None or test is None:
        hint = "LETOR, MSLR and Istella have train.txt and test.txt, LETOR 3 has trainingset.txt and testset.txt"
        raise InputError("no training and test rows in this folder, nor in Fold1, Fold2, ...", path=folder, hint=hint)
    if valid is None:
        train, valid = train.split(0.8, 0.2, seed=seed)
    return Task(Queries(train), Queries(valid), Queries(test), name=name)


def _letor_part(folder: Path, names: Iterable[str]) -> Candidates | None:
    for name in names:
        for ending in (".txt", ".txt.gz"):
            if (folder / f"{name}{ending}").exists():
                return read_candidates(folder / f"{name}{ending}")
    return None


def stanford_web(setting: Setting) -> dict[str, Candidates]:
    """Judged web pages with term statistics by field, and PageRank: 2014-train, 2014-dev and 2013."""
    folder = data_path(setting, "stanford-web")
    return {name: read_statistics(folder / f"{name}.jsonl") for name in ("2014-train", "2014-dev", "2013")}


def text_collection(setting: Setting, name: str, depth: int = DEPTH, run: str | None = None) -> Task:
    """The index and judged queries of a folder in BEIR's layout; with test queries where it has its own.

    `run` names a list of another retriever in the folder, to be fused with text: dense of `dense.run`.
    """
    folder = data_path(setting, name)
    index = open_index(folder, setting.cache, COLLECTIONS.get(name), Analyzer())
    train, test = (folder / "qrels" / f"{part}.tsv" for part in ("train", "test"))
    if not train.exists():
        train, test = test, train
    runs = None if run is None else {run: read_run(folder / f"{run}.run")}
    return task_of_documents(index, folder, train, test if test.exists() else None, depth=depth, runs=runs)


def other_collections(setting: Setting, known: Iterable[str]) -> list[str]:
    """Text collections that a person gave beside the known ones."""
    return [name for name, path in setting.data.items() if name not in known and (path / "qrels").is_dir()]


def some_queries(rows: Candidates, most: int, seed: int = 0) -> Candidates:
    """At most so many of the queries, drawn by the seed, in their order."""
    if rows.queries <= most:
        return rows
    drawn = np.random.default_rng(seed).choice(rows.queries, most, replace=False)
    return rows.select(np.sort(drawn))
