"""Draw the picture of the README: python docs/pictures.py"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from rich.console import Console

from fliprank.cli.result_tables import tuning_tables
from fliprank.console import fit_progress
from fliprank.console.output import draw
from fliprank.data.builtin import collection
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.task import open_index, task_of_documents
from fliprank.models import BM25F
from fliprank.text.analysis import Analyzer

HERE = Path(__file__).parent / "pictures"


def demo() -> None:
    """The tables that `fliprank demo` prints."""
    source = collection()
    with tempfile.TemporaryDirectory() as name:
        index = open_index(source, Path(name), None, Analyzer())
        task = task_of_documents(index, source, source / "qrels" / "train.tsv", source / "qrels" / "test.tsv")
        task = task.read_from(docs=source)
        result = tune_and_write(BM25F(), task, Path(name), fit_progress, measure=DEFAULT_MEASURE)
    screen = Console(record=True, width=100, file=io.StringIO(), highlight=False, emoji=False)
    draw(screen, *tuning_tables(result))
    screen.save_svg(str(HERE / "demo.svg"), title="fliprank demo")


if __name__ == "__main__":
    demo()
