"""`fliprank generate`: a file of judged rows as large as asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.overwriting import Force, check_output

__all__ = ["generate"]

GENERATE_EXAMPLES = """
Examples:

  fliprank generate --queries 200 --docs 300 --out train.jsonl

  fliprank generate --queries 100 --docs 300 --first 200 --out test.jsonl --utility best.txt

  fliprank evaluate test.jsonl best.txt

  fliprank generate --queries 200 --features 100 --out rows.parquet

Files with the same --seed and other queries (--first) are parts of one collection. All rows are held in memory; in
Python, `fr.generate_blocks` gives them block by block.
"""


@app.command(epilog=GENERATE_EXAMPLES, short_help="Generate judged rows like those of web search.")
def generate(
    queries: Annotated[int, typer.Option(min=1, help="How many queries.")],
    docs: Annotated[int, typer.Option(min=1, help="Candidates per query.")] = 2500,
    features: Annotated[int, typer.Option(min=0, help="Weak features, beside PageRank.")] = 0,
    populations: Annotated[
        int, typer.Option(min=1, max=2, help="2: some candidates are on topic, and quality counts for these only.")
    ] = 2,
    first: Annotated[int, typer.Option(min=0, help="The number of the first query.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the collection.")] = 0,
    out: Annotated[
        Path, typer.Option(help="File to write: .jsonl (term statistics), .parquet, else LETOR; .gz is gzipped.")
    ] = Path("rows.jsonl"),
    utility: Annotated[
        Path | None, typer.Option(help="Also write the true utility of each row, which ranks best of all.")
    ] = None,
    force: Force = False,
) -> None:
    """Generate judged rows like those of web search: for experiments, where the best possible ranking is known."""
    from dataclasses import replace

    from fliprank import console
    from fliprank.cli.features import write_rows
    from fliprank.data.files import atomic_write
    from fliprank.data.generate import generate as drawn
    from fliprank.data.ids import Ids
    from fliprank.data.term_statistics_jsonl import write_statistics

    for path in (out, utility):
        if path is not None:
            check_output(path, force)
    text = out.name.removesuffix(".gz").endswith(".jsonl")
    how: dict[str, Any] = {"documents": docs, "weak": features, "text": text, "populations": populations, "seed": seed}
    with console.fit_progress("generating") as say:
        found = drawn(queries, first=first, progress=lambda done: say("queries", done, queries, None), **how)
    rows = found.rows
    if text:
        names = Ids.of([f"d{first + q + 1}.{d + 1}" for q in range(queries) for d in range(docs)])
        write_statistics(out, replace(rows, docids=names))
    more = f" ({rows.queries:,} queries, {len(rows):,} rows)"
    console.result(queries=rows.queries, rows=len(rows))
    if text:
        console.written(out, more)
    else:
        write_rows(out, rows, more)
    if utility is not None:
        with atomic_write(utility) as file:
            file.write("".join(f"{value!r}\n" for value in found.utility.tolist()).encode())
        console.written(utility)
