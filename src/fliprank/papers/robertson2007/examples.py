"""Examples 1 and 2 of Robertson & Zaragoza 2007, with Figures 1 to 5.

The paper prints no feature values. Example 1 is therefore made of random documents, with the two relevant ones put
where the paper says that they rank: a 12th and b 4th at a weight of 0.8, a 8th and b 7th at 2, a overtaking b between
2.5 and 3. The seed and the range were searched for, so that the rest of the text, the number of optima and which of
them is the global one of which measure, is true as well. Example 2 is drawn so that its notes 1 to 6 are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.landscape import Regions, ScoreTrajectory, score_regions, score_trajectory
from fliprank.papers.part import Finding, Setting, part

__all__ = ["example_1", "example_2", "paths_1", "ranks_1"]

SEED = 25892
WEIGHTS = (0.0, 9.0)
GAINS = (1, 3, 10)
WINDOW = (-3.5, 3.5, -5.0, 3.6)
AXES = ("parameter 1", "parameter 2")
MADE = "The paper prints no feature values: ours were made so that what its text says of ranks is true."
MORE = {
    "RR": "RR",
    "RBP(0.5)": "RBP(p=0.5)",
    "RBP(0.95)": "RBP(p=0.95)",
    "NDCG(2)": "nDCG(gains={1:1,2:2})",
    "NDCG(30)": "nDCG(gains={1:1,2:30})",
}
"""Other measures that might promote other optima."""


def example_1() -> tuple[Candidates, Floats]:
    """102 documents, the first two relevant: a (highly) and b; and their two features."""
    rng = np.random.default_rng(SEED)
    features = rng.normal(size=(102, 2))
    others = features[2:]
    early, late = (np.sort(others @ [1, weight])[::-1] for weight in (0.8, 2.0))
    swap = rng.uniform(2.5, 3.0)
    # Three others above b at 0.8, ten above a; at 2 both stand between the sixth and the seventh, b still ahead.
    b_early, a_early = rng.uniform(early[3], early[2]), rng.uniform(early[10], early[9])
    ahead = (b_early - a_early) * (swap - 2.0) / (swap - 0.8)
    b_late = rng.uniform(late[6] + ahead, late[5])
    for row, (first, second) in enumerate(((a_early, b_late - ahead), (b_early, b_late))):
        slope = (second - first) / 1.2
        features[row] = first - 0.8 * slope, slope
    names = ["a", "b", *(f"n{i:03}" for i in range(100))]
    return Candidates.of([2, 1] + [0] * 100, docids=names, features=features), features


def path_1(measure: str) -> ScoreTrajectory:
    """A measure along the weight of feature 2."""
    rows, features = example_1()
    return score_trajectory(features[:, 0], features[:, 1], rows, measure, *WEIGHTS)


def paths_1() -> dict[str, ScoreTrajectory]:
    """AP and the three NDCGs along the weight of feature 2."""
    measures = {"AP": "AP"} | {f"NDCG({gain})": f"nDCG(gains={{1:1,2:{gain}}})" for gain in GAINS}
    return {name: path_1(measure) for name, measure in measures.items()}


def ranks_1(weight: float) -> tuple[int, int]:
    """The ranks of a and b at a weight of feature 2."""
    scores = example_1()[1] @ [1, weight]
    return int((scores > scores[0]).sum()) + 1, int((scores > scores[1]).sum()) + 1


@part("robertson2007", "figure1", "Example 1: one query, 102 documents by feature", minutes=0.1)
def figure1(setting: Setting) -> Finding:
    """Where the documents are, and how the two relevant ones rank."""
    ranks = {weight: ranks_1(weight) for weight in (0.8, 2.0, 2.5, 3.0)}
    features = example_1()[1]
    rows = tuple((name, *features[i].tolist(), *(ranks[w][i] for w in ranks)) for i, name in enumerate("ab"))
    asked = (
        ranks[0.8] == (12, 4)
        and ranks[2.0] == (8, 7)
        and ranks[2.5][0] > ranks[2.5][1]
        and ranks[3.0][0] < ranks[3.0][1]
    )
    return Finding(
        ("document", "feature 1", "feature 2", *(f"rank at {weight:g}" for weight in ranks)),
        rows,
        "Of 102 documents a has rank 12 and b rank 4 at a weight of about 0.8, 8 and 7 at about 2; they swap at 2.5 to"
        " 3.",
        f"a and b have ranks {ranks[0.8][0]} and {ranks[0.8][1]} at 0.8, {ranks[2.0][0]} and {ranks[2.0][1]} at 2.",
        "holds" if asked else "does not hold",
        {"seed": SEED, "documents": 102},
        lambda: _documents_chart(features),
        (MADE,),
    )


@part("robertson2007", "figure2", "Example 1: AP and three NDCGs as functions of one weight", minutes=0.1)
def figure2(setting: Setting) -> Finding:
    """The four measures along the weight of feature 2: local optima, and where each is best."""
    paths = paths_1()
    rows = []
    for name, path in paths.items():
        best = path.best_point()
        rows.append((name, len(path.local_maxima()), path.maximum.value, best, *ranks_1(best), path.width))
    only = np.setdiff1d(paths["NDCG(3)"].breaks, paths["AP"].breaks).tolist()
    where = {row[0]: (round(row[3]), row[4:6]) for row in rows}
    holds = (
        {row[1] for row in rows} == {7, 8}
        and where["AP"] == where["NDCG(1)"] == (1, (12, 4))
        and where["NDCG(3)"] == where["NDCG(10)"] == (2, (8, 7))
        and len(only) == 1
        and 2.5 < only[0] < 3
    )
    return Finding(
        ("measure", "local optima", "best", "at weight", "rank of a", "rank of b", "width"),
        tuple(rows),
        "AP and NDCG(1) are best at about 0.8, NDCG(3) and NDCG(10) at about 2; there are 7 or 8 local optima, which"
        " all share but for the one flip of a and b between 2.5 and 3.",
        f"AP is best at {rows[0][3]:.2f}, NDCG(10) at {rows[3][3]:.2f}; {rows[0][1]} and {rows[3][1]} local optima; the"
        f" only flip on which they disagree is at {', '.join(f'{x:.2f}' for x in only)}.",
        "holds" if holds else "does not hold",
        {"seed": SEED, "weights": list(WEIGHTS), "gains": list(GAINS)},
        lambda: _paths_chart(paths),
        (MADE,),
    )


@part("robertson2007", "example1", "Example 1: can any local optimum become the global one?", minutes=0.1)
def example1(setting: Setting) -> Finding:
    """Which optima some measure that rewards good flips only could prefer to all else on the line."""
    paths = paths_1()
    longest = paths["NDCG(10)"]
    places = [ranks_1(longest.inside(longest.plateau(i))) for i in range(len(longest.values))]
    best = {name: _ranks_at_best(path_1(measure)) for name, measure in MORE.items()}
    best |= {name: _ranks_at_best(path) for name, path in paths.items()}
    rows, free = [], 0
    for peak in longest.local_maxima():
        ranks = ranks_1(longest.inside(peak))
        better = sorted({place for place in places if _dominates(place, ranks)})
        free += not better
        wanted = ", ".join(name for name, at in best.items() if at == ranks)
        rows.append((longest.inside(peak), *ranks, f"{better[0][0]} and {better[0][1]}" if better else "none", wanted))
    return Finding(
        ("weight", "rank of a", "rank of b", "better in every way", "best for"),
        tuple(rows),
        "A sensible measure could be found or invented to promote any one of the 8 local optima to global status.",
        f"{free} of {len(rows)} can be with our features. From the others good flips alone lead to what holds"
        " elsewhere on the line, so every measure that rewards good flips only likes that at least as much.",
        "holds" if free == len(rows) else "does not hold",
        {"seed": SEED, "weights": list(WEIGHTS), "measures": list(best)},
        notes=(MADE, "An optimum that nothing dominates is best for the measure that is 1 there and above, else 0."),
    )


def _ranks_at_best(path: ScoreTrajectory) -> tuple[int, int]:
    return ranks_1(path.inside(path.maximum))


def _dominates(place: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether good flips alone lead from the ranks of a and b in `other` to those in `place`."""
    (a, b), (other_a, other_b) = ((a - 1 - (b < a), b - 1 - (a < b)) for a, b in (place, other))
    keeps_order = place[0] < place[1] or other[0] > other[1]
    return place != other and a <= other_a and b <= other_b and keeps_order


