"""What is wrong with lists is said, or counted and said: as files, as people have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fliprank.data.trec import Qrels, Run, write_qrels, write_run
from fliprank.errors import FliprankError, InputError
from fliprank.experiment.fusing import fuse

QUERIES, DOCUMENTS = 8, 12
Lists = dict[str, dict[str, dict[str, float]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 0, 1, 2], (QUERIES, DOCUMENTS))
    for name, sees in (("bm25", 1.0), ("dense", 1.5)):
        write_run(tmp_path / f"{name}.run", Run.of(table(sees * labels + rng.normal(size=labels.shape)), name))
    write_qrels(tmp_path / "qrels.txt", Qrels.of(table(labels)))
    return tmp_path


def table(values: np.ndarray) -> dict[str, dict[str, float]]:
    return {f"q{q}": {f"d{d}": value for d, value in enumerate(line)} for q, line in enumerate(values.tolist())}


def changed(folder: Path, old: str, new: str) -> None:
    """Change the list `dense`, line by line."""
    lines = (folder / "dense.run").read_text().splitlines()
    (folder / "dense.run").write_text("".join(line.replace(old, new) + "\n" for line in lines))


def fused(folder: Path, first: str = "bm25.run", second: str = "dense.run") -> tuple[str, ...]:
    runs = {"bm25": folder / first, "dense": folder / second}
    return fuse(runs, folder / "qrels.txt", measure="nDCG@10", settings={"normalise": "minmax"}).notes


def test_good_files_have_no_notes(folder: Path) -> None:
    assert fused(folder) == ()


def test_a_document_that_a_list_has_twice_is_named_with_its_line(folder: Path) -> None:
    lines = (folder / "dense.run").read_text().splitlines()
    (folder / "dense.run").write_text("\n".join([*lines, lines[3]]) + "\n")
    document = lines[3].split()[2]
    with pytest.raises(InputError, match=document) as found:
        fused(folder)
    assert "dense.run" in str(found.value)
    assert "q0" in str(found.value)


@pytest.mark.parametrize("score", ["nan", "inf", "none"])
def test_a_score_that_is_no_finite_number_is_named_with_its_line(folder: Path, score: str) -> None:
    lines = (folder / "dense.run").read_text().splitlines()
    cells = lines[4].split()
    lines[4] = " ".join([*cells[:4], score, *cells[5:]])
    (folder / "dense.run").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"dense\.run.*5") as found:
        fused(folder)
    assert score in str(found.value).lower()


def test_a_list_of_other_queries_is_named(folder: Path) -> None:
    changed(folder, "q", "topic")
    with pytest.raises(InputError, match="the list dense has none of the judged queries"):
        fused(folder)


def test_lists_of_other_queries_alone_are_shown_beside_the_judgements(folder: Path) -> None:
    changed(folder, "q", "topic")
    other = (folder / "dense.run").read_text().replace("d1", "d2x")
    (folder / "third.run").write_text(other)
    with pytest.raises(InputError, match="no query in common") as found:
        fused(folder, "dense.run", "third.run")
    assert "topic0" in str(found.value)
    assert "q0" in str(found.value)


def test_documents_of_another_kind_are_said(folder: Path) -> None:
    for name in ("bm25", "dense"):
        text = (folder / f"{name}.run").read_text()
        (folder / f"{name}.run").write_text(text.replace(" d", " doc"))
    with pytest.raises(InputError, match="no judged document is in any of the lists"):
        fused(folder)


def test_one_file_under_two_names_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match="bm25 and dense are the same list, twice"):
        fused(folder, "bm25.run", "bm25.run")
    (folder / "copy.run").write_text((folder / "bm25.run").read_text())
    with pytest.raises(InputError, match="the same list, twice"):
        fused(folder, "bm25.run", "copy.run")


def test_a_list_that_lacks_a_query_or_tells_nothing_is_counted(folder: Path) -> None:
    lines = [line for line in (folder / "dense.run").read_text().splitlines() if not line.startswith("q2 ")]
    flat = [" ".join([*line.split()[:4], "1.0", "x"]) if line.startswith("q5 ") else line for line in lines]
    (folder / "dense.run").write_text("\n".join(flat) + "\n")
    assert fused(folder) == (
        "dense has nothing for 1 of 8 judged queries",
        "all scores of dense are equal in 1 of 8 queries",
    )


def test_a_list_whose_scores_are_all_equal_is_counted_and_does_no_harm(folder: Path) -> None:
    flat = [" ".join([*line.split()[:4], "1.0", "x"]) for line in (folder / "dense.run").read_text().splitlines()]
    (folder / "dense.run").write_text("\n".join(flat) + "\n")
    assert fused(folder) == ("all scores of dense are equal in 8 of 8 queries",)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_said(folder: Path, content: str) -> None:
    (folder / "dense.run").write_text(content)
    with pytest.raises(FliprankError, match="dense"):
        fused(folder)
