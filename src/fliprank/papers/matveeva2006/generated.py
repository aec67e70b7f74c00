"""Section 4 of Matveeva et al. 2006, the data: generated collections beside real ones.

Both are measured on the rows that people rated. A third generated collection, whose candidates on the topic stand
further apart from the others, shows what makes BM25F weak among 2,500 candidates.
"""

from __future__ import annotations

from fliprank.data.generate import WebModel, generate
from fliprank.data.letor import read_letor
from fliprank.experiment.realism import mslr_profile, profile
from fliprank.measures import parse_measure
from fliprank.papers.data import data_path, stanford_web
from fliprank.papers.matveeva2006.sets import NDCG
from fliprank.papers.part import Finding, Setting, part

__all__ = ["alike"]

MSLR = "rankeval_5k/msn1.fold1.train.5k.txt"
TWO, REAL = "two populations", ("stanford-web", "MSLR")
NEEDS = ("stanford-web", "mslr-sample")
COUNTS = ("queries", "rows per query", "rated per query")
"""What is not a property of a collection but of how much of it there is."""


def alike(profiles: dict[str, dict[str, float]]) -> tuple[int, int]:
    """Of how many figures the generated collection is within a factor of two of the real ones, and of how many not.

    >>> real = {"stanford-web": {"tf": 1.0, "length": 3.0}, "MSLR": {"tf": 3.0}}
    >>> alike({"two populations": {"tf": 4.0, "length": 9.0}, **real})
    (1, 1)
    """
    near = []
    for figure, value in profiles[TWO].items():
        real = [profiles[name][figure] for name in REAL if figure in profiles[name]]
        if real and figure not in COUNTS:
            near.append(min(real) / 2 <= value <= 2 * max(real))
    return sum(near), len(near) - sum(near)


def _cell(value: float | None) -> float | int | str:
    """Whole numbers without decimals, which are lengths and counts; a dash where there is none."""
    return "-" if value is None else int(value) if value >= 1 and value.is_integer() else float(value)


@part("matveeva2006", "generator", "Generated collections beside real ones", needs=NEEDS, minutes=0.3)
def generator(setting: Setting) -> Finding:
    """The same figures of generated and real collections, side by side."""
    queries, documents = (20, 300) if setting.quick else (200, 2500)
    models = {
        TWO: WebModel(documents=documents, seed=setting.seed),
        "one population": WebModel(documents=documents, populations=1, seed=setting.seed),
        "far apart": WebModel(documents=documents, shift=2.5, weights=(1.2, 0.3), seed=setting.seed),
    }
    profiles = {}
    for name, model in models.items():
        setting.say(name)
        made = generate(queries, model=model)
        best = parse_measure(NDCG).value(made.utility, made.rows)
        profiles[name] = profile(made.rows) | {"nDCG@10 of true utility, all rows": best}
    profiles[REAL[0]] = profile(stanford_web(setting)["2014-train"])
    profiles[REAL[1]] = mslr_profile(read_letor(data_path(setting, "mslr-sample") / MSLR))
    near, other = alike(profiles)
    figures = dict.fromkeys(figure for each in profiles.values() for figure in each)
    with_label = ", ".join(f"{profiles[name]['BM25F with label']:.2f}" for name in (TWO, *REAL))
    among_all = profiles[TWO]["nDCG@10 of BM25F, all rows"]
    return Finding(
        ("figure", *profiles),
        tuple((figure, *(_cell(each.get(figure)) for each in profiles.values())) for figure in figures),
        "The documents are the top 2,500 of a basic ranker, with features of url, title, body and anchor text and some"
        " of the document alone; some are rated on five levels.",
        f"With two populations {near} of {near + other} figures are within a factor of two of the range of two real"
        f" collections. BM25F goes with labels as it does there ({with_label}), but finds few of the rated rows among"
        f" all candidates (nDCG@10 {among_all:.2f}).",
        "holds" if near >= 3 * other else "does not hold",
        {"data": ["fr.generate", *REAL], "queries": queries, "documents": documents, "seed": setting.seed},
        notes=(
            "Figures by field are of rated rows; those with label are correlations within queries. stanford-web has ten"
            " rated pages per query and no others. MSLR is a sample of 5,000 rows, whose BM25 of the whole document"
            " stands for BM25F.",
            "Why BM25F is weak among all candidates: each of them has the query's terms, one in twenty is on the topic,"
            " and among these quality counts twice as much as match, which text does not show. Far apart (shift=2.5,"
            " weights=(1.2, 0.3)) BM25F finds more, but goes with labels more than in any real collection: so the"
            " default stays as it is. The other parts of this paper have no text, only features.",
        ),
    )
