"""`fliprank reproduce`: the papers' tables and figures on data that anyone can have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.interrupts import interruption
from fliprank.errors import InputError, MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from fliprank.papers.part import Part
    from fliprank.report.page import Page

__all__ = ["reproduce"]

REPRODUCE_EXAMPLES = """
Examples:

  fliprank reproduce --list

  fliprank reproduce robertson2007 --quick --data-folder collections

  fliprank reproduce metzler2007 --part table1 --data robust=robust04 --data-folder collections

  fliprank reproduce all --out papers --data-folder collections --pages docs/papers

Each part is a folder OUT/PAPER/PART: table.md, table.csv, figure.svg, figure.png, finding.json, README.md. A part that
was computed before on the same data is not computed again, so a run that was ended goes on. OUT/report.html shows all.
"""


@app.command(epilog=REPRODUCE_EXAMPLES, short_help="Tables and figures of the papers, with verdicts.")
def reproduce(
    name: Annotated[str | None, typer.Argument(help="A paper, such as taylor2006, or all.")] = None,
    part: Annotated[list[str] | None, typer.Option(help="A part, such as table1; may be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes, on small data.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("papers"),
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Where a data set is, or ir_datasets:ID; may be repeated."),
    ] = None,
    data_folder: Annotated[Path | None, typer.Option(help="Folder with data sets in folders of their names.")] = None,
    at_most: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Leave out parts that would take longer than this.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Compute again what was computed before.")] = False,
    pages: Annotated[
        Path | None, typer.Option(help="Also write one page per paper, from all that is in --out.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show all parts, with their data and time.")] = False,
) -> None:
    """Reproduce tables and figures of the papers, with a verdict on each of their claims."""
    from fliprank import console
    from fliprank.papers import PARTS, find_parts
    from fliprank.papers.data import parse_data
    from fliprank.papers.pages import write_pages

    wanted = list(PARTS.values()) if listed and name is None else find_parts(name or "all", part)
    if listed:
        console.result(parts=[_described(each) for each in wanted])
        return console.answer(*_listing(wanted))
    if name is None:
        raise UsageError("which paper? fliprank reproduce --list shows them")
    given = parse_data(data or [], out / ".cache")
    missing, findings = [], list[dict[str, Any]]()
    console.result(findings=findings)
    interruption.keep(
        lambda: f"{len(findings)} of {len(wanted)} parts are done, and what the next had done is in {out}"
    )
    for number, each in enumerate(wanted):
        if at_most is not None and each.minutes > at_most and not quick:
            console.show(f"{each.paper} {each.name}: left out: it would take about {each.minutes:g} minutes")
            continue
        try:
            place = f" ({number + 1} of {len(wanted)})" if len(wanted) > 1 else ""
            findings.append(_run(each, place, out, quick, given, data_folder, seed, force))
        except (InputError, MissingExtraError) as error:
            if len(wanted) == 1:
                raise
            missing.append(each)
            console.show(f"{each.paper} {each.name}: not computed: {error}")
    if findings:
        _write_report(out, wanted)
    for page in write_pages(out, pages) if pages is not None else []:
        console.written(page)
    if missing:
        raise InputError(f"{len(missing)} of {len(wanted)} parts were not computed: see above")


def _write_report(out: Path, parts: list[Part]) -> None:
    """One page of all parts that there are in OUT, of those that were asked for."""
    from fliprank.cli.reports import REPORT, command_line, write_report

    def page() -> Page:
        from fliprank.papers.run import part_folder
        from fliprank.papers.write import read_finding
        from fliprank.report.page import findings_page

        known = (read_finding(part_folder(out, part)) for part in parts)
        return findings_page([each for each in known if each is not None], command_line())

    write_report(out / REPORT, page)


def _run(
    part: Part,
    place: str,
    out: Path,
    quick: bool,
    data: dict[str, Path],
    data_folder: Path | None,
    seed: int,
    force: bool,
) -> dict[str, Any]:
    """Compute one part and tell what was found; returns what a program is told."""
    from fliprank import console
    from fliprank.papers.run import part_folder
    from fliprank.papers.run import reproduce as run
    from fliprank.papers.write import read_finding

    title = f"{part.paper} {part.name}"
    takes = "" if quick else f", about {part.minutes:g} min"
    with console.counting(f"{title}{place}{takes}") as say:
        new = run(
            part,
            out,
            quick=quick,
            seed=seed,
            data=data,
            data_folder=data_folder,
            force=force,
            progress=lambda what: say(what, 0),
        )
    folder = part_folder(out, part)
    content = read_finding(folder)
    assert content is not None
    how = "" if new else " (computed before)"
    console.show(f"{title}: {content['verdict']}{how}. {content['found']}")
    console.written(folder)
    known = {name: content[name] for name in ("verdict", "found", "claim")}
    return {"paper": part.paper, "part": part.name, **known, "folder": str(folder), "new": new}


def _described(part: Part) -> dict[str, Any]:
    """What a program is told of a part."""
    known = {"paper": part.paper, "part": part.name, "title": part.title}
    return known | {"needs": list(part.needs), "minutes": part.minutes}


def _listing(parts: list[Part]) -> Iterator[Table | str]:
    """One table per paper."""
    from fliprank import console

    for paper in dict.fromkeys(part.paper for part in parts):
        table = console.new_table(paper, ["part", "what", "data", "minutes"])
        for part in parts:
            if part.paper == paper:
                needs = ", ".join(part.needs) or "none"
                table.add_row(*map(console.plain, (part.name, part.title, needs)), f"{part.minutes:g}")
        yield table
