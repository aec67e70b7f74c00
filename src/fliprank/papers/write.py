"""What a part writes, and reads again: one folder per part.

OUT/<paper>/<part>/table.md, table.csv   the table, for people and for programs
OUT/<paper>/<part>/figure.svg, .png      the figure, where the extra `report` is installed
OUT/<paper>/<part>/README.md             the claim, what was found, the verdict, the command
OUT/<paper>/<part>/finding.json          all of it, with the settings; written last: a folder that has it is complete
"""

from __future__ import annotations

import csv
import html
import io
import json
import math
from pathlib import Path
from typing import Any

from fliprank.data.files import atomic_write
from fliprank.errors import MissingExtraError, printable
from fliprank.experiment.fit_folder import write_json
from fliprank.experiment.significance import p_value
from fliprank.papers.part import Finding, Part

__all__ = ["cell", "claimed", "command", "escaped", "markdown_table", "read_finding", "write_finding"]

FIGURES = ("figure.svg", "figure.png")
NO_FIGURE = "The figure was not drawn: pip install 'fliprank[report]', then run the command with --force."


def write_finding(folder: Path, part: Part, finding: Finding, made_of: dict[str, Any]) -> None:
    """Write a part's folder. `made_of` is what the finding depends on: version, size, seed, data."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "finding.json").unlink(missing_ok=True)
    table = markdown_table(finding.columns, finding.rows)
    _write(folder / "table.md", table)
    _write(folder / "table.csv", _csv(finding))
    drawn = _draw(folder, finding)
    notes = list(finding.notes) if drawn or finding.figure is None else [*finding.notes, NO_FIGURE]
    content = {
        "paper": part.paper,
        "part": part.name,
        "title": part.title,
        "claim": finding.claim,
        "found": finding.found,
        "verdict": finding.verdict,
        "columns": list(finding.columns),
        "rows": [list(row) for row in finding.rows],
        "notes": notes,
        "settings": finding.settings,
        "figure": drawn,
        "made_of": made_of,
    }
    content["command"] = command(content)
    _write(folder / "README.md", _readme(content, table))
    write_json(folder / "finding.json", content)


def read_finding(folder: Path) -> dict[str, Any] | None:
    """What was written to a part's folder; None if it is not there or not whole."""
    try:
        content = json.loads((folder / "finding.json").read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "made_of" in content else None


def claimed(content: dict[str, Any]) -> str:
    """What is claimed, and by whom."""
    return f"{'We claim' if content['paper'] == 'fliprank' else 'The paper'}: {escaped(content['claim'])}"


def command(content: dict[str, Any]) -> str:
    """The command that computes a finding."""
    words = ["fliprank reproduce", content["paper"], "--part", content["part"]]
    made_of = content["made_of"]
    words += ["--quick"] if made_of["quick"] else []
    words += ["--seed", str(made_of["seed"])] if made_of["seed"] else []
    return " ".join([*words, *(["--data-folder DIR"] if made_of["data"] else [])])


def markdown_table(columns: tuple[str, ...] | list[str], rows: Any) -> str:
    """A table for people: numbers to four decimals, p-values as people read them."""
    numeric = [all(_is_number(row[i]) for row in rows) and len(rows) > 0 for i in range(len(columns))]
    lines = [[escaped(name) for name in columns], ["---:" if right else "---" for right in numeric]]
    lines += [[escaped(cell(value, name)) for value, name in zip(row, columns, strict=True)] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def cell(value: Any, column: str) -> str:
    """A value as it is printed.

    >>> cell(0.12345, "AP"), cell(0.00001, "p"), cell(1234, "queries"), cell(None, "AP")
    ('0.1235', '1e-05', '1,234', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not _is_number(value):
        return str(value)
    if column == "p" or column.startswith("p "):
        return p_value(float(value))
    if float(value).is_integer() and not isinstance(value, float):
        return f"{value:,}"
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.3g}"


def escaped(text: str) -> str:
    """Text that may come from a file, as it is in Markdown: no markup, no HTML, no end of a cell.

    >>> escaped("a|b <script> *c*")
    'a\\\\|b &lt;script&gt; \\\\*c\\\\*'
    """
    plain = html.escape(printable(text), quote=False)
    return "".join("\\" + c if c in "\\|*_`[]" else c for c in plain)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _csv(finding: Finding) -> str:
    """Every digit, for programs."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([finding.columns, *finding.rows])
    return text.getvalue()


def _draw(folder: Path, finding: Finding) -> bool:
    """Write the figure; False if there is none, or nothing to draw it with."""
    for name in FIGURES:
        (folder / name).unlink(missing_ok=True)
    if finding.figure is None:
        return False
    from fliprank.report.saving import save

    try:
        chart = finding.figure() if callable(finding.figure) else finding.figure
        for name in FIGURES:
            save(chart, folder / name)
    except MissingExtraError:
        return False
    return True


def _readme(content: dict[str, Any], table: str) -> str:
    parts = [
        f"# {content['paper']}, {content['part']}: {escaped(content['title'])}",
        claimed(content),
        f"Found: {escaped(content['found'])}",
        f"Verdict: **{content['verdict']}**.",
        table.rstrip(),
    ]
    parts += ["![the figure](figure.svg)"] if content["figure"] else []
    parts += ["\n".join(f"- {escaped(note)}" for note in content["notes"])] if content["notes"] else []
    parts += [f"    {content['command']}"]
    return "\n\n".join(parts) + "\n"


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
