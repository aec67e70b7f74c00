"""What a report adds to a tuning: processor time of the page over that of `tune`, on the built-in collection.

python bench/report.py
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from fliprank.data.builtin import collection
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.task import open_index, task_of_documents
from fliprank.models import BM25F
from fliprank.report.page import tuning_page, write_page
from fliprank.text.analysis import Analyzer


def main() -> None:
    source = collection()
    with TemporaryDirectory() as folder:
        place = Path(folder)
        index = open_index(source, place, None, Analyzer(), None)
        qrels = [source / "qrels" / name for name in ("train.tsv", "test.tsv")]
        task = task_of_documents(index, source, *qrels).read_from(docs=source, queries=source)
        for _ in range(2):  # the first time compiles, or loads what was compiled
            start = time.process_time()
            result = tune_and_write(BM25F(), task, place, lambda _: nullcontext(None), measure=DEFAULT_MEASURE)
            tuned = time.process_time()
            path = write_page(place / "report.html", tuning_page(result))
            drawn = time.process_time()
        share, size = (drawn - tuned) / (tuned - start), path.stat().st_size
        print(f"demo: the report takes {share:.0%} of the processor time of the tuning; {size / 1e3:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
