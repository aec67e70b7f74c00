"""Inputs made of valid ones: bytes, words, lines, JSON values, arrays and whole files are changed, dropped, repeated.

An input is a small folder: the content of each file by its name. Everything random comes from the generator that is
handed in, so that the same seed gives the same inputs.

>>> sorted(mutated(random.Random(1), {"x.txt": b"1 qid:3 1:0.5"}, text))
['x.txt']
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.data.store import read_arrays, write_arrays
from fliprank.errors import InputError

__all__ = ["Change", "Files", "json_lines", "json_text", "mutated", "raw", "spoilt_npz", "spoilt_store", "text"]

Files = dict[str, bytes]
Change = Callable[[random.Random, bytes], bytes]

WORDS = [
    *(b"0", b"-1", b"1", b"2.5", b"1e400", b"-1e400", b"1e-400", b"nan", b"NaN", b"inf", b"-inf", b"NULL", b"null"),
    *(b"true", b"None", b"9" * 30, b"9" * 5000, b"0x10", b"1_000", b"007", b"1,5", b"+1", b"-0", b".", b"e", b"-"),
    *(b"4294967296", b"2147483648", b"9223372036854775807", b"-9223372036854775809", b"1000001", b"20001", b"19999"),
    *(b"qid:", b"qid:3", b"1:", b":1", b"1:2", b"0:0", b"-1:2", b"900:1", b"1000001:1", b"#", b"#docid = x", b"Q0"),
    *(b"{", b"}", b"[", b"]", b"{}", b"[]", b'""', b'"', b"'", b",", b";", b":", b"=", b"@", b"(", b")", b"\\", b"|"),
    *(b"\\ud800", b'"\\ud800"', b"\\u0000", "é".encode(), "\u0301".encode(), "İ".encode(), "\U0001f600".encode()),
    *("\u2028".encode(), "\u00a0".encode(), b"\xed\xa0\x80", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\0", b"\x1b[2J"),
    *(b"<DOC>", b"</DOC>", b"<DOCNO>", b"</DOCNO>", b"<top>", b"</top>", b"<num>", b"<title>", b"<!--", b"&#x110000;"),
    *(b"&#xd800;", b"<a", b"</", b"_id", b"query", b"docid", b"rating", b"2024-02-30", b"0000-00-00", b"9999-12-31"),
    *(b"inf:inf", b"@10", b"@0", b"@-1", b"@99999999999", b"rel=", b"dcg='exp-log2'", b"1e+09", b"{1:3}", b"(1,0.5)"),
]
"""Words that mean something to one of the parsers, or nearly do."""
GLUE = [b" ", b"\t", b"\n", b"\r\n", b"\r", b",", b";", b"\v", b"\f", b"\x1c", b"\x85", b"  ", b""]

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2.5, -0.0, 1e308, 5e-324, 10**19, -(10**19), 2**31, 2**63, 2**64, 10**400, 10**5000),
    *("", "x", "\ud800", "\0", "é", "1", "nan", "2024-01-02", "a" * 3000, "../../x", "arrays-0123456789abcdef.npz"),
    *([], {}, [[]], [1, "x"], [None], {"": 1}, {"a": {"b": [1]}}, [[1, 2], [3]], ["a", "b"], {"target": "d1"}),
    *(float("nan"), float("inf"), [0] * 50, {"x": 10**400}),
]
"""JSON values of all kinds."""


def mutated(rng: random.Random, files: Files, change: Change) -> Files:
    """The files with one of them changed once or several times; now and then one is missing, or stands for another."""
    out = dict(files)
    name = rng.choice(sorted(out))
    luck = rng.random()
    if luck < 0.01:
        del out[name]
    elif luck < 0.03:
        out[name] = out[rng.choice(sorted(out))]
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
            out[name] = change(rng, out[name])
    if rng.random() < 0.02 and name in out:
        zipped = gzip.compress(out[name], 1, mtime=0)
        out[name] = raw(rng, zipped) if rng.random() < 0.5 else zipped
    return out


def raw(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, inserted, dropped, repeated, or all from some place on cut off."""
    begin = rng.randrange(len(data) + 1)
    end = min(len(data), begin + rng.choice([0, 1, 1, 2, 4, 8, 32, 200]))
    kind = rng.randrange(6)
    if kind == 0 and begin < len(data):
        return data[:begin] + bytes([data[begin] ^ (1 << rng.randrange(8))]) + data[begin + 1 :]
    if kind == 1:
        return data[:begin] + rng.randbytes(rng.choice([1, 2, 4, 8])) + data[end:]
    if kind == 2:
        return data[:begin] + rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"\x80"]) + data[end:]
    if kind == 3:
        return data[:end] + data[begin:]
    return data[:begin] if rng.random() < 0.3 else data[:begin] + data[end:]


def text(rng: random.Random, data: bytes) -> bytes:
    """A word or a line changed, dropped, repeated, exchanged; or bytes, as in `raw`."""
    kind = rng.randrange(10)
    if kind < 3:
        return raw(rng, data)
    if kind < 6:
        return _word(rng, data)
    lines = data.splitlines(keepends=True) or [b""]
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 6:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 7:
        lines.insert(one, lines[other] * rng.choice([1, 1, 2, 300]))
    elif kind == 8:
        del lines[one]
    else:
        lines[one] = _word(rng, lines[one])
    joined = b"".join(lines)
    return joined.replace(b"\n", b"\r\n") if rng.random() < 0.05 else joined


