"""The text function of a search engine, with exact derivatives: what `tune --engine` fits.

The parameters are what a user sets in the engine, by field (`title.w`, `title.k`) or for all (`k`). Rows need the
document frequencies by field that an index has: an engine takes the idf of a term anew for each field, or from the
largest, and so does this model.

>>> from fliprank.data.ids import Ids
>>> from fliprank.data.term_statistics import TermStatistics
>>> terms = TermStatistics(("title", "body"), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[1, 3], [0, 2]],
...                        [[2, 9], [4, 3]], documents=10, tokens=[30, 60], df=[4], field_df=[[1, 4]],
...                        field_documents=[10, 10])
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> model = EngineText(Formula("lucene", "most_fields", lengths="byte")).prepared(rows, 0)
>>> model.params.free_names
('title.w', 'body.w', 'title.k', 'body.k', 'title.b', 'body.b')
>>> model.score(rows).round(5).tolist()          # the first: log(1 + 9.5 / 1.5) / 1.9 + log(1 + 6.5 / 4.5) 3 / 4.65
[1.6253, 0.65005]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError
from fliprank.models.base import UNKNOWN, Model, Seed, register, row_gradient
from fliprank.models.engine.formula import COMBINATIONS, TERMS, Formula, idf_table, rounded_lengths
from fliprank.models.engine.kernels import WIDTH, Kinds, Rows, Texts, gradient, parts_of_lines, scores
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.standardised import chunks_of
from fliprank.models.term_rows import field_columns, field_names, restored_fields, statistics_of, term_rows

__all__ = ["EngineText"]

COLUMN = {"w": 0, "k": 1, "mu": 1, "lambda": 1, "b": 2, "d": 3, "scale": 3}
"""Where the kernels have a setting; beside mu, lambda is in the column of b."""
FIRM = {"w": 1.0, "k": 2.0, "mu": 1.0, "lambda": 16.0, "b": 16.0, "d": 4.0, "tie": 16.0, "scale": 0.2}
"""How firmly a prior holds each: 1 / (how far off it may well be)², in logarithms but for b, lambda and tie."""


@register
@dataclass(frozen=True, eq=False)
class EngineText(Model):
    """The text function of an engine (`formula`) over these fields, with what the engine lets its users set.

    `tokens` and `counted` are the length of each field, all documents together, and the documents that it is an average
    over; both come from the rows' collection.
    """

    kind: ClassVar[str] = "engine"
    summary: ClassVar[str] = "the text function of a search engine: see --engine"
    needs: ClassVar[frozenset[str]] = frozenset({"terms"})
    terms: ClassVar[tuple[str, ...]] = tuple(name for name in TERMS if name != "ts_rank")
    """What a formula may say of terms to be computed by this class."""
    formula: Formula = field(default=None)  # type: ignore[assignment]
    fields: tuple[str, ...] | None = None
    tokens: Floats | None = field(default=None, kw_only=True)
    counted: Floats | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.formula, Formula):
            raise UsageError("which engine? give --engine, or make the model by fr.engine_model(name, fields)")
        if self.formula.term not in self.terms:
            raise UsageError(f"a formula of {self.formula.term} is no model of kind {self.kind}")
        object.__setattr__(self, "fields", field_names(self.fields))
        for name in ("tokens", "counted"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        if self.params is UNKNOWN and self.fields is not None:
            object.__setattr__(self, "params", self._parameters(self.fields))

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        table, fixed = dict[str, tuple[float, float, float]](), list[str]()
        for setting in self.formula.settings:
            names = [f"{name}.{setting.name}" for name in fields] if setting.each else [setting.name]
            table |= dict.fromkeys(names, setting[1:4])
            fixed += [] if setting.free else names
        return Parameters.of(table).fix(fixed)

    @property
    def ready(self) -> bool:
        return self.tokens is not None

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields of these rows and the lengths of their collection, unless it has them."""
        terms = statistics_of(train)
        columns = field_columns(terms, self.fields or terms.fields)
        tokens = terms.distinct_tokens if self.formula.lengths == "distinct" else terms.tokens
        needed = {"tokens": tokens, "field_df": terms.field_df, "field_documents": terms.field_documents}
        if missing := [name for name, value in needed.items() if value is None]:
            raise InputError(
                f"{self.formula.engine} needs to know the whole collection, and these rows lack {', '.join(missing)}",
                hint="take them from documents (--docs) or from an index",
            )
        if self.ready:
            return self
        assert tokens is not None
        assert terms.field_documents is not None
        all_of_them = np.full(len(columns), float(terms.documents))
        counted = terms.field_documents[columns] if self.formula.documents == "field" else all_of_them
        return replace(self, fields=self.fields or terms.fields, tokens=tokens[columns], counted=counted)

    @property
    def penalty_weights(self) -> Floats:
        return np.array([FIRM[name.rpartition(".")[2]] for name in self.params.names])

    def score(self, candidates: Candidates) -> Floats:
        out = np.empty(len(candidates))
        scores(self._kinds(), self._rows(candidates), self._texts(), chunks_of(len(out)), out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given, places = row_gradient(candidates, dscores), self._places()
        parts = np.zeros((chunks_of(len(given)), len(places)))
        gradient(self._kinds(), self._rows(candidates), self._texts(), given, parts)
        moved = places >= 0
        return np.bincount(places[moved], parts.sum(axis=0)[moved], len(self.params)).astype(np.float64)

    def parts(self, candidates: Candidates) -> Floats:
        """What each line of `term_rows` gives in each field; those of a row add up to its score."""
        rows = self._rows(candidates)
        out = np.zeros((len(rows.term), rows.tf.shape[1]))
        parts_of_lines(self._kinds(), rows, self._texts(), chunks_of(len(candidates)), out)
        return out

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights of fields that are added up move."""
        moved = np.flatnonzero(self.params.direction(direction))
        return (
            self.formula.fields == "sum"
            and not self.formula.step
            and all(self.params.names[i].endswith(".w") for i in moved)
        )

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of this engine are linear along weights of fields only, and only in a sum")
        weights = [name.endswith(".w") for name in self.params.names]
        values = np.where(weights, self.params.direction(direction), self.params.values)
        return replace(self, params=self.params.at(values)).score(candidates)

    def _known(self) -> tuple[tuple[str, ...], Floats, Floats]:
        if self.fields is None or self.tokens is None or self.counted is None:
            raise UsageError(f"this model of {self.formula.engine} knows no lengths yet: call prepared(train, rng)")
        return self.fields, self.tokens, self.counted

    def _places(self) -> Ints:
        """For each number of the kernels (w, k, b, d of each field; tie) the parameter that it is, -1 for none."""
        assert self.fields is not None
        at = {name: i for i, name in enumerate(self.params.names)}
        out = np.full((len(self.fields), WIDTH), -1)
        for setting in self.formula.settings:
            if setting.name in COLUMN:
                names = [f"{name}.{setting.name}" if setting.each else setting.name for name in self.fields]
                beside_mu = setting.name == "lambda" and self.formula.setting("mu") is not None
                out[:, COLUMN["b" if beside_mu else setting.name]] = [at[name] for name in names]
        return np.append(out.ravel(), at.get("tie", -1))

    def _texts(self) -> Texts:
        _, tokens, counted = self._known()
        places = self._places()
        values = np.where(places >= 0, self.params.values[places], 0.0)
        theta = values[:-1].reshape(-1, WIDTH)
        if self.formula.setting("w") is None:
            theta[:, 0] = 1.0
        most = counted.max(initial=0.0)
        if self.formula.fields == "one_text":
            counted = np.full(len(counted), most)
        average = np.divide(tokens, counted, out=np.zeros(len(tokens)), where=counted > 0)
        if self.formula.whole_length:
            average[:] = average.sum()
        every = theta[:, 0] * tokens if self.formula.weighted_length else tokens
        every = np.floor(every) if self.formula.lengths == "byte" else every  # Lucene's are whole numbers
        return Texts(theta, average, every.sum() / most if most > 0 else 0.0, values[-1])

    def _kinds(self) -> Kinds:
        formula = self.formula
        return Kinds(
            TERMS.index(formula.term),
            COMBINATIONS.index(formula.fields),
            formula.k_plus_1,
            formula.d_inside,
            formula.lengths == "byte",
            formula.weighted_length,
            formula.shortest,
            formula.step,
        )

    def _rows(self, candidates: Candidates) -> Rows:
        """As kernels read them; built once per `Candidates`."""
        fields, _, _ = self._known()
        key = ("engine rows", self.formula, fields)
        if key not in candidates.memo:
            candidates.memo[key] = self._rows_of(candidates, fields)
        found: Rows = candidates.memo[key]
        return found

    def _rows_of(self, candidates: Candidates, fields: tuple[str, ...]) -> Rows:
        terms, lines, formula = statistics_of(candidates), term_rows(candidates, fields), self.formula
        length, tf = self._lengths(terms, fields), lines.tf
        if formula.whole_length:
            length = np.repeat(length.sum(axis=1, keepdims=True), len(fields), axis=1)
        owner = np.repeat(np.arange(len(candidates)), np.diff(lines.starts))
        if formula.presence:
            tf = (tf > 0).astype(np.float32)
        if formula.share_of_field:
            tf = np.divide(tf, length[owner], out=np.zeros(tf.shape), where=length[owner] > 0)
        scale = np.ones(len(candidates))
        if formula.coordination:
            scale *= np.bincount(owner, tf.any(axis=1), len(candidates))
        if formula.query_norm:
            scale /= _query_norms(terms)[candidates.query_of_rows()]
        idf = self._backgrounds(terms, fields) if formula.term != "bm25" else self._idf(terms, fields)
        return Rows(
            lines.starts,
            lines.term,
            frozen(tf, np.float32),
            frozen(length, np.float32),
            frozen(idf, np.float64),
            frozen(np.minimum(terms.count, 1.0), np.float64) if formula.query_once else terms.count,
            frozen(scale, np.float64),
        )

    def _lengths(self, terms: TermStatistics, fields: tuple[str, ...]) -> Floats:
        """Of each row and field, as the engine counts and keeps them."""
        given = terms.distinct if self.formula.lengths == "distinct" else terms.length
        if given is None:
            raise InputError("these rows do not say how many different terms each field has")
        return rounded_lengths(given[:, field_columns(terms, fields)].astype(np.float64), self.formula.lengths)

    def _idf(self, terms: TermStatistics, fields: tuple[str, ...]) -> Floats:
        """terms x fields; of one text, all columns are alike."""
        columns, counted = field_columns(terms, fields), self._known()[2]
        assert terms.field_df is not None
        df = terms.field_df[:, columns]
        if self.formula.df == "field":
            return idf_table(self.formula.idf, df, counted)
        if self.formula.df == "any" and terms.df is None:
            raise InputError("these rows do not say how many documents have each term in any field")
        of_all = {"any": terms.df, "largest": df.max(axis=1, initial=0.0), "added": df.sum(axis=1)}[self.formula.df]
        assert of_all is not None
        idf = idf_table(self.formula.idf, of_all, counted.max(initial=0.0))
        return np.repeat(idf[:, None], len(fields), axis=1)

    def _backgrounds(self, terms: TermStatistics, fields: tuple[str, ...]) -> Floats:
        """How likely a term is in the collection: Lucene adds one to occurrences and tokens, Xapian does not."""
        columns = field_columns(terms, fields)
        if terms.collection is None:
            raise InputError("these rows do not say how often each term stands in the collection")
        found, tokens = terms.collection[:, columns], self._known()[1]
        if self.formula.whole_length:
            tokens = np.full(len(tokens), tokens.sum())
        if self.formula.term == "two-stage":
            return np.divide(found, tokens, out=np.zeros(found.shape), where=tokens > 0)
        return (found + 1.0) / (tokens + 1.0)

    def structure(self) -> dict[str, Any]:
        fields, tokens, counted = self._known()
        each = zip(fields, tokens.tolist(), counted.tolist(), strict=True)
        known = [{"name": name, "tokens": total, "documents": number} for name, total, number in each]
        return {"formula": self.formula.structure(), "fields": known}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        fields, records = restored_fields(structure)
        tokens, counted = (np.array([each.number(name) for each in records]) for name in ("tokens", "documents"))
        if min(tokens.min(), counted.min()) < 0:
            raise InputError("a number of tokens or documents is negative", path=structure.path)
        return cls(Formula.restore(structure.record("formula")), fields, tokens=tokens, counted=counted)


def _query_norms(terms: TermStatistics) -> Floats:
    """The root of the sum of squares of how often each term that the collection has stands in the query."""
    known = terms.count if terms.df is None else terms.count * (terms.df > 0)
    sums = np.add.reduceat(np.append(known**2, 0.0), terms.offsets[:-1]) * (np.diff(terms.offsets) > 0)
    return np.sqrt(np.where(sums > 0, sums, 1.0))
