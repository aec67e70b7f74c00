r"""Help whose examples can be copied: a command that is too long for the screen goes on after a backslash.

>>> print(*broken('fliprank train train.txt --valid vali.txt --out fit', 40), sep="\n")
fliprank train train.txt \
    --valid vali.txt --out fit
"""

from __future__ import annotations

import re
from textwrap import indent, wrap
from typing import Any

from typer.core import TyperCommand

__all__ = ["ExampleCommand", "broken"]

_OPTION = re.compile(r"--?[A-Za-z]")
_WORDS = re.compile(r'(?:"[^"]*"|\S)+')


class ExampleCommand(TyperCommand):
    """A command whose help ends with examples: indented lines as they are, all else as text."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        for paragraph in re.split(r"\n\s*\n", (self.epilog or "").strip("\n")):
            formatter.write_paragraph()
            if not paragraph.startswith(" "):
                formatter.write(f"{_filled(paragraph, formatter.width)}\n")
                continue
            for line in paragraph.splitlines():
                for part in broken(line.strip(), formatter.width - 4):
                    formatter.write(f"    {part}\n")


def _filled(paragraph: str, width: int) -> str:
    """Text in lines; names of measures have hyphens, at which they are not broken."""
    blank = "  "
    lines = wrap(" ".join(paragraph.split()), width - len(blank), break_on_hyphens=False, break_long_words=False)
    return indent("\n".join(lines), blank)


def broken(command: str, width: int) -> list[str]:
    """The lines of a shell command of at most so many letters, broken before options."""
    parts: list[str] = []
    for word in _WORDS.findall(command):
        if not parts or _OPTION.match(word):
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines = [""]
    for part in parts:
        together = f"{lines[-1]} {part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if lines[-1].strip() and len(together) > width - 2:
            lines[-1] += " \\"
            lines.append(f"    {part}")
        else:
            lines[-1] = together
    return lines
