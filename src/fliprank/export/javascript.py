"""What the exports for engines in JavaScript share: values as they are written there, and how texts are cut into terms.

`terms(text, stem)` in the exported module is fliprank's own analyzer again, but for the stemmer, which none of these
engines has: the user gives one.

>>> literal({"title": 2.0, "__proto__": 0.5})
'{ "title": 2, ["__proto__"]: 0.5 }'
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from fliprank.export.about import About
from fliprank.export.literals import number
from fliprank.models.engine import EngineText
from fliprank.text.analysis import Analyzer

__all__ = ["analyzer_lost", "boosts", "literal", "terms_module"]

LEAST = 1e-9
"""A boost of 0 would mean "not set": a field that counts nothing gets this one."""

_TERMS = """\
const stopWords = new Set({stop})
const alone = '\\\\u3041-\\\\u3096\\\\u3400-\\\\u4dbf\\\\u4e00-\\\\u9fff\\\\uf900-\\\\ufaff' +
  '\\\\u{{20000}}-\\\\u{{31fff}}'
const letter = `(?![${{alone}}])[\\\\p{{L}}\\\\p{{N}}_]`
const pattern = `(?=[\\\\p{{L}}\\\\p{{N}}])[${{alone}}]|${{letter}}(?:${{letter}}|[\\\\p{{Mn}}\\\\p{{Mc}}])*`
const joined = text => /[\\u0300-\\u033f]/.test(text) ? text.normalize('NFC') : text
const words = text => {normal}.match(new RegExp(pattern, 'gu')) ?? []

/** The terms of a text, as they were when these settings were tuned. `stem` maps a word to its stem. */
export const terms = (text, stem = word => word) =>
  words(text).filter(word => !stopWords.has(word)).map(word => stem(word))
"""


def literal(value: object) -> str:
    """A value as JavaScript; text can't end the string or the script that it stands in."""
    if isinstance(value, Mapping):
        # A plain "__proto__" would set the prototype instead of a property.
        keys = {key: f"[{literal(key)}]" if key == "__proto__" else literal(key) for key in value}
        return "{ " + ", ".join(f"{keys[key]}: {literal(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, float):
        return number(value)
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def boosts(model: EngineText) -> dict[str, float]:
    """The weight of each field; never 0."""
    return {name: max(float(model.params[f"{name}.w"]), LEAST) for name in model.fields or ()}


def terms_module(about: About) -> str:
    """JavaScript that defines `terms`."""
    analyzer = about.analyzer or Analyzer(stopwords=None, stemmer=None)
    normal = "joined(text).replaceAll('\\u0130', 'i').toLowerCase()" if analyzer.lowercase else "joined(text)"
    return _TERMS.format(stop=literal(list(analyzer.stop_list)), normal=normal)


def analyzer_lost(about: About) -> list[str]:
    """What the user must know about terms."""
    if about.analyzer is None:
        return ["How texts were cut into terms is not known: the module takes words in lower case, without stop words."]
    if about.analyzer.stemmer is None:
        return []
    return [
        f"Terms were stems (Snowball's, {about.analyzer.stemmer}), and no stemmer comes with the engine: pass one as "
        "`stem`, for instance that of the package snowball-stemmers, or tune again with `--stemmer none`."
    ]
