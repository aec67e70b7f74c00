"""Files that a command may replace: those that it wrote, known by how they begin or end; others only with --force.

A run carries our tag, a file of features its names or our mark beside them, a table our columns, a picture our mark or
that of Vega, which draws it. An empty file is nobody's loss.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from fliprank.errors import InputError

__all__ = ["Force", "check_output"]

Force = Annotated[bool, typer.Option("--force", help="Replace files that fliprank did not write, too.")]

LOOK = 1 << 16
"""Bytes at the beginning and at the end that are looked at."""

TABLES = (
    ("set", "of"),
    ("measure", "from", "to"),
    ("epoch", "before", "after"),
    ("parameter", "start", "value", "qid"),
)
"""The first columns of the tables that `fliprank landscape` writes."""


VEGA_LITE = b'{"usermeta": {"writer": "fliprank"}, '
"""How a chart begins that was written as Vega-Lite."""


def check_output(path: Path, force: bool = False) -> None:
    """Raise, before any work is done, if `path` can't be written, or is a file that is not ours to replace."""
    from fliprank.data.files import check_writable

    check_writable(path)
    if force or not path.is_file() or path.stat().st_size == 0 or _is_ours(path):
        return
    hint = "give another name, or --force to replace it"
    raise InputError("there is such a file, and it is none that this command wrote", path=path, hint=hint)


def _is_ours(path: Path) -> bool:
    from fliprank.data.files import open_bytes

    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    try:
        with open_bytes(path) as file:
            start = file.read(LOOK)
        with path.open("rb") as raw:
            raw.seek(-min(LOOK, path.stat().st_size), 2)
            end = raw.read()
    except (InputError, OSError):
        return False
    first = start.partition(b"\n")[0].strip()
    if kind == "parquet":
        return start.startswith(b"PAR1") and b"fliprank" in end
    if kind == "jsonl":
        return re.match(rb'\{"qid": "q\d+", "query": "[t\d. ]*", "docid": "d\d+\.\d+"', first) is not None
    if kind == "csv":
        return any(first.startswith(",".join(names).encode() + b",") for names in TABLES)
    if kind == "json":
        return start.startswith(VEGA_LITE) or any(re.match(_keys(names), start) for names in TABLES)
    if kind == "svg":
        return start.startswith(b"<svg") and b'class="marks"' in start[:300]
    if kind in ("png", "html"):
        return b"fliprank" in (start[:200] if kind == "png" else end[-200:])
    return (
        re.fullmatch(rb"\S+ Q0 \S+ 1 \S+ fliprank", first) is not None or path.with_name(path.name + ".names").is_file()
    )


def _keys(names: tuple[str, ...]) -> bytes:
    """Of a list of JSON objects, indented, the first of which begins with these keys."""
    return rb"\[\s*\{\s*" + rb"[^\n]*\s*".join(re.escape(f'"{name}": '.encode()) for name in names)