def example_2(labels: dict[str, int], measure: str, neutral: bool = True) -> Regions:
    """Four documents of one query in a plane of two parameters; the labels that are not given are 0."""
    names = ["a", "b", "c", "d"]
    rows = Candidates.of([labels.get(name, 0) for name in names], docids=names)
    base, u, v = [0, 0, -0.4, -1], [1, -1, 0, 0], [0, 0, 0.4, -1]
    return score_regions(base, u, v, rows, measure, WINDOW, neutral=neutral)


@part("robertson2007", "figure3", "Example 2: flip boundaries and rankings in a plane", minutes=0.1)
def figure3(setting: Setting) -> Finding:
    """The cells of the plane, each with its ranking."""
    plain = example_2({"a": 1, "b": 1}, "AP")
    areas = plain.cells.areas()
    rankings = ["".join("abcd"[row] for row in plain.ranking(cell)) for cell in range(len(plain.cells))]
    rows = sorted(zip(rankings, plain.values.tolist(), areas.tolist(), strict=True), key=lambda row: (-row[1], row[0]))
    lines = [plain.boundaries.name(i) for i in range(len(plain.boundaries))]
    return Finding(
        ("ranking", "AP", "area"),
        tuple(rows),
        "In a plane of two parameters of a linear model the flip boundaries of four documents are straight lines,"
        " within whose regions the ranking does not change.",
        f"{len(lines)} boundaries ({'; '.join(lines)}) make {len(rows)} cells, each with a ranking of its own.",
        "holds" if len(lines) == 6 and len(set(rankings)) == len(rankings) else "does not hold",
        {"window": list(WINDOW)},
        lambda: _plane_chart(plain, [], rankings=True),
        ("The paper's lines are drawn without numbers: these are others for which its notes are true.",),
    )


