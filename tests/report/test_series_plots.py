"""Charts of series: every point is drawn, and what is given is what stands in the picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from fliprank.report.saving import save
from fliprank.report.series_plots import series_chart

pytest.importorskip("altair")
POINTS = [
    {"rank": rank, "p": p, "method": method, "document": f"document {document}", "low": p - 0.1, "high": p + 0.1}
    for document in (1, 2)
    for method, values in (("true", (0.7, 0.3)), ("paper's", (0.6, 0.4)))
    for rank, p in enumerate(values)
]


@pytest.mark.parametrize("bars", [True, False])
def test_every_point_is_drawn_in_its_panel(bars: bool, tmp_path: Path) -> None:
    chart = series_chart(POINTS, "rank", "p", "method", bars=bars, panel="document", level=("baseline", 0.5))
    frames = chart.to_dict()["hconcat"]
    assert [frame["title"] for frame in frames] == ["document 1", "document 2"]
    for frame in frames:
        values = next(each["data"]["values"] for each in frame["layer"] if len(each["data"]["values"]) > 1)
        assert sorted((v["series"], v["x"], v["y"]) for v in values) == [
            ("paper's", 0, 0.6), ("paper's", 1, 0.4), ("true", 0, 0.7), ("true", 1, 0.3),
        ]  # fmt: skip
    save(chart, tmp_path / "it.svg")
    text = (tmp_path / "it.svg").read_text()
    assert "baseline" in text
    assert "document 2" in text


def test_one_panel_needs_no_name() -> None:
    assert "hconcat" not in series_chart(POINTS[:4], "rank", "p", "method").to_dict()
