"""A PostgreSQL server of our own: made in a temporary folder, reached by a socket there, gone when the process ends.

It listens to no network. PostgreSQL refuses to run as root, so root starts it as the user `postgres`, which Debian's
package makes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fliprank.errors import UsageError

__all__ = ["programs", "server"]

INSTALL = "apt-get install postgresql, or put the folder of its initdb and pg_ctl on PATH"
USER = "postgres"
SECONDS = 120.0
"""How long making or starting it may take."""


@cache
def programs() -> Path:
    """The folder of initdb and pg_ctl: on PATH, or the newest where Debian puts them."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not folders:
        raise UsageError(f"PostgreSQL is not installed here (no initdb): {INSTALL}")
    return max(folders, key=lambda path: [int(part) for part in path.parent.name.split(".") if part.isdigit()])


@cache
def server() -> str:
    """The folder with the socket of a running server; started at the first call, stopped when the process ends."""
    home = Path(tempfile.mkdtemp(prefix="fliprank-pg-"))
    atexit.register(_stop, home, os.getpid())
    if os.geteuid() == 0:
        try:
            shutil.chown(home, USER)
        except LookupError as error:
            raise UsageError(f"PostgreSQL refuses to run as root, and there is no user {USER}: {INSTALL}") from error
    data = str(home / "data")
    _run("initdb", "-D", data, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    options = f"-k {home} -c listen_addresses= -c fsync=off -c autovacuum=off -c max_connections=20"
    _run("pg_ctl", "start", "-w", "-D", data, "-l", str(home / "log"), "-o", options)
    return str(home)


def _run(program: str, *arguments: str) -> None:
    who: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    command = [str(programs() / program), *arguments]
    output = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE  # the server keeps what pg_ctl has open
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=SECONDS, cwd="/", check=False, **who
    )
    if done.returncode:
        told = (done.stderr or b"").decode(errors="replace").strip().splitlines()
        raise UsageError(f"{program} failed: {told[-1] if told else f'it ended with {done.returncode}'}")


def _stop(home: Path, owner: int) -> None:
    """Stop what this process started; a child that was forked leaves it alone."""
    if os.getpid() != owner:
        return
    if (home / "data" / "postmaster.pid").exists():
        _run("pg_ctl", "stop", "-m", "immediate", "-D", str(home / "data"))
    shutil.rmtree(home, ignore_errors=True)
