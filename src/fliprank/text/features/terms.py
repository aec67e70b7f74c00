"""Kernels of the features that count terms, in the order of `TERM_KINDS`: the values of one field of one row.

References: Robertson and Walker 1994 (BM25); Zhai and Lafferty 2001 (the three smoothings); Salton and Buckley 1988
(cosine).
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from fliprank.arrays import Floats
from fliprank.kernels import kernel
from fliprank.models.bm25 import length_norm, saturated

__all__ = ["SUMMARISED", "FieldTerms", "term_kinds"]

IDF, TF, TF_SHARE, TFIDF, TFIDF_SHARE, LOG_TFIDF, BM25 = range(7)
SUMMARISED = 7
"""Numbers per query term, the rows of `x`, of which `v` has sum, min, max, mean and variance."""
SUMMARIES = 9
OTHER_BM25 = SUMMARIES + 5 * SUMMARISED
LANGUAGE_MODELS = OTHER_BM25 + 2
COSINES = LANGUAGE_MODELS + 6
END = COSINES + 2
"""Places in `v`, where the kernels write the values of the kinds: coverage and length come first."""
SMOOTHINGS = ((2000.0, 0.1, 0.7), (100.0, 0.7, 0.3))
"""mu of Dirichlet, lambda of Jelinek-Mercer, delta of absolute discounting: two settings of each."""


class FieldTerms(NamedTuple):
    """Per query term: `tf` in the field, `idf`, `background` (p, its share of the field in the collection), `times`
    (n, in the query).

    Of the field: its length, its average length, and its `content`: the number of distinct terms, and the squared norms
    of its vectors tf idf and (1 + ln tf) idf.
    """

    tf: Floats
    idf: Floats
    background: Floats
    times: Floats
    length: float
    average: float
    content: Floats


@kernel
def term_kinds(field: FieldTerms, x: Floats, v: Floats) -> int:
    """Write all of `TERM_KINDS` to `v`; returns how many there are. `x` is room for `SUMMARISED` rows."""
    ratio = field.length / field.average if field.average > 0 else 1.0
    covered, terms = _coverage(field, ratio, x[IDF], v), len(field.idf)
    _weights(field, ratio, x, v)
    for row in range(SUMMARISED):
        _summarise(x[row], covered if row == IDF else terms, v, SUMMARIES + 5 * row)
    _language_models(field, v)
    _cosines(field, v)
    return END


@kernel
def _summarise(x: Floats, terms: int, v: Floats, at: int) -> None:
    """Sum, min, max, mean and variance; all are 0 if there are no terms."""
    total, least, most = 0.0, 0.0, 0.0
    for t in range(terms):
        total += x[t]
        least = x[t] if t == 0 else min(least, x[t])
        most = x[t] if t == 0 else max(most, x[t])
    mean = total / terms if terms > 0 else 0.0
    spread = 0.0
    for t in range(terms):
        spread += (x[t] - mean) ** 2
    v[at], v[at + 1], v[at + 2], v[at + 3] = total, least, most, mean
    v[at + 4] = spread / terms if terms > 0 else 0.0


@kernel
def _coverage(field: FieldTerms, ratio: float, x: Floats, v: Floats) -> int:
    """Coverage and length; returns how many terms the field has, and writes their idf to x."""
    covered, known, total, terms = 0, 0.0, 0.0, len(field.idf)
    for t in range(terms):
        total += field.idf[t]
        if field.tf[t] > 0:
            x[covered] = field.idf[t]
            known += field.idf[t]
            covered += 1
    v[0] = covered
    v[1] = covered / terms if terms > 0 else 0.0
    v[2] = known / total if total > 0 else 0.0
    v[3] = 1.0 if terms > 0 and covered == terms else 0.0
    v[4] = 1.0 if covered > 0 else 0.0
    v[5], v[6], v[7], v[8] = field.length, log(1.0 + field.length), ratio, total
    return covered


@kernel
def _weights(field: FieldTerms, ratio: float, x: Floats, v: Floats) -> None:
    """The rows of x that are summarised; of BM25 at other settings, the sums only."""
    share = 1.0 / field.length if field.length > 0 else 0.0
    usual, mild, strong = 1.2 * length_norm(0.75, ratio), 0.9 * length_norm(0.4, ratio), 2.0 * length_norm(1.0, ratio)
    v[OTHER_BM25], v[OTHER_BM25 + 1] = 0.0, 0.0
    for t in range(len(field.idf)):
        tf, idf = field.tf[t], field.idf[t]
        weight = field.times[t] * idf
        x[TF, t], x[TF_SHARE, t], x[TFIDF, t], x[TFIDF_SHARE, t] = tf, tf * share, tf * idf, tf * idf * share
        x[LOG_TFIDF, t] = (1.0 + log(tf)) * idf if tf > 0 else 0.0
        x[BM25, t] = saturated(weight, tf, usual)
        v[OTHER_BM25] += saturated(weight, tf, mild)
        v[OTHER_BM25 + 1] += saturated(weight, tf, strong)


@kernel
def _language_models(field: FieldTerms, v: Floats) -> None:
    """Log likelihoods of the query; terms that this field has in no document are left out, as they say nothing."""
    at, length = LANGUAGE_MODELS, field.length
    for i in range(6):
        v[at + i] = 0.0
    for t in range(len(field.idf)):
        tf, p, n = field.tf[t], field.background[t], field.times[t]
        if p > 0:
            for i in range(2):
                mu, jelinek, delta = SMOOTHINGS[i]
                v[at + i] += n * log((tf + mu * p) / (length + mu))
                mixed = (1.0 - jelinek) * tf / length + jelinek * p if length > 0 else p
                v[at + 2 + i] += n * log(mixed)
                cut = (max(tf - delta, 0.0) + delta * field.content[0] * p) / length if length > 0 else p
                v[at + 4 + i] += n * log(cut)


@kernel
def _cosines(field: FieldTerms, v: Floats) -> None:
    own, plain, damped = 0.0, 0.0, 0.0
    for t in range(len(field.idf)):
        tf, idf = field.tf[t], field.idf[t]
        weight = field.times[t] * idf
        own += weight * weight
        if tf > 0:
            plain += weight * tf * idf
            damped += weight * (1.0 + log(tf)) * idf
    v[COSINES] = plain / sqrt(own * field.content[1]) if own * field.content[1] > 0 else 0.0
    v[COSINES + 1] = damped / sqrt(own * field.content[2]) if own * field.content[2] > 0 else 0.0
