"""Pictures: what is drawn is what was found, in files that can be opened."""

from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import MissingExtraError, UsageError
from fliprank.landscape import score_trajectory, step_function
from fliprank.landscape.regions import score_regions
from fliprank.landscape.surface import surface as surface_of
from fliprank.models import Linear
from fliprank.report.contours import contours, levels_of
from fliprank.report.planes import regions_chart
from fliprank.report.plots import save, surface, trajectory
from fliprank.report.plots.step_curves import shown_range, steps_shown


def line(count: int) -> tuple[np.ndarray, np.ndarray, Candidates]:
    rng = np.random.default_rng(0)
    rows = Candidates.of(rng.integers(0, 2, count), group=[count // 2, count - count // 2])
    return rng.normal(size=count), rng.normal(size=count), rows


def test_a_contour_passes_between_lesser_and_greater_values_on_a_cone() -> None:
    x, y = np.linspace(-1, 1, 31), np.linspace(-2, 2, 41)
    values = np.hypot(*np.meshgrid(x, y))
    found = contours(x, y, values, 0.7)
    assert len(found) == 1  # a circle, closed
    np.testing.assert_array_equal(found[0][0], found[0][-1])
    np.testing.assert_allclose(np.hypot(*found[0].T), 0.7, atol=0.01)
    assert len(contours(x, y, values, 1.5)) == 2  # above and below, cut by the sides
    assert contours(x, y, values, 9.0) == []
    assert len(levels_of(np.ones((3, 3)))) == 0
    levels = levels_of(values)
    assert values.min() < levels.min() < levels.max() < values.max()


def test_every_crossing_of_a_level_is_on_a_contour() -> None:
    values = np.random.default_rng(1).normal(size=(12, 15))
    level = 0.1
    along_rows = int(((values[:, 1:] > level) != (values[:, :-1] > level)).sum())
    along_columns = int(((values[1:] > level) != (values[:-1] > level)).sum())
    found = contours(np.arange(15.0), np.arange(12.0), values, level)
    points = {tuple(point) for each in found for point in each.round(9).tolist()}
    assert len(points) == along_rows + along_columns


def test_few_steps_are_drawn_as_they_are_and_of_many_none_that_stands_out_is_lost() -> None:
    base, slope, rows = line(300)
    path = score_trajectory(base, slope, rows, "nDCG")
    x, value = steps_shown(path, -1, 1, columns=20)
    assert len(x) <= 4 * 20 + 2
    inside = (path.breaks > -1) & (path.breaks < 1)
    between = path.values[1:][inside]
    assert value.max() == pytest.approx(max(between.max(), path.at(-1 + 1e-12)))
    assert value.min() == pytest.approx(min(between.min(), path.at(-1 + 1e-12)))
    few = score_trajectory(base[:30], slope[:30], Candidates.of(rows.labels[:30]), "RR")
    x, value = steps_shown(few, -1, 1)
    for one, two, expected in zip(x, x[1:], value, strict=False):
        assert few.at((one + two) / 2) == expected
    assert shown_range([few])[0] == -shown_range([few])[1]


def test_pictures_are_files_that_open(tmp_path: Path) -> None:
    base, slope, rows = line(40)
    paths = [score_trajectory(base, slope, rows, name) for name in ("AP", "nDCG@5")]
    chart = trajectory(paths, axis="weight", low=-2, high=2, start=0.5)
    for name in ("a.svg", "a.png"):
        save(chart, tmp_path / name)
    texts = [each.text for each in ET.parse(tmp_path / "a.svg").iter() if each.text]
    assert {"weight", "AP", "nDCG@5"} <= set(texts)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    overlaid = trajectory(paths, axis="weight", low=-2, high=2, overlay=True).to_dict()
    optima = [peak for peak in paths[0].local_maxima() if peak.low < 2 and peak.high > -2]
    drawn = [d for part in _datasets(overlaid) for d in part if d.get("measure") == "AP" and "mark" in d]
    assert 1 < len(drawn) <= min(len(optima), 12)
    assert max(mark["value"] for mark in drawn) == pytest.approx(max(peak.value for peak in optima))
    with pytest.raises(UsageError, match=r"\.svg"):
        save(chart, tmp_path / "a.pdf")


def _datasets(spec: Any) -> list[list[dict[str, Any]]]:
    if isinstance(spec, dict):
        own = [spec["data"]["values"]] if isinstance(spec.get("data"), dict) and "values" in spec["data"] else []
        return own + [found for value in spec.values() for found in _datasets(value)]
    return [found for value in spec for found in _datasets(value)] if isinstance(spec, list) else []


def test_surfaces_and_regions_are_drawn_from_their_values(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = Candidates.of(rng.integers(0, 2, 30), group=[15, 15], features=rng.normal(size=(30, 2)))
    model = Linear().prepared(rows, 0)
    found = [surface_of(model, rows, ("w.1", "w.2"), of) for of in ("ranknet", "AP")]
    chart = surface(found, titles=["training rows", "the same"], here=(0.1, 0.2))
    save(chart, tmp_path / "s.svg")
    levels = {d["level"] for part in _datasets(chart.to_dict()) for d in part if "level" in d}
    assert len(levels) > 10
    assert found[1].values.min() < max(levels)
    plane = score_regions(
        [0, 0, 0.5], [1, 0, 0], [0, 1, 0], Candidates.of([1, 0, 0]), "AP", (-1, 1, -1, 1), neutral=True
    )
    save(regions_chart(plane, rankings=True), tmp_path / "r.svg")
    texts = [each.text for each in ET.parse(tmp_path / "r.svg").iter() if each.text]
    assert {"1,2", "1,3", "2,3"} <= set(texts)
    assert "123" in texts


def test_many_regions_are_drawn_as_a_map_with_the_strongest_numbered(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = Candidates.of(rng.integers(0, 2, 40), group=[20, 20])
    plane = score_regions(*rng.normal(size=(3, 40)), rows, "AP", (-1, 1, -2, 2))
    assert len(plane.boundaries) > 50
    chart = regions_chart(plane, ("a", "b"))
    save(chart, tmp_path / "map.svg")
    texts = " ".join(each.text for each in ET.parse(tmp_path / "map.svg").iter() if each.text)
    best = plane.optima()[0]
    assert f"{len(plane.optima()):,} regions of optimum" in texts
    assert f"1: {best.value:.4f}" in texts
    boxes = [d for part in _datasets(chart.to_dict()) for d in part if "value" in d]
    assert len(boxes) > 1000
    for box in boxes[:: len(boxes) // 50]:  # each is the measure in its first pixel
        x, y = box["x"] + 1 / 140, box["y"] + 2 / 140
        assert box["value"] == pytest.approx(plane.at(x, y), abs=1e-5)
    numbers = [d for part in _datasets(chart.to_dict()) for d in part if "number" in d]
    assert 1 < len({d["number"] for d in numbers}) <= 4


def test_bounds_and_cut_offs_are_said(tmp_path: Path) -> None:
    base, slope, rows = line(40)
    peak = score_trajectory(base, slope, rows, "AP").maximum  # a window that ends on it cuts it off
    low, high = peak.low - 0.5, peak.low + peak.width / 2
    path = score_trajectory(base, slope, rows, "AP", low, high)
    near = step_function(path.steps, "AP", low, high, resolution=0.01)
    save(trajectory([near, path], axis="weight", low=low, high=high), tmp_path / "a.svg")
    texts = [each.text for each in ET.parse(tmp_path / "a.svg").iter() if each.text]
    cut = len(near.cut_off())
    assert cut > 0
    told = f"{len(near.local_maxima())}, {cut} cut off; steps: "
    assert f"local optima: at least {told}at least {len(near.breaks)}" in texts
    assert f"local optima: {told}{len(path.breaks)}" in texts


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **named: Any) -> Any:
        if name == "altair":
            raise ImportError("no altair", name="altair")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    base, slope, rows = line(10)
    with pytest.raises(MissingExtraError, match=r"altair is not installed: pip install 'fliprank\[report\]'"):
        trajectory(score_trajectory(base, slope, rows, "AP"), axis="w", low=-1, high=1)


def test_no_name_can_end_the_script_that_it_stands_in(tmp_path: Path) -> None:
    altair = pytest.importorskip("altair")
    evil = "</script><script>alert(1)</script>"
    save(altair.Chart({"values": [{evil: 1}]}).mark_point().encode(x=altair.X("a:Q", title=evil)), tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert page.count("</script>") == page.count("<script")


def test_names_with_characters_that_no_svg_can_hold_are_drawn(tmp_path: Path) -> None:
    name = "a\x01b\x1b[2J\b\\u0001\ud800 \U0001f600 <é>\ufffe"
    chart = trajectory(score_trajectory(*line(8), "AP"), axis=name, low=-1, high=1)
    for name in ("a.svg", "a.png", "a.html"):
        save(chart, tmp_path / name)
    texts = " ".join(each.text for each in ET.parse(tmp_path / "a.svg").iter() if each.text)
    assert "a\ufffdb\ufffd[2J\ufffd\ufffdu0001\ufffd \U0001f600 <é>\ufffd" in texts
