"""Mirrors on this machine, for the tests of the download: they serve, lie, or hang."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.data.download import SHA256

CONTENTS = {name: name.encode() * 1000 for name in SHA256}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    server: "Mirror"

    def do_HEAD(self) -> None:
        self.server.head(self)

    def do_GET(self) -> None:
        self.server.fetched.append(self.name)
        self.server.was_asked.set()
        self.server.get(self)

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]

    def log_message(self, *_: object) -> None:
        pass


class Mirror(ThreadingHTTPServer):
    """One mirror; it lists the files that were asked of it."""

    daemon_threads = True

    def __init__(self, head: Answer, get: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.head, self.get = head, get
        self.fetched: list[str] = []
        self.was_asked, self.is_over = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.is_over.set()
        self.shutdown()
        self.server_close()


Start = Callable[[Answer, Answer], Mirror]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts mirrors that answer HEAD and GET so; they stop at the end of the test."""
    for name, known in DIGESTS.items():
        monkeypatch.setitem(SHA256, name, known)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("common.data.download.TIMEOUT", 1.0)
    started: list[Mirror] = []

    def begin(head: Answer, get: Answer) -> Mirror:
        started.append(Mirror(head, get))
        return started[-1]

    yield begin
    for mirror in started:
        mirror.stop()


def send(handler: Handler, content: bytes, length: int | None = None) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(content)


def serve(handler: Handler) -> None:
    send(handler, CONTENTS[handler.name])


def garbage(handler: Handler) -> None:
    send(handler, b"<html>Sign in to this network</html>")


def missing(handler: Handler) -> None:
    handler.send_error(404)


def cut(handler: Handler) -> None:
    send(handler, CONTENTS[handler.name][:500], length=len(CONTENTS[handler.name]))


def hang(handler: Handler) -> None:
    handler.server.is_over.wait(10)


BAD = (garbage, cut, hang, missing)
"""Answers that hold no file."""


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a folder, by its name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
