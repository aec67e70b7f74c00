"""Draws the pictures of docs/plots.md from the collection that ships with the package: python docs/plot_pictures.py"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fliprank.cli import run
from fliprank.data.builtin import collection

PICTURES = Path(__file__).parent / "pictures" / "plots"


def main() -> None:
    """Tune, fuse, and draw what came of it."""
    beir = collection()
    PICTURES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        tuned, fused = f"{place}/tuned", f"{place}/fused"
        lists = [part for name in ("title", "body") for part in ("--run", f"{name}={beir / 'runs' / name}.run")]
        qrels = [f"--{option}={beir / 'qrels' / name}.tsv" for option, name in (("qrels", "train"), ("test", "test"))]
        commands = [
            ["tune", "--beir", str(beir), "--test", "test", "--no-curve", "-m", "nDCG@10", "--out", tuned],
            ["fuse", *qrels, *lists, "-m", "nDCG@10", "--out", fused],
            *(["plot", name, tuned] for name in ("ranges", "queries", "precision-recall", "rank-distribution")),
            ["plot", "surface", tuned, "-p", "title.w", "-p", "text.w"],
            ["plot", "trajectory", tuned, "-p", "title.w"],
            ["plot", "fusion", fused],
        ]
        for command in commands:
            out = ["--out", str(PICTURES / f"{command[1]}.svg")] if command[0] == "plot" else []
            if run([*command, *out, "--quiet"]):
                sys.exit(1)


if __name__ == "__main__":
    main()
