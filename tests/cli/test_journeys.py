"""Two journeys in a terminal of 80 and of 200 columns, judged by what is on the screen.

A shop tunes its search: documents, a CSV of judgements, `tune`, the verdict, `rank`, `evaluate`. Someone learns to
rank: feature files, `train`, Ctrl-C in the middle, `--resume`, `rank`, `evaluate`. With the real data where they are,
else with the built-in collection and generated rows.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from person import Terminal, look

import fliprank as fr
from fliprank.data.builtin import collection

pytestmark = pytest.mark.long

SHARED = Path(__file__).parents[3] / "shared" / "data"
ICECAT, MQ2008 = SHARED / "text" / "icecat", SHARED / "letor" / "MQ2008" / "Fold1"
WIDTHS = (80, 200)
QUERIES, DISTRACTORS = 24, 600
NUMBER = re.compile(r"[-+]?\d[\d.,e-]*$")


def lines_of(path: Path) -> list[str]:
    """The lines of a file, plain or gzipped."""
    packed = path.with_name(path.name + ".gz")
    text = path.read_text() if path.exists() else gzip.decompress(packed.read_bytes()).decode()
    return text.rstrip("\n").split("\n")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some queries of a shop, their judged documents and others, as a shop would export them."""
    folder = tmp_path_factory.mktemp("shop")
    if ICECAT.exists():
        rows = list(csv.DictReader(lines_of(ICECAT / "judgements.csv")))
        documents = [json.loads(line) for line in lines_of(ICECAT / "corpus.jsonl")]
    else:
        texts = {q["_id"]: q["text"] for q in map(json.loads, lines_of(collection() / "queries.jsonl"))}
        judged = [line.split("\t") for line in lines_of(collection() / "qrels" / "train.tsv")[1:]]
        rows = [{"query": texts[q], "docid": d, "rating": label} for q, d, label in judged]
        documents = [json.loads(line) for line in lines_of(collection() / "corpus.jsonl")]
    queries = list(dict.fromkeys(row["query"] for row in rows))[: 2 * QUERIES]
    wanted = {row["docid"] for row in rows if row["query"] in queries}
    others = [each for each in documents if each["_id"] not in wanted][:DISTRACTORS]
    kept = [each for each in documents if each["_id"] in wanted] + others
    (folder / "products.jsonl").write_text("".join(json.dumps(each) + "\n" for each in kept))
    for name, some in (("judgements.csv", queries[:QUERIES]), ("later.csv", queries[QUERIES:])):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(row for row in rows if row["query"] in some)
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training, validation and test rows in LETOR's format."""
    folder = tmp_path_factory.mktemp("letor")
    rng = np.random.default_rng(0)
    for name, queries in (("train", 60), ("vali", 30), ("test", 30)):
        if MQ2008.exists():
            found = fr.read_letor(MQ2008 / f"{name}.txt.gz").select(np.arange(queries))
        else:
            x = rng.normal(size=(queries * 20, 46)).astype(np.float32)
            labels = np.clip(np.round(x[:, 0] - x[:, 1] + rng.normal(size=len(x))), 0, 2)
            docids = [f"GX{i:06}" for i in range(len(x))]
            found = fr.Candidates.of(labels, group=[20] * queries, docids=docids, features=x)
        fr.write_letor(folder / f"{name}.txt", found)
    return folder


def assert_whole(terminal: Terminal, columns: int) -> None:
    """Nothing is cropped but titles of documents, and each row of a table has as many cells as its head."""
    assert not [line for line in terminal.lines if "…" in line and " -> " not in line]
    assert "Traceback" not in terminal.text
    assert all(len(line) <= columns for line in terminal.lines)


