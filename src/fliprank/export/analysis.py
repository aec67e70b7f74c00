"""How text becomes terms, in the words of Elasticsearch, OpenSearch and Solr: the analyzer that was tuned with.

Words are cut at everything that is no letter, digit or underscore, as ours are; stop words go before stemming.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

from fliprank.text.analysis import ENGLISH, Analyzer

__all__ = ["NAME", "json_analysis", "lost_analysis", "solr_analysis"]

NAME = "fliprank"
WORDS = r"(?U)\W+"
"""What is between words, as Java's regular expressions have it; (?U): of all scripts."""
SNOWBALL = (
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish", "french", "german",
    "hungarian", "irish", "italian", "lithuanian", "lovins", "norwegian", "porter", "portuguese", "romanian", "russian",
    "serbian", "spanish", "swedish", "turkish",
)  # fmt: skip
"""The stemmers that Lucene has by the same name."""


def json_analysis(analyzer: Analyzer) -> dict[str, Any]:
    """`settings.analysis` with an analyzer of the name `NAME`."""
    filters, defined = ["lowercase"] if analyzer.lowercase else [], dict[str, Any]()
    if analyzer.stop_list:
        words = "_english_" if set(analyzer.stop_list) == set(ENGLISH) else list(analyzer.stop_list)
        defined[f"{NAME}_stop"] = {"type": "stop", "stopwords": words}
    if analyzer.stemmer in SNOWBALL:
        defined[f"{NAME}_stem"] = {"type": "snowball", "language": analyzer.stemmer.capitalize()}
    tokenizer = f"{NAME}_words"
    return {
        "analyzer": {NAME: {"type": "custom", "tokenizer": tokenizer, "filter": [*filters, *defined]}},
        "tokenizer": {tokenizer: {"type": "pattern", "pattern": WORDS}},
    } | ({"filter": defined} if defined else {})


def solr_analysis(analyzer: Analyzer, stop_file: str) -> list[str]:
    """The lines of <analyzer> in a field type."""
    lines = ["<analyzer>", f'  <tokenizer class="solr.PatternTokenizerFactory" pattern={quoteattr(WORDS)}/>']
    if analyzer.lowercase:
        lines.append('  <filter class="solr.LowerCaseFilterFactory"/>')
    if analyzer.stop_list:
        lines.append(f'  <filter class="solr.StopFilterFactory" words={quoteattr(stop_file)} ignoreCase="false"/>')
    if analyzer.stemmer in SNOWBALL:
        language = quoteattr(analyzer.stemmer.capitalize())
        lines.append(f'  <filter class="solr.SnowballPorterFilterFactory" language={language}/>')
    return [*lines, "</analyzer>"]


def lost_analysis(analyzer: Analyzer | None) -> list[str]:
    """What differs there."""
    if analyzer is None:
        return ["Text is cut by your own analyzer; fliprank tuned on terms of another."]
    lost = ["Chinese characters and Hiragana are words by themselves in fliprank; there, runs of them are words."]
    if analyzer.stemmer is not None and analyzer.stemmer not in SNOWBALL:
        lost.append(f"There is no stemmer for {analyzer.stemmer}: words are not stemmed.")
    return lost
