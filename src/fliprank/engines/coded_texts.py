"""Documents and queries as every engine cuts them alike: each term of our index as a word of small letters.

Engines differ in what they take for a word, stem and leave out. A term becomes x and its number in letters, which no
tokenizer splits, no stemmer of ours or theirs is asked to look at, and no list of stop words has.

>>> [code_word(number) for number in (0, 1, 25, 26, 700)]
['xa', 'xb', 'xz', 'xba', 'xbay']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fliprank.errors import InputError
from fliprank.text.index import Index
from fliprank.text.search.queries import QueriesLike, analyse, read_queries

__all__ = ["code_word", "coded_documents", "coded_queries"]


def code_word(number: int) -> str:
    """The word of a term."""
    letters = ""
    while True:
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
        if number == 0:
            return "x" + letters


def coded_documents(index: Index, fields: Sequence[str]) -> dict[str, dict[str, str]]:
    """By document id, the words of these fields."""
    if not index.positions:
        raise InputError("this index was built without positions: it does not know the texts any more; build it again")
    words = np.array([code_word(number) for number in range(len(index.terms))], object)
    out: dict[str, dict[str, str]] = {docid: {} for docid in index.docids.tolist()}
    for name in fields:
        place = index.fields.index(name)
        bounds = index.token_offsets[place]
        for number, texts in enumerate(out.values()):
            texts[name] = " ".join(words[index.tokens[bounds[number] : bounds[number + 1]]])
    return out


def coded_queries(index: Index, queries: QueriesLike) -> Mapping[str, list[str]]:
    """By query id, the words of the query that some document has, as often as they stand in it."""
    asked = analyse(index, read_queries(queries))
    out: dict[str, list[str]] = {}
    for q, qid in enumerate(asked.qids.tolist()):
        first = asked.offsets[q]
        sequence = first + asked.sequence[asked.word_offsets[q] : asked.word_offsets[q + 1]]
        out[qid] = [code_word(int(number)) for number in asked.number[sequence] if number >= 0]
    return out
