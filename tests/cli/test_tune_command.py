"""`fliprank tune` and `fliprank demo` as a person uses them: files in, a table and a folder out, errors that help."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from fliprank.data.builtin import collection
from fliprank.data.parquet import read_parquet
from fliprank.data.term_statistics_jsonl import write_statistics
from fliprank.experiment.task import task_of_documents
from fliprank.measures import parse_measure
from fliprank.models import load_model
from fliprank.text.index import Index

pytestmark = pytest.mark.long

DOCS = [
    {"_id": "d1", "title": "Red shoes", "body": "Shoes in red for long walks on stone and sand"},
    {
        "_id": "d2",
        "title": "Blue hats",
        "body": "A hat is not a shoe, but red hats go with red shoes, red scarves and red bags",
    },
    {"_id": "d3", "title": "Green scarves", "body": "Warm scarves; also hats, gloves and blue bags"},
    {"_id": "d4", "title": "Bags", "body": "Bags for shoes, scarves and hats, in green, red and blue"},
    {"_id": "d5", "title": "How to return shoes", "body": "Send back what does not fit within thirty days"},
]
WORDS = {
    "shoes": "d1",
    "hats": "d2",
    "scarves": "d3",
    "bags": "d4",
    "return": "d5",
    "red": "d1",
    "blue": "d2",
    "green": "d3",
}


def fliprank_does(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fliprank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Documents, queries (a word and a filler), judgements of the first five, and of the others."""
    paths = {name: tmp_path / name for name in ("docs.jsonl", "queries.tsv", "train.qrels", "test.qrels")}
    paths["docs.jsonl"].write_text("".join(json.dumps(doc) + "\n" for doc in DOCS))
    queries = {f"q{i}": (word, docid) for i, (word, docid) in enumerate(WORDS.items())}
    paths["queries.tsv"].write_text("".join(f"{qid}\tred {word} hats\n" for qid, (word, _) in queries.items()))
    lines = [f"{qid} 0 {docid} 2\n" for qid, (_, docid) in queries.items()]
    paths["train.qrels"].write_text("".join(lines[:5]))
    paths["test.qrels"].write_text("".join(lines[5:]))
    return paths


