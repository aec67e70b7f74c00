"""Running parts: each into its folder, and none again that was run before on the same data.

A run that is ended goes on where it was: parts that are done stay as they are, and the one that was under way finds its
checkpoints in OUT/.cache.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fliprank import __version__
from fliprank.data.files import StrPath, check_writable
from fliprank.papers.data import find_data, fingerprint
from fliprank.papers.part import PARTS, Finding, Part, Setting
from fliprank.papers.write import read_finding, write_finding

__all__ = ["part_folder", "reproduce"]


def reproduce(
    part: Part,
    out: StrPath,
    *,
    quick: bool = False,
    seed: int = 0,
    data: Mapping[str, Path] | None = None,
    data_folder: StrPath | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> bool:
    """Run a part and write its folder. False if it was done before, at the same size, on the same data.

    A part sees the data sets that it needs, and those that no part knows: a person's own.
    """
    others = {name for each in PARTS.values() for name in each.needs} - set(part.needs)
    given = {name: path for name, path in (data or {}).items() if name not in others}
    paths = find_data(part.needs, given, data_folder)
    folder = part_folder(out, part)
    check_writable(folder, folder=True)
    prints = {name: fingerprint(paths[name]) for name in sorted(paths)}
    made_of: dict[str, Any] = {"version": __version__, "quick": quick, "seed": seed, "data": prints}
    before = read_finding(folder)
    if before is not None and before["made_of"] == made_of and not force:
        return False
    key = blake2b(repr(made_of).encode(), digest_size=6).hexdigest()
    cache = Path(out) / ".cache" / part.paper / part.name / key
    setting = Setting(quick, paths, cache, seed, progress, Path(out) / ".cache" / part.paper / "fits" / __version__)
    if force:
        for place in (cache, setting.shared, setting.fits):
            shutil.rmtree(place, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    finding: Finding = part.run(setting)
    write_finding(folder, part, finding, made_of)
    shutil.rmtree(Path(out) / ".cache" / part.paper / part.name, ignore_errors=True)
    return True


def part_folder(out: StrPath, part: Part) -> Path:
    """Where a part is written."""
    return Path(out) / part.paper / part.name
