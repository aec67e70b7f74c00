"""What a worker runs: one function, `answer`, which reads a message, does what it names, and gives bytes back.

A worker keeps what it was sent or has read (rows, indexes, models without their values, scores that a search goes on
from) and is asked about it by name. Where something is not there, since the worker is new or another one died, it says
what it misses, and is asked again with that. So every answer depends on the question only, not on what came before.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Any, TypeVar

import fliprank
from fliprank.distributed.messages import model_of_base, pack, unpack
from fliprank.errors import FliprankError, UsageError

__all__ = ["END", "HANDLERS", "MissingError", "Session", "answer", "collect_missing", "scratch_folder"]

HANDLERS = {
    "rows": "fliprank.distributed.shard_answers:describe_rows",
    "ask": "fliprank.distributed.shard_answers:ask",
    "documents": "fliprank.distributed.document_answers:answer_documents",
    "call": "fliprank.distributed.shard_answers:call",
    "echo": "fliprank.distributed.worker:echo",
}
"""All that a worker does, by the name that a message has."""

END = b"end of session "
"""A message that begins with this, and not with the length of a JSON text, is followed by the name of a session."""

MOST_SESSIONS = 4
"""Users of one cluster whose things a worker keeps; those of the one that was not heard of for longest are dropped."""


T = TypeVar("T")
R = TypeVar("R")


class MissingError(Exception):
    """Something that this worker was not sent yet."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = list(names)


class Session:
    """What a worker keeps for one client: `sent` messages by name, and what was made of them."""

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}
        self.made: dict[str, Any] = {}
        self.kept: dict[tuple[str, str], Any] = {}
        """What questions left here, by shard and number."""
        self.parts: OrderedDict[str, Any] = OrderedDict()
        self._locks: dict[str, Lock] = {}
        self._making: dict[str, bool] = {}
        """What is being made, and whether it is still wanted."""
        self._lock = Lock()

    def shared(self, name: str) -> Any:
        """The model that was sent under this name, at its defaults."""
        return self.once(name, lambda: model_of_base(self.message(name)))

    def message(self, name: str) -> bytes:
        """What was sent under this name; raises where nothing was."""
        try:
            return self.sent[name]
        except KeyError:
            raise MissingError(name) from None

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What was made under this name; made now if it was not, by one thread while others wait."""
        with self._lock:
            own = self._locks.setdefault(name, Lock())
        with own:
            if name in self.made:
                return self.made[name]
            with self._lock:
                self._making[name] = True
            try:
                found = make()
            finally:
                with self._lock:
                    wanted = self._making.pop(name, True)
            if wanted:
                self.made[name] = found
            return found

    def needs(self, names: Iterable[str]) -> None:
        """Raise with all of these names that this worker was not sent, so that they come at once."""
        if absent := [name for name in dict.fromkeys(names) if name not in self.sent and name not in self.made]:
            raise MissingError(*absent)

    def forget(self, names: list[str]) -> None:
        """Drop what nobody will ask for here again, and what was made of it (the first word of a name says of what)."""
        if not names:
            return
        gone = set(names)
        for name in names:
            self.sent.pop(name, None)
        with self._lock:
            for name in self._making:
                self._making[name] &= name.partition(" ")[0] not in gone
            for name in [name for name in self._locks if name.partition(" ")[0] in gone and name not in self._making]:
                del self._locks[name]
        for store in (self.made, self.parts):
            for name in list(store):  # other threads may add to it meanwhile
                if name.partition(" ")[0] in gone:
                    store.pop(name, None)
        for key in list(self.kept):
            if key[1] in gone or key[0].partition(" ")[0] in gone:
                self.kept.pop(key, None)


_SESSIONS: OrderedDict[str, Session] = OrderedDict()
_GUARD = Lock()
_ENDED: OrderedDict[str, None] = OrderedDict()
_POOL: dict[int, ThreadPoolExecutor] = {}
_BUSY = [0]
_FOLDER = list[str]()


def session_of(name: str) -> Session:
    """The session of a client, which is new where it was not heard of."""
    with _GUARD:
        _SESSIONS[name] = _SESSIONS.pop(name) if name in _SESSIONS else Session()
        while len(_SESSIONS) > MOST_SESSIONS:
            _SESSIONS.popitem(last=False)
        return _SESSIONS[name]


def end_session(name: str) -> None:
    """Drop all that was kept for a client, and answer none of its questions any more."""
    with _GUARD:
        _SESSIONS.pop(name, None)
        _ENDED[name] = None
        while len(_ENDED) > 1000:
            _ENDED.popitem(last=False)


def scratch_folder() -> Path:
    """A folder for temporary files: this worker's own, which Dask removes however the worker ends."""
    return Path(_FOLDER[-1] if _FOLDER else gettempdir())


