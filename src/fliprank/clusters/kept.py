"""What was fetched from a cluster, kept as it comes: a pull that was broken off goes on where it was.

A line of JSON per query, document or term, after a first line that says of what they are. A file of something else
(another index, other fields, other queries) is begun anew; a last line that was cut short is fetched again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fliprank.data.files import atomic_write
from fliprank.data.json_files import strict_json
from fliprank.errors import InputError

__all__ = ["Kept"]


class Kept:
    """The records of one file by id; without a file, in memory only. `found` is how many an earlier call had left."""

    def __init__(self, path: Path | None, of: Mapping[str, Any]) -> None:
        self.path, self.records = path, dict[str, Any]()
        if path is not None:
            first = json.dumps({"of": dict(of)}, sort_keys=True).encode()
            lines = path.read_bytes().split(b"\n") if path.is_file() else []
            whole = lines[:-1]  # a line without an end was cut short
            if whole and whole[0] == first:
                self._read(path, whole[1:])
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                whole, lines = [first], [first, b"new"]
            if lines[-1]:
                with atomic_write(path) as file:
                    file.write(b"\n".join(whole) + b"\n")
        self.found = len(self.records)

    def _read(self, path: Path, lines: Iterable[bytes]) -> None:
        for number, line in enumerate(lines, 2):
            try:
                name, record = strict_json(line)
                self.records[str(name)] = record
            except (ValueError, TypeError, RecursionError) as error:
                raise InputError(f"broken: {error}", path=path, line=number, hint="remove this file") from None

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those that are not there yet."""
        return [name for name in names if name not in self.records]

    def add(self, records: Mapping[str, Any]) -> None:
        """Keep these, on disk before anything else is asked for."""
        self.records.update(records)
        if self.path is not None:
            with self.path.open("ab") as file:
                file.write(b"".join(json.dumps(pair).encode() + b"\n" for pair in records.items()))
