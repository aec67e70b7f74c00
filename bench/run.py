"""Measure everything and write bench/RESULTS.md: make bench

Each part runs in a process of its own, so that what one loads does not slow down another.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    "Evaluation": "evaluate",
    "Reading LETOR files": "letor",
    "Significance": "significance",
    "Smooth objectives": "objectives",
    "Models": "models",
    "Pair-by-pair descent": "pairs",
    "Exact line search": "exact",
    "Direct search": "ascent",
    "Text models": "text_models",
    "Indexing and retrieval": "indexing",
    "Features from text": "features",
    "Tuning": "tuning",
    "Fusion": "fusion",
    "Fusion of many queries": "fusion_growth",
    "Cascades": "cascade",
    "Beyond one memory": "scale",
    "Clusters": "cluster",
}


def main(wanted: list[str]) -> None:
    told = [
        "# Speed, side by side",
        "",
        f"Written by `make bench` on {os.cpu_count()} cores, Python {platform.python_version()}. Peers and fliprank",
        "run on the same data, warm; a ratio is the peer's time over ours unless the row says otherwise.",
    ]
    for title, module in PARTS.items():
        if wanted and module not in wanted:
            continue
        print(f"{title} ...", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, HERE / f"{module}.py"], stdout=subprocess.PIPE, text=True, check=True)
        told += ["", f"## {title}", "", done.stdout.strip()]
    if wanted:
        print("\n".join(told))
    else:
        (HERE / "RESULTS.md").write_text("\n".join(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