def test_files_in_a_table_and_a_folder_out(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    options = ["--method", "sampled", "--folds", "2", "--share", "b", "--fix", "title.w=2", "--measure", "RR"]
    options += ["--adopt", "always"]  # three queries prove nothing
    done = fliprank_does("tune", *given, "--test", files["test.qrels"], *options, "--out", out)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("fliprank: ") for line in done.stderr.splitlines())  # how far it is
    assert "On 3 held-out queries" in done.stdout
    assert "title.w" in done.stdout
    told = json.loads((out / "result.json").read_text())
    assert told["measure"] == "RR"
    assert told["params"]["fitted"]["title.w"] == 2.0
    assert told["params"]["fitted"]["title.b"] == told["params"]["fitted"]["body.b"]
    assert told["proof"]["test"]["queries"] == 3
    assert load_model(out / "model").params["title.w"] == 2.0
    assert len((out / "tuned.run").read_text().splitlines()) >= 3
    [index] = out.glob("documents-*.index")
    ranked = fliprank_does(
        "rank", out, "--index", index, "--queries", files["queries.tsv"], "--out", tmp_path / "all.run"
    )
    assert ranked.returncode == 0, ranked.stderr
    tuned, everything = (
        {line.rpartition(" ")[0] for line in path.read_text().splitlines()}
        for path in (out / "tuned.run", tmp_path / "all.run")
    )
    assert tuned
    assert tuned <= everything
    written = index.stat().st_mtime_ns
    again = fliprank_does("tune", *given, *options, "--no-cross-validate", "--out", out)
    assert again.returncode == 0, again.stderr
    assert index.stat().st_mtime_ns == written
    assert json.loads((out / "result.json").read_text())["proof"] is None


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (["--docs", "DOCS"], 2, "give a file of rows, or --docs, --queries and --qrels, or --beir"),
        (["--beir", "nowhere"], 1, "nowhere"),
        (["x.jsonl", "--docs", "DOCS"], 2, "a file of rows stands alone"),
        (["x.jsonl", "--stemmer", "german"], 2, "how to index goes with --docs"),
        (["--beir", "x", "--docs", "DOCS"], 2, "--beir stands for"),
        (["FULL", "--fix", "title.weight=2"], 2, "no parameter is called 'title.weight'; near it: title.w"),
        (["FULL", "--measure", "nDGC@10"], 2, "nDGC@10"),
        (["FULL", "--test", "TRAIN"], 1, "test queries are training queries too"),
        (["FULL", "--model", "stack"], 2, "columns of the documents"),
        (["FULL", "--stopwords", "klingon"], 2, "klingon"),
        (["FULL", "--folds", "9"], 2, "9 folds of 5 queries: give more judgements, --folds 5, or --no-cross-validate"),
        (["FULL", "--measure", "AP(rel=3)"], 1, "AP(rel=3) is 0 on all train queries"),
        (["--beir", "BEIR", "--split", "dev"], 1, "no judgements of the split 'dev' (there are: test, train)"),
        (["FULL", "--seed", "-1"], 2, "--seed"),
        (["FULL", "--adopt", "maybe"], 2, "--adopt maybe: one of proven, always, never"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    files: dict[str, Path], tmp_path: Path, change: list[str], code: int, said: str
) -> None:
    full = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    names = {"DOCS": [files["docs.jsonl"]], "FULL": full, "TRAIN": [files["train.qrels"]], "BEIR": [collection()]}
    arguments = [each for given in change for each in names.get(given, [given])]
    done = fliprank_does("tune", *arguments, "--out", tmp_path / "out")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("docs.jsonl", '{"_id": "d1", "title": "x"}\n{"_id": "d2", "title": \n', "docs.jsonl, line 2"),
        ("docs.jsonl", '{"_id": "d1", "title": "x"}\n{"_id": "d1", "title": "y"}\n', "d1"),
        ("queries.tsv", "q0 red shoes\n", "queries.tsv, line 1"),
        ("train.qrels", "zz 0 d1 1\n", "no query has judgements"),
        ("train.qrels", "q0 0 d1\n", "train.qrels, line 1"),
        ("train.qrels", "q0 0 d1 0\nq1 0 d2 0\n", "train.qrels: no label is above 0"),
        ("train.qrels", "q0 0 d1 -1\nq1 0 d2 -1\n", "train.qrels: all labels are negative"),
        ("train.qrels", "q0 0 d1 1\n", "one training query"),
        ("train.qrels", "q0 0 d1 1100\nq1 0 d2 1\n", "query q0: a label of 1100 has a gain of 2^1100 - 1"),
        ("queries.tsv", "q0\tthe of\nq1\tzyx\n", "q0 is 'the of'; are stemmer and stop words"),
    ],
)
def test_broken_files_are_named(files: dict[str, Path], tmp_path: Path, name: str, text: str, said: str) -> None:
    files[name].write_text(text)
    given = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    done = fliprank_does("tune", *given, "--folds", "2", "--out", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    assert said in done.stderr
    assert not list(tmp_path.glob("out/*.index")) or name != "docs.jsonl"


@pytest.mark.parametrize("name", ["queries.tsv", "train.qrels", "test.qrels"])
def test_queries_and_judgements_are_looked_at_before_documents(
    files: dict[str, Path], tmp_path: Path, name: str
) -> None:
    files[name].write_text("nonsense\n")
    given = ["--docs", tmp_path / "nowhere", "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    done = fliprank_does("tune", *given, "--test", files["test.qrels"], "--out", tmp_path / "out")
    assert done.returncode == 1
    assert f"{name}, line 1" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_odd_about_judgements_is_told(files: dict[str, Path], tmp_path: Path) -> None:
    with files["train.qrels"].open("a") as file:
        file.write("q0 0 d2 -1\nq5 0 d1 0\n")
    files["queries.tsv"].write_text(files["queries.tsv"].read_text().replace("red hats hats", "zyx"))
    given = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    done = fliprank_does(
        "tune", *given, "--method", "sampled", "--folds", "2", "--no-cross-validate", "--out", tmp_path / "o"
    )
    assert done.returncode == 0, done.stderr
    assert "train.qrels: 1 labels are negative, which says: not judged" in done.stdout
    assert "train.qrels: 1 of 6 queries have no relevant document: q5" in done.stdout
    assert "train.qrels: 1 of 6 queries have no term in the index: q1" in done.stdout


def test_judgements_of_unknown_documents_are_counted_and_told(files: dict[str, Path], tmp_path: Path) -> None:
    with files["train.qrels"].open("a") as file:
        file.write("q0 0 nowhere 2\n")
    given = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    done = fliprank_does(
        "tune", *given, "--method", "sampled", "--folds", "2", "--no-cross-validate", "--out", tmp_path / "o"
    )
    assert done.returncode == 0, done.stderr
    assert "judged documents are not in the index: nowhere" in done.stdout


def quick(files: dict[str, Path], out: Path, *options: str | Path) -> subprocess.CompletedProcess[str]:
    given = ["--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--qrels", files["train.qrels"]]
    few = ["--method", "sampled", "--folds", "2", "--no-cross-validate"]
    return fliprank_does("tune", *given, *few, *options, "--out", out)


def test_judgements_with_the_texts_of_queries_need_no_file_of_queries(files: dict[str, Path], tmp_path: Path) -> None:
    names = ["query,docid,rating_anna,rating_ben\n", "query,docid,rating\n"]
    rows = [f"red {word} hats,{docid},2,1.5\n" for word, docid in WORDS.items()]
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text(names[0] + "".join(rows[:5]))
    test.write_text(names[1] + "".join(row.removesuffix(",1.5\n") + "\n" for row in rows[5:]))
    docs = tmp_path / "docs.csv"
    docs.write_text("id,title,body\n" + "".join(f'{d["_id"]},{d["title"]},"{d["body"]}"\n' for d in DOCS))
    common = ["--docs", docs, "--no-cross-validate", "--no-curve", "--set", "epochs=2", "--model", "bm25"]
    done = fliprank_does("tune", *common, "--qrels", train, "--test", test, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "train.csv: the labels are means of 2 raters" in " ".join(done.stdout.split())
    run = tmp_path / "out" / "tuned.run"
    assert {line.split()[0] for line in run.read_text().splitlines()} <= {
        "red_red_hats",
        "red_blue_hats",
        "red_green_hats",
    }
    judged = fliprank_does("evaluate", test, run, "-m", "RR", "--json")
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["queries"] == 3
    ranked = tmp_path / "again.run"
    done = fliprank_does("rank", tmp_path / "out", "--index", tmp_path / "out", "--queries", test, "--out", ranked)
    assert done.returncode == 0, done.stderr
    rows_out = tmp_path / "rows.parquet"
    done = fliprank_does("features", "--docs", docs, "--qrels", train, "--out", rows_out, "--select", "title.*")
    assert done.returncode == 0, done.stderr
    assert read_parquet(rows_out).qids.tolist()[:2] == ["red_shoes_hats", "red_hats_hats"]
    index = Index.open(next((tmp_path / "out").glob("*.index")))
    model, rows_of_train = load_model(tmp_path / "out" / "model"), index.candidates(train, train)
    value = parse_measure("AP").value(model.score(rows_of_train), rows_of_train)
    for folder in (tmp_path / "out", tmp_path / "out" / "model"):
        data = tmp_path / "path.csv"
        done = fliprank_does("landscape", "trajectory", folder, train, "-p", "b", "-m", "AP", "--out", data)
        assert done.returncode == 0, done.stderr
        assert f"{value:.4f}" in done.stdout
    done = fliprank_does("tune", *common, "--qrels", files["train.qrels"], "--out", tmp_path / "other")
    assert done.returncode == 1
    assert "train.qrels: these judgements have no texts of queries (give the queries" in done.stderr


def test_judgements_with_texts_are_matched_with_the_queries_by_these(files: dict[str, Path], tmp_path: Path) -> None:
    judgements = tmp_path / "judgements.csv"
    rows = [f"red  {word} hats,{docid},2\n" for word, docid in WORDS.items()]
    judgements.write_text("query,docid,rating\n" + "".join(rows))
    task = task_of_documents(Index.build(files["docs.jsonl"]), files["queries.tsv"], judgements)
    assert task.train.rows.qids.tolist() == [f"q{i}" for i in range(8)]
    assert task.train.rows.labels[task.train.rows.labels == 2].size == 8


def test_a_beir_folder_with_one_split_is_tuned_on_it(files: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    files["docs.jsonl"].rename(folder / "corpus.jsonl")
    lines = [line.split("\t") for line in files["queries.tsv"].read_text().splitlines()]
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": text}) + "\n" for q, text in lines))
    parts = [files[f"{part}.qrels"].read_text().replace(" 0 ", "\t").replace(" ", "\t") for part in ("train", "test")]
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(header + "".join(parts))
    common = ["tune", "--beir", folder, "--no-curve", "--folds", "2", "--set", "epochs=2", "--model", "bm25"]
    done = fliprank_does(*common, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "fitted to the split test, the only one" in " ".join(done.stdout.split())
    assert json.loads((tmp_path / "out" / "result.json").read_text())["proof"] is not None
    (folder / "qrels" / "dev.tsv").write_text(header + parts[1])
    done = fliprank_does(*common, "--out", tmp_path / "other")
    assert done.returncode == 1
    assert "no judgements of the split 'train' (there are: dev, test" in done.stderr


def test_link_text_is_a_field_and_links_give_pagerank(files: dict[str, Path], tmp_path: Path) -> None:
    anchors, links = tmp_path / "anchors.tsv", tmp_path / "links.tsv"
    anchors.write_text("d1\tred footwear\nd1\tboots\nd2\thats\n")
    links.write_text("d1\td2\nd3\td2\nd2\td1\n")
    done = quick(files, tmp_path / "out", "--model", "stack", "--anchors", anchors, "--links", links)
    assert done.returncode == 0, done.stderr
    names = load_model(tmp_path / "out" / "model").params.names
    assert {"title.w", "anchor.w", "pagerank.weight"} <= set(names)
    anchors.write_text("d1\tboots\n")
    assert quick(files, tmp_path / "out", "--anchors", anchors).returncode == 0
    assert len(list((tmp_path / "out").glob("*.index"))) == 2
    built = ["features", "--docs", files["docs.jsonl"], "--queries", files["queries.tsv"], "--links", links]
    done = fliprank_does(*built, "--stemmer", "german", "--select", "title.bm25", "--out", tmp_path / "f.parquet")
    assert done.returncode == 0, done.stderr
    assert read_parquet(tmp_path / "f.parquet").feature_names == ("pagerank", "title.bm25")


def test_stop_words_follow_the_stemmer_or_come_from_a_file(files: dict[str, Path], tmp_path: Path) -> None:
    stop = tmp_path / "stop.txt"
    stop.write_text("\ufeffred | a colour\n\n| nothing\nhats\n")
    for options, wanted in (
        (["--stemmer", "german"], {"stopwords": None, "stemmer": "german"}),
        (["--stemmer", "none", "--stopwords", "english"], {"stopwords": "english", "stemmer": None}),
        (["--stopwords", stop], {"stopwords": ["red", "hats"], "stemmer": "english"}),
    ):
        out = tmp_path / f"out{len(wanted['stemmer'] or '')}"
        done = quick(files, out, *options)
        assert done.returncode == 0, done.stderr
        [index] = out.glob("*.index")
        assert Index.open(index).analyzer.to_json() == {"lowercase": True, **wanted}


@pytest.mark.parametrize("damage", ["cut", "flip", "part"])
def test_a_damaged_index_is_built_again(files: dict[str, Path], tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out"
    assert quick(files, out).returncode == 0
    [index] = out.glob("*.index")
    good = index.read_bytes()
    if damage == "part":  # what a kill -9 leaves while the index is written, and no result yet
        index.rename(out / f".{index.name}.x1.part")
        (out / "result.json").unlink()
    else:
        index.write_bytes(good[:-200] if damage == "cut" else good[:-1000] + bytes([good[-1000] ^ 1]) + good[-999:])
        ranked = fliprank_does("rank", out, "--index", out, "--queries", files["queries.tsv"], "--out", tmp_path / "r")
        assert (ranked.returncode, "damaged" in ranked.stderr) == (1, True)
        assert not (tmp_path / "r").exists()
    assert quick(files, out).returncode == 0
    assert index.read_bytes() == good


def test_an_id_that_no_run_can_hold_is_told_before_the_tuning(files: dict[str, Path], tmp_path: Path) -> None:
    with files["docs.jsonl"].open("a") as file:
        file.write('{"_id": "a b", "title": "red"}\n')
    done = quick(files, tmp_path / "out")
    assert done.returncode == 1
    assert "docs.jsonl: the id 'a b' has white space" in done.stderr
    assert not (tmp_path / "out" / "model").exists()


def test_a_test_of_term_statistics_is_of_other_queries(files: dict[str, Path], tmp_path: Path) -> None:
    rows = Index.build(files["docs.jsonl"]).candidates(files["queries.tsv"], files["train.qrels"])
    write_statistics(tmp_path / "rows.jsonl", rows)
    done = fliprank_does("tune", tmp_path / "rows.jsonl", "--test", tmp_path / "rows.jsonl")
    assert done.returncode == 1
    assert "rows.jsonl, query q0: 5 test queries are training queries too" in done.stderr
    texts = dict(line.split("\t") for line in files["queries.tsv"].read_text().splitlines())
    other = {qid: f"blue {text}" for qid, text in texts.items()}  # numbered as the others are, but not the same
    write_statistics(tmp_path / "other.jsonl", Index.build(files["docs.jsonl"]).candidates(other, files["train.qrels"]))
    given = [tmp_path / "rows.jsonl", "--test", tmp_path / "other.jsonl", "--no-cross-validate"]
    done = fliprank_does("tune", *given, "--method", "sampled", "--folds", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr


def test_ctrl_c_is_told_and_the_index_is_kept(tmp_path: Path) -> None:
    """The signal comes when the index is there; then it is tuned, which takes longer than a moment."""
    out = tmp_path / "out"
    given = ["--docs", collection(), "--queries", collection(), "--qrels", collection() / "qrels" / "train.tsv"]
    command = [sys.executable, "-m", "fliprank", "tune", *map(str, given), "--out", str(out)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell in the background would shield it
    with subprocess.Popen(command, text=True, preexec_fn=heard, **pipes) as process:
        while not list(out.glob("documents-*.index")) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert (process.returncode, printed) == (130, "")
    kept, go_on = said.splitlines()[-2:]
    assert kept.endswith("the index is kept, so that it need not be built again")
    assert go_on == f"fliprank: to go on: fliprank {shlex.join(command[3:])}"
    assert {path.suffix for path in out.iterdir()} >= {".index"}
    assert not (out / "result.json").exists()


def test_the_demo_shows_that_tuning_helps_on_held_out_queries(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{shlex.quote(str(opened))}\n')
    browser.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:  # the browser of whoever runs it, which notes what it is to show
        patch.setenv("BROWSER", f"{browser} %s")
        done = fliprank_does("demo", "--out", tmp_path / "demo", "--open")
    assert done.returncode == 0, done.stderr
    assert "Marlpost" in done.stdout
    report = tmp_path / "demo" / "report.html"
    assert done.stdout.splitlines()[-1] == f"written: {report}"
    assert opened.read_text().strip() == report.as_uri()
    assert report.stat().st_size < 3_000_000
    told = json.loads((tmp_path / "demo" / "result.json").read_text())
    assert told["proof"]["test"]["queries"] == 56
    assert told["proof"]["test"]["difference"] > 0
    assert told["proof"]["cross_validated"]["difference"] > 0
