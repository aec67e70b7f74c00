"""Retrieval: the plain formulas, and two real engines, give the same documents with the same scores."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_text import PlainIndex

from fliprank.arrays import Floats
from fliprank.data.builtin import collection
from fliprank.data.candidates import Candidates
from fliprank.data.files import resolve
from fliprank.data.ids import Ids
from fliprank.errors import InputError, UsageError
from fliprank.models import BM25, BM25F, BM25Sum
from fliprank.models.base import Model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index
from fliprank.text.search import bm25, retrieve
from fliprank.text.search.queries import analyse, read_queries

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text"
FIELDS = ["title", "body"]
PLAIN = Analyzer(stopwords=None, stemmer=None)
WORDS = st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join)
DOCUMENTS = st.lists(st.fixed_dictionaries({"title": WORDS, "body": WORDS}), min_size=2, max_size=40)


class Lengths:
    """A model that no kernel knows: BM25 with k = 1, b = 0 less a tenth of the length."""

    def score(self, candidates: Candidates) -> Floats:
        terms = candidates.terms
        assert terms is not None
        tf = terms.tf.sum(1, dtype=np.float64)
        owner = np.repeat(np.arange(len(candidates)), np.diff(terms.starts))
        first = terms.offsets[candidates.query_of_rows()][owner] + np.arange(len(tf)) - terms.starts[owner]
        parts = terms.count[first] * terms.idf[first] * tf / (1 + tf)
        return np.bincount(owner, parts, len(candidates)) - terms.length.sum(1) / 10


def named(texts: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"_id": f"d{(17 * i) % 41}", **text} for i, text in enumerate(texts)]


@settings(max_examples=80, deadline=None)
@given(
    DOCUMENTS,
    WORDS,
    st.sampled_from([0.0, 0.5, 1.2]),
    st.sampled_from([0.0, 0.75, 1.0]),
    st.integers(1, 45),
    st.booleans(),
)
def test_bm25_is_the_formula(
    texts: list[dict[str, str]], query: str, k: float, b: float, depth: int, every: bool
) -> None:
    documents = [*named(texts), {"_id": "last", "title": "a", "body": "e e"}]
    index, plain = Index.build(documents, fields=FIELDS, analyzer=PLAIN), PlainIndex(documents, FIELDS, PLAIN)
    found = plain.matching(query, every)
    weights = {"title": 2.5, "body": 0.5}
    weighted = BM25F(FIELDS).at([k, *(value for w in weights.values() for value in (w, b))])
    for ranker, score in (
        (BM25(FIELDS).at([k, b]), {d: plain.bm25(query, d, k, b) for d in found}),
        (weighted, {d: plain.bm25f(query, d, k, b, weights) for d in found}),
    ):
        run = index.search({"q": query}, ranker, depth=depth, match="and" if every else "or")
        rounded = {d: round(value, 9) for d, value in score.items()}  # what only rounding parts counts as tied
        wanted = plain.ranked(rounded, depth)
        assert dict(zip(run.docids.tolist(), run.scores, strict=True)) == pytest.approx(
            {plain.ids[d]: score[d] for d in sorted(score) if plain.ids[d] in run.docids.tolist()}
        )
        assert len(run) == len(wanted)
        assert np.round(run.scores, 9).tolist() == [rounded[plain.ids.index(docid)] for docid in wanted]


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, WORDS, st.booleans(), st.integers(1, 45))
def test_any_model_searches_all_documents_that_match(
    texts: list[dict[str, str]], query: str, every: bool, depth: int
) -> None:
    documents = named(texts)
    index, plain = Index.build(documents, fields=FIELDS, analyzer=PLAIN), PlainIndex(documents, FIELDS, PLAIN)
    scores = {}
    for d in plain.matching(query, every):
        tf = [sum(count[term] for count in plain.counts[d]) for term in query.split()]
        idf = [plain.idf(term) for term in query.split()]
        saturated = sum(i * t / (1 + t) for i, t in zip(idf, tf, strict=True))
        scores[d] = saturated - float(np.float32(sum(map(len, plain.terms[d])))) / 10
    run = index.search({"q": query}, Lengths(), depth=depth, match="and" if every else "or")
    rounded = {d: round(value, 5) for d, value in scores.items()}
    assert sorted(np.round(run.scores, 5)) == pytest.approx(
        sorted(rounded.values(), reverse=True)[:depth][::-1], abs=2e-5
    )
    for docid, score in zip(run.docids.tolist(), run.scores, strict=True):
        assert score == pytest.approx(scores[plain.ids.index(docid)], abs=1e-6)


class ByStatistics(NamedTuple):
    """A model without its fast path: it scores term statistics."""

    model: Model

    def score(self, candidates: Candidates) -> Floats:
        return self.model.score(candidates)


@settings(max_examples=30, deadline=None)
@given(DOCUMENTS, WORDS, st.floats(0, 3), st.lists(st.floats(0, 1), min_size=4, max_size=4), st.booleans())
def test_retrieval_from_postings_gives_the_scores_of_the_model(
    texts: list[dict[str, str]], query: str, k: float, values: list[float], every: bool
) -> None:
    """For all fields and for some, in any order; documents that score 0 are not returned."""
    documents = [*named(texts), {"_id": "last", "title": "a", "body": "e e"}]
    index, match = Index.build(documents, fields=FIELDS, analyzer=PLAIN), "and" if every else "or"
    rows = index.rows({"q": query}, {"q": ["last"]})
    for model in (
        BM25(FIELDS).at([k, values[0]]),
        BM25("body").at([k, values[0]]),
        BM25F(FIELDS[::-1]).at([k, *values]),
        BM25F("title").at([k, *values[:2]]),
        BM25Sum(FIELDS[::-1]).at([values[0], k, values[1], 1.0, values[2], 3 * k, values[3], 2 * values[0]]),
        BM25Sum("title").at([1.0, k, values[0], 1.0]),
    ):
        ready = model.prepared(rows, 0)
        plain = index.search({"q": query}, ByStatistics(ready), match=match).to_dict().get("q", {})
        expected = {docid: score for docid, score in plain.items() if score > 0}
        for asked in (model, ready):  # a model that has seen no rows takes the average lengths of the index
            found = index.search({"q": query}, asked, match=match).to_dict().get("q", {})
            assert found == pytest.approx(expected, rel=1e-12)


def test_a_model_with_its_own_score_is_not_taken_for_bm25() -> None:
    class Reversed(BM25):
        def score(self, candidates: Candidates) -> Floats:
            return -super().score(candidates)

    index = Index.build([{"_id": "a", "text": "red red"}, {"_id": "b", "text": "red shoe"}])
    assert index.search({"q": "red"}, BM25()).docids.tolist() == ["a", "b"]
    assert index.search({"q": "red"}, Reversed()).docids.tolist() == ["b", "a"]


def test_ties_go_by_document_id_downwards() -> None:
    index = Index.build([{"_id": name, "text": "red shoe"} for name in ("b", "d", "a", "c", "é", "e")])
    for model in (BM25(), Lengths()):
        assert index.search({"q": "red"}, model, depth=4).docids.tolist() == ["é", "e", "d", "c"]


def test_blocks_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """More documents than a block of the kernel holds, more rows than a batch: all are found, each once."""
    size = 2 * bm25.BLOCK + 77
    rng = np.random.default_rng(5)
    ids = np.arange(size).astype(str)
    texts = [f"{'red ' * n}{'sky ' * m}w{i % 3}" for i, (n, m) in enumerate(rng.integers(0, 3, (size, 2)).tolist())]
    index = Index.build(pl.DataFrame({"_id": ids, "text": texts}), analyzer=PLAIN)
    plain = PlainIndex([{"_id": "x", "text": text} for text in texts], ["text"], PLAIN)
    monkeypatch.setattr(retrieve, "ROOM", 1 << 15)
    queries = {"a": "red", "b": "red sky", "c": "w1 sky sky", "d": "nothing"}
    for every, match in ((False, "or"), (True, "and")):
        for model in (BM25(), Lengths()):
            run = index.search(queries, model, depth=size, match=match)
            for q, qid in enumerate(queries):
                a, b = run.offsets[q : q + 2]
                assert sorted(run.docids.take(np.arange(a, b)).tolist(), key=int) == [
                    ids[d] for d in plain.matching(queries[qid], every)
                ]
    whole, top = index.search(queries, depth=size), index.search(queries, depth=50)
    for q in range(3):
        a, c = whole.offsets[q], top.offsets[q]
        assert whole.docids.take(np.arange(a, a + 50)) == top.docids.take(np.arange(c, c + 50))


@pytest.mark.parametrize("name", ["npl", "scifact"])
def test_scores_are_those_of_bm25s(name: str) -> None:
    bm25s = pytest.importorskip("bm25s")
    stemmer = pytest.importorskip("Stemmer").Stemmer("english")
    if not (DATA / name).is_dir():
        pytest.skip("no ../shared/data/text")
    index = Index.build(DATA / name)
    queries = read_queries(DATA / name)
    frame = pl.read_ndjson(resolve(DATA / name / "corpus.jsonl").read_bytes(), infer_schema_length=None)
    whole = frame.select(pl.concat_str([pl.col(f).fill_null("") for f in index.fields], separator=" ")).to_series()
    options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False, "token_pattern": r"(?u)\w+"}
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index(bm25s.tokenize(whole.to_list(), **options), show_progress=False)
    run = index.search(queries, depth=100)
    ids = frame["_id"].cast(pl.String).to_list()
    asked = bm25s.tokenize(list(queries.values()), return_ids=False, **options)
    for q, tokens in enumerate(asked[:60]):
        a, b = run.offsets[q : q + 2]
        scores = dict(zip(ids, peer.get_scores(tokens), strict=True))
        assert run.scores[a:b] == pytest.approx(
            [scores[d] for d in run.docids.take(np.arange(a, b)).tolist()], rel=2e-5
        )
        best = np.sort(np.array(list(scores.values())))[::-1][: b - a]
        assert run.scores[a:b] == pytest.approx(best, rel=2e-5)


def test_the_order_is_that_of_sqlite() -> None:
    """FTS5's bm25() has k1 = 1.2 and b = 0.75 fixed, a factor k1 + 1, and another idf: single terms rank alike."""
    index = Index.build(collection(), fields=["text"], analyzer=PLAIN)
    frame = pl.read_ndjson(collection() / "corpus.jsonl")
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, text, tokenize = \"unicode61 tokenchars '_'\")"
    )
    database.executemany("INSERT INTO pages VALUES (?, ?)", frame.select("_id", "text").rows())
    for word in ("invoice", "password", "mailbox", "tag"):
        rows = database.execute("SELECT id, -bm25(pages) FROM pages WHERE pages MATCH ?", (word,)).fetchall()
        run = index.search({"q": word}, depth=300).to_dict()["q"]
        assert run.keys() == {docid for docid, _ in rows}
        ratio = np.array([score / run[docid] for docid, score in rows])
        assert ratio == pytest.approx(ratio[0], rel=1e-6)


