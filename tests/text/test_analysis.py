"""Words and terms: the kernel finds what a regular expression finds, in any script; settings survive JSON."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fliprank.data.csr import bounds
from fliprank.errors import InputError, UsageError
from fliprank.text.analysis import ENGLISH, Analyzer, letters
from fliprank.text.build.collector import Collector
from fliprank.text.words import cut_texts

LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("aZ_9 .ΣσİéÅ日本ꙮ\U0001d518Ⱥ'\u0301"))
TEXTS = st.lists(st.text(LETTERS), max_size=8)


def cut(texts: list[str], analyzer: Analyzer, workers: int = 1) -> list[list[str]]:
    """The words of each text by the kernel."""
    chunks, words, maps = cut_texts(texts, analyzer, workers)
    flat = [word for chunk in chunks for word in words.take(maps[chunk.worker][chunk.stream]).tolist()]
    ends = bounds(np.concatenate([chunk.counts for chunk in chunks]).astype(np.int64))
    return [flat[a:b] for a, b in pairwise(ends)]


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.booleans(), st.integers(1, 3))
@example(["ΑΣ ΑΣΑ Σ", "İstanbul DİYARBAKIR", "\x00a\x00", "naïve—Café", "x" * 40 + " " + "X" * 40], True, 2)
@example(["abcdefg abcdefgh abcdefghabcdefgh abcdefghabcdefghi"], True, 1)
def test_the_kernel_cuts_as_plain_python_does(texts: list[str], lowercase: bool, workers: int) -> None:
    analyzer = Analyzer(lowercase, None, None)
    assert cut(texts, analyzer, workers) == [analyzer.terms(text) for text in texts]


def test_every_letter_of_unicode_is_cut_and_lowered_as_python_does() -> None:
    points = [f"{chr(point)}a{chr(point)}" for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    texts = [" ".join(points[i : i + 500]) for i in range(0, len(points), 500)]
    analyzer = Analyzer(True, None, None)
    assert cut(texts, analyzer) == [analyzer.terms(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Red-shoes, x_1 don't", ["red", "shoes", "x_1", "don", "t"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs and viramas are marks upon letters
        ("தமிழ்", ["தமிழ்"]),
        ("कि" + "ताब", ["किताब"]),
        ("東京に行く", ["東", "京", "に", "行", "く"]),
        ("abc日本def", ["abc", "日", "本", "def"]),
        ("トーキョー 서울시", ["トーキョー", "서울시"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("İstanbul ISPARTA", ["istanbul", "isparta"]),
        ("Straße STRASSE", ["straße", "strasse"]),
        ("ΟΔΟΣ", ["οδος"]),
        ("❤\ufe0f \u0301 x", ["x"]),  # a mark begins no word
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert Analyzer(True, None, None).terms(text) == words
    assert cut([text], Analyzer(True, None, None)) == [words]


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_words_of_latin_text_are_those_of_a_regular_expression(text: str) -> None:
    assert Analyzer(False, None, None).terms(text) == re.findall(r"\w+", text)


def test_words_that_differ_only_in_their_beginning_differ() -> None:
    """Codes are made of the last 16 bytes of short words; a full vocabulary grows in the middle of a document."""
    words = [f"{i:x}{'a' * n}" for n in (0, 5, 6, 7, 8, 14, 15, 16, 17, 30) for i in range(7000)]
    assert cut([" ".join(words), " ".join(words[::-1])], Analyzer(True, None, None)) == [words, words[::-1]]


def test_the_table_of_letters_agrees_with_python() -> None:
    for lowercase in (False, True):
        table = letters(lowercase)
        for char in "aA_0-é Éß\u00b4":
            low = char.lower() if lowercase else char
            assert table[ord(char)] == (ord(low) if re.match(r"\w", low) else 0)


def test_terms_are_lower_case_without_stop_words_and_stemmed() -> None:
    text = "The Runners were not running to THE stations"
    assert Analyzer().terms(text) == ["runner", "were", "run", "station"]
    assert Analyzer(stopwords=None, stemmer=None).terms("To be") == ["to", "be"]
    assert Analyzer(lowercase=False, stopwords=["the"], stemmer=None).terms("The the") == ["The"]
    assert Analyzer(stemmer="german", stopwords=None).terms("Häuser") == ["haus"]


@pytest.mark.parametrize(
    "analyzer", [Analyzer(), Analyzer(False, None, None), Analyzer(True, ("eins", "zwei"), "german")]
)
def test_an_analyzer_survives_json(analyzer: Analyzer) -> None:
    assert Analyzer.from_json(json.loads(json.dumps(analyzer.to_json()))) == analyzer


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"lowercase": 1, "stopwords": None, "stemmer": None},
        {"lowercase": True, "stopwords": 3, "stemmer": None},
    ],
)
def test_settings_that_are_none_are_refused(given: object) -> None:
    with pytest.raises(InputError, match="analyzer"):
        Analyzer.from_json(given)


def test_unknown_languages_are_named() -> None:
    with pytest.raises(UsageError, match=r"klingon.*english"):
        Analyzer(stemmer="klingon")
    with pytest.raises(UsageError, match="given as a list"):
        Analyzer(stopwords="german")


def test_a_stop_word_that_is_the_stem_of_another_word_stays_a_term() -> None:
    """'beings' is no stop word, though its stem is; a term that only stop words have is not in the vocabulary."""
    collector = Collector(Analyzer(stopwords=["being", "the"]))
    collector.add_texts("text", pl.Series(["being the beings"]))
    collector.documents = 1
    terms, maps = collector.terms()
    tokens, _ = collector.stream(["text"], maps)
    assert [terms[t] for t in tokens] == ["be"]
    assert terms.tolist() == ["be"]
    assert "the" in ENGLISH
