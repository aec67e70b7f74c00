"""Kernels of the features that count terms, in the order of `TERM_KINDS`: numbers of one field of one row.

`tf` is how often each of the `terms` query terms stands in the field; `idf`, `background` (p, the term's share of the
field in the whole collection) and `count` (n, times in the query) are of the terms. Numbers go to `v`: coverage and
length to 0:9, seven times five to 9:44, BM25 at other settings to 44:46, and then as far as each kernel returns.
References: Robertson and Walker 1994 (BM25); Zhai and Lafferty 2001
(the three smoothings); Salton and Buckley 1988 (cosine).
"""

from __future__ import annotations

from math import log, sqrt

from fliprank.arrays import Floats
from fliprank.kernels import kernel

__all__ = ["term_kinds"]


@kernel
def term_kinds(
    tf: Floats, terms: int, length: float, average: float, content: Floats, idf: Floats, background: Floats,
    count: Floats, x: Floats, v: Floats,
) -> int:  # fmt: skip
    """All of `TERM_KINDS`; `content` is of the field: different terms, and the squared norms of its two vectors."""
    beta = length / average if average > 0 else 1.0
    covered = _coverage(tf, terms, length, beta, idf, x[0], v)
    _weights(tf, terms, 1.0 / length if length > 0 else 0.0, beta, idf, count, x, v)
    for kind in range(7):
        _five(x[kind], covered if kind == 0 else terms, v, 9 + 5 * kind)
    at = _language_models(tf, terms, length, content[0], background, count, v, 46)
    return _cosines(tf, terms, content, idf, count, v, at)


@kernel
def _five(x: Floats, terms: int, v: Floats, at: int) -> None:
    """Sum, min, max, mean and variance; all 0 for no terms."""
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
def _coverage(tf: Floats, terms: int, length: float, beta: float, idf: Floats, x: Floats, v: Floats) -> int:
    """Coverage and length; how many terms are covered, and their idf in x."""
    covered, known, total = 0, 0.0, 0.0
    for t in range(terms):
        total += idf[t]
        if tf[t] > 0:
            x[covered] = idf[t]
            known += idf[t]
            covered += 1
    v[0] = covered
    v[1] = covered / terms if terms > 0 else 0.0
    v[2] = known / total if total > 0 else 0.0
    v[3] = 1.0 if terms > 0 and covered == terms else 0.0
    v[4] = 1.0 if covered > 0 else 0.0
    v[5], v[6], v[7], v[8] = length, log(1.0 + length), beta, total
    return covered


@kernel
def _weights(
    tf: Floats, terms: int, share: float, beta: float, idf: Floats, count: Floats, x: Floats, v: Floats
) -> None:
    """What is told by five, in the lines of x; of BM25 at other settings, only the sums (after the 7 x 5 numbers)."""
    v[44], v[45] = 0.0, 0.0
    for t in range(terms):
        f, weight = tf[t], count[t] * idf[t]
        x[1, t], x[2, t], x[3, t], x[4, t] = f, f * share, f * idf[t], f * idf[t] * share
        x[5, t], x[6, t] = 0.0, 0.0
        if f > 0:
            x[5, t] = (1.0 + log(f)) * idf[t]
            x[6, t] = weight * f / (f + 1.2 * (0.25 + 0.75 * beta))
            v[44] += weight * f / (f + 0.9 * (0.6 + 0.4 * beta))
            v[45] += weight * f / (f + 2.0 * beta)


@kernel
def _language_models(
    tf: Floats, terms: int, length: float, different: float, background: Floats, count: Floats, v: Floats, at: int
) -> int:
    """Log likelihoods of the query; terms that the field has in no document are left out, as they tell nothing."""
    for i in range(6):
        v[at + i] = 0.0
    for t in range(terms):
        p, n = background[t], count[t]
        if p > 0:
            for i in range(2):
                mu, jelinek, delta = (2000.0, 0.1, 0.7) if i == 0 else (100.0, 0.7, 0.3)
                v[at + i] += n * log((tf[t] + mu * p) / (length + mu))
                mixed = (1.0 - jelinek) * tf[t] / length + jelinek * p if length > 0 else p
                v[at + 2 + i] += n * log(mixed)
                cut = (max(tf[t] - delta, 0.0) + delta * different * p) / length if length > 0 else p
                v[at + 4 + i] += n * log(cut)
    return at + 6


@kernel
def _cosines(tf: Floats, terms: int, content: Floats, idf: Floats, count: Floats, v: Floats, at: int) -> int:
    own, plain, damped = 0.0, 0.0, 0.0
    for t in range(terms):
        weight = count[t] * idf[t]
        own += weight * weight
        if tf[t] > 0:
            plain += weight * tf[t] * idf[t]
            damped += weight * (1.0 + log(tf[t])) * idf[t]
    v[at] = plain / sqrt(own * content[1]) if own * content[1] > 0 else 0.0
    v[at + 1] = damped / sqrt(own * content[2]) if own * content[2] > 0 else 0.0
    return at + 2
