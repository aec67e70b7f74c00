"""Charts as files: .svg and .png, drawn by vl-convert without a browser, and .json, which is Vega-Lite.

A file is written whole or not at all. Drawn again, it is the same to the last byte, and it says who wrote it, so that
commands replace no file of somebody else's.
"""

from __future__ import annotations

import re
import zlib
from os import PathLike
from typing import Any

from fliprank.checked import checked
from fliprank.data.files import atomic_write
from fliprank.errors import UsageError, WrongTypeError
from fliprank.experiment.fit_folder import json_text
from fliprank.report.drawing import altair

__all__ = ["PICTURES", "save"]

PICTURES = (".svg", ".png", ".json", ".html")
"""How names of pictures end; .html is a page that holds all it needs, from vl-convert."""

WRITER = {"usermeta": {"writer": "fliprank"}}
"""What Vega-Lite begins with."""


@checked
def save(chart: Any, path: str | PathLike[str], scale: float = 2.0) -> None:
    """Write a chart as .svg, .png (`scale` pixels per unit), .json (Vega-Lite) or .html, by the ending of the name."""
    altair()
    if not callable(getattr(chart, "to_dict", None)):
        raise WrongTypeError("chart", chart, "an Altair chart, such as fr.plots.trail(fit) gives")
    import vl_convert

    name, spec = str(path), _drawable(json_text(WRITER | chart.to_dict(), indent=None))
    if name.endswith(".svg"):
        data = _renumbered(_LONG.sub(_rounded, vl_convert.vegalite_to_svg(spec))).encode()
    elif name.endswith(".png"):
        data = _signed(vl_convert.vegalite_to_png(spec, scale=scale))
    elif name.endswith(".json"):
        data = f"{spec}\n".encode()
    elif name.endswith(".html"):
        data = _page(spec).encode()
    else:
        raise UsageError(f"{name}: pictures are written as {', '.join(PICTURES)}")
    with atomic_write(path) as file:
        file.write(data)


_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\\\[uxbfv0-9]|\\.")


def _drawable(spec: str) -> str:
    """JSON whose strings an SVG can hold: without control characters and halves of surrogate pairs.

    A backslash that would escape one is replaced too: Vega reads some strings as JavaScript does.
    """

    def shown(found: re.Match[str]) -> str:
        escape = found[0].lower()
        if len(escape) == 3:
            return "\\ufffd" + found[0][2]
        code = int(escape[2:], 16) if len(escape) == 6 else ord(" ")
        allowed = code >= 32 and not 0xD800 <= code < 0xE000 and code < 0xFFFE
        return found[0] if (allowed or code in (9, 10, 13)) and escape not in ("\\b", "\\f") else "\\ufffd"

    return _ESCAPE.sub(shown, spec)


def _page(spec: str) -> str:
    """A page that holds all it needs. Names come from files: none of them may end the script that they stand in."""
    import vl_convert

    blank = '{"mark":"point","description":"the spec of a chart"}'
    page: str = vl_convert.vegalite_to_html(blank, bundle=True)
    before, found, after = page.partition(blank)
    if not found:
        raise RuntimeError("vl-convert no longer writes the spec of a chart as it is given")
    return f"{before}{spec.replace('<', chr(92) + 'u003c')}{after}\n<!-- written by fliprank -->\n"


def _signed(png: bytes) -> bytes:
    """The picture with a note of who wrote it, after its first chunk: a command replaces no file of somebody else."""
    note = b"tEXtSoftware\0fliprank"
    chunk = (len(note) - 4).to_bytes(4) + note + zlib.crc32(note).to_bytes(4)
    return png[:33] + chunk + png[33:]


_LONG = re.compile(r' (?:d|transform)="[^"]*"')
"""Attributes that hold coordinates."""


def _rounded(found: re.Match[str]) -> str:
    """Coordinates to a hundredth of a pixel: a third of the size, and nobody sees it."""
    return re.sub(r"(\.\d\d)\d+", r"\1", found[0])


_NUMBERED = re.compile(r'(?:(?<=id=")|(?<=url\(#))(clip|gradient_)\d+')
"""What Vega numbers on and on while a process draws."""


def _renumbered(svg: str) -> str:
    """Numbers from 0 in each picture: drawn again it is the same to the last byte, whatever was drawn before."""
    known: dict[str, str] = {}
    return _NUMBERED.sub(lambda found: known.setdefault(found[0], f"{found[1]}{len(known)}"), svg)
