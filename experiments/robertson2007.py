"""Examples 1 and 2 of Robertson & Zaragoza 2007: checks what the paper says of them, and draws its Figures 1 to 5.

    .venv/bin/python experiments/robertson2007.py

The paper prints no feature values. Example 1 is therefore made of random documents, with the two relevant ones put
where the paper says that they rank: a 12th and b 4th at a weight of 0.8, a 8th and b 7th at 2, a overtaking b between
2.5 and 3. The seed and the range were searched for, so that the rest of the text, the number of optima and which of
them is the global one of which measure, is true as well. Example 2 is drawn so that its notes 1 to 6 are true.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.landscape import ScoreTrajectory, score_trajectory
from fliprank.landscape.regions import Regions, score_regions

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SEED = 25892
WEIGHTS = (0.0, 9.0)
GAINS = (1, 3, 10)
WINDOW = (-3.5, 3.5, -5.0, 3.6)


def example_1() -> tuple[Candidates, np.ndarray]:
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


def paths_1() -> dict[str, ScoreTrajectory]:
    """AP and the three NDCGs along the weight of feature 2."""
    rows, features = example_1()
    measures = {"AP": "AP"} | {f"NDCG({gain})": f"nDCG(gains={{1:1,2:{gain}}})" for gain in GAINS}
    return {
        name: score_trajectory(features[:, 0], features[:, 1], rows, measure, *WEIGHTS)
        for name, measure in measures.items()
    }


def ranks_1(weight: float) -> tuple[int, int]:
    """The ranks of a and b at a weight of feature 2."""
    scores = example_1()[1] @ [1, weight]
    return int((scores > scores[0]).sum()) + 1, int((scores > scores[1]).sum()) + 1


def example_2(labels: dict[str, int], measure: str, neutral: bool = True) -> Regions:
    """Four documents of one query in a plane of two parameters; the labels that are not given are 0."""
    names = ["a", "b", "c", "d"]
    rows = Candidates.of([labels.get(name, 0) for name in names], docids=names)
    base, u, v = [0, 0, -0.4, -1], [1, -1, 0, 0], [0, 0, 0.4, -1]
    return score_regions(base, u, v, rows, measure, WINDOW, neutral=neutral)


def check_1() -> list[str]:
    """What the paper says of Example 1; raises where it is not so."""
    paths = paths_1()
    count = {name: len(path.local_maxima()) for name, path in paths.items()}
    best = {name: path.best_point() for name, path in paths.items()}
    assert set(count.values()) == {7, 8}, count
    for name in ("AP", "NDCG(1)"):
        assert abs(best[name] - 0.8) < 0.05
        assert ranks_1(best[name]) == (12, 4)
    for name in ("NDCG(3)", "NDCG(10)"):
        assert abs(best[name] - 2.0) < 0.1
        assert ranks_1(best[name]) == (8, 7)
    only = np.setdiff1d(paths["NDCG(3)"].breaks, paths["AP"].breaks)
    assert len(only) == 1
    assert 2.5 < only[0] < 3
    return [
        f"local optima: {', '.join(f'{name} {number}' for name, number in count.items())}",
        f"AP and NDCG(1) are best at {best['AP']:.2f}, where a has rank 12 and b rank 4",
        f"NDCG(3) and NDCG(10) are best at {best['NDCG(3)']:.2f}, where a has rank 8 and b rank 7",
        f"the only flip on which they disagree is that of a and b, at {only[0]:.2f}",
    ]


def check_2() -> list[str]:
    """The notes on Example 2, by number; raises where one is not so."""
    middle = example_2({"a": 1, "b": 1}, "AP")
    for measure in ("AP", "nDCG", "P@1", "RR", "P@2", "Bpref"):
        found = example_2({"a": 1, "b": 1}, measure)
        assert len(found.best()) == 1
        assert found.at(0, 0) == found.best()[0].value == 1.0  # 1 and 2: all agree on the middle, some want more
        assert found.best()[0].area >= middle.best()[0].area - 1e-9
    assert not middle.best()[0].clipped
    assert sorted(middle.boundaries.name(int(i)) for i in middle.best()[0].lines) == ["a,c", "a,d", "b,c", "b,d"]
    other = example_2({"c": 1, "d": 1}, "AP")
    assert other.values.max() < 1  # 3: the perfect ranking is not possible
    places = [tuple(_places(other, int(optimum.cells[0]))) for optimum in other.optima()]
    assert places == [(3, 1), (3, 1), (1, 4)]  # 5: two regions apart where they are first and third, and one at the top
    for measure in ("AP", "nDCG", "RR", "P@1", "P@2", "R@3", "Bpref"):
        found = example_2({"c": 1, "d": 1}, measure)
        for x, y in ((3.0, -4.5), (-3.0, -4.5)):
            assert found.at(x, y) == found.best()[0].value
    two, reciprocal = (example_2({"c": 1, "d": 1}, measure) for measure in ("P@2", "RR"))
    assert two.at(1.5, 1) == two.at(3, -4.5)  # 4: P@2 is as happy with the first relevant in second position
    assert reciprocal.at(0, 3) == reciprocal.at(3, -4.5)  # and RR with the second relevant at the end
    mild, strong = (example_2({"c": 2, "d": 1}, f"nDCG(gains={{1:1,2:{gain}}})") for gain in (1.1, 10))
    assert [_places(found, int(found.best()[0].cells[0])) for found in (mild, strong)] == [[3, 1], [1, 4]]  # 6
    return [
        f"the middle is best for all; AP's region has an area of {middle.best()[0].area:.2f}",
        "with c and d relevant: optima of AP with c and d at ranks " + ", ".join(f"{c} and {d}" for c, d in places),
        "with c highly relevant: a gain of 1.1 prefers d first and c third, a gain of 10 c first and d fourth",
    ]


def _places(found: Regions, cell: int) -> list[int]:
    """The ranks of c and d."""
    ranking = found.ranking(cell)
    return [ranking.index(row) + 1 for row in (2, 3)]


def draw() -> None:
    """Write Figures 1 to 5."""
    from fliprank.report.planes import regions_chart
    from fliprank.report.plots import COLOURS, altair, styled, trajectory_chart, write_chart

    alt = altair()
    features = example_1()[1]
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
    write_chart(styled(alt.layer(dots, names).properties(width=420, height=340)), PICTURES / "landscape-figure1.svg")
    paths = paths_1()
    picture = trajectory_chart(list(paths.values()), "weight of feature 2", *WEIGHTS, names=list(paths), overlay=True)
    write_chart(picture, PICTURES / "landscape-figure2.svg")
    relevant = {"a": 1, "b": 1}
    plain = example_2(relevant, "AP")
    figures = {
        "3": regions_chart(plain, ("parameter 1", "parameter 2"), shaded=[], rankings=True),
        "4": regions_chart(plain, ("parameter 1", "parameter 2"), shaded=plain.best()),
        "5": regions_chart(first := example_2(relevant, "P@1"), ("parameter 1", "parameter 2"), shaded=first.best()),
    }
    for number, picture in figures.items():
        write_chart(picture, PICTURES / f"landscape-figure{number}.svg")


if __name__ == "__main__":
    for line in [*check_1(), *check_2()]:
        print(line)
    draw()
