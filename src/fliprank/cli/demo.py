"""`fliprank demo`."""

from __future__ import annotations

from fliprank.cli.app import app
from fliprank.cli.evaluate import show_evaluation

__all__ = ["demo"]


@app.command(epilog="Example:\n\n  fliprank demo")
def demo() -> None:
    """Evaluate the runs of the built-in collection against its judgements."""
    from fliprank import console
    from fliprank.data.builtin import RUNS, collection
    from fliprank.data.trec import read_qrels, read_run
    from fliprank.experiment.evaluation import evaluate as judge

    folder = collection()
    with console.working("evaluating"):
        runs = {name: read_run(folder / "runs" / f"{name}.run") for name in RUNS}
        result = judge(read_qrels(folder / "qrels" / "test.tsv"), runs, ["nDCG(dcg='exp-log2')@10", "AP", "RR"])
        comparisons = result.compare()
    console.show(
        "Marlpost's help centre, searched by SQLite FTS5: body alone, all fields alike, title and links first."
    )
    show_evaluation(result, comparisons, 0.95, explain=True)
