"""Whoosh's BM25F: BM25 of each field, with a B of its own and one K1 for all, times a boost, added up.

score = sum_f boost_f sum_t idf_tf f_t (K1 + 1) / (f_t + K1 (1 - B_f + B_f length / average)), where each word of the
query counts once, and lengths are kept in one byte by a table of Whoosh's own. idf = log(N / (df + 1)) + 1 by field; N
and averages count all documents.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.literals import number, python_literal
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula, Setting
from fliprank.text.analysis import Analyzer

__all__ = ["BM25F"]

BM25F = Formula(
    "whoosh",
    "bm25f",
    idf="whoosh",
    documents="all",
    lengths="whoosh",
    k_plus_1=True,
    query_once=True,
    settings=(Setting("w", 1.0, each=True), Setting("k", 1.2), Setting("b", 0.75, 0.0, 1.0, each=True)),
)

register_functions(BM25F)

_CODE = '''\
"""Whoosh as it was tuned by fliprank: see README.md. Needs the package whoosh-reloaded."""

from whoosh.analysis import Analyzer, LowercaseFilter, RegexTokenizer, StemFilter, StopFilter
from whoosh.fields import ID, TEXT, Schema
from whoosh.index import FileIndex
from whoosh.query import Or, Query, Term
from whoosh.scoring import BM25F

BOOSTS = {boosts}
B = {own}
K1 = {k}
STOP_WORDS = {stop}
STEMMER = {stemmer}


def analyzer() -> Analyzer:
    """How texts and queries are cut into terms."""
    words = RegexTokenizer(r"\\w+")
    words = words | LowercaseFilter() if {lowercase} else words
    words = words | StopFilter(STOP_WORDS, minsize=1) if STOP_WORDS else words
    return words | StemFilter(lang=STEMMER) if STEMMER else words


def schema() -> Schema:
    """For a new index: docid, and one field of text each."""
    return Schema(docid=ID(stored=True, unique=True), **{{name: TEXT(analyzer=analyzer()) for name in BOOSTS}})


def weighting() -> BM25F:
    """For index.searcher(weighting=...)."""
    return BM25F(K1=K1, **{{f"{{name}}_B": value for name, value in B.items()}})


def query(text: str) -> Query:
    """All words of the text in all fields, none of them required."""
    terms = [token.text for token in analyzer()(text, mode="query")]
    return Or([Term(name, term, boost=boost) for term in terms for name, boost in BOOSTS.items()]).normalize()


def search(index: FileIndex, text: str, limit: int = 10) -> list[tuple[str, float]]:
    """The best documents, by docid, with their scores."""
    with index.searcher(weighting=weighting()) as searcher:
        return [(hit["docid"], hit.score) for hit in searcher.search(query(text), limit=limit)]
'''


def _takes(model: Model) -> str | None:
    reason = takes_text_of("whoosh")(model)
    bad = [name for name in getattr(model, "fields", None) or () if name.startswith("_") or " " in name]
    return reason or (f"a field of Whoosh can't be called {bad[0]!r}: rename it" if bad else None)


@target("whoosh", "text, by boosts of fields, K1 and B of each field", _takes)
def write(model: EngineText, about: About) -> Export:
    """A module with the schema, the weighting and the query."""
    fields, analyzer = model.fields or (), about.analyzer or Analyzer(stopwords=None, stemmer=None)
    code = _CODE.format(
        boosts=python_literal({name: float(model.params[f"{name}.w"]) for name in fields}),
        own=python_literal({name: float(model.params[f"{name}.b"]) for name in fields}),
        k=number(model.params["k"]),
        stop=python_literal(analyzer.stop_list),
        stemmer="None" if analyzer.stemmer is None else python_literal(analyzer.stemmer),
        lowercase=analyzer.lowercase,
    )
    steps = (
        "$ pip install whoosh-reloaded",
        "Search by search() of whoosh_search.py; schema() makes a new index, if you have none.",
        "In an index of your own, pass weighting() to index.searcher() and take query(): K1, B and boosts need no new "
        "index, another analyzer does.",
    )
    lost = []
    if about.analyzer is None:
        lost += [
            "How texts were cut into terms is not known: the module takes words in lower case, without stop words."
        ]
    if analyzer.stemmer is not None:
        lost += [f"Stems are those of Whoosh's own {analyzer.stemmer} stemmer, an older version of Snowball's."]
    return Export({"whoosh_search.py": code}, steps, lost=tuple(lost))