def test_a_word_twice_in_a_query_counts_twice() -> None:
    index = Index.build([{"_id": "a", "text": "red shoe"}, {"_id": "b", "text": "sky"}])
    once, twice = index.search({"q": "red"}), index.search({"q": "red, RED!"})
    assert twice.scores == pytest.approx(2 * once.scores)
    queries = analyse(index, {"q": "red blue red", "r": ""})
    assert (queries.terms.tolist(), queries.count.tolist(), queries.offsets.tolist()) == (
        ["red", "blue"],
        [2, 1],
        [0, 2, 2],
    )
    assert queries.number.tolist() == [index.terms.tolist().index("red"), -1]


def test_statistics_of_given_documents_are_what_plain_counting_gives() -> None:
    documents = [
        {"_id": "a", "title": "red shoe", "body": "a shoe, a red shoe"},
        {"_id": "b", "title": "sky", "body": "blue"},
        {"_id": "c", "title": "blue shoes", "body": ""},
    ]
    index, plain = Index.build(documents, fields=FIELDS), PlainIndex(documents, FIELDS, Analyzer())
    queries, rows = {"q1": "shoes blue zebra", "q2": "red", "q3": "the"}, {"q2": ["c", "a"], "q1": ["b", "c", "a"]}
    terms = index.statistics(queries, rows)
    assert terms.terms.tolist() == ["shoe", "blue", "zebra", "red"]
    assert terms.idf == pytest.approx([plain.idf(term) for term in terms.terms.tolist()])
    row = 0
    for qid, text in queries.items():
        for docid in rows.get(qid, []):
            d = plain.ids.index(docid)
            assert terms.of_row(row).tolist() == [[c[t] for c in plain.counts[d]] for t in plain.analyzer.terms(text)]
            assert terms.length[row].tolist() == [len(words) for words in plain.terms[d]]
            row += 1
    assert row == len(terms.length)
    assert terms.collection is not None
    assert terms.collection.tolist() == [[2, 2], [1, 1], [0, 0], [1, 1]]
    assert terms.tokens is not None
    assert (terms.tokens.tolist(), terms.documents, terms.count.tolist()) == ([5, 4], 3, [1, 1, 1, 1])
    with pytest.raises(InputError, match="document zz is not in the index"):
        index.statistics(queries, {"q1": ["zz"]})
    with pytest.raises(InputError, match="query q9"):
        index.statistics(queries, {"q9": ["a"]})


