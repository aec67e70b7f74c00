"""What documentation sites search with in the browser: MiniSearch, Lunr and Orama, run by Node.

A driver (`node/driver.mjs`) reads documents and queries as lines of JSON and answers with the engine's own scores. The
packages are looked for in the folder that FLIPRANK_NODE_MODULES names, else where `make .venv/node` puts them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from fliprank.engines.base import Runner, Texts, register
from fliprank.errors import UsageError
from fliprank.models.engine import EngineText

__all__ = ["LEAST", "Lunr", "MiniSearch", "Orama", "node_modules", "node_version", "package_version"]

MODULES = "FLIPRANK_NODE_MODULES"
DRIVER = Path(__file__).with_name("node") / "driver.mjs"
LEAST = 1e-9
"""These engines take a boost of 0 for one that was not set, or refuse it: a field that counts nothing gets this one."""


def node_modules() -> Path:
    """The folder of installed packages."""
    return Path(os.environ.get(MODULES) or Path(sys.prefix) / "node" / "node_modules")


def node_version() -> str:
    """Raises if there is no Node."""
    try:
        told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UsageError(f"node is not installed here ({error}): install Node.js 18 or newer") from error
    return told.stdout.strip().removeprefix("v")


def package_version(package: str) -> str:
    """The version of a package; raises if it is not installed, saying what to do."""
    path = node_modules() / package / "package.json"
    try:
        return str(json.loads(path.read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"run `npm install {package}` in some folder and name its node_modules in {MODULES}"
        raise UsageError(f"{package} is not installed in {path.parent.parent}: {hint}") from error


class NodeRunner(Runner):
    """An engine in a process of its own."""

    package: ClassVar[str]

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        self.fields = tuple(fields)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self.process = subprocess.Popen(
            ["node", str(DRIVER), self.name, str(node_modules())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        pages = [[docid, *(texts[name] for name in self.fields)] for docid, texts in documents.items()]
        self._ask({"documents": pages, "settings": self._settings(model)})

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        return dict(self._ask({"words": list(words), "settings": self._settings(model), "depth": depth}))

    def _settings(self, model: EngineText) -> dict[str, Any]:
        boosts = [max(float(model.params[f"{name}.w"]), LEAST) for name in self.fields]
        return {"boosts": boosts} | {
            name: float(model.params[name]) for name in model.params.names if name in ("k", "b", "d")
        }

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # what went wrong is in its error output
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            self.errors.seek(0)
            told = self.errors.read().decode("utf-8", "replace").strip()
            raise UsageError(f"{self.package} ended in Node: {told[-500:] or 'it said nothing'}")
        return json.loads(answer)

    @classmethod
    def version(cls) -> str:
        node = node_version()
        return f"{cls.package} {package_version(cls.package)} on Node {node}"

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # it has ended, and what it was asked last is still to be sent
                    stream.close()
        self.process.wait()
        self.errors.close()


@register
class MiniSearch(NodeRunner):
    """Boosts and k, b, d are set in every search."""

    name, package = "minisearch", "minisearch"


@register
class Lunr(NodeRunner):
    """Boosts, k1 and b are set when the index is built."""

    name, package = "lunr", "lunr"


@register
class Orama(NodeRunner):
    """Boosts and k, b, d are set in every search."""

    name, package = "orama", "@orama/orama"
