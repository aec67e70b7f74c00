"""`fliprank evaluate --report FILE`: a page beside the tables; nobody else's file is replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from person import call

QRELS = "".join(f"q{q} 0 d{d} {int(d % 3 == q % 3)}\n" for q in range(6) for d in range(6))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text(QRELS)
    for name, turn in (("a", 1), ("b", 5)):
        lines = (f"q{q} Q0 d{d} 1 {(d * turn + q) % 7}.5 {name}\n" for q in range(6) for d in range(6))
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def test_evaluate_writes_a_page_and_says_so(files: Path) -> None:
    done = call("evaluate", "qrels.txt", "a.run", "b.run", "--report", "page.html", folder=files)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "written: page.html"
    text = (files / "page.html").read_text()
    assert "fliprank evaluate qrels.txt a.run b.run --report page.html" in text
    assert '"kind":"queries"' in text
    again = call("evaluate", "qrels.txt", "a.run", "b.run", "--report", "page.html", "--json", folder=files)
    assert again.code == 0, again.err
    assert json.loads(again.out)["written"] == ["page.html"]


def test_a_file_of_someone_else_and_a_name_of_another_kind_are_refused(files: Path) -> None:
    (files / "mine.html").write_text("<p>mine</p>")
    for name, said in (("mine.html", "none that this command wrote"), ("page.pdf", "must end in .html")):
        done = call("evaluate", "qrels.txt", "a.run", "--report", name, folder=files)
        assert done.code in (1, 2)
        assert said in done.err
    assert (files / "mine.html").read_text() == "<p>mine</p>"
    assert call("evaluate", "qrels.txt", "a.run", "--report", "mine.html", "--force", folder=files).code == 0


def test_rows_and_scores_have_a_page_too(files: Path) -> None:
    (files / "rows.txt").write_text("".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(12)))
    (files / "scores.txt").write_text("".join(f"{i * 7 % 5}\n" for i in range(12)))
    done = call("evaluate", "rows.txt", "scores.txt", "--report", "rows.html", folder=files)
    assert done.code == 0, done.err
    assert '"kind":"figures"' in (files / "rows.html").read_text()