def test_senseless_settings_are_refused() -> None:
    index = Index.build([{"_id": "a", "text": "red shoe"}])
    for k, b in ((-1.0, 0.75), (1.2, 1.1)):
        with pytest.raises(UsageError, match="out of bounds"):
            index.search({"q": "red"}, BM25("text").at([k, b]))
    with pytest.raises(UsageError, match=r"out of bounds: text\.w = -1"):
        index.search({"q": "red"}, BM25F("text").at([1.2, -1.0, 0.75]))
    with pytest.raises(UsageError, match="the model needs the field 'body', but the index has text"):
        index.search({"q": "red"}, BM25F("body", average=[1.0]))
    with pytest.raises(InputError, match="fields that these candidates lack: body"):
        index.search({"q": "red"}, BM25("body"))
    with pytest.raises(UsageError, match="'xor'"):
        index.search({"q": "red"}, match="xor")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a string"):
        index.search({"q": 3})  # type: ignore[dict-item]


def test_no_queries_find_nothing() -> None:
    index = Index.build([{"_id": "a", "text": "red shoe"}])
    for model in (BM25(), Lengths()):
        assert len(index.search({}, model)) == 0
        assert index.search({"q": "", "r": "the"}, model).offsets.tolist() == [0, 0, 0]


def test_a_model_that_gives_nan_is_refused() -> None:
    class Broken:
        def score(self, candidates: Candidates) -> Floats:
            return np.full(len(candidates), np.nan)

    with pytest.raises(InputError, match="NaN"):
        Index.build([{"_id": "a", "text": "red shoe"}]).search({"q": "red"}, Broken())