@part("robertson2007", "figure4", "Example 2: the region of optimum of MAP and NDCG", minutes=0.1)
def figure4(setting: Setting) -> Finding:
    """Measures that respond to all flips of the example share one region of optimum, the central quadrilateral."""
    return _optimum("AP", ("AP", "nDCG", "Bpref", "P@2", "Rprec"), "the central quadrilateral", 4)


@part("robertson2007", "figure5", "Example 2: the region of optimum of P@1 and MRR", minutes=0.1)
def figure5(setting: Setting) -> Finding:
    """Measures that ignore what comes after the first relevant document have a larger region of optimum."""
    return _optimum("P@1", ("P@1", "RR", "Success@1"), "a larger region around it", None)


def _optimum(first: str, measures: Sequence[str], where: str, sides: int | None) -> Finding:
    found = {name: example_2({"a": 1, "b": 1}, name) for name in measures}
    smallest = example_2({"a": 1, "b": 1}, "AP").best()[0].area
    rows = []
    for name, regions in found.items():
        [best] = regions.best()
        rows.append((name, best.value, best.area, len(best.lines), best.clipped))
    shared = {tuple(np.sort(regions.best()[0].cells).tolist()) for regions in found.values()}
    right = rows[0][3] == sides if sides is not None else rows[0][2] > smallest
    return Finding(
        ("measure", "best", "area of the optimum", "boundaries", "clipped"),
        tuple(rows),
        f"{', '.join(measures[:2])} and some other measures share their region of optimum: {where}.",
        f"{', '.join(measures)} have the same region, with an area of {rows[0][2]:.2f} in the window.",
        "holds" if len(shared) == 1 and right else "does not hold",
        {"window": list(WINDOW), "measures": list(measures)},
        lambda: _plane_chart(found[first], found[first].best()),
    )


