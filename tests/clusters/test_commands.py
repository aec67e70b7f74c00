"""`fliprank tune` and `fliprank evaluate` on a cluster; the examples of docs and help are run against the server."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from asking import command
from cluster_server import ClusterServer

from fliprank.cli import run
from fliprank.clusters.template import Template, read_template
from fliprank.errors import InputError

ROOT = Path(__file__).parents[2]
BY_BODY = {
    "elasticsearch": {"query": {"match": {"body": {"query": "{{query}}"}}}},
    "opensearch": {"query": {"match": {"body": {"query": "{{query}}"}}}},
    "solr": {"query": "{{query}}", "params": {"defType": "edismax", "qf": "body", "sow": "true"}},
    "vespa": {
        "yql": 'select * from sources * where {grammar: "any", defaultIndex: "body"}userInput(@text)',
        "text": "{{query}}",
        "ranking": "default",
    },
}
QUICKLY = ["--no-curve", "--no-cross-validate", "--set", "epochs=3", "--adopt", "always"]


def test_a_template_is_measured_as_it_is(
    server: ClusterServer, shop: Path, engine: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.well(engine)
    asked = command("evaluate", server, engine, shop)
    (shop / "by-body.json").write_text(json.dumps(BY_BODY[engine]))
    assert run([*asked, "--template", str(shop / "by-body.json"), "--json"]) == 0
    by_body = json.loads(capfd.readouterr().out)["runs"]["by-body"]
    assert run([*asked, "--json"]) == 0
    by_all = json.loads(capfd.readouterr().out)["runs"]["shop"]
    measure = next(iter(by_body))
    assert by_all[measure] > by_body[measure] > 0


def test_a_template_of_solr_may_be_its_parameters(
    server: ClusterServer, shop: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.well("solr")
    asked = [*command("evaluate", server, "solr", shop), "--json", "--template"]
    flat = {"q": "{{query}}", **BY_BODY["solr"]["params"]}
    for name, body in (("json", BY_BODY["solr"]), ("flat", flat)):
        (shop / f"{name}.json").write_text(json.dumps(body))
    told = []
    for name in ("json", "flat"):
        assert run([*asked, str(shop / f"{name}.json")]) == 0
        told.append(json.loads(capfd.readouterr().out)["runs"][name])
    assert told[0] == told[1]


def examples() -> list[str]:
    """Commands of the page and of the help that ask a cluster."""
    from fliprank.cli.evaluate import EVALUATE_EXAMPLES
    from fliprank.cli.tune import TUNE_EXAMPLES

    found = []
    for text in ((ROOT / "docs" / "clusters.md").read_text(), TUNE_EXAMPLES, EVALUATE_EXAMPLES):
        for line in re.finditer(r"^ {2,}(fliprank (?:.*\\\n)*.*)$", text, re.MULTILINE):
            found.append(re.sub(r"\\\n\s*", "", line[1]))
    return sorted({line for line in found if "https://host" in line})


@pytest.mark.parametrize("line", examples())
def test_an_example_runs(line: str, server: ClusterServer, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = shlex.split(re.sub(r"https://host(:\d+)?", server.url, line))[1:]
    engine = arguments[arguments.index("--engine") + 1]
    server.well(engine)
    monkeypatch.chdir(shop)
    (shop / "query.json").write_text(json.dumps(BY_BODY[engine]))
    shutil.copy("test.txt", "test-qrels.txt")
    assert run([*arguments, *(QUICKLY if arguments[0] == "tune" else [])]) == 0


def test_there_are_examples_of_every_engine() -> None:
    for engine in BY_BODY:
        assert any("fliprank tune" in line and f"--engine {engine}" in line for line in examples())
    assert any("--template" in line for line in examples())


def test_the_page_has_the_rank_profile_that_the_server_stands_for() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    profile = re.search(r"rank-profile fliprank .*?\n    \}\n", page, re.DOTALL)
    assert profile
    for field in ("title", "body"):
        for feature in (f"bm25({field})", f"fieldLength({field})", f"fieldTermMatch({field},0).occurrences"):
            assert feature in profile[0]


def test_options_of_clusters_go_together(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        ("tune --index shop --qrels q --engine elasticsearch", "--index goes with --url"),
        ("tune --id-field sku --qrels q --engine vespa", "--id-field goes with --url"),
        ("tune --url http://host --qrels q --engine elasticsearch", "--url takes --index"),
        ("tune --url http://host --index shop --qrels q", "--url tunes the function of an engine"),
        ("evaluate q.txt --url http://host --index shop --queries q", "--url takes --engine"),
        ("evaluate q.txt", "Give runs, or --url"),
        ("tune --url http://a:b@host --index shop --qrels q --engine opensearch", "has a password in it"),
    ):
        assert run([*arguments.split(), *(["--out", str(shop / "o")] if arguments.startswith("tune") else [])]) in (
            1,
            2,
        )
        assert said in " ".join(capfd.readouterr().err.split())


def test_templates(tmp_path: Path) -> None:
    hostile = 'a"}, "size": 9999, "x": {"y": "'
    assert Template({"query": {"match": {"body": "{{query}}"}}, "size": 3}).request(hostile) == {
        "query": {"match": {"body": hostile}},
        "size": 3,
    }
    (tmp_path / "t.json").write_text('{"query": {"match_all": {}}}')
    with pytest.raises(InputError, match="the place for the text of the query"):
        read_template(tmp_path / "t.json")