def _word(rng: random.Random, data: bytes) -> bytes:
    """A stretch between two separators replaced by a word of ours, or by another of its own."""
    marks = [0, *(i for i, byte in enumerate(data[:4000]) if byte in b' \t\n,;:=@"(){}[]<>#'), len(data)]
    at = rng.randrange(len(marks) - 1)
    begin, end = marks[at] + (at > 0), marks[at + 1]
    if rng.random() < 0.2:
        place = rng.randrange(len(marks) - 1)
        new = data[marks[place] : marks[place + 1]]
    else:
        new = rng.choice(WORDS)
    if rng.random() < 0.3:
        new = rng.choice([new + rng.choice(GLUE), rng.choice(GLUE) + new, new * 2, data[begin:end] + new])
    return data[:begin] + new + data[max(begin, end) :]


def json_text(rng: random.Random, data: bytes) -> bytes:
    """A value of a JSON text changed, a key renamed or dropped; or its bytes, as in `text`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return text(rng, data)
    if rng.random() < 0.2:
        return text(rng, data)
    try:
        return json.dumps(_changed(rng, value), ensure_ascii=rng.random() < 0.9).encode(errors="surrogatepass")
    except (ValueError, RecursionError):  # an integer of too many digits can't be written
        return text(rng, data)


def json_lines(rng: random.Random, data: bytes) -> bytes:
    """The same for one of the lines of a file of JSON lines."""
    lines = data.split(b"\n")
    one = rng.randrange(len(lines))
    if rng.random() < 0.2 or not lines[one]:
        return text(rng, data)
    lines[one] = json_text(rng, lines[one]).replace(b"\n", b" ")
    return b"\n".join(lines)


def _changed(rng: random.Random, value: Any) -> Any:
    """A JSON value with something in it changed."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        luck = rng.random()
        copy = value.copy()
        if luck < 0.1:
            del copy[key]
        elif luck < 0.2 and isinstance(copy, dict):
            copy[rng.choice(["", "x", "_id", "value", "\ud800", *keys])] = copy[rng.choice(keys)]
        elif luck < 0.2 and isinstance(copy, list):
            copy.insert(key, copy[rng.choice(keys)])
        else:
            copy[key] = _changed(rng, copy[key])
        return copy
    if isinstance(value, int | float) and rng.random() < 0.5:
        near = [-value, value + 1, value - 1, value * 2, [value], -1, 1e30, 1e300, "1"]
        return rng.choice(near)
    if isinstance(value, str) and value and rng.random() < 0.5:
        return rng.choice([value + "x", value[1:], value.upper(), value * 2, [value], {value: value}, value + "\ud800"])
    found = rng.choice(VALUES)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 3, 70, 500])):
        found = [found] if rng.random() < 0.5 else {"a": found}
    return found


def spoilt_store(rng: random.Random, data: bytes) -> bytes:
    """A file of arrays whose header or arrays are changed, its sums right again; or its bytes, as in `raw`."""
    if rng.random() < 0.2:
        return raw(rng, data)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name, "store")
        place.write_bytes(data)
        try:
            header, arrays = read_arrays(place)
        except InputError:
            return raw(rng, data)
        kept = {each: np.array(array) for each, array in arrays.items()}
        if rng.random() < 0.4 or not kept:
            header = _changed(rng, header)
        else:
            which = rng.choice(sorted(kept))
            kept[which] = _array(rng, kept[which])
            if rng.random() < 0.1:
                kept.pop(which)
        try:
            write_arrays(place, header, kept, durable=False)
        except (ValueError, RecursionError, TypeError):
            return raw(rng, data)
        return place.read_bytes()


def _array(rng: random.Random, array: Any) -> Any:
    """An array with values, kind or shape changed."""
    kind, out = rng.randrange(6), np.array(array)
    extremes = [0, 1, -1, 2, 127, 255, 65535, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, float("nan"), float("inf"), -1e300]
    if kind < 3 and out.size:
        value = rng.choice(extremes)
        place = rng.randrange(out.size)
        if out.dtype.kind in "iu":
            info = np.iinfo(out.dtype)
            value = 3 if value != value else int(min(max(value, info.min), info.max))
        with np.errstate(all="ignore"):
            out.reshape(-1)[place] = value
        return out
    if kind == 3 and len(out):
        return out[: rng.randrange(len(out))] if rng.random() < 0.5 else np.concatenate([out, out[:1]])
    if kind == 4:
        with np.errstate(all="ignore"):
            return out.astype(rng.choice(["u1", "u2", "i4", "i8", "f4", "f8"]))
    return rng.choice([out.reshape(-1), out[None], out.reshape(-1)[::-1], np.zeros((0, 3), out.dtype)])


def spoilt_npz(rng: random.Random, data: bytes) -> bytes:
    """An npz file whose arrays are changed, or the header of one of them, or its bytes."""
    luck = rng.random()
    if luck < 0.5:
        return raw(rng, data)
    if luck < 0.7:
        return data.replace(rng.choice([b"<f8", b"False", b"'shape'", b"(", b")", b","]), rng.choice(WORDS)[:5], 1)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        name = rng.choice(sorted(arrays))
        arrays[name] = _array(rng, arrays[name])
    except Exception:  # what was changed before can be no npz any more
        return raw(rng, data)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()
