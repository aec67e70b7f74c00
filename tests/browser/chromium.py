"""Chromium without a window, which shows one file and tells what it asked for and complained about."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

__all__ = ["DESKTOP", "PHONE", "Browser", "chromium"]

DESKTOP, PHONE = (1280, 900), (390, 844)

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--force-device-scale-factor=1",
)  # fmt: skip


class Browser:
    """A tab; `show` opens a file in it and waits until its script has drawn everything."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def screen(self, size: tuple[int, int], dark: bool = False) -> None:
        """A screen of this size, in light or dark."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def show(self, path: Path, at: str = "") -> None:
        """Open a file, afresh."""
        self.driver.get("about:blank")
        self.requests(), self.complaints()
        self.driver.get(path.resolve().as_uri() + at)
        WebDriverWait(self.driver, 60).until(lambda _: self.run("return document.documentElement.dataset.ready"))

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """What stands in these elements, whether it is in view or not."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
        )
        return found

    def until(self, script: str, *arguments: Any) -> Any:
        """Wait until a script returns something true."""
        return WebDriverWait(self.driver, 20).until(lambda _: self.run(script, *arguments))

    def complaints(self) -> list[str]:
        """What the console has to say, since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def requests(self) -> list[str]:
        """The addresses that were asked for, since this was asked last."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own, closed in the end."""
    options = Options()
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "no chromium: make test-browser installs it"
    assert driver, "no chromedriver: make test-browser installs it"
    options.binary_location = binary
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        running = webdriver.Chrome(options=options, service=Service(driver))
        try:
            yield Browser(running)
        finally:
            running.quit()
