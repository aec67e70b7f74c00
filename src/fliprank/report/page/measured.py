"""How it was measured: everything that a number on the page depends on, enough to run it again."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from typing import Any

from fliprank import __version__
from fliprank.experiment.evaluation import Evaluation
from fliprank.report.page.section import Section, clipped

__all__ = ["measured_section"]

UNSAID = ("models", "cutoffs", "parts", "weights")
"""Settings that other sections show."""


def measured_section(
    evaluation: Evaluation | None,
    settings: Mapping[str, Any],
    notes: Iterable[str] = (),
    command: str = "",
) -> Section:
    """Conventions of the measures, settings, versions, files, and the command line where there was one."""
    conventions = [] if evaluation is None else [list(pair) for pair in evaluation.explain()]
    told = {name: value for name, value in settings.items() if name not in (*UNSAID, "sources", "version")}
    sources = settings.get("sources") or {}
    data = {
        "conventions": conventions,
        "settings": [[name, _said(value)] for name, value in told.items() if value not in (None, "", [], {})],
        "sources": [[name, str(path)] for name, path in sources.items()],
        "versions": [["fliprank", __version__], ["Python", platform.python_version()], *_packages()],
        "command": command,
        "notes": [clipped(str(note)) for note in notes],
    }
    return Section("measured", "How it was measured", _conclusion(settings, command), data)


def _conclusion(settings: Mapping[str, Any], command: str) -> str:
    seed = f" with random seed {settings['seed']}" if "seed" in settings else ""
    again = "the command below" if command else "the same call"
    return f"With fliprank {__version__}, {again}{seed} gives the same numbers again."


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return clipped(", ".join(f"{name} {_said(item)}" for name, item in value.items()))
    if isinstance(value, list | tuple):
        return clipped(", ".join(map(_said, value)))
    return clipped(f"{value:g}" if isinstance(value, float) else str(value))


def _packages() -> list[list[str]]:
    from importlib.metadata import version

    return [[name, version(name)] for name in ("numpy", "scipy", "numba")]
