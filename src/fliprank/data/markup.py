"""Markup that is nearly, but not quite, XML: elements and tags in time linear in the text, whatever it holds.

A pattern such as <DOC>(.*?)</DOC> looks through the rest of the text at each <DOC> that does not end. Here ends are
looked for once.

>>> [content for _, content, _ in between("<Top>a</top> x <top>b</top> <top>c", "top")]
['a', 'b']
>>> list(elements("<x <a y=1>red <b>shoe</b></A > and <c> more")), without_tags("<b>red</b> <!-- > --> <i")
([(3, 'a', 'red <b>shoe</b>', 30)], ' red    <i')
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

__all__ = ["between", "elements", "without_tags"]

_OPENING = re.compile(r"<(\w+)(?=[\s>])")
_CLOSING = re.compile(r"</(\w+)\s*>")
_TAG = re.compile(r"</?\w[^>]*>")
_TAG_OR_COMMENT = re.compile(r"</?\w[^>]*>|<!--.*?-->", re.DOTALL)


def between(text: str, name: str) -> Iterator[tuple[int, str, int]]:
    """(start, content, end) of each <name>...</name>, in any case; an element ends at the first end after it."""
    opening, closing = (re.compile(f"<{slash}{name}>", re.IGNORECASE) for slash in ("", "/"))
    place = 0
    while (begin := opening.search(text, place)) and (end := closing.search(text, begin.end())):
        yield begin.start(), text[begin.end() : end.start()], end.end()
        place = end.end()


def elements(text: str) -> Iterator[tuple[int, str, str, int]]:
    """(start, name in lower case, content, end) of each element that is in no other one and ends."""
    brackets = [found.start() for found in re.finditer(">", text)]
    ends: dict[str, list[re.Match[str]]] = {}
    for found in _CLOSING.finditer(text):
        ends.setdefault(found[1].lower(), []).append(found)
    done = 0
    for found in _OPENING.finditer(text):
        name = found[1].lower()
        bracket = bisect_left(brackets, found.end())
        if found.start() < done or name not in ends or bracket == len(brackets):
            continue
        inside = brackets[bracket] + 1
        number = bisect_left(ends[name], inside, key=lambda end: end.start())
        if number < len(ends[name]):
            end = ends[name][number]
            yield found.start(), name, text[inside : end.start()], end.end()
            done = end.end()


def without_tags(text: str, instead: str = " ") -> str:
    """The text with `instead` for each tag and comment; what does not end is none.

    A pattern that fails has looked at all the rest; before the last end of its kind, it can't fail.
    """
    comments = text.rfind("-->") + 3 if "-->" in text else 0
    tags = max(comments, text.rfind(">") + 1)
    return _TAG_OR_COMMENT.sub(instead, text[:comments]) + _TAG.sub(instead, text[comments:tags]) + text[tags:]
