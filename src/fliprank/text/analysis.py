"""From text to terms: words, lower case, stop words, Snowball stems; every step can be switched off.

A word is what `\\w+` matches: letters, digits and underscores of any script. Words are found by a kernel (`words.py`);
stop words and stems concern distinct words only, so a collection of a billion words calls the stemmer once for each
word of its vocabulary. An index keeps its analyzer, and analyses queries as it did its documents.

>>> Analyzer().terms("The runner's red shoes")
['runner', 's', 'red', 'shoe']
>>> Analyzer.from_json(Analyzer(stemmer=None, stopwords=("red",)).to_json()).terms("Red Shoes")
['shoes']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Int32s
from fliprank.data.files import StrPath, open_text
from fliprank.errors import InputError, UsageError

__all__ = ["ENGLISH", "Analyzer", "letters", "read_words"]

ENGLISH = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
)  # fmt: skip
"""The English stop words of Lucene, and so of the engines built on it."""

CODE_POINTS = 0x110000
_ODD = "\u03a3\u0130"
"""Letters whose lower case depends on the letters around them (Σ), or is two letters (İ)."""


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
                hint = "stop words of another language are given as a list"
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
        """The stop words, as words of the text are compared with them."""
        words = ENGLISH if isinstance(self.stopwords, str) else tuple(self.stopwords or ())
        return tuple(dict.fromkeys(word.lower() if self.lowercase else word for word in words))

    def stems(self, words: Sequence[str]) -> list[str]:
        """The stem of each word; the words themselves without a stemmer."""
        if self.stemmer is None:
            return list(words)
        import Stemmer

        stemmer = Stemmer.Stemmer(self.stemmer, 0)  # distinct words: a cache would only cost
        found: list[str] = stemmer.stemWords(words)
        return found

    def terms(self, text: str) -> list[str]:
        """The terms of one text, in order; by plain Python, for a person to look at."""
        stop = set(self.stop_list)
        words = re.findall(r"\w+", text.lower() if self.lowercase else text)
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

    def plain(self, texts: Iterable[str]) -> list[str]:
        """The texts, with those in lower case already whose lower case is not that of each letter by itself."""
        if not self.lowercase:
            return list(texts)
        return [text.lower() if any(letter in text for letter in _ODD) else text for text in texts]

    def odd(self, data: bytes) -> bool:
        """Whether some of these UTF-8 bytes have to go through `plain`."""
        return self.lowercase and not data.isascii() and any(letter.encode() in data for letter in _ODD)


def read_words(path: StrPath) -> tuple[str, ...]:
    """Stop words from a file, one a line; what follows a `|` is a comment, as in Snowball's lists."""
    if not Path(path).exists():
        raise UsageError(f"no stop words called {str(path)!r}: there are english, none, or a file of words, one a line")
    with open_text(path) as lines:
        words = [line.removeprefix("\ufeff").partition("|")[0].strip() for line in lines]
    return tuple(dict.fromkeys(word for word in words if word))


@lru_cache(maxsize=2)
def letters(lowercase: bool) -> Int32s:
    """For each code point the one that stands for it in a word (lower case, if so wished); 0: not part of a word.

    >>> table = letters(True)
    >>> chr(table[ord("É")]), table[ord("-")]
    ('é', np.int32(0))
    """
    points = np.arange(CODE_POINTS, dtype=np.uint32)
    text = _decoded(points)
    word = np.zeros(CODE_POINTS, bool)
    for found in re.finditer(r"\w+", text):
        word[found.start() : found.end()] = True
    if lowercase:
        for letter in _ODD:
            text = text.replace(letter, "-")
        points = np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), np.uint32)
    table: Int32s = np.where(word[points], points, 0).astype(np.int32)
    return table


def _decoded(points: Any) -> str:
    text: str = points.tobytes().decode("utf-32-le", "surrogatepass")
    return text
