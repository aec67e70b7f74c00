"""Targets of the fuzzer that are text: files of lines, JSON lines, tables, names on the command line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from fuzz_mutations import json_lines, text
from fuzz_target import ROWS, add, build, index, only, rank

import fliprank as fr
from fliprank.experiment.parameter_settings import read_settings
from fliprank.experiment.stage_costs import read_feature_costs
from fliprank.experiment.task import read_judged_queries
from fliprank.landscape.trail import read_trail
from fliprank.models.cascade_names import parse_cascade
from fliprank.text.analysis import read_words
from fliprank.text.build.links import read_links

__all__ = ["LETOR", "STATISTICS", "convert_and_read"]

LETOR = b"".join(
    b"%d qid:%d 1:0.%d 2:-1.5e-3 %d:7 #docid = GX%d inc = 1\n" % (r % 3, r // 3, r, r + 5, r) for r in range(8)
)
SPARSE = b"2 qid:a 1:1 # d1\n0 qid:a 300:2.5 # d2\n-1 qid:b 1:0 # d1\n"


def convert_and_read(path: Path) -> None:
    """Rows into shards, of as few rows as can be, and back."""
    with tempfile.TemporaryDirectory() as folder:
        fr.convert(path, Path(folder, "shards"), shard=8)
        rows = fr.open_rows(Path(folder, "shards"), memory=300)
        for part in rows.each(lambda part: part):
            rank(part)


@add("convert-letor", text, [{"x": LETOR}, {"x": SPARSE}])
def _convert_letor(folder: Path) -> None:
    convert_and_read(folder / "x")


TABLES = [
    b"qid,docid,label,bm25\na,x,1,0.5\na,y,,2\nb,z,2,1e3\n",
    b'qid;label;x\n"a;""b""";NULL;1\r\n\r\nnan;1;NaN\r\n',
]


@add("convert-csv", text, [{"x.csv": table} for table in TABLES])
def _convert_csv(folder: Path) -> None:
    convert_and_read(folder / "x.csv")


@add("letor", text, [{"x": LETOR}, {"x": SPARSE}, {"x": b"1 1:2\n0 1:3\n", "x.query": b"1\n1\n"}])
def _letor(folder: Path) -> None:
    rank(fr.read_letor(folder / "x", cache=False))
    fr.read_letor(folder / "x", cache=False, unjudged=None, missing="min")


QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 -1\nq2 0 d3 2\n"
RUN = b"q1 Q0 d1 1 2.5e3 tag\nq1 Q0 d2 2 -1.25 tag\nq2 Q0 d1 1 .5 tag\n"
JUDGED = fr.Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}})
RANKED = fr.Run.of({"q1": {"d1": 1.0, "d2": 0.5}, "q2": {"d1": 2.0}})


