"""Calls to a cluster: tried again, later and later, while it is busy; otherwise an error that says what to do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from fliprank.clusters.access import SETTINGS, Access
from fliprank.errors import FliprankError, InputError

__all__ = ["ClusterError", "Failure", "NotAllowedError", "patiently", "understood"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

TRIES, FIRST_WAIT, LONGEST_WAIT = 6, 0.5, 20.0
BUSY = {408, 429, 502, 503, 504}


class ClusterError(InputError):
    """A cluster that could not be used."""


class NotAllowedError(ClusterError):
    """A cluster that refused to answer whoever asked (`status` 401), or to answer this (403)."""

    status: int = 0


class Failure(Exception):  # noqa: N818  (no error yet: it may be tried again)
    """What a client's own exception comes to: a status (0: no answer at all), a kind and a reason of the server's."""

    def __init__(self, status: int, kind: str, reason: str = "") -> None:
        super().__init__(status, kind, reason)
        self.status, self.kind, self.reason = status, kind, reason

    @property
    def passing(self) -> bool:
        """Whether it may well be gone in a moment."""
        return self.status in BUSY or (self.status == 0 and not self.untrusted)

    @property
    def untrusted(self) -> bool:
        """Whether it is the certificate that the client did not like."""
        return "certificate" in f"{self.kind} {self.reason}".lower()


def patiently(
    call: Callable[[], T], access: Access, what: str, sleep: Callable[[float], None] = time.sleep, tries: int = TRIES
) -> T:
    """The answer of `call`, which raises `Failure`; tried again while the cluster is busy or can't be reached."""
    for number in range(1, tries + 1):
        try:
            return call()
        except Failure as failure:
            if not failure.passing or number == tries:
                raise in_words(failure, access, what, number) from None
            sleep(min(LONGEST_WAIT, FIRST_WAIT * 2 ** (number - 1)) * random.uniform(0.75, 1.25))
    raise AssertionError("unreachable")


def in_words(failure: Failure, access: Access, what: str, tries: int) -> FliprankError:
    """The error for a person; nothing of it is a secret."""
    said = access.redacted(f"{failure.kind} {failure.reason}".strip())[:300]
    where = _where(access)
    if failure.status == 0 and failure.untrusted:
        hint = "name the file of certificates to trust in FLIPRANK_CA_CERTS"
        return ClusterError(f"{where}: its certificate is not trusted, {what}: {said}", hint=hint)
    if failure.status == 0:
        hint = "is the address right, is it up?"
        if access.url.startswith("https:"):  # not every client says why it could not connect
            hint = "is the address right, is it up, is its certificate trusted (FLIPRANK_CA_CERTS)?"
        return ClusterError(f"{where}: no answer in {tries} tries, {what}: {said}", hint=hint)
    if failure.status in BUSY:
        hint = "wait, or ask for less at a time; what was fetched is kept, and the same command goes on from there"
        return ClusterError(f"{where}: too busy in {tries} tries, {what}: {failure.status} {said}", hint=hint)
    if failure.status in (401, 403):
        hint = f"set {SETTINGS} in the environment, for a user who may read this index: see docs/clusters.md"
        error = NotAllowedError(f"{where}: not allowed, {what}: {failure.status}", hint=hint)
        error.status = failure.status
        return error
    if "closed" in failure.kind or "closed" in failure.reason:
        return ClusterError(f"{where}: the index is closed", hint="open it: POST INDEX/_open")
    if failure.status == 404:
        return ClusterError(f"{where}: not there, {what}: {said}", hint="is the name of the index right?")
    if 300 <= failure.status < 400:
        hint = "secrets are sent to no other address than the one that was given: give the right one"
        return ClusterError(f"{where}: sent elsewhere, {what}: {failure.status} {said}", hint=hint)
    return ClusterError(f"{where}: refused, {what}: {failure.status} {said}")


def understood(method: F) -> F:
    """A cluster's method whose answers are looked into: those of another shape are an error that says so."""

    @wraps(method)
    def read(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except FliprankError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            said = self.access.redacted(f"{type(error).__name__} {error}")[:120]
            raise ClusterError(
                f"{_where(self.access)}: an answer that can't be read: {said}",
                hint=f"is it {self.name} that runs there?",
            ) from None

    return cast(F, read)


def _where(access: Access) -> str:
    return f"{access.url}, index {access.index}"
