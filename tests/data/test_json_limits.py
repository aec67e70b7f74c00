"""JSON that would take polars minutes and gigabytes is refused by line; all else passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data import json_limits
from fliprank.data.beir import read_documents as read_beir_documents
from fliprank.data.json_limits import DEEPEST_JSON, MOST_FIELDS, check_json_lines
from fliprank.errors import InputError
from fliprank.text.build.documents import read_documents


def nested(depth: int) -> str:
    return '{"_id": "1", "text": "x", "a": ' + '{"a": ' * (depth - 1) + "1" + "}" * depth


@pytest.mark.parametrize("read", [lambda path: list(read_documents(path)), read_beir_documents])
def test_what_nests_too_deep_or_has_too_many_fields_is_refused_by_line(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(f"{nested(DEEPEST_JSON)}\n\n{nested(400).replace('1', '2', 1)}\n")
    with pytest.raises(InputError, match=r"docs\.jsonl, line 3: nested more than 64 deep"):
        read(path)
    lines = [{"_id": str(i), "text": "x", "sold": {f"shop{20 * i + j}": j for j in range(20)}} for i in range(1000)]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"line 100: the documents have more than 2,000 fields.*keyed by ids"):
        read(path)


def test_trec_documents_of_too_many_elements_are_refused(tmp_path: Path) -> None:
    documents = [f"<DOC><DOCNO>{i}</DOCNO><x{i}>a</x{i}></DOC>" for i in range(MOST_FIELDS + 5)]
    (tmp_path / "trec").write_text("\n".join(documents))
    with pytest.raises(InputError, match="line 2000: the documents have more than 2,000 fields"):
        list(read_documents(tmp_path / "trec"))


def fields_of(value: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    if isinstance(value, list):
        return set().union(*(fields_of(each, path) for each in value))
    if not isinstance(value, dict):
        return set()
    return set().union(*({(*path, key)} | fields_of(each, (*path, key)) for key, each in value.items()))


def depth_of(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


leaves = st.integers() | st.sampled_from(['"', "{[", 'a": {', "\\", "é", ":"])
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab:"{\\'), inner, max_size=3)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from('ab"'), values, max_size=3), min_size=1, max_size=4), st.booleans())
def test_depth_and_fields_are_counted_as_json_has_them(records: list[dict[str, Any]], spaced: bool) -> None:
    data = "\n".join(json.dumps(each, separators=(", ", " : ") if spaced else (",", ":")) for each in records).encode()
    found = json_limits._look.py_func
    fields = set().union(*map(fields_of, records))
    for name, value in (("MOST_FIELDS", len(fields)), ("DEEPEST_JSON", max(map(depth_of, records)))):
        for less, expected in ((0, json_limits.FINE), (1, (json_limits.DEEP, json_limits.MANY)[name == "MOST_FIELDS"])):
            if value - less < 0:
                continue
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(json_limits, name, value - less)
                seen = json_limits.np.zeros(json_limits.TABLE, json_limits.np.int64)
                with json_limits.np.errstate(over="ignore"):
                    assert found(json_limits.np.frombuffer(data, json_limits.np.uint8), seen)[0] == expected


def test_long_lists_of_like_objects_have_few_fields() -> None:
    record = {"_id": "1", "links": [{"target": str(i), "text": [{"x": i}, {"y": i}]} for i in range(3 * MOST_FIELDS)]}
    check_json_lines(json.dumps(record).encode() + b"\n", "docs")
