"""What a measure pays at one noisy score x, given that some document has just that score.

Given x, the other documents are independent of each other: document i stands above x with probability p_i = Phi((s_i -
x) / sigma_i). So what is expected at x is a sum or product over documents, exactly. With f_j the density of the noisy
score of document j at x and g_j its gain, each function here sums one integrand

    T(x) = sum over j of f_j g_j E[what j is paid | x]

over the points x of a query. Its derivative by the score of document i is f_i x push[i], with push[i] = (dT / dp_i)
- (dT / df_i) u_i / sigma_i and u_i = (s_i - x) / sigma_i. Only documents near x are looked at; those far above are
counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.kernels import kernel
from fliprank.objectives.exponential_sum import Sum
from fliprank.objectives.kernels import fast_kernel, inlined
from fliprank.objectives.smooth import normal

__all__ = ["Points", "Query", "pay_by_curve", "pay_by_rank", "pay_first_relevant", "pay_precision"]

LANES, NOWHERE = 8, -50.0
"""A window is filled up to a multiple of so many documents, so that loops over it run in vector registers, with
documents at this u, which gain nothing."""

CERTAIN = 30.0
"""e^-30 is as good as never."""


class Query(NamedTuple):
    """One query: the first place of each document's island (documents whose noise overlaps) and how far its score is
    below the score there, sigma (one for all or one per document), gains; `known[i]` of the first i documents have a
    gain.

    Its curve is bent by `alpha`; `discount[r]` is the table's entry for rank r, 0 from rank `depth`.
    """

    top: Ints
    fall: Floats
    sigma: Floats
    gain: Floats
    known: Ints
    alpha: float
    discount: Floats
    depth: int


class Points(NamedTuple):
    """Points x: so far `below` the highest score of the island, with a weight; places `first` to `last` - 1 are
    near."""

    below: Floats
    weight: Floats
    first: Ints
    last: Ints


class Window(NamedTuple):
    """Room for what is known of the documents near x; `steep` is u / sigma, `paid` is gain x f."""

    u: Floats
    p: Floats
    f: Floats
    steep: Floats
    gain: Floats
    paid: Floats
    push: Floats


@kernel
def _window(points: Points) -> Window:
    most = 0
    for k in range(len(points.first)):
        most = max(most, points.last[k] - points.first[k])
    most += LANES
    return Window(
        np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    )


# The functions that take a window's arrays one by one are parts of loops over points: taking them out of a tuple at
# each point, or calling a function with them, would cost more than the work on ten documents.


@inlined
def _look(
    fall: Floats,
    sigma: Floats,
    gains: Floats,
    point: tuple[float, int, int],
    u: Floats,
    p: Floats,
    f: Floats,
    steep: Floats,
    gain: Floats,
    paid: Floats,
    push: Floats,
) -> int:
    """Fill in the window of a point (below, first, last), with push 0; how many documents it has then."""
    below, first, last = point
    near, count = last - first, (last - first + LANES - 1) // LANES * LANES
    one = 1.0 / sigma[0]
    for i in range(near):
        f[i] = one if len(sigma) == 1 else 1.0 / sigma[first + i]
        u[i] = (below - fall[first + i]) * f[i]
        gain[i] = gains[first + i]
    for i in range(near, count):
        u[i], f[i], gain[i] = NOWHERE, 0.0, 0.0
    for i in range(count):
        p[i], density = normal(u[i])
        steep[i] = u[i] * f[i]
        f[i] *= density
        paid[i] = gain[i] * f[i]
        push[i] = 0.0
    return count


@inlined
def _by_nodes(
    count: int,
    sure: int,
    curve: Sum,
    signs: tuple[float, float],
    want: bool,
    p: Floats,
    steep: Floats,
    gain: Floats,
    paid: Floats,
    push: Floats,
) -> float:
    """Paid: curve(sure + documents above among the window's others), a sum of exponentials.

    With q_im = 1 - p_i (1 - z_m), F_m = a_m z_m^sure x the product of all q_im, and A_m = sum of g_j f_j / q_jm,
    dividing factor j out of the product leaves the others': T = sum of F_m A_m. `signs` are factors of the derivatives
    by f and p.
    """
    z, weight, least, total = curve.z, curve.weight, curve.least, 0.0
    by_f, by_p = signs
    for m in range(0, len(z), 3):
        z0, z1, z2 = z[m], z[m + 1], z[m + 2]
        t0, t1, t2 = weight[m] * z0**sure, weight[m + 1] * z1**sure, weight[m + 2] * z2**sure
        if t0 + t1 + t2 < least:
            break
        w0, w1, w2 = 1.0 - z0, 1.0 - z1, 1.0 - z2
        a0, a1, a2 = 0.0, 0.0, 0.0
        for i in range(count):
            q0, q1, q2 = 1.0 - p[i] * w0, 1.0 - p[i] * w1, 1.0 - p[i] * w2
            t0 *= q0
            t1 *= q1
            t2 *= q2
            ratio = paid[i] / (q0 * q1 * q2)
            a0 += ratio * (q1 * q2)
            a1 += ratio * (q0 * q2)
            a2 += ratio * (q0 * q1)
        total += t0 * a0 + t1 * a1 + t2 * a2
        if want:
            for i in range(count):
                q0, q1, q2 = 1.0 - p[i] * w0, 1.0 - p[i] * w1, 1.0 - p[i] * w2
                inverse = 1.0 / (q0 * q1 * q2)
                r0, r1, r2 = q1 * q2 * inverse, q0 * q2 * inverse, q0 * q1 * inverse
                b0, b1, b2 = t0 * r0, t1 * r1, t2 * r2
                slope = b0 * w0 * (a0 - paid[i] * r0) + b1 * w1 * (a1 - paid[i] * r1) + b2 * w2 * (a2 - paid[i] * r2)
                push[i] -= by_f * gain[i] * (b0 + b1 + b2) * steep[i] + by_p * slope
    return total


@fast_kernel
def pay_by_curve(query: Query, points: Points, curve: Sum, share: float, pull: Floats) -> float:
    """Paid: the discount of `discounts.py` that is bent by alpha.

    The straight line pays by the expected rank. The mirrored curve discounts the number of documents that j beats, for
    which p and 1 - p change places.
    """
    _, falls, sigma, gains, _, alpha, _, _ = query
    belows, weights, firsts, lasts = points
    u, p, f, steep, gain, paid, push = _window(points)
    size, total, want, bend = len(falls), 0.0, share != 0.0, abs(alpha)
    end, mirrored = 1.0 / np.log2(size + 1.0), alpha < 0.0
    line, sign = (1.0 - bend) * (1.0 - end) / max(size - 1, 1), -bend if mirrored else bend
    start = 1.0 + bend * end if mirrored else 1.0 - bend
    for k in range(len(firsts)):
        first = max(firsts[k], 0)
        near, point = lasts[k] - first, (belows[k], first, lasts[k])
        count = _look(falls, sigma, gains, point, u, p, f, steep, gain, paid, push)
        value, sure = 0.0, first
        if mirrored:
            sure = size - lasts[k]
            for i in range(near):
                p[i] = 1.0 - p[i]
        if bend > 0.0:
            value = sign * _by_nodes(count, sure, curve, (sign, bend), want, p, steep, gain, paid, push)
        if bend < 1.0 or mirrored:
            density, rank, ranks = 0.0, float(first), 0.0
            for i in range(near):
                p[i] = 1.0 - p[i] if mirrored else p[i]
                density += paid[i]
                rank += p[i]
                ranks += paid[i] * p[i]
            for i in range(near):
                push[i] -= gain[i] * (start - line * (rank - p[i])) * steep[i] + line * (density - paid[i])
            value += start * density - line * (density * rank - ranks)
        total += weights[k] * value
        if want:
            for i in range(near):
                pull[first + i] += share * weights[k] * f[i] * push[i]
    return total


@fast_kernel
def pay_by_rank(query: Query, points: Points, share: float, pull: Floats) -> float:
    """Paid: discount[rank], 0 from rank `depth`; exactly, by recursion over the documents of the window.

    paid_on[i, r] is what is still expected if r of the documents before i stand above x and one of them has score x;
    open_on[i, r] the same if that one is yet to come. A second pass, forward over the probabilities of r, then gives
    every derivative (reverse mode), without dividing anything.
    """
    _, falls, sigma, gains, _, _, discount, depth = query
    belows, weights, firsts, lasts = points
    u, p, f, steep, gain, paid, push = _window(points)
    total, want, deepest = 0.0, share != 0.0, min(depth, len(falls))
    paid_on, open_on = np.zeros((len(p) + 1, deepest + 1)), np.zeros((len(p) + 1, deepest + 1))
    chance, chosen = np.zeros(deepest + 1), np.zeros(deepest + 1)
    for k in range(len(firsts)):
        first = max(firsts[k], 0)
        near, point = lasts[k] - first, (belows[k], first, lasts[k])
        _look(falls, sigma, gains, point, u, p, f, steep, gain, paid, push)
        mean = -1.0
        for i in range(near):
            mean += p[i]
        width, over = min(depth - first, near), first + mean - depth
        if width <= 0 or (over > 0.0 and over * over > 2.0 * CERTAIN * mean):  # Chernoff: no chance of such a rank
            continue
        for r in range(width):
            paid_on[near, r], open_on[near, r] = discount[first + r], 0.0
        paid_on[near, width], open_on[near, width] = 0.0, 0.0
        for i in range(near - 1, -1, -1):
            above, below, here = p[i], 1.0 - p[i], paid[i]
            for r in range(min(i + 1, width)):
                paid_on[i, r] = paid_on[i + 1, r] * below + paid_on[i + 1, r + 1] * above
                open_on[i, r] = open_on[i + 1, r] * below + open_on[i + 1, r + 1] * above + here * paid_on[i + 1, r]
            paid_on[i, width], open_on[i, width] = 0.0, 0.0
        total += weights[k] * open_on[0, 0]
        if not want:
            continue
        for r in range(width):
            chance[r], chosen[r] = 0.0, 0.0
        chance[0] = 1.0
        for i in range(near):
            above, below, here = p[i], 1.0 - p[i], paid[i]
            rise, reward = 0.0, 0.0
            for r in range(min(i + 1, width)):
                rise += chance[r] * (open_on[i + 1, r + 1] - open_on[i + 1, r])
                rise += chosen[r] * (paid_on[i + 1, r + 1] - paid_on[i + 1, r])
                reward += chance[r] * paid_on[i + 1, r]
            pull[first + i] += share * weights[k] * f[i] * (rise - gain[i] * reward * steep[i])
            for r in range(min(i + 1, width - 1), 0, -1):
                chosen[r] = chosen[r] * below + chosen[r - 1] * above + here * chance[r]
                chance[r] = chance[r] * below + chance[r - 1] * above
            chosen[0] = chosen[0] * below + here * chance[0]
            chance[0] *= below
    return total


@fast_kernel
def pay_first_relevant(query: Query, points: Points, curve: Sum, share: float, pull: Floats) -> float:
    """Paid: 1 / (1 + other documents above), if no relevant document is above. Relevant documents have gain 1.

    With the hazard h_j = f_j / (1 - p_j), no relevant document above but one at x has density (product of 1 - p_j) x
    (sum of h_j). The documents that are surely above x are others: a relevant one ends the integral.
    """
    falls, sigma, gains = query.fall, query.sigma, query.gain
    belows, weights, firsts, lasts = points
    u, p, f, steep, gain, paid, push = _window(points)
    z, weight, least, total, want = curve.z, curve.weight, curve.least, 0.0, share != 0.0
    for k in range(len(firsts)):
        first = max(firsts[k], 0)
        near, point = lasts[k] - first, (belows[k], first, lasts[k])
        count = _look(falls, sigma, gains, point, u, p, f, steep, gain, paid, push)
        none, hazard, reciprocal = 1.0, 0.0, 0.0
        for i in range(near):
            if gain[i] != 0.0:
                paid[i] = normal(-u[i])[0]  # 1 - p would lose its digits where p is near 1
                none *= paid[i]
                hazard += f[i] / paid[i]
                p[i] = 0.0
        for m in range(0, len(z), 3):
            z0, z1, z2 = z[m], z[m + 1], z[m + 2]
            t0, t1, t2 = weight[m] * z0**first, weight[m + 1] * z1**first, weight[m + 2] * z2**first
            if t0 + t1 + t2 < least:
                break
            w0, w1, w2 = 1.0 - z0, 1.0 - z1, 1.0 - z2
            for i in range(count):
                t0 *= 1.0 - p[i] * w0
                t1 *= 1.0 - p[i] * w1
                t2 *= 1.0 - p[i] * w2
            reciprocal += t0 + t1 + t2
            if want:
                t0, t1, t2 = t0 * w0 * none * hazard, t1 * w1 * none * hazard, t2 * w2 * none * hazard
                for i in range(count):
                    q0, q1, q2 = 1.0 - p[i] * w0, 1.0 - p[i] * w1, 1.0 - p[i] * w2
                    push[i] -= ((t0 * q1 + t1 * q0) * q2 + t2 * (q0 * q1)) / (q0 * q1 * q2)
        total += weights[k] * none * hazard * reciprocal
        if want:
            for i in range(near):
                if gain[i] != 0.0:
                    push[i] = none / paid[i] * reciprocal * (f[i] / paid[i] - hazard - steep[i])
                pull[first + i] += share * weights[k] * f[i] * push[i]
    return total


@fast_kernel
def pay_precision(query: Query, points: Points, curve: Sum, share: float, pull: Floats) -> float:
    """Paid: precision at the rank of j, (1 + A) / (1 + A + B) for A relevant (gain 1) and B other documents above,
    which is the sum of a_m (1 + A) z_m^(A + B).

    With F and q as for a curve, R = sum over relevant of p / q, A1 = of f / q, A2 = of f p / q^2, and C = 1 + the
    relevant documents that are surely above, T is the sum over nodes of F ((C + z R) A1 - z A2).
    """
    _, falls, sigma, gains, known, _, _, _ = query
    belows, weights, firsts, lasts = points
    u, p, f, steep, gain, paid, push = _window(points)
    z, weight, least, total, want = curve.z, curve.weight, curve.least, 0.0, share != 0.0
    for k in range(len(firsts)):
        first = max(firsts[k], 0)
        near, point = lasts[k] - first, (belows[k], first, lasts[k])
        count, sure = _look(falls, sigma, gains, point, u, p, f, steep, gain, paid, push), 1.0 + known[first]
        for m in range(len(z)):
            w, product, ratio, once, twice = 1.0 - z[m], weight[m] * z[m] ** first, 0.0, 0.0, 0.0
            if product * (sure + near) < least:
                break
            for i in range(count):
                q = 1.0 - p[i] * w
                inverse = 1.0 / q
                product *= q
                ratio += gain[i] * p[i] * inverse
                once += paid[i] * inverse
                twice += paid[i] * p[i] * (inverse * inverse)
            more = sure + z[m] * ratio
            here = product * (more * once - z[m] * twice)
            total += weights[k] * here
            if want:
                for i in range(count):
                    inverse = 1.0 / (1.0 - p[i] * w)
                    own = more - z[m] * p[i] * inverse
                    slope = (z[m] * once + more * f[i] * w - z[m] * f[i] * (1.0 + p[i] * w) * inverse) * inverse
                    push[i] += inverse * (product * gain[i] * (slope - own * steep[i]) - here * w)
        if want:
            for i in range(near):
                pull[first + i] += share * weights[k] * f[i] * push[i]
    return total
