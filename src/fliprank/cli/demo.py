"""`fliprank demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.outputs import out_folder
from fliprank.cli.tune import keep_what_is_tuned, show_result, write_tuning_report

__all__ = ["demo"]


@app.command(
    epilog="Example:\n\n  fliprank demo --out fliprank-demo\n\nAfterwards: OUT/report.html, to look at in a browser.",
    short_help="Tune BM25F on the collection that ships with fliprank.",
)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for model, figures, runs and index.")] = Path("fliprank-demo"),
    open_: Annotated[bool, typer.Option("--open", help="Show the report in the browser.")] = False,
) -> None:
    """Tune BM25F on the collection that ships with fliprank: the help centre of a product that does not exist."""
    from fliprank import console
    from fliprank.data.builtin import collection
    from fliprank.defaults import DEFAULT_MEASURE
    from fliprank.experiment.jobs import tune_and_write
    from fliprank.experiment.task import open_index, task_of_documents
    from fliprank.models import BM25F
    from fliprank.text.analysis import Analyzer

    folder, source = out_folder(out), collection()
    keep_what_is_tuned(folder)
    with console.counting("indexing Marlpost's help centre") as progress:
        index = open_index(source, folder, None, Analyzer(), progress)
        qrels, test_qrels = source / "qrels" / "train.tsv", source / "qrels" / "test.tsv"
        task = task_of_documents(index, source, qrels, test_qrels)
        task = task.read_from(docs=source, queries=source, qrels=qrels, test=test_qrels)
    test = 0 if task.test is None else task.test.rows.queries
    console.show(
        f"Marlpost's help centre: {len(index)} pages with {', '.join(index.fields)}.",
        f"BM25F is tuned on {task.train.rows.queries} judged queries and tested on {test} others.",
    )
    result = tune_and_write(BM25F(), task, folder, console.fit_progress, measure=DEFAULT_MEASURE)
    show_result(result)
    console.written(folder / "result.json", "; the same for your own documents: fliprank tune --help")
    report = write_tuning_report(result, folder)
    if open_ and report is not None:
        import webbrowser

        webbrowser.open(report.resolve().as_uri())
