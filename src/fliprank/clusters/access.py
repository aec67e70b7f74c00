"""Where a cluster is, and who asks. Secrets come from the environment only, and are told to nobody.

FLIPRANK_USER and FLIPRANK_PASSWORD, or FLIPRANK_API_KEY; FLIPRANK_CA_CERTS names a file of certificates.

>>> Access.of("https://search.example:9200", "shop", {"FLIPRANK_USER": "ann", "FLIPRANK_PASSWORD": "s3cret"})
Access(https://search.example:9200, index shop, as ann)
>>> Access.of("https://ann:s3cret@search.example", "shop", {})
Traceback (most recent call last):
fliprank.errors.UsageError: the address has a password in it, which would end up in logs: take it out, and set ...
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fliprank.errors import UsageError, printable

__all__ = ["Access"]

SETTINGS = "FLIPRANK_USER and FLIPRANK_PASSWORD, or FLIPRANK_API_KEY"


@dataclass(frozen=True, repr=False)
class Access:
    """An address, an index, and secrets, which `repr` and errors leave out."""

    url: str
    index: str
    user: str = ""
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_certs: str = ""
    timeout: float = 30.0

    @classmethod
    def of(cls, url: str, index: str, environment: Mapping[str, str] | None = None, timeout: float = 30.0) -> Access:
        """With the secrets of the environment; raises at an address that is none, or that has secrets in it."""
        known = os.environ if environment is None else environment
        parts = urlsplit(url)
        if parts.password or parts.username:
            raise UsageError(
                f"the address has a password in it, which would end up in logs: take it out, and set {SETTINGS} in "
                "the environment"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{printable(url)!r} is no address of a cluster: expected http://host:port or https://...")
        if not index or any(c in index for c in '/?#*, \\"<>|'):
            raise UsageError(f"{printable(index)!r} is no name of one index")
        secrets = {name: known.get(f"FLIPRANK_{name.upper()}", "") for name in ("user", "password", "api_key")}
        if secrets["api_key"] and secrets["password"]:
            raise UsageError(f"which of them counts? Set {SETTINGS} in the environment, not both")
        return cls(url.rstrip("/"), index, **secrets, ca_certs=known.get("FLIPRANK_CA_CERTS", ""), timeout=timeout)

    def redacted(self, text: str) -> str:
        """Text of others, safe to show: without secrets and without control characters."""
        for secret in (self.password, self.api_key):
            if secret:
                text = text.replace(secret, "***")
        return printable(text)

    def __repr__(self) -> str:
        who = f", as {self.user}" if self.user else ", with an API key" if self.api_key else ""
        return printable(f"Access({self.url}, index {self.index}{who})")
