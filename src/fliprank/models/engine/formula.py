"""How an engine scores text: a few choices that tell one engine's BM25 from another's, and what a user can set there.

Every engine here gives a query term in a field (or in all fields as one text) a score, weighs and adds these up. They
differ in whose document frequencies an idf comes from, in how lengths are kept, in how fields are combined. A `Formula`
is these choices; it is data, so that a saved model needs nothing but itself.

>>> lucene = Formula("lucene", "most_fields", lengths="byte")
>>> rounded_lengths(np.array([40, 41, 100, 333, 1000]), lucene.lengths).tolist()
[40.0, 40.0, 96.0, 312.0, 984.0]
>>> idf_table("lucene", np.array([1.0, 3.0]), 3).round(4).tolist()
[0.9808, 0.1335]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.models.folder import Record
from fliprank.naming import unknown

__all__ = ["IDFS", "LENGTHS", "Formula", "Setting", "idf_table", "rounded_lengths"]


class Setting(NamedTuple):
    """A number that a user of the engine sets: `w` (the weight of a field), `k`, `b`, `d`, `mu`, `lambda`, `tie`
    or `scale` (what probabilities are multiplied by before their logarithm is taken).

    `each`: there is one for every field. `free`: it can be set there without rebuilding the engine; one that is not is
    a constant of the engine's.
    """

    name: str
    default: float
    lower: float = 0.0
    upper: float = inf
    each: bool = False
    free: bool = True


BM25_SETTINGS = (Setting("w", 1.0, each=True), Setting("k", 1.2, each=True), Setting("b", 0.75, 0.0, 1.0, each=True))


@dataclass(frozen=True)
class Formula:
    """What an engine computes. `engine` and `function` name it.

    term: how a term scores in a field: "bm25", "dirichlet", "jelinek-mercer", "two-stage", or "ts_rank", which is a
        model of its own (`ts_rank.py`).
    fields: "sum", "best_field" (the best field, and `tie` times the others), "best_field_per_term" (the same for each
        term), "one_text" (all fields as one text, in which a field counts w times: its frequencies and its length).
    idf: a name of `IDFS`. df: whose document frequency it takes: that of the "field", of "any" field (documents with
        the term in some field), the "largest" of the fields', or those of all fields "added".
    documents: "field" counts only documents that have the field, in N and in averages; "all" counts all.
    lengths: how the engine keeps them, a name of `LENGTHS`; "distinct" counts different terms only. weighted_length:
        in "one_text", whether lengths are weighted as frequencies are. shortest: a ratio of length and
        average below this counts as this. whole_length: the length of a field is that of the document, all fields
        together, and so are its average and its tokens.
    k_plus_1: multiply by k + 1. d_inside: d is added within the fraction, not to it.
    presence: tf is 1 for every term that a field has. share_of_field: tf is divided by the length of the field.
    query_once: a term counts once, however often it stands in the query. step: a term's score in a field, with its
        weight, is rounded to a multiple of this; gradients are those before rounding.
    coordination: multiply by the number of query terms that the document has. query_norm: divide by the root of the sum
        of squares of the times each term stands in the query.
    """

    engine: str
    function: str
    term: str = "bm25"
    fields: str = "sum"
    idf: str = "lucene"
    df: str = "field"
    documents: str = "field"
    lengths: str = "exact"
    weighted_length: bool = True
    shortest: float = 0.0
    whole_length: bool = False
    k_plus_1: bool = False
    d_inside: bool = False
    presence: bool = False
    share_of_field: bool = False
    query_once: bool = False
    step: float = 0.0
    coordination: bool = False
    query_norm: bool = False
    settings: tuple[Setting, ...] = BM25_SETTINGS

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", tuple(Setting(*setting) for setting in self.settings))
        known = {
            "term": TERMS,
            "fields": COMBINATIONS,
            "idf": IDFS,
            "df": DF,
            "documents": DOCUMENTS,
            "lengths": LENGTHS,
        }
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise unknown(f"{name} of a formula", getattr(self, name), getattr(self, name), list(choices))
        if names := {setting.name for setting in self.settings} - set(NAMES):
            raise UsageError(f"a formula has no setting {min(names)}; it has {', '.join(NAMES)}")

    def setting(self, name: str) -> Setting | None:
        """What a user can set under this name; None if the formula has no such number."""
        return next((setting for setting in self.settings if setting.name == name), None)

    def structure(self) -> dict[str, Any]:
        """As JSON; what has no upper bound has none there."""
        told = {name: value for name, value in asdict(self).items() if name != "settings"}
        settings = [{k: v for k, v in setting._asdict().items() if v != inf} for setting in self.settings]
        return told | {"settings": settings}

    @classmethod
    def restore(cls, record: Record) -> Formula:
        """From a file that is not trusted."""
        given: dict[str, Any] = {}
        for each in fields(cls):
            if each.name == "settings":
                given["settings"] = tuple(_setting(entry) for entry in record.records("settings"))
            elif record.has(each.name):
                read: dict[str, Callable[[str], Any]] = {
                    "str": record.text,
                    "float": record.number,
                    "bool": record.flag,
                }
                given[each.name] = read[str(each.type)](each.name)
        return cls(**given)


def _setting(entry: Record) -> Setting:
    upper = entry.number("upper") if entry.has("upper") else inf
    numbers = entry.number("default"), entry.number("lower"), upper
    return Setting(entry.text("name"), *numbers, each=entry.flag("each"), free=entry.flag("free"))


NAMES = ("w", "k", "b", "d", "mu", "lambda", "tie", "scale")
TERMS = ("bm25", "dirichlet", "jelinek-mercer", "two-stage", "ts_rank")
COMBINATIONS = ("sum", "best_field", "best_field_per_term", "one_text")
DF, DOCUMENTS = ("field", "any", "largest", "added"), ("field", "all")

IDFS: dict[str, Callable[[Floats, Any], Floats]] = {
    "lucene": lambda df, n: np.log1p((n - df + 0.5) / (df + 0.5)),
    "log10": lambda df, n: np.log10(1.0 + (n - df + 0.5) / (df + 0.5)),
    "sqlite": lambda df, n: _floored(np.log((n - df + 0.5) / (df + 0.5)), 1e-6),
    "whoosh": lambda df, n: np.log(n / (df + 1.0)) + 1.0,
    "lunr": lambda df, n: np.log(1.0 + np.abs((n - df + 0.5) / (df + 0.5))),
    "xapian": lambda df, n: _xapian((n - df + 0.5) / (df + 0.5)),
}
"""idf from the document frequency and the number of documents, as engines have it."""


def _floored(values: Floats, least: float) -> Floats:
    return np.where(values <= 0.0, least, values)


def _xapian(odds: Floats) -> Floats:
    """Terms of more than a third of the documents are lifted, so that no term counts against a document."""
    return np.log(np.where(odds < 2.0, 1.0 + odds / 2.0, odds))


def idf_table(name: str, df: Floats, documents: Any) -> Floats:
    """The idf of terms with these document frequencies."""
    return IDFS[name](np.asarray(df, np.float64), np.asarray(documents, np.float64))


def _byte_lengths(length: Floats) -> Floats:
    """Lucene's: to 24 as they are, then the four leading bits of what is above 24."""
    whole = np.asarray(length, np.int64)
    over = np.maximum(whole - 24, 0)
    shift = np.maximum(np.frexp(over.astype(np.float64))[1] - 4, 0)
    return np.where(whole < 24, whole, 24 + (over >> shift << shift)).astype(np.float64)


def _whoosh_lengths(length: Floats) -> Floats:
    """Whoosh's: the next of 256 lengths, 27 (1.033^i - 1) in whole numbers, that is not below."""
    table = np.round((1.033 ** np.arange(256) - 1) * 27)
    return table[np.minimum(np.searchsorted(table, length), 255)].astype(np.float64)


LENGTHS: dict[str, Callable[[Floats], Floats]] = {
    "exact": lambda length: length,
    "distinct": lambda length: length,
    "byte": _byte_lengths,
    "whoosh": _whoosh_lengths,
}
"""How engines keep the length of a field."""


def rounded_lengths(length: Floats, kept: str) -> Floats:
    """Lengths as an engine has them when it scores."""
    return LENGTHS[kept](np.asarray(length, np.float64))
