"""Inputs read in another process, which may hang, crash or want too much memory without harm.

A reader may return, or raise one of our own errors. Everything else is a failure: another exception, more than
`SECONDS` of processor time (or far more by the clock, for those that sleep), more than `MEMORY` bytes, a crash.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz_mutations import Files

__all__ = ["FINE", "MEMORY", "SECONDS", "Runner", "fill", "kind_of", "minimised"]

SECONDS = 10.0
MEMORY = 2 << 30
"""Bytes beyond those that the process has when its kernels are compiled."""
SLEEP = 30
"""So many times SECONDS may pass by the clock: other processes may have the processor."""
FINE = ("read", "refused")


class Runner:
    """A process that reads inputs of the targets of a module; it is started again whenever it dies."""

    def __init__(self, module: str, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.module, self.seconds, self.memory = module, seconds, memory
        self.process: Any = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def outcome(self, target: str, files: Files) -> str:
        """What comes of an input: "read", "refused", or what went wrong."""
        if self.process is None:
            self._start()
        self.ours.send((target, files))
        try:
            if self.ours.poll(SLEEP * self.seconds + 300 * (target not in self.warm)):
                self.warm.add(target)
                return str(self.ours.recv())
            how = "hangs"
        except (EOFError, ConnectionError):
            self.process.join(5)
            died = -(self.process.exitcode or 0)
            how = "takes too long" if died == signal.SIGPROF else f"dies of signal {died}"
        self._end()
        return how

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.warm = set[str]()
        work = (self.module, theirs, self.seconds, self.memory)
        self.process = context.Process(target=_serve, args=work, daemon=True)
        before = dict(os.environ)
        os.environ.update(NUMBA_NUM_THREADS="1", POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1")  # read when imported
        try:
            self.process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        theirs.close()

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.ours.close()
            self.process = None


def _serve(module: str, pipe: Connection, seconds: float, memory: int) -> None:
    """What the other process does until the pipe ends."""
    place = Path(tempfile.mkdtemp())
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (what Rust says of a panic, input by input)
    os.dup2(sys.stderr.fileno(), 2)
    warnings.simplefilter("ignore")
    targets = importlib.import_module(module).TARGETS
    warm: set[str] = set()
    try:
        while True:
            name, files = pipe.recv()
            target = targets[name]
            if name not in warm:  # kernels are compiled without limits; all seeds must be read
                _limit(resource.RLIM_INFINITY)
                for seed in target.seeds():
                    _read(target, seed, place, 0.0)
                warm.add(name)
                _limit(_size() + memory)
            pipe.send(_read(target, files, place, seconds))
    except EOFError:
        shutil.rmtree(place, ignore_errors=True)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _size() -> int:
    """Bytes of memory that this process may touch now."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 4 << 30


def _read(target: Any, files: Files, place: Path, seconds: float) -> str:
    folder = place / "input"
    shutil.rmtree(folder, ignore_errors=True)
    fill(folder, files)
    from fliprank.errors import FliprankError

    signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the process, even within a kernel: nobody handles it
    try:
        target.read(folder)
    except FliprankError:
        return "refused"
    except BaseException as error:  # all of them are what is looked for; polars' panics are no Exception
        frames = [each for each in traceback.extract_tb(error.__traceback__) if "site-packages" not in each.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"{type(error).__name__} at {where}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "read"


def fill(folder: Path, files: Files) -> None:
    """Write the files of an input."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def kind_of(outcome: str) -> str:
    """What failures have in common that are one and the same: the exception and where it came from."""
    return outcome.partition(": ")[0]


def minimised(runner: Runner, target: str, files: Files, tries: int = 400) -> Files:
    """A smaller input that fails alike: pieces are left out for as long as that is so, large ones first."""
    wanted, best = kind_of(runner.outcome(target, files)), dict(files)
    for name in sorted(files):
        size = max(1, len(best[name]) // 2)
        while size and tries > 0:
            begin = 0
            while begin < len(best[name]) and tries > 0:
                tries -= 1
                smaller = best | {name: best[name][:begin] + best[name][begin + size :]}
                if kind_of(runner.outcome(target, smaller)) == wanted:
                    best = smaller
                else:
                    begin += size
            size //= 2
    return best