@add("qrels", text, [{"x": QRELS}, {"x": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2.5\n"}])
def _qrels(folder: Path) -> None:
    rank(fr.judge(fr.read_qrels(only(folder)), RANKED).candidates)


@add("run", text, [{"x": RUN}, {"x": RUN.replace(b" tag", b"")}])
def _run(folder: Path) -> None:
    fr.evaluate(JUDGED, only(folder), ["nDCG@10", "AP"])


@add("scores", text, [{"x": b"1.5\n-2\n0\n1e3\n"}])
def _scores(folder: Path) -> None:
    fr.evaluate(fr.Candidates.of([1, 0, 0, 2], group=[2, 2]), only(folder), ["nDCG@10"])


QUERIES = [
    b"q1\tred shoes\nq2\tblue sky\n",
    b'{"_id": "q1", "text": "red shoes"}\n{"_id": 2, "query": "blue sky \\u00e9"}\n',
    b"<top>\n<num> Number: 301\n<title> red shoes\n<desc> x\n</top>\n<top><num>2<title>sky &amp; sea</top>\n",
]


@add("queries", text, [{"x": QUERIES[0]}, {"x": QUERIES[2]}])
def _queries(folder: Path) -> None:
    index().search(only(folder), depth=3)


@add("queries-jsonl", json_lines, [{"x": QUERIES[1]}])
def _queries_jsonl(folder: Path) -> None:
    index().search(only(folder), depth=3)


DOCUMENTS = b"""{"_id": "a", "title": "x\\u00e9 red", "n": [1, {"m": 2}], "links": [{"target": "7", "text": "shoes"}]}
{"_id": 7, "text": null, "b": true, "date": "2024-01-02", "price": 2.5, "url": "https://a.org/b"}
{"_id": "c", "text": ["one", "two"], "meta": {"author": "Ann", "year": 1999}}
"""
TREC = b"""<DOC>
<DOCNO> a </DOCNO>
<TITLE>Red &amp; blue</TITLE>
<TEXT>Some <b>shoes</b></TEXT>
</DOC>
<doc><docno>b</docno>text <!-- no --></doc>
"""
HTML = b"""<DOC>
<DOCNO>WTX-1</DOCNO>
<HTML><head><title>Shoes</title><style>p {}</style></head><body><a href="/x?a=1&b=2">red<br></a>
<script>if (a < b) {}</script></body></html>
</DOC>
"""
TABLE = b'id,title,price,date\na,"Red ""shoes"",\nblue",2.5,2024-01-02\nb,sky,,\n'


@add("documents-jsonl", json_lines, [{"x": DOCUMENTS}])
def _documents_jsonl(folder: Path) -> None:
    build(folder)


@add("documents-trec", text, [{"x": TREC}, {"x": HTML}])
def _documents_trec(folder: Path) -> None:
    build(folder)


@add("documents-csv", text, [{"x.csv": TABLE}, {"x.csv": TABLE.replace(b",", b"\t")}, {"x.tsv": b"_id\ta\n1\tx y\n"}])
def _documents_csv(folder: Path) -> None:
    build(folder)


@add("links", text, [{"x": b"d1\tred shoes\nd2\tsky\n"}, {"x": b"source\ttarget\ttext\nd1\td2\tsky\n"}])
def _links(folder: Path) -> None:
    fr.Index.build([{"_id": "d1", "title": "red"}, {"_id": "d2", "title": "sky"}], anchors=only(folder))


LINKS = b'{"source": "d1", "target": "d2", "text": "sky"}\n{"target": 1, "text": ["a", "b"]}\n'


@add("links-jsonl", json_lines, [{"x": LINKS}])
def _links_jsonl(folder: Path) -> None:
    read_links(only(folder))
    documents = [{"_id": "d1", "title": "red"}, {"_id": "d2", "title": "sky"}]
    fr.Index.build(documents, anchors=only(folder), links=only(folder))


@add("stopwords", text, [{"x": b"the | article\na\n"}])
def _stopwords(folder: Path) -> None:
    fr.Index.build([{"_id": "d1", "title": "the red"}], analyzer=fr.Analyzer(stopwords=read_words(only(folder))))


RATINGS = b'query,docid,rating\nred shoes,d1,3\n"red shoes",d2,0\nsky,d1,\n'
RATERS = b"query;docid;rating_anna;rating_ben\nred shoes;d1;3,5;2\nsky;d1;1;1\nsky;d2;;0\n"


@add("judgement-table", text, [{"x": RATINGS}, {"x": RATERS}])
def _judgement_table(folder: Path) -> None:
    rank(fr.judge(fr.read_qrels(only(folder)), fr.Run.of({"red_shoes": {"d1": 1.0, "d2": 2.0}})).candidates)
    judged = read_judged_queries(None, only(folder))
    index().candidates(judged.texts, judged.judged["train"][1], depth=3)


BEIR = {
    "corpus.jsonl": b'{"_id": "d1", "title": "Red shoe", "text": "x"}\n{"_id": "d2", "title": "Sky", "text": ""}\n',
    "queries.jsonl": b'{"_id": "q1", "text": "shoes"}\n{"_id": "q2", "text": "sky"}\n',
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
}


@add("beir", json_lines, [BEIR])
def _beir(folder: Path) -> None:
    found = fr.read_beir(folder)
    found.documents()
    fr.Index.build(folder).candidates(found.queries, found.qrels, depth=3)


RECORD: dict[str, Any] = {
    "qid": "q", "docid": "d", "label": 2, "terms": ["red", "shoe"], "idf": [0.5, 1.25], "count": [1, 2],
    "tf": {"title": [1, 0], "body": [3, 4]}, "length": {"title": 5, "body": 60}, "features": {"pagerank": 0.1},
    "collection": {"title": [5, 6], "body": [30, 40]}, "tokens": {"title": 50, "body": 600}, "documents": 10,
}  # fmt: skip
STATISTICS = "".join(json.dumps(RECORD | {"docid": d, "qid": q}) + "\n" for q in "qp" for d in "ab").encode()


@add("term-statistics", json_lines, [{"x": STATISTICS}])
def _term_statistics(folder: Path) -> None:
    rows = fr.read_statistics(only(folder))
    rank(rows)
    fr.BM25F().prepared(rows, 0).score(rows)


TOML = b"""free = ["title.w"]
share = { b = ["title.b", "body.b"] }
[start]
"title.w" = 2.0
[bounds]
title.w = [0, 10]
[fix]
k = 1.2
"""


@add("toml", text, [{"x": TOML}, {"x": b"[fix]\nk = true\n[bounds]\nk = [-inf, 1_0]\n"}])
def _toml(folder: Path) -> None:
    params = fr.Parameters.of({"k": 1.2, "title.w": 1.0, "body.w": 1.0, "title.b": (0.7, 0, 1), "body.b": (0.7, 0, 1)})
    read_settings(only(folder)).apply(params)


@add("feature-costs", text, [{"x": b"# costs\nbm25*=2.5\nclicks=1e3\n"}])
def _feature_costs(folder: Path) -> None:
    read_feature_costs(str(only(folder)))


def words(folder: Path) -> str:
    """The text of an input that is given on the command line, so that it is text."""
    return only(folder).read_bytes().decode(errors="replace") if any(folder.iterdir()) else ""


NAMES = ["nDCG(dcg='exp-log2')@10", "AP(rel=2)", "ERR(max=4)@20", "GM(nDCG@10, eps=0.1)", "RBP(p=0.8)", "P@5",
         "nDCG(gains={1:3,2:7},discount=(1,0.5))", "Success@1", "bpref", "ndcg_burges@10", "SetF(beta=2)", "ESL",
         "CorrectPairs", "Judged@10", "Rprec", "DCG(discount=0.5)@3"]  # fmt: skip


@add("measure-names", text, [{"x": name.encode()} for name in NAMES])
def _measure_names(folder: Path) -> None:
    measure = fr.parse_measure(words(folder))
    measure.value([3.0, 1.0, 2.0, 5.0, 4.0, 6.0], ROWS)
    fr.parse_measure(str(measure))


OBJECTIVES = ["softndcg(sigma=0.3)@10", "ranknet(target=0.9)", "ranknet(target={(2,0):0.95,(1,0):0.8,(2,1):0.7})",
              "lambdarank(measure='AP')", "mse", "softrank(sigma=0.2)", "softap", "logistic", "softp@5"]  # fmt: skip


@add("objective-names", text, [{"x": name.encode()} for name in OBJECTIVES])
def _objective_names(folder: Path) -> None:
    objective = fr.parse_objective(words(folder))
    objective.value_and_grad([3.0, 1.0, 2.0, 5.0, 4.0, 6.0], ROWS)
    fr.parse_objective(str(objective))


@add("cascade-names", text, [{"x": b"100,10 linear,network:4"}, {"x": b"50,20,5 bm25f,linear,trees:7"}])
def _cascade_names(folder: Path) -> None:
    sizes, _, models = words(folder).partition(" ")
    parse_cascade(sizes, models or "linear")


TRAIL = b"""number,objective,train,valid,valid_objective,rate,w1,bias
0,0.5,0.2,nan,nan,nan,0.5,1
1,0.4,0.3,nan,nan,nan,1,1
"""


@add("trail", text, [{"trail.csv": TRAIL}])
def _trail(folder: Path) -> None:
    read_trail(only(folder), fr.Parameters.of({"w1": 0.5, "bias": 1.0}))
