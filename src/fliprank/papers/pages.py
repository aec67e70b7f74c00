"""One page per paper, made of the folders of its parts: every table, figure and verdict, with the command behind it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath, atomic_write
from fliprank.papers.part import PARTS
from fliprank.papers.run import part_folder
from fliprank.papers.write import escaped, markdown_table, read_finding

__all__ = ["TITLES", "write_pages"]

TITLES = {
    "matveeva2006": "Matveeva, Burges, Burkard, Laucius & Wong 2006: High accuracy retrieval with multiple nested"
    " ranker",
    "taylor2006": "Taylor, Zaragoza, Craswell, Robertson & Burges 2006: Optimisation methods for ranking functions with"
    " multiple parameters",
    "metzler2007": "Metzler 2007: Using gradient descent to optimize language modeling smoothing parameters",
    "robertson2007": "Robertson & Zaragoza 2007: On rank-based effectiveness measures and optimization",
    "taylor2008": "Taylor, Guiver, Robertson & Minka 2008: SoftRank: optimizing non-smooth rank metrics",
}


def write_pages(out: StrPath, pages: StrPath) -> list[Path]:
    """Write PAGES/<paper>.md for each paper of which some part is in OUT, and its figures to PAGES/<paper>/."""
    written = []
    for paper in dict.fromkeys(paper for paper, _ in PARTS):
        found = {}
        for part in (each for each in PARTS.values() if each.paper == paper):
            folder = part_folder(out, part)
            if (content := read_finding(folder)) is not None:
                found[folder] = content
        if found:
            written.append(_write_page(Path(pages), paper, found))
    return written


def _write_page(pages: Path, paper: str, found: dict[Path, dict[str, Any]]) -> Path:
    quick = all(content["made_of"]["quick"] for content in found.values())
    lines = [f"# {TITLES.get(paper, paper)}", "", f"Written by `fliprank reproduce {paper} --pages DIR`.", ""]
    if quick:
        lines += ["These are quick runs on small data, which show how a part works and no more.", ""]
    rows = [(c["part"], c["title"], c["verdict"]) for c in found.values()]
    lines += [markdown_table(("part", "what", "verdict"), rows)]
    for folder, content in found.items():
        lines += [f"## {content['part']}: {escaped(content['title'])}", ""]
        lines += [f"The paper: {escaped(content['claim'])}", "", f"Found: {escaped(content['found'])}", ""]
        lines += [f"Verdict: **{content['verdict']}**.", ""]
        lines += [markdown_table(content["columns"], content["rows"])]
        if content["figure"]:
            picture = pages / paper / f"{content['part']}.svg"
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / "figure.svg", picture)
            lines += [f"![{content['part']}]({paper}/{content['part']}.svg)", ""]
        lines += [f"- {escaped(note)}" for note in content["notes"]] + ([""] if content["notes"] else [])
        lines += [f"    {content['command']}", ""]
    path = pages / f"{paper}.md"
    with atomic_write(path) as file:
        file.write("\n".join(lines).encode())
    return path