def cells(terminal: Terminal, title: str) -> list[list[str]]:
    """The cells of the table below a title, the head first."""
    lines = terminal.lines[terminal.lines.index(title) + 1 :]
    rule = set("┏┡└┳╇┴┓┩┘━─")
    table = []
    for line in lines:
        if set(line) & rule:
            continue
        parts = [part.strip() for part in re.split(r"[┃│]|\s{2,}", line) if part.strip()]
        if len(parts) < 2:
            break
        table.append(parts)
    return table


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_shop_tunes_its_search(shop: Path, tmp_path: Path, columns: int) -> None:
    out = tmp_path / "tuned"
    given = (
        f"--docs {shop / 'products.jsonl'} --fields title,text"
        if ICECAT.exists()
        else f"--docs {shop / 'products.jsonl'}"
    )
    tuned = look(
        f"fliprank tune {given} --qrels {shop / 'judgements.csv'} --test {shop / 'later.csv'} --no-curve --out {out}",
        columns,
        tmp_path,
    )
    assert_whole(tuned, columns)
    told = json.loads((out / "result.json").read_text())
    first = tuned.lines[0]
    assert first.split(":")[0] in ("Better", "Not shown to be better", "Not better", "Worse", "No difference")
    measure = "nDCG@10 (exp)" if columns == 80 else "nDCG(dcg='exp-log2')@10"
    assert measure in first
    assert f"{told['proof']['test']['difference']:+.4f}" in first
    held_out = told["proof"]["test"]["queries"]
    table = cells(tuned, f"On {held_out} held-out queries")
    assert table[0] == ["measure", "default", "tuned", "change", "95% interval", "p", "helped", "hurt"]
    assert [row[0] for row in table[1:]] == [measure, "AP", "RR", "Judged@10"]
    assert all(len(row) == 8 for row in table)
    assert table[1][2] == f"{told['proof']['test']['tuned']:.4f}"
    parameters = cells(tuned, "Parameters")
    fitted = told["params"]["fitted"]
    assert [(row[0], row[2]) for row in parameters[1:]] == [(name, f"{fitted[name]:.4g}") for name in fitted]
    ranked = look(f"fliprank rank {out} --index {out} --queries {shop / 'later.csv'} --out new.run", columns, tmp_path)
    assert f"new.run ({held_out} queries, " in " ".join(ranked.lines)
    judged = look(f"fliprank evaluate {shop / 'later.csv'} {out / 'default.run'} new.run -m AP", columns, tmp_path)
    assert_whole(judged, columns)
    means = cells(judged, f"Means over {held_out} queries")
    default = str(out / "default.run") if columns == 200 and len(str(out)) < 150 else "default.run"
    assert [row[0] for row in means] == ["run", default, "new.run"]
    assert means[1][1] == f"{told['proof']['test']['measures']['AP']['default']:.4f}"
    moved = look(f"fliprank diff {out}", columns, tmp_path)
    assert "Traceback" not in moved.text
    assert all(len(line) <= columns for line in moved.lines)
    proof = told["proof"]["test"]
    counts = f"{proof['better']} queries helped, {proof['worse']} hurt"
    assert counts in " ".join(moved.lines)


@pytest.mark.parametrize("columns", WIDTHS)
def test_someone_learns_to_rank_stops_in_the_middle_and_goes_on(rows: Path, tmp_path: Path, columns: int) -> None:
    files = f"{rows / 'train.txt'} --valid {rows / 'vali.txt'} --test {rows / 'test.txt'}"
    command = f"fliprank train {files} --model network --hidden 10 --restarts 1 --out fit"
    with Terminal(command, columns, tmp_path) as first:
        first.wait_for_file(tmp_path, "fit/checkpoint/*.checkpoint")
        first.press_ctrl_c()
        assert first.end() == 130
    assert_whole(first, columns)
    said = "".join(first.screen.display)  # a long command goes on in the next line, where the screen ends
    assert "interrupted: fit/" in said or "interrupted: the epochs so far" in said
    assert f"to go on: {command} --resume" in said
    assert not first.screen.cursor.hidden
    done = look(f"{command} --resume", columns, tmp_path)
    assert_whole(done, columns)
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert not told["interrupted"]
    whole = look(command.replace("--out fit", "--out whole"), columns, tmp_path)
    renamed = [line.replace("whole/", "fit/") for line in whole.lines]
    assert renamed == done.lines  # the same figures as without the interruption
    measure = "nDCG@10 (exp)" if columns == 80 else "nDCG(dcg='exp-log2')@10"
    head = next(line for line in done.lines if "set" in line)
    assert [part for part in re.split(r"[┃│]|\s{2,}", head) if part.strip()][1].strip() == measure
    test = next(line for line in done.lines if "test " in line)
    assert f"{told['test']['AP']:.4f}" in test
    look(f"fliprank rank fit {rows / 'test.txt'} --out run.trec", columns, tmp_path)
    judged = look(f"fliprank evaluate {rows / 'test.txt'} run.trec -m AP -q", columns, tmp_path)
    assert_whole(judged, columns)
    assert f"{told['test']['AP']:.4f}" in judged.text
