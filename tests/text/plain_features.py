"""Every kind of feature by its plain formula, from lists of terms: the oracle of the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import log, sqrt
from statistics import fmean, pvariance

Texts = list[list[str]]


def five(name: str, x: Sequence[float], whole: str = ".sum") -> dict[str, float]:
    told = [sum(x), min(x), max(x), fmean(x), pvariance(x)] if x else [0.0] * 5
    return dict(zip((name + whole, *(f"{name}.{n}" for n in ("min", "max", "mean", "variance"))), told, strict=True))


def term_features(query: list[str], text: list[str], texts: Texts) -> dict[str, float]:
    """Kinds that count terms, of one field `text` among the same field of all documents."""
    n, tf, length = Counter(query), Counter(text), len(text)
    terms = list(n)
    df = {t: sum(t in other for other in texts) for t in {*terms, *text}}
    idf = {t: log(1 + (len(texts) - df[t] + 0.5) / (df[t] + 0.5)) for t in df}
    tokens = sum(map(len, texts))
    p = {t: sum(other.count(t) for other in texts) / max(tokens, 1) for t in terms}
    average = tokens / len(texts)
    beta = length / average if average else 1.0
    covered = [t for t in terms if tf[t]]
    out = {"covered": len(covered), "covered.ratio": len(covered) / len(terms) if terms else 0}
    total = sum(idf[t] for t in terms)
    out |= {"covered.idf": sum(idf[t] for t in covered) / total if terms else 0, "idf.query": total}
    out |= {"and": bool(terms) and covered == terms, "or": bool(covered), "length": length}
    out |= {"length.log": log(1 + length), "length.relative": beta} | five("idf", [idf[t] for t in covered])
    share = max(length, 1)
    out |= five("tf", [tf[t] for t in terms]) | five("tf_share", [tf[t] / share for t in terms])
    out |= five("tfidf", [tf[t] * idf[t] for t in terms])
    out |= five("tfidf_share", [tf[t] * idf[t] / share for t in terms])
    out |= five("log_tfidf", [(1 + log(tf[t])) * idf[t] if tf[t] else 0.0 for t in terms])

    def bm25(k: float, b: float) -> list[float]:
        return [n[t] * idf[t] * tf[t] / (tf[t] + k * (1 - b + b * beta)) if tf[t] else 0.0 for t in terms]

    out |= five("bm25", bm25(1.2, 0.75), "")
    out |= {"bm25(k=0.9,b=0.4)": sum(bm25(0.9, 0.4)), "bm25(k=2,b=1)": sum(bm25(2, 1))}
    known = [t for t in terms if p[t] > 0]
    for mu, name in ((2000, ""), (100, "(mu=100)")):
        out[f"lm.dirichlet{name}"] = sum(n[t] * log((tf[t] + mu * p[t]) / (length + mu)) for t in known)
    for jm, name in ((0.1, ""), (0.7, "(lambda=0.7)")):
        mixed = {t: (1 - jm) * tf[t] / length + jm * p[t] if length else p[t] for t in known}
        out[f"lm.jelinek_mercer{name}"] = sum(n[t] * log(mixed[t]) for t in known)
    for delta, name in ((0.7, ""), (0.3, "(delta=0.3)")):
        cut = {t: (max(tf[t] - delta, 0) + delta * len(tf) * p[t]) / length if length else p[t] for t in known}
        out[f"lm.absolute{name}"] = sum(n[t] * log(cut[t]) for t in known)
    asked = {t: n[t] * idf[t] for t in terms}
    out["cosine"] = cosine(asked, {t: tf[t] * idf[t] for t in tf if tf[t]})
    out["cosine.log"] = cosine(asked, {t: (1 + log(tf[t])) * idf[t] for t in tf if tf[t]})
    return {name: float(value) for name, value in out.items()}


def cosine(a: dict[str, float], b: dict[str, float]) -> float:
    norms = sqrt(sum(x * x for x in a.values()) * sum(x * x for x in b.values()))
    return sum(a[t] * b.get(t, 0.0) for t in a) / norms if norms else 0.0


def position_features(query: list[str], text: list[str]) -> dict[str, float]:
    """Kinds that look at the order of terms, by trying all places."""
    size, length, terms = len(query), len(text), list(dict.fromkeys(query))
    covered = [t for t in terms if t in text]
    runs = {tuple(query[i:j]) for i in range(size) for j in range(i + 1, size + 1)}

    def stands(words: Sequence[str], at: int) -> bool:
        return text[at : at + len(words)] == list(words)

    longest = max((len(run) for run in runs if any(stands(run, i) for i in range(length))), default=0)
    neighbours = [query[j : j + 2] for j in range(size - 1)]
    phrase = sum(stands(query, i) for i in range(length)) if query else 0
    out = {"phrase": phrase, "phrase.longest": longest, "phrase.ratio": longest / size if size else 0}
    out["bigram"] = sum(text[i : i + 2] in neighbours for i in range(length - 1))
    out["bigram.ratio"] = fmean(any(stands(pair, i) for i in range(length)) for pair in neighbours) if neighbours else 0
    out["exact"], out["prefix"] = bool(query) and text == query, bool(query) and stands(query, 0)
    near = [{text[i], text[j]} for i in range(length) for j in range(i + 1, min(length, i + 8))]
    close = [set(pair) for pair in neighbours]
    out["near"] = sum(pair in close for pair in near)
    out["near.ratio"] = fmean(pair in near for pair in close) if close else 0

    def window(need: int) -> int:
        spans = (j - i for i in range(length) for j in range(i + 1, length + 1) if len({*text[i:j]} & {*terms}) >= need)
        return min(spans, default=0) if need else 0

    width, most = window(len(covered)), len(terms) // 2 + 1
    out["window"], out["window.closeness"] = width, len(covered) / width if width else 0
    out["window.all"] = len(terms) / width if width and covered == terms else 0
    out["window.most"] = most / window(most) if len(covered) >= most else 0
    places = {t: [i for i, word in enumerate(text) if word == t] for t in covered}
    apart = [min(abs(i - j) for i in places[a] for j in places[b]) for a, b in combinations(covered, 2)]
    out["pair.min"], out["pair.max"] = min(apart, default=length), max(apart, default=length)
    out["pair.mean"], out["pair.closeness"] = fmean(apart) if apart else length, sum(1 / d for d in apart)
    first = min((places[t][0] for t in covered), default=length)
    out["first"], out["first.relative"] = first, first / length if covered else 1
    out["first.closeness"] = 1 / (1 + first) if covered else 0
    out["first.mean"] = fmean(places[t][0] if t in places else length for t in terms) if terms else length
    return {name: float(value) for name, value in out.items()}
