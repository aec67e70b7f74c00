"""Lucene's text functions, which Elasticsearch, OpenSearch and Solr score with; for Lucene itself, as Java.

most_fields       sum over fields of w BM25(field), with k1 and b of each field
best_fields       the best field's BM25, and `tie` times that of the others
combined_fields   BM25 of one text in which a field stands w times: one k1 and b, weights of 1 or more
lm_dirichlet, lm_jelinek_mercer   sum over fields of w times the language model's score, with mu or lambda of each field

BM25 is idf tf / (tf + k1 (1 - b + b length / average)), idf = log(1 + (N - df + .5) / (df + .5)). N, df and averages
are those of the documents that have the field; lengths are kept in one byte. Elasticsearch still multiplies by k1 + 1,
as Lucene did before version 8: that changes the order where fields differ in k1.

`most_fields` comes first: it is what can be set most freely (weight, k1 and b of every field), and `best_fields`, which
Elasticsearch takes if nothing is said, is the same with tie_breaker 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting
from fliprank.models.engine.formula import BM25_SETTINGS

__all__ = ["LM_SIMILARITIES", "kept_fields", "lucene_formulas", "number", "similarity_of"]

TIE = Setting("tie", 0.0, 0.0, 1.0)
WEIGHT = Setting("w", 1.0, each=True)
COMBINED_SETTINGS = (Setting("w", 1.0, 1.0, each=True), Setting("k", 1.2), Setting("b", 0.75, 0.0, 1.0))
MU, LAMBDA = Setting("mu", 2000.0, 1.0, each=True), Setting("lambda", 0.1, 0.001, 1.0, each=True)
LM_SIMILARITIES = {"lm_dirichlet": ("LMDirichlet", "mu"), "lm_jelinek_mercer": ("LMJelinekMercer", "lambda")}
"""By function, the engine's name of the similarity and the parameter that it has."""

DIGITS = 6
DROPPED = 1e-4
"""A field whose weight is below this share of the largest is left out: it can hardly change an order."""


def lucene_formulas(engine: str, *, k_plus_1: bool = False) -> tuple[Formula, ...]:
    """The functions of an engine that scores with Lucene; `k_plus_1`: its BM25 is multiplied by k1 + 1."""
    bm25 = {"lengths": "byte", "k_plus_1": k_plus_1}
    return (
        Formula(engine, "most_fields", **bm25, settings=BM25_SETTINGS),  # type: ignore[arg-type]
        Formula(engine, "best_fields", fields="best_field", **bm25, settings=(*BM25_SETTINGS, TIE)),  # type: ignore[arg-type]
        Formula(engine, "combined_fields", fields="one_text", df="largest", **bm25, settings=COMBINED_SETTINGS),  # type: ignore[arg-type]
        Formula(engine, "lm_dirichlet", term="dirichlet", lengths="byte", settings=(WEIGHT, MU)),
        Formula(engine, "lm_jelinek_mercer", term="jelinek-mercer", lengths="byte", settings=(WEIGHT, LAMBDA)),
    )


register_functions(*lucene_formulas("lucene"))


def number(value: float) -> float:
    """As it is written: six digits, which is all that float32 keeps.

    >>> number(1.23456789), number(0.75), number(2000.0)
    (1.23457, 0.75, 2000.0)
    """
    return float(f"{value:.{DIGITS}g}")


def kept_fields(model: EngineText) -> tuple[dict[str, float], list[str]]:
    """The weight of each field that counts, as it is written; and the fields that are left out."""
    weights = {name: model.params[f"{name}.w"] for name in model.fields or ()}
    least = DROPPED * max(weights.values())
    kept = {name: number(weight) for name, weight in weights.items() if weight > least}
    kept = kept or dict.fromkeys(weights, 1.0)
    return kept, [name for name in weights if name not in kept]


def similarity_of(model: EngineText, field: str) -> dict[str, float | str]:
    """The type and the parameters of a field's similarity, by the names that Lucene's engines have for them."""
    params, function = model.params, model.formula.function
    if function in LM_SIMILARITIES:
        kind, name = LM_SIMILARITIES[function]
        return {"type": kind, name: number(params[f"{field}.{name}"])}
    apart = f"{field}.k" in params.names
    k, b = (params[f"{field}.{name}" if apart else name] for name in "kb")
    return {"type": "BM25", "k1": number(k), "b": number(b)}


