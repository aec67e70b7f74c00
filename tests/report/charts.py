"""What is in a chart: the records that it draws, the texts that it shows."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from fliprank.report.plots import save


def records(chart: Any, *names: str) -> list[dict[str, Any]]:
    """All records that have fields of these names, each once, in the order in which they are drawn."""
    found: list[dict[str, Any]] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            data = part.get("data")
            found.extend(data["values"] if isinstance(data, dict) and "values" in data else [])
            part = [value for key, value in part.items() if key != "data"]
        for each in part if isinstance(part, list) else []:
            walk(each)

    walk(chart if isinstance(chart, dict) else json.loads(chart.to_json()))
    some = [record for record in found if set(names) <= record.keys()]
    return [record for at, record in enumerate(some) if record not in some[:at]]


def texts(chart: Any, folder: Path) -> str:
    """All that can be read in the picture, its lines joined."""
    save(chart, folder / "texts.svg")
    return " ".join(each.text for each in ET.parse(folder / "texts.svg").iter() if each.text)
