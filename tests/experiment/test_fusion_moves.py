"""What a fusion does query by query, against plain sorting."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from test_fusing import collection

from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.fusing import TUNED, Fused, fuse, write_fused
from fliprank.experiment.fusion_moves import csv_text

MEASURE = "nDCG@5"


def ranks_of(scores: dict[str, float]) -> dict[str, int]:
    """Rank by score, falling, then by document id, falling."""
    order = sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
    return {docid: rank for rank, (docid, _) in enumerate(order, 1)}


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", params=[(1.0, 1.0, 1.0), (0.2, 1.6)], ids=["fusion kept", "a list kept"])
def found(request: Any, tmp_path_factory: Any) -> tuple[Fused, Path, dict[str, Any], dict[str, Any]]:
    lists, judged = collection(3, queries=20, documents=30, good=request.param)
    judged = {q: {d: label for d, label in own.items() if int(d[1:]) % 7} for q, own in judged.items()}
    fused = fuse(lists, judged, measure=MEASURE, settings={"normalise": "minmax"})
    folder = tmp_path_factory.mktemp("fused")
    write_fused(folder, fused)
    return fused, folder, lists, judged


def test_every_query_is_there_with_all_measures_before_and_after(found: Any) -> None:
    fused, folder, _, judged = found
    rows = table(folder / "queries.csv")
    assert [row["query"] for row in rows] == list(judged)
    runs = {"before": fused.kept_run, "after": fused.run}
    plain = evaluate(judged, runs, [MEASURE, "AP", "Judged@10"]).values
    for number, row in enumerate(rows):
        for name in (MEASURE, "AP", "Judged@10"):
            for side in runs:
                assert float(row[f"{name} {side}"]) == pytest.approx(plain[side][name][number], abs=1e-12)
        gain = plain["after"][MEASURE][number] - plain["before"][MEASURE][number]
        assert float(row["difference"]) == pytest.approx(gain, abs=1e-12)


def test_the_documents_that_moved_are_those_of_plain_sorting(found: Any) -> None:
    fused, folder, lists, judged = found
    before, after = fused.kept_run.to_dict(), fused.run.to_dict()
    expected = {}
    for query in judged:
        old, new = ranks_of(before.get(query, {})), ranks_of(after[query])
        own = {name: ranks_of(each[query]) for name, each in lists.items()}
        for docid in old.keys() | new.keys():
            one, other = old.get(docid), new.get(docid)
            if one != other and min(one or 99, other or 99) <= 5:
                label = judged[query].get(docid)
                expected[query, docid] = (one, other, label, *(own[name].get(docid) for name in lists))
    rows = table(folder / "moved.csv")
    written = {
        (row["query"], row["document"]): tuple(
            float(row[column]) if row[column] else None
            for column in ("rank before", "rank after", "label", *(f"rank in {name}" for name in lists))
        )
        for row in rows
    }
    assert written == expected
    assert len(written) == len(rows) > 10
    assert any(None in each[3:] for each in written.values())


def test_the_queries_that_moved_most_are_told(found: Any) -> None:
    fused, folder, lists, _ = found
    rows = sorted(table(folder / "queries.csv"), key=lambda row: -float(row["difference"]))
    content = json.loads((folder / "result.json").read_text())["moved"]
    best = [row["query"] for row in rows[:3] if float(row["difference"]) > 0]
    assert [each["query"] for each in content["helped"]] == best
    assert best
    worst = [row["query"] for row in rows[::-1][:3] if float(row["difference"]) < 0]
    assert [each["query"] for each in content["hurt"]] == worst
    assert content["on"] == "cross_validated"
    query = fused.moves.helped[0]
    for each in query.moved:
        ranks = (ranks_of(lists[name][query.qid]).get(each.docid, "-") for name in lists)
        assert each.title == ", ".join(f"{name} {rank}" for name, rank in zip(lists, ranks, strict=True))
    assert query.after == pytest.approx(
        fused.evaluation.values[TUNED][MEASURE][fused.evaluation.qids.tolist().index(query.qid)]
    )


def test_cells_are_quoted_and_never_formulas() -> None:
    assert csv_text([["query", "n"], ["=1+2", 3], ['a "b", c', ""]]) == 'query,n\n\'=1+2,3\n"a ""b"", c",\n'