@target("lucene", "text, as Java: a similarity per field and the query", takes_text_of("lucene"))
def write(model: EngineText, about: About) -> Export:
    """One class with the similarity and the query of a list of terms."""
    kept, dropped = kept_fields(model)
    combined = model.formula.function == "combined_fields"
    lost = [f"Field {name} is left out: its weight is next to nothing." for name in dropped]
    lost.append("Your analyzer cuts the text; fliprank tuned on terms of its own analyzer.")
    steps = (
        "Add TunedRanking.java to your program, which has lucene-core"
        + (" and lucene-sandbox of version 9 or 10." if combined else " of version 8 or newer."),
        "Call searcher.setSimilarity(TunedRanking.similarity()) on every IndexSearcher.",
        "Search by TunedRanking.query(terms), with the terms that your analyzer makes of the query.",
    )
    return Export({"TunedRanking.java": "\n".join(_java(model, kept)) + "\n"}, steps, lost=tuple(lost))


def _java(model: EngineText, kept: dict[str, float]) -> Iterator[str]:
    function = model.formula.function
    combined = function == "combined_fields"
    yield "import java.util.ArrayList;"
    yield "import java.util.List;"
    yield "import org.apache.lucene.index.Term;"
    if combined:
        yield "import org.apache.lucene.sandbox.search.CombinedFieldQuery;"
    yield "import org.apache.lucene.search.*;"
    yield "import org.apache.lucene.search.similarities.*;"
    if combined:
        yield "import org.apache.lucene.util.BytesRef;"
    yield ""
    yield f"/** {function}, as fliprank tuned it. */"
    yield "public final class TunedRanking {"
    yield from _java_combined(model, kept) if combined else _java_fields(model, kept)
    yield "}"


def _java_similarity(model: EngineText, field: str) -> str:
    kind, *values = similarity_of(model, field).values()
    return f"new {kind}Similarity({', '.join(f'{value}f' for value in values)})"


def _java_fields(model: EngineText, kept: dict[str, float]) -> Iterator[str]:
    tie = number(model.params["tie"]) if model.formula.function == "best_fields" else 1.0
    yield "    private TunedRanking() {}"
    yield ""
    yield "    public static Similarity similarity() {"
    yield "        return new PerFieldSimilarityWrapper() {"
    yield "            @Override public Similarity get(String field) {"
    yield "                switch (field) {"
    for name in kept:
        yield f"                    case {_quoted(name)}: return {_java_similarity(model, name)};"
    yield "                    default: return new BM25Similarity();"
    yield "                }"
    yield "            }"
    yield "        };"
    yield "    }"
    yield ""
    yield "    /** The sum over terms in each field; of fields, the best and the tie breaker times the others. */"
    yield "    public static Query query(List<String> terms) {"
    yield "        List<Query> fields = new ArrayList<>();"
    for name, weight in kept.items():
        yield f"        fields.add(new BoostQuery(some({_quoted(name)}, terms), {weight}f));"
    yield f"        return new DisjunctionMaxQuery(fields, {tie}f);"
    yield "    }"
    yield ""
    yield "    private static Query some(String field, List<String> terms) {"
    yield "        BooleanQuery.Builder query = new BooleanQuery.Builder();"
    yield "        for (String term : terms) {"
    yield "            query.add(new TermQuery(new Term(field, term)), BooleanClause.Occur.SHOULD);"
    yield "        }"
    yield "        return query.build();"
    yield "    }"


def _java_combined(model: EngineText, kept: dict[str, float]) -> Iterator[str]:
    yield "    private TunedRanking() {}"
    yield ""
    yield "    public static Similarity similarity() {"
    yield f"        return {_java_similarity(model, next(iter(kept)))};"
    yield "    }"
    yield ""
    yield "    /** One query per term: of several terms, CombinedFieldQuery makes synonyms. */"
    yield "    public static Query query(List<String> terms) {"
    yield "        BooleanQuery.Builder query = new BooleanQuery.Builder();"
    yield "        for (String term : terms) {"
    yield "            CombinedFieldQuery.Builder fields = new CombinedFieldQuery.Builder();"
    for name, weight in kept.items():
        yield f"            fields.addField({_quoted(name)}, {weight}f);"
    yield "            fields.addTerm(new BytesRef(term));"
    yield "            query.add(fields.build(), BooleanClause.Occur.SHOULD);"
    yield "        }"
    yield "        return query.build();"
    yield "    }"


def _quoted(name: str) -> str:
    """As a string of Java: JSON's escapes are Java's, too."""
    return json.dumps(name)
