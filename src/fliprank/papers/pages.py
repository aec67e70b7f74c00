"""One page per paper, made of the folders of its parts: every table, figure and verdict, with the command behind it.

Beside the folder of the pages, the page of the same name has one table with every claim and its verdict, between two
marks: what a person wrote around it stays. So do other pages beside the folder that want the table of some part: they
say `<!-- table: PAPER PART -->` and `<!-- end of table -->`, and what stands between the two is written anew.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath, atomic_write
from fliprank.papers.part import PARTS
from fliprank.papers.run import part_folder
from fliprank.papers.write import claimed, escaped, markdown_table, read_finding

__all__ = ["TITLES", "write_pages"]

TITLES = {
    "matveeva2006": "Matveeva, Burges, Burkard, Laucius & Wong 2006: High accuracy retrieval with multiple nested"
    " ranker",
    "taylor2006": "Taylor, Zaragoza, Craswell, Robertson & Burges 2006: Optimisation methods for ranking functions with"
    " multiple parameters",
    "metzler2007": "Metzler 2007: Using gradient descent to optimize language modeling smoothing parameters",
    "robertson2007": "Robertson & Zaragoza 2007: On rank-based effectiveness measures and optimization",
    "fliprank": "Our own tables",
    "taylor2008": "Taylor, Guiver, Robertson & Minka 2008: SoftRank: optimizing non-smooth rank metrics",
}

TABLE = re.compile(r"(<!-- table: (\w+) ([\w.-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
BEGIN, END = "<!-- claims: written by fliprank reproduce --pages -->", "<!-- end of claims -->"


def write_pages(out: StrPath, pages: StrPath) -> list[Path]:
    """Write PAGES/<paper>.md for each paper of which OUT has some part, its figures to PAGES/<paper>/, and PAGES.md."""
    written, claims, every = [], dict[str, list[str]](), dict[tuple[str, str], dict[str, Any]]()
    for paper in _papers():
        found = {}
        for part in (each for each in PARTS.values() if each.paper == paper):
            folder = part_folder(out, part)
            if (content := read_finding(folder)) is not None:
                found[folder] = content
        if found:
            written.append(_write_page(Path(pages), paper, found))
            claims[paper] = [_claim(Path(pages).name, content) for content in found.values()]
            every |= {(paper, content["part"]): content for content in found.values()}
    return [*written, _write_index(Path(pages), claims), *_write_tables(Path(pages), every)] if written else []


def _write_tables(pages: Path, every: dict[tuple[str, str], dict[str, Any]]) -> list[Path]:
    """Write the tables that pages beside the folder want; those of parts that are not in `every` stay."""

    def table(mark: re.Match[str]) -> str:
        content = every.get((mark[2], mark[3]))
        if content is None:
            return mark[0]
        told = [escaped(content["found"]), markdown_table(content["columns"], content["rows"])]
        return "\n".join([f"{mark[1]}", told[0], "", told[1], f"    {content['command']}", "", mark[4]])

    changed = []
    for page in sorted(pages.parent.glob("*.md")):
        text = page.read_text()
        if (new := TABLE.sub(table, text)) != text:
            with atomic_write(page) as file:
                file.write(new.encode())
            changed.append(page)
    return changed


def _claim(folder: str, content: dict[str, Any]) -> str:
    """A row of the table of claims."""
    link = f"[{content['part']}]({folder}/{content['paper']}.md#{_anchor(content)})"
    cells = (content["paper"], link, escaped(content["claim"]), _verdict(content))
    return "| " + " | ".join(cells) + " |"


def _verdict(content: dict[str, Any]) -> str:
    return f"{content['verdict']} (quick)" if content["made_of"]["quick"] else str(content["verdict"])


def _anchor(content: dict[str, Any]) -> str:
    """What a heading is linked by, as GitHub makes it.

    >>> _anchor({"part": "section4.1", "title": "The 2-parameter ranker, by both methods"})
    'section41-the-2-parameter-ranker-by-both-methods'
    """
    return re.sub(r"[^\w\- ]", "", f"{content['part']}: {content['title']}").lower().replace(" ", "-")


def _write_index(pages: Path, claims: dict[str, list[str]]) -> Path:
    """Put the table of claims into the page beside the folder. Rows of papers that are not in `claims` stay."""
    path = pages.with_name(f"{pages.name}.md")
    text = path.read_text() if path.exists() else f"# The papers\n\n{BEGIN}\n{END}\n"
    if BEGIN not in text or END not in text:
        text = f"{text.rstrip()}\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN, 1)
    table, after = rest.split(END, 1)
    known = dict[str, list[str]]()
    for line in table.splitlines():
        if (paper := line.lstrip("| ").partition(" ")[0]) in _papers():
            known.setdefault(paper, []).append(line)
    known |= claims
    head = ["| paper | part | claim | verdict |", "| --- | --- | --- | --- |"]
    lines = head + [row for paper in _papers() for row in known.get(paper, [])]
    with atomic_write(path) as file:
        file.write("\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"]).encode())
    return path


def _papers() -> list[str]:
    return list(dict.fromkeys(paper for paper, _ in PARTS))


def _write_page(pages: Path, paper: str, found: dict[Path, dict[str, Any]]) -> Path:
    quick = all(content["made_of"]["quick"] for content in found.values())
    lines = [f"# {TITLES.get(paper, paper)}", "", f"Written by `fliprank reproduce {paper} --pages DIR`.", ""]
    if quick:
        lines += ["These are quick runs on small data, which show how a part works and no more.", ""]
    rows = [(c["part"], c["title"], c["verdict"]) for c in found.values()]
    lines += [markdown_table(("part", "what", "verdict"), rows)]
    for folder, content in found.items():
        lines += [f"## {content['part']}: {escaped(content['title'])}", ""]
        lines += [claimed(content), "", f"Found: {escaped(content['found'])}", ""]
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
