"""Every command line that help and docs show is run, on small files of the names that it uses; so is every TOML."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import typer
from person import call
from sandbox import make_sandbox

from fliprank.cli import app
from fliprank.experiment.parameter_settings import read_settings

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES.remove(ROOT / "docs" / "diff.md")  # its commands follow one another: test_diff_command runs them
PAGES.remove(ROOT / "docs" / "plots.md")  # and test_plot_command those of this one

QUICKLY = {
    "train": ["--epochs", "3", "--restarts", "1"],
    "curve": ["--repeats", "1", "--sizes", "8,16", "--restarts", "1"],
    "generate": ["--docs", "20", "--force"],
    "reproduce": ["--list"],
}
"""What makes an example quick; all that it says is still read. Parts of papers have tests of their own."""


def commands(group: typer.Typer, before: str = "") -> Iterator[str]:
    """The names of all commands."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{before}{command.name or command.callback.__name__}"
    for each in group.registered_groups:
        assert each.typer_instance is not None
        yield from commands(each.typer_instance, f"{before}{each.name} ")


def shown_help(name: str) -> str:
    """What a person reads after the options of a command."""
    told = call(*name.split(), "--help").out
    return told[told.index("Show this message and exit.") :]


HELP = {name: shown_help(name) for name in commands(app)}


def command_lines(text: str) -> Iterator[str]:
    """Indented lines that begin with fliprank, with those that they go on in."""
    for found in re.finditer(r"^ {2,}(?:\$ )?(fliprank (?:.*\\\n)*.*)$", text, re.MULTILINE):
        yield re.sub(r"\\\n\s*", "", found[1])


EXAMPLES = sorted(
    {
        line.partition(" # ")[0].strip()
        for text in (*HELP.values(), *(page.read_text() for page in PAGES))
        for line in command_lines(text)
        if "https://host" not in line and "tcp://" not in line  # clusters: tests/clusters, tests/distributed ask some
    }
)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs(line: str, sandbox: Path, tmp_path: Path) -> None:
    _, *arguments = shlex.split(line.replace(" DIR", " collections"))
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    shutil.copytree(sandbox, tmp_path, dirs_exist_ok=True)
    if "-p k" in line:  # the parameters of BM25
        shutil.rmtree(tmp_path / "tuned")
        shutil.copytree(sandbox / "tuned-bm25", tmp_path / "tuned")
    if "--out fit" not in line and "--trail fit" in line and "terms.jsonl" in line:
        trained = "train terms.jsonl --model bm25f --method taylor2006 --objective ranknet --epochs 2 --out fit"
        assert call(*trained.split(), folder=tmp_path).code == 0
    if "--budget" in arguments:  # of time, which a busy machine has less of
        arguments += ["--budget", "1e9"]
    done = call(*arguments, *QUICKLY.get(arguments[0], []), folder=tmp_path)
    assert done.code == 0, done.err
    assert done.out


def test_the_examples_are_found() -> None:
    assert len(EXAMPLES) > 50
    assert all("Example" in text for text in HELP.values())
    assert {name for name, text in HELP.items() if not list(command_lines(text))} == set()


def toml_blocks() -> Iterator[str]:
    for page in PAGES:
        yield from re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    for text in HELP.values():
        for block in re.findall(r"TOML.*\n\n((?: {4}\S.*\n)+)", text):
            yield dedent(block)


@pytest.mark.parametrize("block", toml_blocks())
def test_toml_is_valid_and_says_something_about_parameters(block: str, tmp_path: Path) -> None:
    assert tomllib.loads(block)
    (tmp_path / "tune.toml").write_text(block)
    read = read_settings(tmp_path / "tune.toml")
    assert (read.start, read.bounds, read.share) == ({"title.w": 2.0}, {"title.w": (0.0, 10.0)}, read.share)
    assert read.share


def test_there_is_toml_in_help_and_docs() -> None:
    assert len(list(toml_blocks())) >= 2
