"""The page of reproduced papers: one section per paper, each part with its claim, what was found, and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fliprank.report.page.figures import figures_section, table
from fliprank.report.page.measured import measured_section
from fliprank.report.page.section import Page

__all__ = ["findings_page"]


def findings_page(findings: Sequence[Mapping[str, Any]], command: str = "") -> Page:
    """`findings` are as finding.json has them."""
    sections = []
    for paper in dict.fromkeys(each["paper"] for each in findings):
        own = [each for each in findings if each["paper"] == paper]
        held = sum(each["verdict"] == "holds" for each in own)
        said = f"{held} of {len(own)} claims of {paper} hold here."
        parts = [[each["part"], each["verdict"], each["claim"], each["found"]] for each in own]
        tables = [table("Claims", ["Part", "Verdict", "The paper says", "Found here"], parts, [])]
        tables += [_table(each) for each in own]
        notes = [f"{each['part']}: {note}" for each in own for note in each["notes"]]
        sections.append(figures_section(paper, said, tables, notes))
    commands = {"commands": [each["command"] for each in findings]}
    return Page(
        "Papers, reproduced", f"{len(findings)} parts.", (*sections, measured_section(None, commands, (), command))
    )


def _table(finding: Mapping[str, Any]) -> dict[str, Any]:
    numeric = [
        i for i in range(len(finding["columns"])) if all(isinstance(row[i], int | float) for row in finding["rows"])
    ]
    rows = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in finding["rows"]]
    return table(f"{finding['part']}: {finding['title']}", finding["columns"], rows, numeric)
