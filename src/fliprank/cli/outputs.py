"""Files that a command writes beside what it prints: pictures and data, by the ending of the name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fliprank.cli.app import held
from fliprank.cli.overwriting import check_output
from fliprank.errors import UsageError

__all__ = ["check_outputs", "check_pictures", "files_newer_than_now", "out_folder", "write_outputs"]


def out_folder(out: Path) -> Path:
    """The folder to write results to, after checking that it is ours to write to; it is held until the command ends."""
    from fliprank.experiment.fit_folder import check_folder
    from fliprank.experiment.folder_lock import locked

    return held.enter_context(locked(check_folder(out)))


def files_newer_than_now(folder: Path) -> Callable[[str], bool]:
    """Tells later which things in a folder, named by a pattern, were written since this call."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    def written_since(pattern: str) -> bool:
        return any(before.get(path) != path.stat().st_mtime_ns for path in folder.glob(pattern))

    return written_since


def check_outputs(out: list[Path] | None, force: bool, data_only: bool = False) -> list[Path]:
    """The files to write; raises before any work is done if one has no ending that we know, or is not ours."""
    endings = (".csv", ".json") if data_only else (".svg", ".png", ".html", ".csv", ".json")
    for path in out or []:
        if path.suffix not in endings:
            raise UsageError(f"--out {path}: the name must end in {', '.join(endings)}")
        if path.suffix in (".svg", ".png", ".html"):
            from fliprank.report.drawing import altair

            altair()
        check_output(path, force)
    return out or []


def check_pictures(out: list[Path], force: bool) -> list[Path]:
    """The pictures to write; raises before any work is done if a name has another ending, or the file is not ours."""
    from fliprank.report.drawing import altair
    from fliprank.report.saving import PICTURES

    for path in out:
        if path.suffix not in PICTURES:
            raise UsageError(f"--out {path}: the name must end in {', '.join(PICTURES)}")
        altair()
        check_output(path, force)
    return out


def write_outputs(outputs: Sequence[Path], chart: Any, records: Sequence[Mapping[str, Any]]) -> None:
    """Write each file as its name says: what `chart()` draws, or the records."""
    import csv
    import io
    import json
    import math

    from fliprank.console import written
    from fliprank.data.csv_cells import safe_cell
    from fliprank.data.files import atomic_write

    picture = None
    for path in outputs:
        if path.suffix in (".csv", ".json"):
            text = io.StringIO()
            if path.suffix == ".csv":
                writer = csv.DictWriter(text, list(records[0]) if records else [], lineterminator="\n")
                writer.writerow({name: safe_cell(name) for name in writer.fieldnames})
                writer.writerows({name: safe_cell(value) for name, value in record.items()} for record in records)
            else:  # JSON has no infinity and no NaN
                known = [
                    {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
                    for record in records
                ]
                json.dump(known, text, indent=1)
            with atomic_write(path) as file:
                file.write(text.getvalue().encode())
        else:
            from fliprank.report.saving import save

            picture = chart() if picture is None else picture
            save(picture, path)
        written(path)
