"""The kinds of features in one table: what each is called, and the formula it stands for.

A kind is computed for each field and for all fields joined in the index's order: `title.bm25`, `all.phrase`. The
kernels (`terms.py`, `positions.py`) write their numbers in the order of this table; a new kind is one line here, one
line there, and its plain formula in tests/text/plain_features.py. MSLR-WEB's 136 features are the model.

>>> len(TERM_KINDS), len(POSITION_KINDS), TERM_KINDS[0]
(54, 21, Kind(name='covered', formula='c, the number of query terms that the field has'))
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["POSITION_KINDS", "QUERY_KINDS", "TERM_KINDS", "Kind", "all_kinds", "kind_table", "streams"]


class Kind(NamedTuple):
    """A name, and the formula of its value in a field."""

    name: str
    formula: str


def _five(name: str, value: str, whole: str = "sum") -> tuple[Kind, ...]:
    """Five summaries of one number per query term: sum (named `whole`), min, max, mean, variance."""
    first = Kind(f"{name}.{whole}" if whole else name, f"sum over the query terms of x = {value}")
    return (first, *(Kind(f"{name}.{summary}", f"{summary} of x") for summary in ("min", "max", "mean", "variance")))


TERM_KINDS: tuple[Kind, ...] = (
    Kind("covered", "c, the number of query terms that the field has"),
    Kind("covered.ratio", "c / m"),
    Kind("covered.idf", "sum of idf over the terms that the field has / sum of idf over all query terms"),
    Kind("and", "1 where the field has all query terms, else 0"),
    Kind("or", "1 where the field has some query term, else 0"),
    Kind("length", "l"),
    Kind("length.log", "ln(1 + l)"),
    Kind("length.relative", "l / average l; 1 where no document has the field"),
    Kind("idf.query", "sum of idf over all query terms: the same for all rows of a query"),
    Kind("idf.sum", "sum of idf over the query terms that the field has"),
    Kind("idf.min", "min of the same; 0 for none"),
    Kind("idf.max", "max of the same; 0 for none"),
    Kind("idf.mean", "mean of the same; 0 for none"),
    Kind("idf.variance", "variance of the same; 0 for none"),
    *_five("tf", "tf"),
    *_five("tf_share", "tf / l; 0 where l = 0"),
    *_five("tfidf", "tf idf"),
    *_five("tfidf_share", "tf idf / l; 0 where l = 0"),
    *_five("log_tfidf", "(1 + ln tf) idf; 0 where tf = 0"),
    *_five("bm25", "n idf tf / (tf + k (1 - b + b l / average l)), k = 1.2, b = 0.75", ""),
    Kind("bm25(k=0.9,b=0.4)", "the sum at k = 0.9, b = 0.4"),
    Kind("bm25(k=2,b=1)", "the sum at k = 2, b = 1"),
    Kind("lm.dirichlet", "sum of n ln((tf + mu p) / (l + mu)), mu = 2000, over terms with p > 0"),
    Kind("lm.dirichlet(mu=100)", "the same at mu = 100"),
    Kind("lm.jelinek_mercer", "sum of n ln((1 - lambda) tf / l + lambda p), lambda = 0.1; n ln p where l = 0"),
    Kind("lm.jelinek_mercer(lambda=0.7)", "the same at lambda = 0.7"),
    Kind("lm.absolute", "sum of n ln((max(tf - delta, 0) + delta u p) / l), delta = 0.7; n ln p where l = 0"),
    Kind("lm.absolute(delta=0.3)", "the same at delta = 0.3"),
    Kind("cosine", "cosine of the vectors n idf (query) and tf idf (all terms of the field); 0 where one is 0"),
    Kind("cosine.log", "the same with (1 + ln tf) idf for the field"),
)
"""Kinds that count terms."""

POSITION_KINDS: tuple[Kind, ...] = (
    Kind("phrase", "how often the whole query stands in the field, word by word; of a one-term query, tf"),
    Kind("phrase.longest", "the longest run of consecutive query words that stands so in the field, in words"),
    Kind("phrase.ratio", "that run / L"),
    Kind("bigram", "how often two neighbours of the query are neighbours in the field, in the same order"),
    Kind("bigram.ratio", "the share of the query's L - 1 pairs of neighbours that are so somewhere; 0 where L < 2"),
    Kind("exact", "1 where the field is the query, word by word, else 0"),
    Kind("prefix", "1 where the field begins with the query, else 0"),
    Kind("near", "pairs of places less than 8 apart, either order, whose terms are neighbours in the query"),
    Kind("near.ratio", "the share of the query's L - 1 pairs of neighbours that are so near; 0 where L < 2"),
    Kind("window", "the smallest number of consecutive words with all query terms that the field has; 0 for none"),
    Kind("window.closeness", "c / window; 0 for none"),
    Kind("window.all", "m / window where the field has all query terms, else 0"),
    Kind("window.most", "h / the smallest window with h = floor(m / 2) + 1 query terms; 0 where there are fewer"),
    Kind("pair.min", "of the least distances of each two terms that the field has, the least; l where c < 2"),
    Kind("pair.mean", "their mean; l where c < 2"),
    Kind("pair.max", "the largest; l where c < 2"),
    Kind("pair.closeness", "sum of 1 / distance over these pairs; 0 where c < 2"),
    Kind("first", "words before the first query term; l where there is none"),
    Kind("first.relative", "first / l; 1 where there is none"),
    Kind("first.closeness", "1 / (1 + first); 0 where there is none"),
    Kind("first.mean", "mean over the query terms of the words before each; l for those that are not there"),
)
"""Kinds that look at the order of terms; left out if the index has no positions."""

QUERY_KINDS: tuple[Kind, ...] = (
    Kind("query_terms", "m, the number of different terms of the query"),
    Kind("query_length", "L, the number of words of the query, without stop words"),
    Kind("query_known", "how many of the m terms some document has"),
)
"""Kinds of the query alone, the same for all its rows."""


def streams(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields, and a name for all of them joined: `all`, followed by underscores if a field has that name."""
    joined = "all"
    while joined in fields:
        joined += "_"
    return (*fields, joined)


def all_kinds() -> list[tuple[str, Kind]]:
    """All kinds, each after what its name begins with."""
    return [*(("FIELD.", kind) for kind in (*TERM_KINDS, *POSITION_KINDS)), *(("", kind) for kind in QUERY_KINDS)]


def kind_table() -> str:
    """All kinds as a Markdown table."""
    lines = [f"| `{before}{kind.name}` | {kind.formula} |" for before, kind in all_kinds()]
    return "\n".join(["| name | value |", "|---|---|", *lines])
