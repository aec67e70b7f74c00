"""Kernels of the engines' text scores and of their gradients: fields apart, or all fields as one text.

The numbers of a field are w, k, b, d (theta, four columns); of a language model k is mu or lambda. A term's score in a
field, with idf or background I, is I (tf P + d_in) / (tf + k N) + I d_out for BM25, with P = 1 or k + 1 and N = 1 - b +
b ratio; max(0, log(1 + tf / (mu I)) + log(mu / (length + mu))) for Dirichlet smoothing, and log(1 + (1 / lambda - 1) tf
/ (length I)) for Jelinek-Mercer's: as Lucene has them. Two-stage smoothing is Xapian's, with mu in k, lambda in b and
a factor c in d: max(0, log(c ((1 - lambda) (tf + mu I) / (length + mu) + lambda I))).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints, Matrix
from fliprank.kernels import inlined_kernel, kernel, parallel_kernel, prange

__all__ = ["Kinds", "Rows", "Texts", "gradient", "parts_of_lines", "scores"]

BM25_TERM, DIRICHLET, JELINEK, TWO_STAGE = range(4)
_SUM, BEST_FIELD, BEST_FIELD_PER_TERM, ONE_TEXT = range(4)
"""In the order of `formula.TERMS` and `formula.COMBINATIONS`."""
W, K, B, D = range(4)
WIDTH = 4
"""Numbers of a field."""


class Kinds(NamedTuple):
    """Which of the formulas: how a term scores, how fields are combined, and the switches of BM25."""

    term: int
    fields: int
    k_plus_1: bool
    d_inside: bool
    byte_lengths: bool
    weighted_length: bool
    shortest: float
    step: float


class Rows(NamedTuple):
    """A row owns lines `starts[row]:starts[row + 1]` of `term` and `tf`; `idf` (terms x fields) is the background of
    language models; `times` (per term) how often it stands in the query; `scale` multiplies the score of a row."""

    starts: Ints
    term: Int32s
    tf: Matrix
    length: Matrix
    idf: Floats
    times: Floats
    scale: Floats


class Texts(NamedTuple):
    """`theta`: w, k, b, d of each field; `average`: the average length of each; `mean`: that of all as one text."""

    theta: Floats
    average: Floats
    mean: float
    tie: float


@kernel
def _term_score(kinds: Kinds, idf: float, tf: float, length: float, ratio: float, numbers: Floats, by: Floats) -> float:
    """The score of a term in a field, without the field's weight.

    `by` becomes its gradient by tf, k, b, d, and the ratio of lengths: all fields as one text need the first and last.
    """
    k, b, d = numbers[K], numbers[B], numbers[D]
    by[:] = 0.0
    if kinds.term == BM25_TERM:
        norm = 1.0 - b + b * ratio
        top, below = (k + 1.0 if kinds.k_plus_1 else 1.0), tf + k * norm
        if below <= 0.0:
            return 0.0
        above = tf * top + (d if kinds.d_inside else 0.0)
        share = above / below
        by[W] = idf * (top - share) / below
        by[K] = idf * ((tf if kinds.k_plus_1 else 0.0) - share * norm) / below
        by[WIDTH] = -idf * share * k * b / below
        by[B] = -idf * share * k * (ratio - 1.0) / below
        by[D] = idf / below if kinds.d_inside else idf
        return float(idf * (share if kinds.d_inside else share + d))
    if kinds.term == DIRICHLET:
        score = np.log(1.0 + tf / (k * idf)) + np.log(k / (length + k))
        if not score > 0.0:
            return 0.0
        by[K] = 1.0 / k - 1.0 / (length + k) - tf / (k * (k * idf + tf))
        return float(score)
    if kinds.term == TWO_STAGE:
        first = (tf + k * idf) / (length + k)
        likely = (1.0 - b) * first + b * idf
        if not d * likely > 1.0:
            return 0.0
        by[K] = (1.0 - b) * (idf - first) / ((length + k) * likely)
        by[B] = (idf - first) / likely
        by[D] = 1.0 / d
        return float(np.log(d * likely))
    rate = tf / (length * idf)
    inside = 1.0 + (1.0 / k - 1.0) * rate
    by[K] = -rate / (k * k * inside)
    return float(np.log(inside))


@kernel
def _ratio(kinds: Kinds, length: float, average: float) -> float:
    """The length over the average; 1 where either is not known."""
    ratio = length / average if length > 0.0 and average > 0.0 else 1.0
    return max(ratio, kinds.shortest)


@kernel
def _line_parts(kinds: Kinds, rows: Rows, texts: Texts, row: int, line: int, by: Floats, parts: Floats) -> None:
    """What each field gives for one term, with its weight."""
    term, theta = rows.term[line], texts.theta
    for s in range(len(parts)):
        parts[s], tf = 0.0, np.float64(rows.tf[line, s])
        if tf > 0.0:
            length = np.float64(rows.length[row, s])
            ratio = _ratio(kinds, length, texts.average[s])
            y = _term_score(kinds, rows.idf[term, s], tf, length, ratio, theta[s], by)
            part = theta[s, W] * y
            if kinds.step > 0.0:
                part = np.floor(part / kinds.step + 0.5) * kinds.step  # halves up, as JavaScript does
            parts[s] = rows.times[term] * part


@kernel
def _best(parts: Floats, tie: float) -> float:
    """The best of them and `tie` times the others."""
    return float((1.0 - tie) * parts.max() + tie * parts.sum())


@kernel
def _fields_apart(kinds: Kinds, rows: Rows, texts: Texts, row: int, work: Floats) -> float:
    """The score of one row; the sum over terms of each field is left in work[1]."""
    by, out = np.zeros(WIDTH + 1), 0.0
    work[1] = 0.0
    for line in range(rows.starts[row], rows.starts[row + 1]):
        _line_parts(kinds, rows, texts, row, line, by, work[0])
        work[1] += work[0]
        out += _best(work[0], texts.tie) if kinds.fields == BEST_FIELD_PER_TERM else work[0].sum()
    return _best(work[1], texts.tie) if kinds.fields == BEST_FIELD else out


@kernel
def _pull_fields_apart(
    kinds: Kinds, rows: Rows, texts: Texts, row: int, given: float, work: Floats, total: Floats
) -> None:
    """Add to `total` the gradient of a row's score times `given`. Of fields that compete, the first best one wins."""
    by, winner, others = np.zeros(WIDTH + 1), -1, 1.0
    if kinds.fields == BEST_FIELD:
        _fields_apart(kinds, rows, texts, row, work)
        winner, others = int(np.argmax(work[1])), texts.tie
        total[-1] += given * (work[1].sum() - work[1, winner])
    for line in range(rows.starts[row], rows.starts[row + 1]):
        if kinds.fields == BEST_FIELD_PER_TERM:
            _line_parts(kinds, rows, texts, row, line, by, work[0])
            winner, others = int(np.argmax(work[0])), texts.tie
            total[-1] += given * (work[0].sum() - work[0, winner])
        _pull_line(kinds, rows, texts, row, line, winner, others, given, by, total)


