"""What a tuning moved, from the folder that it wrote: its runs, its models and index, and the files that it read.

result.json names the files (`settings.sources`). Those that are gone, or can't be read any more, are gone without, and
a note says what can then not be told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from fliprank.data.candidates import Candidates
from fliprank.data.readers import read_candidates
from fliprank.data.trec import Qrels, read_run
from fliprank.errors import InputError, UsageError
from fliprank.experiment.diff import Diff, diff_of_runs, judgements_and_texts
from fliprank.experiment.move_reasons import Explainer, rows_of_candidates, rows_of_index
from fliprank.experiment.paired_runs import qrels_of_rows
from fliprank.measures import Measure
from fliprank.models import Model, load_model
from fliprank.text.build.documents import Source
from fliprank.text.index import Index
from fliprank.text.search.queries import QueriesLike
from fliprank.text.titles import read_titles, titles_by_index

__all__ = ["TEST", "TRAINED", "diff_of_folder"]

TEST = "Rankings of test queries, which tuning did not see."
TRAINED = "Rankings of the queries that were tuned on: what they gain here says little about others."

T = TypeVar("T")


def diff_of_folder(
    folder: Any,
    qrels: Any = None,
    *,
    measure: str | Measure | None = None,
    top: int = 10,
    queries: QueriesLike | None = None,
    docs: Source | None = None,
    seed: int = 0,
) -> Diff:
    """Default against tuned, as the folder has them; what is given goes before what result.json names."""
    if not isinstance(folder, str | Path):
        raise UsageError("give two rankings, or the folder that `fliprank tune` wrote")
    place, notes = Path(folder), list[str]()
    told, sources = _read_result(place)
    part = "test" if "test" in told else "train"
    notes.append(TEST if part == "test" else TRAINED)
    named = sources.get("test" if part == "test" else "qrels" if "qrels" in sources else "rows")
    runs = [read_run(place / f"{name}.run") for name in ("default", "tuned")]
    rows = None
    if "rows" in sources and named is not None:
        rows = _as_far_as(lambda: read_candidates(named), f"{named}", notes)
    judged: Qrels | None = None if rows is None else qrels_of_rows(rows)
    texts: dict[str, str] = {}
    if rows is None or qrels is not None:
        given = qrels is not None or queries is not None

        def read() -> tuple[Qrels | None, dict[str, str]]:
            return judgements_and_texts(qrels or named, queries or sources.get("queries"))

        judged, texts = read() if given else _as_far_as(read, f"{named}", notes) or (None, {})
    if judged is None:
        notes.append("Without judgements: give them by --qrels (qrels=) to see what the measure gained and lost.")
    index = _index(place, notes)
    explainer = _explainer(place, index, texts, rows)
    titles = _titles(docs, sources.get("docs"), index, notes)
    known: dict[str, Any] = {"texts": texts, "read_titles": titles, "explainer": explainer, "notes": tuple(notes)}
    chosen, said = measure or str(told["measure"]), len(notes)
    found = diff_of_runs(runs[0], runs[1], judged, measure=chosen, top=top, seed=seed, **known)
    _ = found.details.titles  # read now: what can't be read is noted
    return replace(found, given_notes=(*found.given_notes, *notes[said:]))


def _read_result(place: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """result.json, and the files that it names."""
    path = place / "result.json"
    hint = "give two runs, or the folder that `fliprank tune` wrote"
    if not path.is_file() or not (place / "tuned.run").is_file():
        raise InputError("not the folder of a tuning: it has no result.json and tuned.run", path=place, hint=hint)
    try:
        told = json.loads(path.read_bytes())
        settings = told["settings"]
        sources = {str(k): v for k, v in settings.get("sources", {}).items() if isinstance(v, str)}
        if not isinstance(told["measure"], str):
            raise TypeError("the measure has no name")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not a result of fliprank's, or a damaged one: {error}", path=path, hint=hint) from error
    return told, sources


def _as_far_as(read: Callable[[], T], what: str, notes: list[str]) -> T | None:
    """What can be read; None, and a note, where it can't."""
    try:
        return read()
    except InputError as error:
        notes.append(f"{what} was tuned with and can't be read now: {error.message}")
        return None


def _index(place: Path, notes: list[str]) -> Index | None:
    """The index of the folder, if there is just one."""
    found = sorted(place.glob("documents-*.index"))
    if len(found) != 1:
        return None
    return _as_far_as(lambda: Index.open(found[0], check=True), found[0].name, notes)


def _explainer(place: Path, index: Index | None, texts: Mapping[str, str], rows: Candidates | None) -> Explainer | None:
    """Tells why documents moved, where there are rows to tell it by. The defaults are those of the tuned model."""
    if rows is None and (index is None or not texts):
        return None
    tuned = load_model(place / "tuned-model")
    default: Model = tuned.at(tuned.params.at(tuned.params.default))
    if rows is not None:
        return Explainer(default, tuned, rows_of_candidates(rows))
    assert index is not None
    return Explainer(default, tuned, rows_of_index(index, texts))


def _titles(docs: Source | None, named: str | None, index: Index | None, notes: list[str]) -> Any:
    """What reads titles: from the documents given, or from those that were tuned on."""
    if docs is not None:
        return lambda wanted: read_titles(docs, wanted)
    if named is None:
        return None

    def read(wanted: Any) -> dict[str, str]:
        def titles() -> dict[str, str]:
            if index is None:
                return read_titles(named, wanted)
            return titles_by_index(named, index, wanted)

        return _as_far_as(titles, named, notes) or {}

    return read
