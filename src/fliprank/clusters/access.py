"""Where a cluster is, and who asks. Secrets come from the environment only, and are told to nobody.

FLIPRANK_USER and FLIPRANK_PASSWORD, or FLIPRANK_API_KEY. FLIPRANK_CA_CERTS names a file of certificates to trust,
FLIPRANK_CLIENT_CERT and FLIPRANK_CLIENT_KEY the files of a client's own.

>>> Access.of("https://search.example:9200", "shop", {"FLIPRANK_USER": "ann", "FLIPRANK_PASSWORD": "s3cret"})
Access(https://search.example:9200, index shop, as ann)
>>> Access.of("https://ann:s3cret@search.example", "shop", {})
Traceback (most recent call last):
fliprank.errors.UsageError: the address has a password in it, which would end up in logs: take it out, and set ...
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus, urlsplit

from fliprank.errors import UsageError, printable

__all__ = ["SETTINGS", "Access"]

SETTINGS = "FLIPRANK_USER and FLIPRANK_PASSWORD, or FLIPRANK_API_KEY"


@dataclass(frozen=True, repr=False)
class Access:
    """An address, an index, and secrets, which `repr` and errors leave out.

    `id_field` is the field that has the ids of judgements, where it is not the one that the engine takes by itself.
    """

    url: str
    index: str
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str = ""
    client_cert: str = ""
    client_key: str = ""
    timeout: float = 30.0
    id_field: str = ""

    @classmethod
    def of(
        cls,
        url: str,
        index: str,
        environment: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        id_field: str | None = None,
    ) -> Access:
        """With the secrets of the environment; raises at an address that is none, or that has secrets in it."""
        _check_address(url)
        if not index or any(c in index for c in '/?#*, \\"<>|') or not index.isprintable():
            raise UsageError(f"{printable(index)!r} is no name of one index")
        if id_field and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", id_field):
            raise UsageError(f"{printable(id_field)!r} is no name of a field")
        known = os.environ if environment is None else environment
        names = ("user", "password", "api_key", "ca_certs", "client_cert", "client_key")
        told = {name: known.get(f"FLIPRANK_{name.upper()}", "") for name in names}
        _check_secrets(told)
        return cls(url.rstrip("/"), index, **told, timeout=timeout, id_field=id_field or "")

    def authorization(self, scheme: str) -> dict[str, str]:
        """The header that says who asks: an API key by `scheme`, or user and password; nothing if there is neither."""
        if self.api_key:
            return {"Authorization": f"{scheme} {self.api_key}"}
        return {"Authorization": f"Basic {self._pair()}"} if self.user else {}

    def _pair(self) -> str:
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    def redacted(self, text: str) -> str:
        """Text of others, safe to show: without secrets and without control characters."""
        return printable(self.hidden(text))

    def hidden(self, text: str) -> str:
        """Text without secrets, however they are written in it: within JSON within an address, too, or in parts."""
        secrets = [secret for secret in (self.password, self.api_key) if secret]
        if self.password:
            secrets.append(self._pair())
        known = {each for secret in secrets for once in _disguises(secret) for each in _disguises(once)}
        known |= {part for secret in secrets for part in re.findall(r"[^\W_]{4,}", secret)}
        for disguise in sorted(known, key=len, reverse=True):
            text = text.replace(disguise, "***")
        return text

    def __repr__(self) -> str:
        who = f", as {self.user}" if self.user else ", with an API key" if self.api_key else ""
        return printable(f"Access({self.url}, index {self.index}{who})")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises at one that is no number
    except ValueError:
        raise UsageError(f"{printable(url.rpartition('@')[2])!r} is no address of a cluster") from None
    if parts.password or parts.username or "@" in parts.netloc:
        raise UsageError(
            f"the address has a password in it, which would end up in logs: take it out, and set {SETTINGS} in "
            "the environment"
        )
    if parts.query or parts.fragment:  # which may be a secret: it is not shown
        raise UsageError("the address of a cluster ends before ? and #: expected http://host:port or https://...")
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise UsageError(f"{printable(url)!r} is no address of a cluster: expected http://host:port or https://...")


def _check_secrets(told: Mapping[str, str]) -> None:
    """Raise where it is not clear who asks, and at what no header can hold; clients would print that."""
    if told["api_key"] and (told["password"] or told["user"]):
        raise UsageError(f"which of them counts? Set {SETTINGS} in the environment, not both")
    if told["password"] and not told["user"]:
        raise UsageError("FLIPRANK_PASSWORD is set in the environment, and FLIPRANK_USER is not")
    if told["client_key"] and not told["client_cert"]:
        raise UsageError("FLIPRANK_CLIENT_KEY is set in the environment, and FLIPRANK_CLIENT_CERT is not")
    for name in ("ca_certs", "client_cert", "client_key"):
        if told[name] and not Path(told[name]).is_file():
            raise UsageError(printable(f"FLIPRANK_{name.upper()} names a file that is not there: {told[name]}"))
    for name in ("user", "password", "api_key"):
        if not told[name].isprintable():
            raise UsageError(f"FLIPRANK_{name.upper()} has a line break or another control character in it")
    if not told["api_key"].isascii() or " " in told["api_key"]:
        raise UsageError("FLIPRANK_API_KEY has a character in it that no key has: a space, or one beyond ASCII")


def _disguises(secret: str) -> Iterator[str]:
    """A secret as a server may write it when it repeats what it was sent."""
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    yield b64encode(secret.encode()).decode()
