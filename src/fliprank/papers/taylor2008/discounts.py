"""Figure 6: SoftRank with discounts that fall less steeply, in training and validation."""

from __future__ import annotations

from functools import partial
from typing import Any

import fliprank as fr
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, as_good, difference, interval, larger
from fliprank.papers.taylor2008.corpora import corpus
from fliprank.papers.taylor2008.fits import OBJECTIVES, RATES, settings_of, trained

SMOOTHINGS = (1.0, 1e-1)
"""Sigmas to choose from: a discount that falls less steeply wants more smoothing."""
ALPHAS = (-1.0, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 1.0)
SHALLOW = 0.4
"""SoftRank is said to do as well as LambdaRank for alpha between minus this and this."""


@part("taylor2008", "figure6", "SoftRank by the discount it is trained with", needs=("mq2008",), minutes=4)
def figure6(setting: Setting) -> Finding:
    """Test NDCG@10 against alpha; validation queries are judged by the same alpha, without a cut-off."""
    data, claims, rows = corpus(setting, "mq2008"), Claims(), list[tuple[Any, ...]]()
    baseline = trained(setting, data, OBJECTIVES["LambdaRank"]).g10
    alphas = (-1.0, 0.0, 1.0) if setting.quick else ALPHAS
    tests = {}
    for alpha in alphas:
        tried = [
            (f"softrank(discount={alpha:g},sigma={sigma:g})", RATES[0])
            for sigma in SMOOTHINGS[: 1 if setting.quick else 2]
        ]
        measure = fr.nDCG(dcg="exp-log2", discount=alpha)
        tests[alpha] = trained(setting, data, "softrank", None, measure, tried).g10
        found = difference(tests[alpha], baseline)
        rows.append((alpha, *interval(tests[alpha]), found.mean, found.p))
        if abs(alpha) < SHALLOW:
            claims.add(f"alpha {alpha:g} less LambdaRank", as_good, tests[alpha], baseline)
    claims.add("alpha 0 less alpha 1", larger, tests[0.0], tests[1.0])
    best = max(tests, key=lambda alpha: float(tests[alpha].mean()))
    points = [{"alpha": row[0], "NDCG@10": row[1], "low": row[2], "high": row[3], "of": "SoftRank"} for row in rows]
    level = (f"LambdaRank: {baseline.mean():.4f}", float(baseline.mean()))
    return Finding(
        ("alpha", "NDCG@10", "low", "high", "less LambdaRank", "p"),
        tuple(rows),
        "With a discount between -0.4 and 0.4 SoftRank does as well as LambdaRank on test queries, best at alpha = 0, "
        "and better than with NDCG's own discount, alpha = 1.",
        f"Best at alpha {best:g}: {tests[best].mean():.4f}, LambdaRank {baseline.mean():.4f}. {claims.sentence}",
        claims.verdict,
        settings_of(setting, data) | {"alphas": list(alphas), "softrank": [RATES[0], list(SMOOTHINGS)]},
        partial(_figure, points, level),
        claims.notes,
    )


def _figure(points: list[dict[str, Any]], level: tuple[str, float]) -> Any:
    from fliprank.report.series_plots import series_chart

    return series_chart(points, "alpha", "NDCG@10", "of", level=level)
