"""Draw the pictures of the README: python docs/pictures.py"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from fliprank import console as terminal
from fliprank.data.builtin import RUNS, collection
from fliprank.data.trec import read_run
from fliprank.experiment.evaluation import evaluate

HERE = Path(__file__).parent / "pictures"


def demo() -> None:
    """What `fliprank demo` prints, without its explanations."""
    folder = collection()
    runs = {name: read_run(folder / "runs" / f"{name}.run") for name in RUNS}
    result = evaluate(folder / "qrels" / "test.tsv", runs, ["nDCG(dcg='exp-log2')@10", "AP", "RR"])
    screen = Console(record=True, width=110, file=io.StringIO())
    screen.print(terminal.mean_table(result))
    for table in terminal.comparison_tables(result.compare(), 0.95):
        screen.print(table)
    screen.save_svg(str(HERE / "demo.svg"), title="fliprank demo")


if __name__ == "__main__":
    demo()
