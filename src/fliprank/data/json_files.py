"""JSON as it is in the standard, from bytes, lines and files; errors name the file and the line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from fliprank.data.files import StrPath, read_bytes, read_chunks
from fliprank.errors import InputError

__all__ = ["json_objects", "read_json", "strict_json"]

_BOM = b"\xef\xbb\xbf"


def json_objects(path: StrPath) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number (from 1) and the JSON object of each line that is not blank."""
    number = 0
    for chunk in read_chunks(path):
        for text in chunk.split(b"\n")[:-1]:
            number += 1
            text = text.removeprefix(_BOM) if number == 1 else text
            if not text.strip():
                continue
            try:
                record = strict_json(text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"broken JSON: {error}", path=path, line=number) from error
            if not isinstance(record, dict):
                raise InputError("a JSON object was expected", path=path, line=number)
            yield number, record


def strict_json(text: bytes) -> Any:
    """What the bytes say; raises at NaN, infinities and numbers beyond all bounds, which JSON does not have."""
    return _STRICT.decode(text.decode())


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def read_json(path: StrPath) -> Any:
    """The JSON of a file; of several lines that are JSON each, a list."""
    data = read_bytes(path).tobytes().removeprefix(_BOM)
    try:
        return strict_json(data)
    except RecursionError:
        raise InputError("nested too deep", path=path) from None
    except ValueError as whole:
        found = list[Any]()
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                found += [strict_json(line)] if line.strip() else []
            except (ValueError, RecursionError) as error:
                told = f"broken JSON: {error if found else whole}"
                raise InputError(told, path=path, line=number if found else None) from None
        return found
