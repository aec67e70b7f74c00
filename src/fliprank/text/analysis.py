"""From text to terms: words, lower case, stop words, Snowball stems; every step can be switched off.

A word consists of letters, digits and underscores of any script (`\\w+`) and the marks on them, such as the vowel signs
of Hindi. A Chinese character or a Hiragana, written without spaces, is a word by itself, as in Lucene. A kernel finds
the words (`words.py`); only distinct words are stemmed, so a collection of a billion words calls the stemmer once per
word of its vocabulary. An index keeps its analyzer, and analyses queries in the same way as its documents.

>>> Analyzer().terms("The runner's red shoes")
['runner', 's', 'red', 'shoe']
>>> Analyzer.from_json(Analyzer(stemmer=None, stopwords=("red",)).to_json()).terms("Red Shoes")
['shoes']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Int32s
from fliprank.data.files import StrPath, open_text
from fliprank.errors import InputError, UsageError

__all__ = ["ALONE", "ENGLISH", "Analyzer", "letters", "read_words", "word_pattern"]

ENGLISH = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
)  # fmt: skip
"""The English stop words of Lucene and of the engines built on it."""

CODE_POINTS = 0x110000
ALONE = 0x1000000
"""Added to a code point that is a word by itself."""
_ODD = "\u03a3"
"""A letter whose lower case depends on the letters around it (Σ)."""
_ACCENTS = re.compile("[\u0300-\u033f]")
"""Marks that form one letter with the letter before them."""


@dataclass(frozen=True)
class Analyzer:
    """How text becomes terms.

    `stopwords` is "english", a list of words, or None; they are compared with words before stemming. `stemmer` is a
    Snowball language ("english", "german", ...), or None.
    """

    lowercase: bool = True
    stopwords: str | Sequence[str] | None = "english"
    stemmer: str | None = "english"

    def __post_init__(self) -> None:
        if isinstance(self.stopwords, str):
            if self.stopwords != "english":
                hint = "stop words of other languages are given as a list"
                raise UsageError(f"no built-in stop words called {self.stopwords!r}; {hint}")
        elif self.stopwords is not None:
            words = tuple(self.stopwords)
            if not all(isinstance(word, str) for word in words):
                raise UsageError("stop words must be strings")
            object.__setattr__(self, "stopwords", words)
        if self.stemmer is not None:
            import Stemmer

            if self.stemmer not in Stemmer.algorithms():
                raise UsageError(f"no stemmer {self.stemmer!r}: choose from {', '.join(Stemmer.algorithms())}")

    @property
    def stop_list(self) -> tuple[str, ...]:
        """The stop words, in lower case if words are."""
        words = ENGLISH if isinstance(self.stopwords, str) else tuple(self.stopwords or ())
        return tuple(dict.fromkeys(word.lower() if self.lowercase else word for word in words))

    def stems(self, words: Sequence[str]) -> list[str]:
        """The stem of each word; without a stemmer, the words themselves."""
        if self.stemmer is None:
            return list(words)
        import Stemmer

        stemmer = Stemmer.Stemmer(self.stemmer, 0)  # words are distinct: a cache would only cost time
        found: list[str] = stemmer.stemWords(words)
        return found

    def terms(self, text: str) -> list[str]:
        """The terms of one text, in order; in plain Python, to look at."""
        stop = set(self.stop_list)
        words = word_pattern().findall(self.normal(text))
        return self.stems([word for word in words if word not in stop])

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        words = self.stopwords if isinstance(self.stopwords, str | None) else list(self.stopwords)
        return {"lowercase": self.lowercase, "stopwords": words, "stemmer": self.stemmer}

    @classmethod
    def from_json(cls, given: Any) -> Analyzer:
        """From `to_json`, checked."""
        names = {"lowercase", "stopwords", "stemmer"}
        if not isinstance(given, dict) or given.keys() != names or not isinstance(given["lowercase"], bool):
            raise InputError(f"not the settings of an analyzer: {str(given)[:80]!r}")
        stop, stemmer = given["stopwords"], given["stemmer"]
        if not isinstance(stop, str | list | None) or not isinstance(stemmer, str | None):
            raise InputError(f"not the settings of an analyzer: {str(given)[:80]!r}")
        return cls(given["lowercase"], stop, stemmer)

    def normal(self, text: str) -> str:
        """The text in which words are found: accents joined with their letters, lower case (İ is i, not i and a dot).

        >>> Analyzer().normal("CAFE" + chr(0x301) + " İzmir")
        'café izmir'
        """
        one = unicodedata.normalize("NFC", text) if _ACCENTS.search(text) else text
        return one.replace("İ", "i").lower() if self.lowercase else one

    def plain(self, texts: Iterable[str]) -> list[str]:
        """The texts, made `normal` where replacing letters one by one would not be enough."""
        odd = re.compile(f"[{_ODD}]|{_ACCENTS.pattern}" if self.lowercase else _ACCENTS.pattern)
        return [self.normal(text) if odd.search(text) else text for text in texts]

    def odd(self, data: bytes) -> bool:
        """Whether some of these UTF-8 bytes have to go through `plain`; 0xCC is the first byte of an accent."""
        return not data.isascii() and (b"\xcc" in data or (self.lowercase and _ODD.encode() in data))


def read_words(path: StrPath) -> tuple[str, ...]:
    """Stop words from a file, one per line; what follows a `|` is a comment, as in Snowball's lists."""
    if not Path(path).exists():
        raise UsageError(f"no stop words called {str(path)!r}: give english, none, or a file with one word per line")
    with open_text(path) as lines:
        words = [line.removeprefix("\ufeff").partition("|")[0].strip() for line in lines]
    return tuple(dict.fromkeys(word for word in words if word))


