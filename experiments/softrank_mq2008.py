"""The two readings of SoftRank, compared: writes the tables of docs/softrank.md.

    python experiments/softrank_mq2008.py --data PATH      (the folder of MQ2008, with Fold1 to Fold5)

`softndcg` is the expected nDCG over noisy rankings, `softrank` the paper's approximation of it. The first table shows
where their values differ, beside the mean over sampled rankings. The second trains a linear ranker with each on the
five folds of MQ2008: settings and epoch are chosen on the validation queries, test queries are measured once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import fliprank as fr

PAGE = Path(__file__).parents[1] / "docs" / "softrank.md"
MEASURES = ["nDCG(dcg='exp-log2')@10", "AP"]
OBJECTIVES = ["softrank", "softndcg", "softrank@10", "softndcg@10"]
SAMPLES = 100_000


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, int | None]]:
    """Scores, labels and cut-off of a few queries; sigma is 0.1 throughout."""
    rng = np.random.default_rng(0)
    spread, labels = rng.normal(size=40), rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], 40)
    on_top = np.repeat([1.0, 0.0], [10, 20])
    return {
        "three documents that tie, one relevant": (np.zeros(3), np.array([1.0, 0.0, 0.0]), None),
        "ten relevant documents that tie, above 20 others": (on_top, on_top, None),
        "ten relevant documents that tie, above 20 others, at 10": (on_top, on_top, 10),
        "40 documents, scores of spread 1": (spread, labels, None),
        "40 documents, scores of spread 0.1": (0.1 * spread, labels, None),
        "40 documents, scores of spread 0.1, at 10": (0.1 * spread, labels, 10),
        "40 documents, scores of spread 0.1, at 10, relevant ones last": (
            0.1 * np.sort(spread),
            np.sort(labels)[::-1],
            10,
        ),
    }


def sampled(scores: np.ndarray, labels: np.ndarray, cutoff: int | None) -> float:
    """The mean nDCG of rankings by scores with noise."""
    noise = 0.1 * np.random.default_rng(1).normal(size=(SAMPLES, len(scores)))
    rows = fr.Candidates.of(np.tile(labels, SAMPLES), group=[len(scores)] * SAMPLES)
    name = "nDCG(dcg='exp-log2')" + (f"@{cutoff}" if cutoff else "")
    return fr.evaluate(rows, {"noisy": (scores + noise).ravel()}, [name]).mean("noisy", name)


def readings() -> str:
    lines = ["| query | softndcg | softrank | sampled rankings |", "|---|---|---|---|"]
    for name, (scores, labels, cutoff) in cases().items():
        rows = fr.Candidates.of(labels)
        values = [kind(cutoff, sigma=0.1).per_query(scores, rows)[0] for kind in (fr.SoftNDCG, fr.SoftRank)]
        lines.append(f"| {name} | {values[0]:.4f} | {values[1]:.4f} | {sampled(scores, labels, cutoff):.4f} |")
    return "\n".join(lines)


def trained(folder: Path) -> str:
    """Each objective's measures over the test queries of all folds, and the paired difference to the paper's."""
    tests, scores = [], {objective: [] for objective in OBJECTIVES}
    for fold in sorted(folder.glob("Fold*")):
        train, valid, test = (fr.read_letor(fold / f"{part}.txt.gz") for part in ("train", "vali", "test"))
        tests.append(test)
        for objective in OBJECTIVES:
            fit = fr.train(fr.Linear(), train, valid, objective=objective, measure=MEASURES[0], seed=0)
            scores[objective].append(fit.model.score(test))
            print(fold.name, objective, fit.settings, flush=True)
    rows, runs = fr.concat(*tests), {name: np.concatenate(parts) for name, parts in scores.items()}
    result = fr.evaluate(rows, runs, MEASURES)
    lines = [
        "| objective | test nDCG@10 | test AP | nDCG@10, less softrank's (p) | AP, less softrank's (p) |",
        "|---|---|---|---|---|",
    ]
    for name in OBJECTIVES:
        peer = name.replace("softndcg", "softrank")
        told = ["-", "-"]
        if peer != name:
            pair = fr.evaluate(rows, {peer: runs[peer], name: runs[name]}, MEASURES).compare(peer)
            told = [f"{c.difference:+.4f} ({c.p['randomisation']:.3f})" for c in pair]
        figures = " | ".join(f"{result.mean(name, measure):.4f}" for measure in MEASURES)
        lines.append(f"| `{name}` | {figures} | {' | '.join(told)} |")
    told = f"{rows.queries} test queries with {len(rows) / rows.queries:.0f} documents each on average"
    return "\n".join([*lines, "", f"{told}; p of the paired randomisation test."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of MQ2008")
    page = PAGE.read_text()
    for name, table in (("readings", readings()), ("trained", trained(parser.parse_args().data))):
        print(table)
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}<!-- {name} -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
