"""Names of measures: ir_measures' syntax, and the spellings of trec_eval and ranx.

>>> [str(parse_measure(name)) for name in ("nDCG(dcg='exp-log2')@10", "ndcg_burges@10", "ndcg_cut_10", "MAP")]
["nDCG(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')@10", 'nDCG@10', 'AP']
>>> str(parse_measure("nDCG@10 (exp)"))  # as a narrow terminal shows it
"nDCG(dcg='exp-log2')@10"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from fliprank.checked import checked
from fliprank.errors import UsageError
from fliprank.measures.base import REGISTRY, Measure
from fliprank.naming import unknown

__all__ = ["parse_measure"]

SPELLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    # trec_eval's, with _ or . before the cut-off
    "map": ("AP", {}),
    "map_cut": ("AP", {}),
    "gm_map": ("GMAP", {}),
    "ndcg": ("nDCG", {}),
    "ndcg_cut": ("nDCG", {}),
    "recip_rank": ("RR", {}),
    "recip_rank_cut": ("RR", {}),
    "recall": ("R", {}),
    "success": ("Success", {}),
    "bpref": ("Bpref", {}),
    "set_P": ("SetP", {}),
    "set_recall": ("SetR", {}),
    "set_F": ("SetF", {}),
    # ranx's, with @ before the cut-off
    "ndcg_burges": ("nDCG", {"dcg": "exp-log2"}),
    "dcg": ("DCG", {}),
    "dcg_burges": ("DCG", {"dcg": "exp-log2"}),
    "mrr": ("RR", {}),
    "precision": ("P", {}),
    "hit_rate": ("Success", {}),
    "r-precision": ("Rprec", {}),
}

MOST_BRACKETS = 8

_EXPONENTIAL = re.compile(r"(?P<name>n?DCG)(?P<cut>@\d+)? \(exp\)", re.ASCII)
"""How a narrow terminal shows exponential gain: nDCG@10 (exp)."""
_CUTOFF = re.compile(r"(?P<name>.+?)(?:@|[._](?=\d+$))(?P<cutoff>\d+)", re.ASCII)
_CALL = re.compile(r"(?P<name>[A-Za-z_-]+)\((?P<inside>.*)\)")
_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.+)")
_QUOTED = r"'[^']*'|\"[^\"]*\""
_TOKEN = re.compile(rf"{_QUOTED}|.", re.DOTALL)


@checked
def parse_measure(name: str | Measure) -> Measure:
    """The measure of this name; raises with what is near it if there is none."""
    if isinstance(name, Measure):
        return name
    text, inside = _EXPONENTIAL.sub(r"\g<name>(dcg='exp-log2')\g<cut>", name.strip()), ""
    if text.count("(") > MOST_BRACKETS:
        raise UsageError(f"measure {name!r}: too many brackets")
    if rbp := re.fullmatch(r"rbp[.@](\d{1,9})", text, re.ASCII):  # ranx: rbp.95 is p = 0.95
        return _build(REGISTRY["RBP"], {"p": float(f"0.{rbp[1]}")}, name)
    given: dict[str, Any] = {}
    if level := re.fullmatch(r"(.+)-l(\d{1,9})", text, re.ASCII):  # ranx: map@10-l2 is AP(rel=2)@10
        text, given["rel"] = level[1], int(level[2])
    if cut := _CUTOFF.fullmatch(text):
        if len(cut["cutoff"]) > 9:
            raise UsageError(f"measure {name!r}: the cut-off is too large")
        text, given["cutoff"] = cut["name"], int(cut["cutoff"])
    if call := _CALL.fullmatch(text):
        text, inside = call["name"], call["inside"]
    if text in SPELLINGS:
        text, preset = SPELLINGS[text]
        given = {**preset, **given}
    if text not in REGISTRY:
        names = {measure.name for measure in REGISTRY.values()}
        raise unknown("measure", name, text, names, REGISTRY.keys() - names | SPELLINGS.keys())
    return _build(REGISTRY[text], {**_parameters(inside, name, REGISTRY[text]), **given}, name)


def _build(measure: type[Measure], given: dict[str, Any], name: str) -> Measure:
    """A measure with the given parameters, whose types are checked against the defaults'."""
    known = {field.name: field for field in fields(measure)}
    if unknown := sorted(given.keys() - known.keys()):
        options = ", ".join(known) or "none"
        raise UsageError(f"measure {name!r}: {measure.name} has no {' or '.join(unknown)}; its parameters: {options}")
    for key, value in given.items():
        kinds = _KINDS[next(kind for kind in _KINDS if kind in str(known[key].type))]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise UsageError(f"measure {name!r}: {key}={value!r} is not a {kinds[0].__name__}")
    return measure(**given)


_KINDS: dict[str, tuple[type, ...]] = {
    "Measure": (Measure,),
    "Gains": (dict,),
    "Discount": (float, int, tuple, str),
    "bool": (bool,),
    "str": (str,),
    "Literal": (str,),
    "float": (float, int),
    "int": (int,),
}


def _parameters(text: str, name: str, measure: type[Measure]) -> dict[str, Any]:
    """`a=1, b='x', c={1:3}, d=(1,0.5)` as a dict; a measure, as in GM(nDCG@10), goes without its name."""
    found: dict[str, Any] = {}
    of_measure = "measure" in {field.name for field in fields(measure)}
    for i, part in enumerate(_split(text)):
        match = _PARAMETER.fullmatch(part)
        if match and match["name"] not in found:
            found[match["name"]] = _value(match["value"].strip(), name)
        elif of_measure and i == 0 and part:
            found["measure"] = parse_measure(part)
        else:
            raise UsageError(f"measure {name!r}: can't read {part!r}; parameters look like (rel=2,dcg='exp-log2')")
    return found


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets or quotes.

    >>> _split("nDCG(dcg='exp,log2',gains={1:3,2:7})@10, eps=0.1")
    ["nDCG(dcg='exp,log2',gains={1:3,2:7})@10", 'eps=0.1']
    """
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    parts = [part.strip() for part in parts]
    return parts if parts[-1] else parts[:-1]


def _value(text: str, name: str) -> Any:
    """A number, a quoted string, True or False, a tuple of numbers, or a map of numbers."""
    if re.fullmatch(_QUOTED, text):
        return text[1:-1]
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("{") and text.endswith("}"):
        pairs = [pair.split(":") for pair in text[1:-1].split(",") if pair.strip()]
        if any(len(pair) != 2 for pair in pairs):
            raise UsageError(f"measure {name!r}: can't read the map {text}; it looks like {{1:3,2:7}}")
        return {_number(key, name): _number(gain, name) for key, gain in pairs}
    if text.startswith("(") and text.endswith(")"):
        return tuple(_number(part, name) for part in _split(text[1:-1]))
    return _number(text, name)


def _number(text: str, name: str) -> float:
    kinds: tuple[Callable[[str], float], ...] = (int, float)
    for kind in kinds:
        try:
            value = kind(text.strip())
        except ValueError:
            continue
        if value == value and len(text) < 40:
            return value
    raise UsageError(f"measure {name!r}: {text!r} is not a number")
