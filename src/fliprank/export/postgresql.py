"""PostgreSQL: ts_rank with a weight for each of the labels A to D, which setweight gives to the words of a field.

The formula is in `models/engine/ts_rank.py`. Words of the query are joined by "or"; for "and" ts_rank is another
function, of distances between words, which is not tuned here, and neither is ts_rank_cd. Of ts_rank's ways to divide by
length, 0, 1 and 2 are functions of their own; 8 and 16 count different words, which term statistics do not have, and 32
changes no order.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import Formula, Setting, TsRank
from fliprank.models.engine.ts_rank import LABELS, NORMALISATIONS

__all__ = ["labelled", "weights_array"]

DIGITS = 6
CONFIGURATIONS = {
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
    "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
}  # fmt: skip
"""Those that come with PostgreSQL, named for their stemmers."""

register_functions(
    *(
        Formula("postgresql", function, "ts_rank", settings=(Setting("w", 1.0, 0.0, 1.0, each=True),))
        for function in NORMALISATIONS
    )
)


def labelled(texts: list[str], configuration: str) -> str:
    """SQL: these expressions of text as one tsvector, with labels in this order."""
    each = [
        f"setweight(to_tsvector('{configuration}', {text}), '{label}')"
        for text, label in zip(texts, LABELS, strict=False)
    ]
    return " || ".join(each)


def weights_array(model: TsRank, digits: int = DIGITS) -> str:
    """The weights as ts_rank takes them: of D, C, B, A. A label that no field has gets 0."""
    values = [model.params[f"{name}.w"] for name in model.fields or ()]
    values += [0.0] * (len(LABELS) - len(values))
    return "{" + ", ".join(f"{value:.{digits}g}" for value in reversed(values)) + "}"


@target("postgresql", "text by ts_rank, by weights of the labels A to D", takes_text_of("postgresql"))
def write(model: TsRank, about: About) -> Export:
    """The column and the query; names of columns are quoted as SQL wants it."""
    fields, lost = model.fields or (), []
    configuration = _configuration(about)
    texts = [f"""coalesce("{name.replace('"', '""')}", '')""" for name in fields]
    column = (
        "ALTER TABLE documents ADD COLUMN words tsvector GENERATED ALWAYS AS (\n"
        f"    {labelled(texts, configuration)}\n) STORED;\n"
        "CREATE INDEX documents_words ON documents USING gin (words);\n"
    )
    normalisation = NORMALISATIONS[model.formula.function]
    query = (
        f"SELECT docid, ts_rank('{weights_array(model)}', words, query, {normalisation}) AS score\n"
        f"FROM documents, CAST(replace(CAST(plainto_tsquery('{configuration}', $1) AS text), ' & ', ' | ') AS tsquery)"
        " AS query\nWHERE words @@ query\nORDER BY score DESC LIMIT $2;\n"
    )
    labels = ", ".join(f"{name} has {label}" for name, label in zip(fields, LABELS, strict=False))
    steps = (
        "Give your table the column of column.sql, once; `documents` and `docid` are your own names.",
        f"Labels: {labels}. If you have such a column already, the fields must stand in it in this order.",
        "Search by query.sql: $1 is the text of the query as people type it, $2 how many documents you want.",
    )
    lost.append("Words are cut and stemmed by PostgreSQL; fliprank tuned on terms of its own analyzer.")
    lost.append("Words of a query are joined by or: for and, ts_rank is another function.")
    return Export({"column.sql": column, "query.sql": query}, steps, reindex=True, lost=tuple(lost))


def _configuration(about: About) -> str:
    """The configuration of text search that is nearest to the analyzer that was tuned on."""
    if about.analyzer is None:
        return "english"
    if about.analyzer.stemmer is None:
        return "simple"
    return about.analyzer.stemmer if about.analyzer.stemmer in CONFIGURATIONS else "english"
