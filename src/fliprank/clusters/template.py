"""A query template of the user's own: the body of a request in which {{query}} stands for the text of the query.

>>> template = Template({"query": {"match": {"title": "{{query}}"}}})
>>> template.request('say "hi"')
{'query': {'match': {'title': 'say "hi"'}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fliprank.data.files import StrPath
from fliprank.data.json_files import read_json
from fliprank.errors import InputError

__all__ = ["Template", "read_template"]

PLACE = "{{query}}"


@dataclass(frozen=True)
class Template:
    """The body of a request. The text goes into strings of the parsed JSON: none can change the request.

    A string that has a syntax of its own (Solr's `q`, Vespa's `yql`) reads the text by that syntax.
    """

    body: Mapping[str, Any]

    def request(self, query: str) -> dict[str, Any]:
        """For one query."""
        filled: dict[str, Any] = _filled(self.body, query)
        return filled


def read_template(path: StrPath) -> Template:
    """From a JSON file; raises if the query has no place in it."""
    body = read_json(path)
    if not isinstance(body, dict):
        raise InputError("a JSON object was expected: the body of a search request", path=path)
    if _filled(body, "") == body:
        raise InputError(f"no string has {PLACE} in it, the place for the text of the query", path=path)
    return Template(body)


def _filled(value: Any, query: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, query) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, query) for each in value]
    return value.replace(PLACE, query) if isinstance(value, str) else value
