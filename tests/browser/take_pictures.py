"""Writes docs/pictures/report*.png: the demo's report as people see it (`make pictures`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from chromium import DESKTOP, PHONE, Browser, chromium

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

SHOTS = {
    "report.png": ("", None, DESKTOP, False),
    "report-query.png": ("#query=3", "#query-opened", DESKTOP, False),
    "report-explorer.png": ("", "#explorer", DESKTOP, True),
    "report-surface.png": ("", "#surface", DESKTOP, False),
    "report-phone.png": ("", None, PHONE, False),
    "report-phone-dark.png": ("#query=3", "#query-opened", PHONE, True),
}
"""Address, what is scrolled to, size of the screen, and whether it is dark."""


def main() -> None:
    with TemporaryDirectory() as folder, chromium() as browser:
        subprocess.run(
            [sys.executable, "-m", "fliprank", "demo", "--quiet", "--out", "fliprank-demo"], check=True, cwd=folder
        )
        for name, (address, place, size, dark) in SHOTS.items():
            _shoot(browser, Path(folder) / "fliprank-demo" / "report.html", address, place, size, dark, PICTURES / name)
            print(f"written: {PICTURES / name}, {(PICTURES / name).stat().st_size:,} bytes")


def _shoot(
    browser: Browser, report: Path, address: str, place: str | None, size: tuple[int, int], dark: bool, picture: Path
) -> None:
    browser.screen(size, dark)
    browser.show(report, address)
    if place is not None:
        browser.run("document.querySelector(arguments[0]).scrollIntoView()", place)
    browser.driver.save_screenshot(str(picture))


if __name__ == "__main__":
    main()
