"""Results of long work, kept in a part's cache: a run that was killed reads them instead of computing them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from fliprank.data.files import atomic_write
from fliprank.optimize.fit import Fit
from fliprank.papers.part import Setting

__all__ = ["finished", "kept"]


def finished(fit: Fit | None) -> Fit:
    """A fit that came to its end. One that Ctrl-C ended is no result of a paper: the interrupt goes on."""
    if fit is None or fit.interrupted:
        raise KeyboardInterrupt
    return fit


def kept(setting: Setting, what: str, make: Callable[[], Any]) -> Any:
    """What `make()` gives (anything JSON), computed once per cache under the name `what`; to the last digit.

    It is always read back from its JSON, so that the first run and a resumed one see the very same thing.
    """
    path = setting.cache / f"{blake2b(what.encode(), digest_size=10).hexdigest()}.json"
    try:
        found = json.loads(path.read_text())
        if found["what"] == what:
            return found["result"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    setting.say(what)
    text = json.dumps({"what": what, "result": make()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())
    return json.loads(text)["result"]
