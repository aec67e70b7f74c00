"""A small calculator for Solr's functions and the expressions of Vespa's rank profiles; what it can't read
is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

TOKEN = re.compile(r'\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|"([^"]*)"|(==|[-+*/(),<>]))')
Value = float | str
Functions = Mapping[str, Callable[..., Value]]


def calculate(text: str, functions: Functions) -> float:
    """The value of an expression; names without arguments are functions of none."""
    tokens, end = [], 0
    while end < len(text.rstrip()):
        found = TOKEN.match(text, end)
        assert found, f"can't be read: {text[end:]!r}"
        tokens.append(found.groups())
        end = found.end()
    reader = _Reader(tokens, functions)
    value = reader.compared()
    assert not reader.tokens, f"left over: {reader.tokens}"
    assert isinstance(value, float)
    return value


class _Reader:
    def __init__(self, tokens: list[tuple[str | None, ...]], functions: Functions) -> None:
        self.tokens, self.functions = tokens, functions

    def _sign(self, *signs: str) -> str | None:
        return self.tokens.pop(0)[3] if self.tokens and self.tokens[0][3] in signs else None

    def compared(self) -> Value:
        left = self._sum()
        sign = self._sign("==", ">", "<")
        if sign is None:
            return left
        right = self._sum()
        return float({"==": left == right, ">": left > right, "<": left < right}[sign])  # type: ignore[operator]

    def _sum(self) -> Value:
        value = self._product()
        while sign := self._sign("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other  # type: ignore[operator]
        return value

    def _product(self) -> Value:
        value = self._single()
        while sign := self._sign("*", "/"):
            other = self._single()
            value = value * other if sign == "*" else value / other  # type: ignore[operator]
        return value

    def _single(self) -> Value:
        if self._sign("-"):
            return -self._single()  # type: ignore[operator]
        if self._sign("("):
            value = self.compared()
            assert self._sign(")")
            return value
        number, name, quoted, _ = self.tokens.pop(0)
        if number is not None:
            return float(number)
        if quoted is not None:
            return quoted
        assert name is not None
        return self.functions[name](*self._arguments())

    def _arguments(self) -> list[Value]:
        """Of a name that is no function here, the name itself: bm25(title)."""
        if not self._sign("("):
            return []
        values: list[Value] = []
        while not self._sign(")"):
            after = self.tokens[1] if len(self.tokens) > 1 else None
            plain = self.tokens[0][1] is not None and after is not None and after[3] in (",", ")")
            if plain and self.tokens[0][1] not in self.functions:
                values.append(str(self.tokens.pop(0)[1]))
            else:
                values.append(self.compared())
            self._sign(",")
        return values
