"""The page on Python: its examples run, one after the other, and print no arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair")
PAGE = Path(__file__).parents[1] / "docs" / "python.md"


def test_the_examples_of_the_page_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    parts = [part.split("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    assert len(parts) == 5
    for part in parts:
        exec(part, names)  # our own page
    shown = capsys.readouterr().out
    assert "Index: " in shown
    assert names["proof"].sentence in shown
    assert "Importance: what nDCG@10 of" in shown
    assert "array(" not in shown
    assert names["proof"].on == "test"
    assert (tmp_path / "tuned.run").read_text().startswith("q ")
    assert (tmp_path / "tuned" / "model.json").exists()
