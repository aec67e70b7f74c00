"""Xapian: fields by prefixes of terms, weights of fields by OP_SCALE_WEIGHT, all of it set in the query.

`bm25` is `BM25Weight(k1, 0, k3, b, 0.5)`: sum over fields of weight x sum_t idf_t f_t (k1 + 1) / (f_t + k1 (1 - b + b
max(length / average, 0.5))). f_t and the document frequency are those of the field, but length is that of the document:
Xapian knows no other. idf = log r with r = (N - df + .5) / (df + .5), and log(1 + r / 2) where r < 2. A word that
stands twice in a query is two terms there, so that k3 changes nothing.

`two-stage` is `LMWeight(scale, TWO_STAGE_SMOOTHING, lambda, mu)`: sum over the terms that the document has of max(0,
log(scale P)), P = (1 - lambda) (f_t + mu p) / (length + mu) + lambda p, where p is how often the term stands in that
field of all documents, over the tokens of all fields. Left at 0, the scale is the length of the longest document, which
a model does not know: here it has a number of its own, and is tuned. A lambda of exactly 0.7 is taken for unset.

Words of a field could also be counted several times when indexing (`index_text(text, 3)`). Such weights are whole
numbers and need a new index for every change, so fliprank tunes the weights of queries.

>>> prefixes(["title", "body", "Übersicht", "überSicht", "42"])
{'title': 'XTITLE', 'body': 'XBODY', 'Übersicht': 'XBERSICHT', 'überSicht': 'XBERSICHTA', '42': 'XA'}
"""

from __future__ import annotations

from collections.abc import Sequence

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25", "TWO_STAGE", "prefixes"]

DIGITS = 6

BM25 = Formula(
    "xapian",
    "bm25",
    idf="xapian",
    documents="all",
    whole_length=True,
    shortest=0.5,
    k_plus_1=True,
    settings=(Setting("w", 1.0, each=True), Setting("k", 1.0), Setting("b", 0.5, 0.0, 1.0)),
)
TWO_STAGE = Formula(
    "xapian",
    "two-stage",
    term="two-stage",
    documents="all",
    whole_length=True,
    settings=(
        Setting("w", 1.0, each=True),
        Setting("mu", 2000.0),
        Setting("lambda", 0.7, 0.0, 1.0),
        Setting("scale", 1000.0, 1.0),
    ),
)

register_functions(BM25, TWO_STAGE)


def prefixes(fields: Sequence[str]) -> dict[str, str]:
    """The prefix of each field's terms: X and its letters, as Xapian's users have it; no two alike."""
    out: dict[str, str] = {}
    for name in fields:
        stem = "X" + "".join(letter for letter in name.upper() if "A" <= letter <= "Z")[:20]
        endings = (chr(ord("A") + i % 26) * (1 + i // 26) for i in range(26 * (1 + len(fields))))
        tried = ([stem] if len(stem) > 1 else []) + [stem + ending for ending in endings]
        out[name] = next(prefix for prefix in tried if prefix not in out.values())
    return out


PROGRAM = '''\
"""Index and search with Xapian, as tuned by fliprank."""

import xapian

PREFIXES = {prefixes}
WEIGHTS = {weights}
STEMMER = {stemmer}


def weighting():
    return {weighting}


def add(database, docid, texts):
    """Add a document to a xapian.WritableDatabase: its id, and the text of each field by name."""
    generator, document = xapian.TermGenerator(), xapian.Document()
    generator.set_stemmer(xapian.Stem(STEMMER))
    every, none = xapian.TermGenerator.STEM_ALL, xapian.TermGenerator.STEM_NONE
    generator.set_stemming_strategy(every if STEMMER else none)  # STEM_SOME would count each word twice
    generator.set_document(document)
    for name, prefix in PREFIXES.items():
        generator.index_text(texts.get(name) or "", 1, prefix)
        generator.increase_termpos()
    document.set_data(docid)
    database.add_document(document)


def search(database, text, limit=10):
    """The best documents, (id, score) each: any word of the query in any field."""
    parser = xapian.QueryParser()
    parser.set_database(database)
    parser.set_stemmer(xapian.Stem(STEMMER))
    parser.set_stemming_strategy(xapian.QueryParser.STEM_ALL if STEMMER else xapian.QueryParser.STEM_NONE)
    by_field = []
    for name, prefix in PREFIXES.items():
        query = parser.parse_query(text, 0, prefix)
        by_field.append(xapian.Query(xapian.Query.OP_SCALE_WEIGHT, query, WEIGHTS[name]))
    enquire = xapian.Enquire(database)
    enquire.set_query(xapian.Query(xapian.Query.OP_OR, by_field))
    enquire.set_weighting_scheme(weighting())
    return [(hit.document.get_data().decode(), hit.weight) for hit in enquire.get_mset(0, limit)]
'''


@target("xapian", "text by prefixes and weights of fields", takes_text_of("xapian"))
def write(model: EngineText, about: About) -> Export:
    """A module of Python that indexes and searches; names of fields stand in it as literals."""
    fields = model.fields or ()
    program = PROGRAM.format(
        prefixes=ascii(prefixes(fields)),
        weights=ascii({name: _rounded(model.params[f"{name}.w"]) for name in fields}),
        stemmer=ascii("english" if about.analyzer is None else about.analyzer.stemmer or ""),
        weighting=_weighting(model),
    )
    steps = (
        "Index by `add(database, docid, texts)` of xapian_search.py, or give your own terms the same prefixes: each "
        "word once, with its field's prefix, and no words without prefix, which would add to the length of documents.",
        "Search by `search(database, text, limit)`. Weights and constants can be changed there at any time.",
    )
    lost = ["Words are cut and stemmed by Xapian; fliprank tuned on terms of its own analyzer."]
    if model.formula.function == "two-stage" and _rounded(model.params["lambda"]) == 0.7:
        lost.append("lambda is written as 0.7000001: Xapian takes 0.7 for unset.")
    return Export({"xapian_search.py": program}, steps, reindex=True, lost=tuple(lost))


def _weighting(model: EngineText) -> str:
    value = {name: _rounded(model.params[name]) for name in model.params.names if not name.endswith(".w")}
    if model.formula.function == "bm25":
        return f"xapian.BM25Weight({value['k']!r}, 0.0, 1.0, {value['b']!r}, {model.formula.shortest!r})"
    rate = 0.7000001 if value["lambda"] == 0.7 else value["lambda"]
    numbers = f"{value['scale']!r}, xapian.Weight.TWO_STAGE_SMOOTHING, {rate!r}, {value['mu']!r}"
    return f"xapian.LMWeight({numbers})"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