@kernel
def _pull_line(
    kinds: Kinds,
    rows: Rows,
    texts: Texts,
    row: int,
    line: int,
    winner: int,
    others: float,
    given: float,
    by: Floats,
    total: Floats,
) -> None:
    """The gradient of one term, where the field `winner` counts in full and the others `others` times."""
    term, theta = rows.term[line], texts.theta
    for s in range(len(theta)):
        tf = np.float64(rows.tf[line, s])
        if tf > 0.0:
            length = np.float64(rows.length[row, s])
            ratio = _ratio(kinds, length, texts.average[s])
            y = _term_score(kinds, rows.idf[term, s], tf, length, ratio, theta[s], by)
            share = given * rows.times[term] * (1.0 if s == winner else others)
            total[WIDTH * s + W] += share * y
            for i in range(1, WIDTH):
                total[WIDTH * s + i] += share * theta[s, W] * by[i]


@inlined_kernel
def _byte_length(length: float) -> float:
    """See `formula.rounded_lengths`; halves are rounded up, as Java does."""
    whole = np.int64(np.floor(length + 0.5))
    if whole < 24:
        return np.float64(whole)
    over, shift = whole - 24, 0
    while over >> shift >= 16:
        shift += 1
    return np.float64(24 + (over >> shift << shift))


@kernel
def _text_length(kinds: Kinds, rows: Rows, texts: Texts, row: int) -> float:
    """The length of all fields as one text, as the engine keeps it."""
    length = 0.0
    for s in range(len(texts.theta)):
        length += (texts.theta[s, W] if kinds.weighted_length else 1.0) * rows.length[row, s]
    return _byte_length(length) if kinds.byte_lengths else length


