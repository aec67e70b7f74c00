"""An HTTP server on loopback that answers as a cluster does, and does wrong what it is told to.

None of the engines can be installed here. The clients are the official ones, and they speak to this over HTTP; what it
says of documents, frequencies and scores is Lucene's (`lucene_index.py`), in the shapes that each engine's
documentation gives (`elastic_answers.py`, `solr_answers.py`, `vespa_answers.py`).
"""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from lucene_index import LuceneIndex

USER, PASSWORD = "ann", 's3cret of "ann" & söhne'
API_KEY = "k3y-of-ann+/="
ENGINES = ("elasticsearch", "opensearch", "solr", "vespa")

Answer = tuple[int, Any]


class Request(NamedTuple):
    """`params` are those of the address and of a form."""

    method: str
    path: str
    params: dict[str, str]
    body: str


@dataclass
class State:
    """Whose answers are given, and what goes wrong: numbers count down to 0."""

    engine: str = "elasticsearch"
    busy: int = 0
    status: int = 429
    partial: int = 0
    failed_shards: int = 0
    slow: float = 0.0
    closed: bool = False
    locked: bool = False
    forbidden: str = ""
    echo: int = 0
    redirect: str = ""
    nonsense: Any = None
    hold: threading.Event = field(default_factory=threading.Event)
    hold_after: int = -1
    shards: int = 1
    similarity: str = "BM25"
    analyzer: str = ""
    profiles: tuple[str, ...] = ("fliprank", "default")
    bm25: dict[str, tuple[float, float]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """What was asked so far: (method, path)."""

    def take(self, name: str) -> bool:
        left = getattr(self, name)
        setattr(self, name, max(left - 1, 0))
        return left > 0


class ClusterServer:
    """One index called `shop`."""

    def __init__(
        self,
        documents: Mapping[str, Mapping[str, str]],
        fields: list[str],
        k: float = 0.9,
        b: float = 0.4,
        tls: ssl.SSLContext | None = None,
    ):
        self.index, self.state = LuceneIndex(documents, fields, k, b), State()
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.scheme = "http" if tls is None else "https"
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.http.server_address[1]}"

    @property
    def requests(self) -> list[tuple[str, str]]:
        return self.state.requests

    def close(self) -> None:
        self.state.hold.set()
        self.http.shutdown()
        self.http.server_close()
        self.index.close()

    def well(self, engine: str = "elasticsearch") -> State:
        """All is as it should be again."""
        self.state.hold.set()
        self.state = State(engine)
        return self.state

    def answer(self, state: State, request: Request, authorization: str) -> Answer:
        """(status, JSON or HTML)"""
        answers, failed = product(state.engine)
        if state.locked and authorization not in _signatures():
            return failed(state, 401, f"unable to authenticate {authorization}")
        if state.forbidden and state.forbidden in request.path:
            return failed(state, 403, "action is unauthorized for this user")
        if state.echo > 0:
            return failed(state, state.echo, echoed(authorization))
        if state.redirect:
            return 302, {"Location": state.redirect + quote(echoed(authorization))}
        if state.nonsense is not None:
            return 200, state.nonsense
        if state.take("busy"):
            return failed(state, state.status, "queue is full")
        return answers(self.index, state, request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = (gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw).decode()
                form = "form-urlencoded" in (self.headers.get("Content-Type") or "")
                params = dict(parse_qsl(f"{query}&{body if form else ''}", keep_blank_values=True))
                state = server.state
                with server.lock:
                    state.requests.append((self.command, path))
                    held = len(state.requests) > state.hold_after >= 0
                if held:
                    state.hold.wait(60)
                    self.close_connection = True
                    return
                time.sleep(state.slow)
                with server.lock:
                    request = Request(self.command, path, params, body)
                    try:
                        status, told = server.answer(state, request, self.headers.get("Authorization", ""))
                    except Exception as error:  # what the server does not know, the test shows
                        status, told = 500, f"{path} {params} {body}: {error!r}"
                data = told.encode() if isinstance(told, str) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if isinstance(told, str) else "application/json")
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Length", str(len(data)))
                if status == 302:
                    self.send_header("Location", told["Location"])
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def product(engine: str) -> tuple[Callable[..., Answer], Callable[..., Answer]]:
    """How it answers, and how it refuses to."""
    import elastic_answers
    import solr_answers
    import vespa_answers

    return {
        "elasticsearch": (elastic_answers.elastic, elastic_answers.failed),
        "opensearch": (elastic_answers.elastic, elastic_answers.failed),
        "solr": (solr_answers.solr, solr_answers.failed),
        "vespa": (vespa_answers.vespa, vespa_answers.failed),
    }[engine]


def _signatures() -> set[str]:
    pair = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return {f"Basic {pair}", f"ApiKey {API_KEY}", f"Bearer {API_KEY}"}


def echoed(authorization: str) -> str:
    """What a server should not say: who asked, by which secret, in several ways of writing it."""
    kind, _, value = authorization.partition(" ")
    plain = b64decode(value).decode() if kind == "Basic" else value
    return f"{authorization}; {plain}; {quote(plain)}; {json.dumps(plain)}; {b64encode(plain.encode()).decode()}"