async def answer(message: bytes, dask_worker: Any = None) -> bytes:
    """The answer to a message. It is worked out in another thread: a worker's own must answer the scheduler."""
    if message.startswith(END):
        end_session(message.removeprefix(END).decode())
        return b""
    _FOLDER[:] = [dask_worker.local_directory]
    threads = max(1, int(dask_worker.state.nthreads))
    with _GUARD:
        if threads not in _POOL:
            _POOL[threads] = ThreadPoolExecutor(threads, thread_name_prefix="fliprank")
    return await asyncio.get_running_loop().run_in_executor(_POOL[threads], _answer, message, threads)


def _answer(message: bytes, threads: int) -> bytes:
    begun = time.perf_counter()
    try:
        with _share_of(threads):
            told = {"told": _done(unpack(message))}
    except MissingError as missing:
        told = {"missing": missing.names}
    except FliprankError as error:
        told = {"error": type(error).__name__, "message": str(error)}
    except MemoryError:
        told = {"error": "InputError", "message": "a worker has not enough memory for its shards: take more workers"}
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        told = {"error": "InputError", "message": f"{where}{error.strerror or error}, on a worker"}
    except Exception:  # its class may be unknown to the client, who is told in words
        told = {"error": "ClusterError", "message": f"a worker failed:\n{traceback.format_exc()}"}
    return pack({**told, "seconds": time.perf_counter() - begun, "process": os.getpid()})


@contextmanager
def _share_of(threads: int) -> Iterator[None]:
    """Kernels use the threads that the worker has, shared between the answers under way."""
    import numba

    with _GUARD:
        _BUSY[0] += 1
        share = max(1, min(threads // _BUSY[0], getattr(numba.config, "NUMBA_NUM_THREADS", 1)))
    numba.set_num_threads(share)
    try:
        yield
    finally:
        with _GUARD:
            _BUSY[0] -= 1


def _done(envelope: dict[str, Any]) -> Any:
    if (theirs := envelope.get("version")) != fliprank.__version__:
        raise UsageError(f"a worker has fliprank {fliprank.__version__}, the client {theirs}: install the same on both")
    if envelope["session"] in _ENDED:
        raise UsageError("this session has ended")
    session = session_of(envelope["session"])
    session.forget(envelope["forget"])
    session.sent.update(envelope["sent"])
    module, _, name = HANDLERS[envelope["do"]].partition(":")
    return getattr(import_module(module), name)(session, unpack(envelope["request"], session.shared))


def collect_missing(work: Callable[[T], R], about: Iterable[T]) -> list[R]:
    """What some work gives for each; where anything is missing, all that is missing for any of them is raised."""
    out, missing = list[R](), list[str]()
    for each in about:
        try:
            out.append(work(each))
        except MissingError as error:
            missing += error.names
    if missing:
        raise MissingError(*dict.fromkeys(missing))
    return out


def echo(session: Session, request: Any) -> Any:
    """The request itself, to see that a worker is there and what a message costs."""
    return request
