"""Section 4.5: how much depends on the learning rate and on the smoothing that a run begins with."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from fliprank.arrays import Floats
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, larger
from fliprank.papers.taylor2008.corpora import corpus
from fliprank.papers.taylor2008.fits import G10, fit_once, make_runs, settings_of

RATES = tuple(10.0**-k for k in range(1, 8))
SIGMAS = tuple(10.0**-k for k in range(5))


@part("taylor2008", "section4.5", "The sweep of smoothing and learning rate", needs=("mq2008",), minutes=1.5)
def section45(setting: Setting) -> Finding:
    """SoftRank at every rate and sigma, on the first fold; the best and worst by validation, then tested."""
    data = corpus(setting, "mq2008")
    fold = data.folds[0]
    rates, sigmas = (RATES[::3], SIGMAS[:2]) if setting.quick else (RATES, SIGMAS)
    valid, test = dict[tuple[float, float], float](), dict[tuple[float, float], Floats]()
    trials = [(0, f"softrank(sigma={sigma:g})", rate) for rate, sigma in product(rates, sigmas)]
    make_runs(setting, data, data.model, trials, G10)
    for rate, sigma in product(rates, sigmas):
        setting.say(f"sigma {sigma:g} at the rate {rate:g}")
        fit = fit_once(setting, data.model, fold.train, fold.valid, f"softrank(sigma={sigma:g})", rate)
        valid[rate, sigma], test[rate, sigma] = fit.best.valid, G10.per_query(fit.model.score(fold.test), fold.test)
    best = max(valid, key=lambda key: valid[key])
    claims = Claims()
    worst_rate = min(rates, key=lambda rate: valid[rate, best[1]])
    worst_sigma = min(sigmas, key=lambda sigma: valid[best[0], sigma])
    claims.add(
        f"rate {best[0]:g} less {worst_rate:g}, at sigma {best[1]:g}", larger, test[best], test[worst_rate, best[1]]
    )
    claims.add(
        f"sigma {best[1]:g} less {worst_sigma:g}, at the rate {best[0]:g}",
        larger,
        test[best],
        test[best[0], worst_sigma],
    )
    points = [
        {"rate (10 to the power of)": round(_power(rate)), "NDCG@10": valid[rate, sigma], "sigma": f"sigma {sigma:g}"}
        for rate, sigma in product(rates, sigmas)
    ]
    return Finding(
        ("rate", *(f"sigma {sigma:g}" for sigma in sigmas)),
        tuple((f"{rate:g}", *(valid[rate, sigma] for sigma in sigmas)) for rate in rates),
        "The learning rate and the smoothing that a run begins with affect the results significantly.",
        f"By validation NDCG@10 (in the table) the best is sigma {best[1]:g} at the rate {best[0]:g}. "
        f"{claims.sentence}",
        claims.verdict,
        settings_of(setting, data) | {"fold": 1, "rates": list(rates), "sigmas": list(sigmas)},
        partial(_figure, points),
        claims.notes,
    )


def _power(number: float) -> float:
    from math import log10

    return log10(number)


def _figure(points: list[dict[str, Any]]) -> Any:
    from fliprank.report.series_plots import series_chart

    return series_chart(points, "rate (10 to the power of)", "NDCG@10", "sigma")