@part("robertson2007", "example2", "Example 2: the notes, one by one", minutes=0.1)
def example2(setting: Setting) -> Finding:
    """Each of the notes 1 to 6 of section A.7, checked."""
    middle = example_2({"a": 1, "b": 1}, "AP").best()[0]
    all_agree = {m: example_2({"a": 1, "b": 1}, m) for m in ("AP", "nDCG", "P@1", "RR", "P@2", "Bpref")}
    other = {m: example_2({"c": 1, "d": 1}, m) for m in ("AP", "nDCG", "RR", "P@1", "P@2", "R@3", "Bpref")}
    corners = ((3.0, -4.5), (-3.0, -4.5))
    places = [_places(other["AP"], int(optimum.cells[0])) for optimum in other["AP"].optima()]
    mild, strong = (example_2({"c": 2, "d": 1}, f"nDCG(gains={{1:1,2:{gain}}})") for gain in (1.1, 10))
    preferred = [_places(found, int(found.best()[0].cells[0])) for found in (mild, strong)]
    notes = [
        ("the perfect ranking is possible: the central quadrilateral", not middle.clipped and len(middle.lines) == 4),
        (
            "all measures agree on it; some extend it",
            all(
                f.at(0, 0) == f.best()[0].value == 1 and f.best()[0].area >= middle.area - 1e-9
                for f in all_agree.values()
            ),
        ),
        (
            "with c, d relevant first and third place is best by all measures",
            all(f.at(*corner) == f.best()[0].value for f in other.values() for corner in corners)
            and other["AP"].values.max() < 1,
        ),
        (
            "P@2 is as happy with the first relevant second, MRR with the second one last",
            other["P@2"].at(1.5, 1) == other["P@2"].at(3, -4.5) and other["RR"].at(0, 3) == other["RR"].at(3, -4.5),
        ),
        (
            "MAP has two regions apart with c, d first and third, one with first and fourth",
            places == [(3, 1), (3, 1), (1, 4)],
        ),
        ("some NDCGs prefer d first and c third, some c first and d fourth", preferred == [(3, 1), (1, 4)]),
    ]
    true = sum(holds for _, holds in notes)
    return Finding(
        ("note", "what it says", "true"),
        tuple((number, text, "yes" if holds else "no") for number, (text, holds) in enumerate(notes, 1)),
        "Six notes on which regions of Example 2 are optimal for which measures.",
        f"{true} of {len(notes)} notes are true of our lines.",
        "holds" if true == len(notes) else "does not hold",
        {"window": list(WINDOW)},
        notes=(
            "Note 4 says that MRR would prefer to drop the second relevant document: it is indifferent, as MRR ignores"
            " it.",
        ),
    )


def _places(found: Regions, cell: int) -> tuple[int, int]:
    """The ranks of c and d."""
    ranking = found.ranking(cell)
    return ranking.index(2) + 1, ranking.index(3) + 1


def _documents_chart(features: Floats) -> Any:
    from fliprank.report.drawing import COLOURS, altair, styled

    alt = altair()
    points = [
        {"x": x, "y": y, "document": "non-relevant" if row > 1 else "relevant", "name": "ab"[row] if row < 2 else ""}
        for row, (x, y) in enumerate(features.round(4).tolist())
    ]
    chart = alt.Chart(alt.Data(values=points))
    place = {"x": alt.X("x:Q", title="feature 1"), "y": alt.Y("y:Q", title="feature 2")}
    kind = {"domain": ["non-relevant", "relevant"]}
    dots = chart.mark_point(filled=True, size=45, opacity=0.9).encode(
        **place,
        color=alt.Color("document:N", title=None, scale=alt.Scale(**kind, range=["#999999", COLOURS[1]])),
        shape=alt.Shape("document:N", title=None, scale=alt.Scale(**kind, range=["circle", "diamond"])),
    )
    names = chart.mark_text(dx=10, dy=-8, fontSize=14, fontStyle="italic").encode(**place, text="name:N")
    return styled(alt.layer(dots, names).properties(width=420, height=340))


def _paths_chart(paths: dict[str, ScoreTrajectory]) -> Any:
    from fliprank.report.plots import trajectory

    low, high = WEIGHTS
    return trajectory(
        list(paths.values()), axis="weight of feature 2", low=low, high=high, names=list(paths), overlay=True
    )


def _plane_chart(found: Regions, shaded: list[Any], rankings: bool = False) -> Any:
    from fliprank.report.planes import regions_chart

    return regions_chart(found, AXES, shaded=shaded, rankings=rankings)
