"""Secrets: looked for in everything that was written, said, logged or raised, also where a server repeats them."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from asking import command, reach
from cluster_server import API_KEY, PASSWORD, USER, ClusterServer

from fliprank.cli import run
from fliprank.clusters.access import Access
from fliprank.errors import FliprankError, UsageError

pytestmark = pytest.mark.long

WAYS = [
    {"FLIPRANK_USER": USER, "FLIPRANK_PASSWORD": PASSWORD},
    {"FLIPRANK_API_KEY": API_KEY},
]


def disguises(ways: dict[str, str]) -> list[str]:
    """The secret as it may be written; worked out apart from the package."""
    secret = ways.get("FLIPRANK_PASSWORD") or ways["FLIPRANK_API_KEY"]
    pair = b64encode(f"{USER}:{secret}".encode()).decode()
    plain = [secret, pair, quote(secret), json.dumps(secret)[1:-1], b64encode(secret.encode()).decode()]
    return [*plain, "s3cret", "k3y-of"]


def clean(text: str, ways: dict[str, str]) -> None:
    for each in disguises(ways):
        assert each not in text


@pytest.mark.parametrize("ways", WAYS, ids=["password", "api key"])
def test_commands_prove_a_gain_and_nothing_that_they_write_or_say_has_a_secret(
    server: ClusterServer,
    shop: Path,
    engine: str,
    ways: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.well(engine)
    server.state.locked = True
    evaluate = command("evaluate", server, engine, shop)
    for name, value in ways.items():
        monkeypatch.setenv(name, value + "0")
    assert run(evaluate) == 1
    out, err = capfd.readouterr()
    assert "not allowed" in err
    assert "FLIPRANK_PASSWORD" in err
    for name, value in ways.items():
        monkeypatch.setenv(name, value)
    assert run([*evaluate, "--json"]) == 0
    if "FLIPRANK_PASSWORD" in ways:  # once will do: it takes a while
        assert run(command("tune", server, engine, shop)) == 0
        assert len(list((shop / "out" / "cluster" / "train").iterdir())) >= 3
        result = json.loads((shop / "out" / "result.json").read_text())
        assert result["proof"]["test"]["tuned"] > result["proof"]["test"]["default"]
        assert any("judged documents are not in shop" in note for note in result["notes"])
        assert (shop / "out" / "export" / "README.md").is_file()
    more, errors = capfd.readouterr()
    assert ("are the cluster's own" in more) == ("FLIPRANK_PASSWORD" in ways)
    written = b"".join(path.read_bytes() for path in shop.rglob("*") if path.is_file())
    clean(out + err + more + errors + caplog.text + written.decode("latin-1"), ways)
    clean("\n".join(f"{record.__dict__}" for record in caplog.records), ways)
    assert b"Basic " not in written


@pytest.mark.parametrize("ways", WAYS, ids=["password", "api key"])
@pytest.mark.parametrize("status", [400, 404, 429, 500])
def test_a_server_that_repeats_a_secret_is_not_quoted(
    server: ClusterServer, engine: str, ways: dict[str, str], status: int
) -> None:
    cluster = reach(server, engine, environment=ways)
    server.state.echo = status
    with pytest.raises(FliprankError) as caught:
        cluster.fields()
    assert "***" in str(caught.value)
    clean(str(caught.value), ways)
    clean("".join(traceback.format_exception(caught.value)), ways)
    clean(repr(cluster.access) + repr(cluster.__dict__.get("access")), ways)


@pytest.mark.parametrize("ways", WAYS, ids=["password", "api key"])
def test_secrets_follow_no_redirect(
    server: ClusterServer, elsewhere: Elsewhere, engine: str, ways: dict[str, str]
) -> None:
    cluster = reach(server, engine, environment=ways)
    server.state.redirect = f"{elsewhere.url}/?"
    with pytest.raises(FliprankError) as caught:
        cluster.fields()
    clean(str(caught.value), ways)
    clean("".join(traceback.format_exception(caught.value)), ways)
    assert elsewhere.asked == []


class Elsewhere:
    """A server that notes who comes by."""

    def __init__(self) -> None:
        asked = self.asked = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.path} {self.headers}")
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    found = Elsewhere()
    yield found
    found.http.shutdown()
    found.http.server_close()


def test_an_unforeseen_error_shows_no_secret(
    server: ClusterServer, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback as Python prints it, of an error in the midst of a call."""
    cluster = reach(server, engine, environment=WAYS[0])

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("unforeseen")

    if engine == "vespa":
        monkeypatch.setattr("vespa.application.VespaSync._request_with_retry", broken)
    else:
        monkeypatch.setattr("urllib3.connectionpool.HTTPConnectionPool.urlopen", broken)
    with pytest.raises(Exception, match=r"unforeseen|no answer") as caught:
        cluster.fields()
    clean("".join(traceback.format_exception(caught.value)), WAYS[0])


def test_no_netrc_is_read(server: ClusterServer, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text(f'machine 127.0.0.1 login {USER} password "netrc-password"\n')
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    cluster = reach(server, engine)
    seen = list[str]()
    answer = server.answer
    monkeypatch.setattr(
        server, "answer", lambda state, request, who: (seen.append(who), answer(state, request, who))[1]
    )
    cluster.fields()
    assert set(seen) == {""}


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"FLIPRANK_PASSWORD": "s3cret"}, "FLIPRANK_USER is not"),
        ({"FLIPRANK_USER": "a", "FLIPRANK_API_KEY": "k3y-of"}, "which of them counts"),
        ({"FLIPRANK_API_KEY": "k3y-of\nb"}, "FLIPRANK_API_KEY has a line break"),
        ({"FLIPRANK_API_KEY": "k3y-of b"}, "FLIPRANK_API_KEY has a character in it that no key has"),
        ({"FLIPRANK_USER": "a", "FLIPRANK_PASSWORD": "s3cret\r\nX: y"}, "FLIPRANK_PASSWORD has a line break"),
        ({"FLIPRANK_CLIENT_KEY": "key.pem"}, "FLIPRANK_CLIENT_CERT is not"),
    ],
)
def test_secrets_that_no_header_can_hold_are_refused_unseen(environment: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Access.of("https://host", "shop", environment)
    assert "s3cret" not in str(caught.value)
    assert "k3y-of" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://ann:s3cret@host", "https://s3cret@host:1", "https://host/?key=s3cret", "https://ann:s3cret@[host"]
)
def test_an_address_with_a_secret_is_refused_unseen(url: str) -> None:
    with pytest.raises(UsageError, match=r"password in it|ends before|is no address") as caught:
        Access.of(url, "shop", {})
    assert "s3cret" not in str(caught.value)