@kernel
def _one_text(kinds: Kinds, rows: Rows, texts: Texts, row: int, given: float, by: Floats, total: Floats) -> float:
    """The score of all fields as one text; k, b and d are those of the first field.

    Where `given` is not 0, the gradient times `given` is added to `total`. A length in one byte moves in steps; the
    gradient is that of the length before it is rounded.
    """
    theta, length, out, by_ratio = texts.theta, _text_length(kinds, rows, texts, row), 0.0, 0.0
    ratio = _ratio(kinds, length, texts.mean)
    for line in range(rows.starts[row], rows.starts[row + 1]):
        term, tf = rows.term[line], 0.0
        for s in range(len(theta)):
            tf += theta[s, W] * rows.tf[line, s]
        if tf > 0.0:
            out += rows.times[term] * _term_score(kinds, rows.idf[term, 0], tf, length, ratio, theta[0], by)
            if given != 0.0:
                share = given * rows.times[term]
                by_ratio += share * by[WIDTH]
                for i in range(1, WIDTH):
                    total[i] += share * by[i]
                for s in range(len(theta)):
                    total[WIDTH * s + W] += share * by[W] * rows.tf[line, s]
    if given != 0.0 and kinds.weighted_length and length > 0.0 and texts.mean > 0.0 and ratio > kinds.shortest:
        for s in range(len(theta)):
            total[WIDTH * s + W] += by_ratio * (rows.length[row, s] - ratio * texts.average[s]) / texts.mean
    return out


@parallel_kernel
def scores(kinds: Kinds, rows: Rows, texts: Texts, chunks: int, out: Floats) -> None:
    """The score of every row."""
    for c in prange(chunks):
        by, work, none = np.zeros(WIDTH + 1), np.zeros((2, len(texts.theta))), np.zeros(0)
        for row in range(len(out) * c // chunks, len(out) * (c + 1) // chunks):
            if kinds.fields == ONE_TEXT:
                out[row] = rows.scale[row] * _one_text(kinds, rows, texts, row, 0.0, by, none)
            else:
                out[row] = rows.scale[row] * _fields_apart(kinds, rows, texts, row, work)


@parallel_kernel
def gradient(kinds: Kinds, rows: Rows, texts: Texts, dscores: Floats, parts: Floats) -> None:
    """For each chunk of the rows, the gradient by w, k, b, d of each field, and by tie."""
    chunks, count = len(parts), len(dscores)
    for c in prange(chunks):
        by, work = np.zeros(WIDTH + 1), np.zeros((2, len(texts.theta)))
        for row in range(count * c // chunks, count * (c + 1) // chunks):
            given = dscores[row] * rows.scale[row]
            if given == 0.0:
                continue
            if kinds.fields == ONE_TEXT:
                _one_text(kinds, rows, texts, row, given, by, parts[c])
            else:
                _pull_fields_apart(kinds, rows, texts, row, given, work, parts[c])


@parallel_kernel
def parts_of_lines(kinds: Kinds, rows: Rows, texts: Texts, chunks: int, out: Floats) -> None:
    """What each term gives in each field (lines x fields): together the scores. A field that loses counts tie times.

    Of all fields as one text, the score of a term is shared out as each field has part in its frequency.
    """
    count = len(rows.scale)
    for c in prange(chunks):
        by = np.zeros(WIDTH + 1)
        for row in range(count * c // chunks, count * (c + 1) // chunks):
            start, stop = rows.starts[row], rows.starts[row + 1]
            if kinds.fields == ONE_TEXT:
                _share_one_text(kinds, rows, texts, row, by, out)
            for line in range(start, stop):
                if kinds.fields != ONE_TEXT:
                    _line_parts(kinds, rows, texts, row, line, by, out[line])
                if kinds.fields == BEST_FIELD_PER_TERM:
                    _losers_times(out[line : line + 1], texts.tie)
            if kinds.fields == BEST_FIELD:
                _losers_times(out[start:stop], texts.tie)
            out[start:stop] *= rows.scale[row]


@kernel
def _losers_times(parts: Floats, tie: float) -> None:
    winner = int(np.argmax(parts.sum(axis=0)))
    for s in range(parts.shape[1]):
        if s != winner:
            parts[:, s] *= tie


@kernel
def _share_one_text(kinds: Kinds, rows: Rows, texts: Texts, row: int, by: Floats, out: Floats) -> None:
    theta, length = texts.theta, _text_length(kinds, rows, texts, row)
    ratio = _ratio(kinds, length, texts.mean)
    for line in range(rows.starts[row], rows.starts[row + 1]):
        term, tf = rows.term[line], 0.0
        for s in range(len(theta)):
            out[line, s] = theta[s, W] * rows.tf[line, s]
            tf += out[line, s]
        if tf > 0.0:
            score = rows.times[term] * _term_score(kinds, rows.idf[term, 0], tf, length, ratio, theta[0], by)
            out[line] *= score / tf
