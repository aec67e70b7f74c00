"""A page as one HTML file: template, style, scripts and content, and a policy that forbids everything else.

Content is JSON in a script element that is not run; `<` is escaped in it, so that no text can end the element. Scripts
and style are allowed by their hashes alone: whatever else found its way into the file would not run, and nothing can
be requested from anywhere. Scripts are plain ES modules. They are put one after the other, each after those that it
imports, without their import lines: the file needs no build step and no server.

>>> as_data({"title": "</script><script>alert(1)</script>"})
'{"title":"\\\\u003c/script>\\\\u003cscript>alert(1)\\\\u003c/script>"}'
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath, atomic_write
from fliprank.report.page.section import Page

__all__ = ["as_data", "render", "script", "write_page"]

ENTRY = "main.js"
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
PLACE = re.compile(r"\{\{([a-z]+)\}\}")


def write_page(path: StrPath, page: Page) -> Path:
    """Write a page to a file, whole or not at all."""
    with atomic_write(path) as file:
        file.write(render(page).encode("utf-8", "replace"))
    return Path(path)


def render(page: Page) -> str:
    """The file."""
    style, code = _asset("style.css"), script()
    policy = (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": escape(page.title),
        "style": style,
        "fallback": "\n".join(
            f"<h2>{escape(each.title)}</h2><p>{escape(each.conclusion)}</p>" for each in page.sections
        ),
        "content": as_data(page.content()),
        "script": code,
    }
    return PLACE.sub(lambda found: parts[found[1]], _asset("index.html"))


def as_data(content: Mapping[str, Any]) -> str:
    """JSON that no text can break out of; null for what is not a number."""
    try:
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:  # looking at every number is slow: only where one of them is none
        text = json.dumps(_finite(content), separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@cache
def script() -> str:
    """All scripts, each after those that it imports."""
    found = dict[str, str]()

    def add(name: str) -> None:
        text = _asset(name)
        for other in IMPORT.findall(text):
            if other not in found:
                add(other)
        found[name] = EXPORT.sub("", IMPORT.sub("", text))

    add(ENTRY)
    return "\n".join(f"// {name}\n{text}" for name, text in found.items())


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