@lru_cache(maxsize=1)
def word_pattern() -> re.Pattern[str]:
    """A word, as a regular expression.

    >>> word_pattern().findall("हिन्दी, naïve 東京に ❤\ufe0f")
    ['हिन्दी', 'naïve', '東', '京', 'に']
    """
    alone, marks = (_as_class(points) for points in (_alone(), _marks()))
    return re.compile(f"(?:[{alone}]|(?![{alone}])\\w)(?:(?<![{alone}])(?:(?![{alone}])\\w|[{marks}]))*")


def _alone() -> list[int]:
    """Characters that are words by themselves: Chinese ones and Hiragana."""
    spans = ((0x3041, 0x3097), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000))
    return [point for span in spans for point in range(*span) if re.match(r"\w", chr(point))]


def _marks() -> list[int]:
    """Characters that are written on a letter: accents, vowel signs."""
    return [p for p in range(0x300, 0x1F000) if unicodedata.category(chr(p)) in ("Mn", "Mc")]


def _as_class(points: list[int]) -> str:
    """Code points as the inside of a character class."""
    numbers = np.array(points)
    first = numbers[np.diff(numbers, prepend=-2) > 1]
    last = numbers[np.diff(numbers, append=2 * CODE_POINTS) > 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(first, last, strict=True))


@lru_cache(maxsize=2)
def letters(lowercase: bool) -> Int32s:
    """For each code point, the one that stands for it in a word (in lower case if wanted); 0 if it separates words.

    From `ALONE` on, it is a word by itself. Below 0, it is a mark, which continues a word but begins none.

    >>> table = letters(True)
    >>> chr(table[ord("É")]), table[ord("-")], chr(table[ord("東")] - ALONE), chr(-table[0x301]) == chr(0x301)
    ('é', np.int32(0), '東', True)
    """
    points = np.arange(CODE_POINTS, dtype=np.uint32)
    text = _decoded(points)
    word = np.zeros(CODE_POINTS, bool)
    for found in re.finditer(r"\w+", text):
        word[found.start() : found.end()] = True
    if lowercase:
        text = text.replace(_ODD, "-").replace("İ", "i")
        points = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), np.uint32)
    table: Int32s = np.where(word[points], points, 0).astype(np.int32)
    marks = np.array([mark for mark in _marks() if table[mark] == 0])
    table[marks] = -marks
    table[_alone()] += ALONE
    return table


def _decoded(points: Any) -> str:
    text: str = points.tobytes().decode("utf-32-le", "surrogatepass")
    return text