@pytest.mark.parametrize(
    "content",
    ['{"_id": 1, "text": "red"}\n\n{"_id": "b", "text": "sky"}\n', "1\tred\nb\tsky\n", "\ufeff1\tred\r\nb\tsky"],
)
def test_queries_are_read_from_json_lines_and_tables(tmp_path: Path, content: str) -> None:
    (tmp_path / "queries").write_text(content, newline="")
    assert read_queries(tmp_path / "queries") == {"1": "red", "b": "sky"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tx\na\ty\n", "line 2.*twice"),
        ("a\tx\nnonsense\n", "line 2.*tab"),
        ('{"_id": "a"}\n', "line 1.*text"),
        ('{"_id": "a", "text": "x"}\n{"_i', "line 2.*broken"),
    ],
)
def test_broken_queries_are_named_by_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "queries").write_text(content)
    with pytest.raises(InputError, match=message):
        read_queries(tmp_path / "queries")


TOPICS = """<top>
<num> Number: 301
<title> International
Organized &amp; Crime

<desc> Description:
Anything <b>else</b>
</top>
<TOP><num>x2</num><title>Topic: red shoes</title></TOP>
"""


def test_titles_of_trec_topics_are_queries(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text(TOPICS.replace("\n", "\r\n"), newline="")
    assert read_queries(path) == {"301": "International Organized & Crime", "x2": "red shoes"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOPICS + "<top><num>3</top>", "line 10: a topic without a number or a title"),
        (TOPICS + TOPICS, "line 10, query 301: the query occurs twice"),
        ("<html>", "no topics"),
        ("q1 red shoes", "line 1: a line without an id and a tab"),
    ],
)
def test_broken_topics_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "topics"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_queries(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(("qid", "text"), [("q1", "red \ud800 shoe"), ("q\udfff", "red")])
def test_half_of_a_surrogate_pair_in_a_query_is_refused(qid: str, text: str, tmp_path: Path) -> None:
    index = Index.build([{"_id": "d1", "title": "red shoe"}])
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps({"_id": qid, "text": text}))
    for queries in ({qid: text}, path):
        with pytest.raises(InputError, match="half of a surrogate pair"):
            index.search(queries)
    with pytest.raises(InputError, match="half of a surrogate pair"):
        Ids.of([f"{qid}\ud800"])
