"""Mirrors on this machine, for the tests of the download: they serve, lie, or hang."""

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from common.data.download import SHA256

MOST = 1 << 20
"""Bytes that are received at most, in a test."""

CONTENTS = {name: name.encode() * 1000 for name in SHA256}
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


def only_the_first(handler: Handler) -> None:
    (serve if handler.name == next(iter(SHA256)) else missing)(handler)


def hang(handler: Handler) -> None:
    handler.server.is_over.wait(10)


def slow(handler: Handler) -> None:
    """Sends a byte now and then: fewer than one a second, if a test has a second's patience."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENTS[handler.name])))
    handler.end_headers()
    while not handler.server.is_over.wait(1.2):
        with suppress(OSError):  # nobody listens any longer
            handler.wfile.write(b"x")


def slow_to_begin(handler: Handler) -> None:
    """Answers with a header that has no end, in the same way."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
    while not handler.server.is_over.wait(0.5):
        with suppress(OSError):
            handler.wfile.write(b"x")


def endless(handler: Handler) -> None:
    """Sends more and more, and never said how much."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):
        while not handler.server.is_over.is_set():
            handler.wfile.write(bytes(1 << 16))


def circle(handler: Handler) -> None:
    """Sends whoever asks back to where they were."""
    handler.send_response(302)
    handler.send_header("Location", f"/{handler.path.count('/') % 2 * 'round/'}{handler.name}")
    handler.end_headers()


BAD = (garbage, cut, hang, missing, slow, slow_to_begin, endless, circle)
"""Answers that hold no file."""


def after(other: Mirror) -> Answer:
    """Answers once the other mirror, being quicker, has been asked for a file."""

    def answer(handler: Handler) -> None:
        other.was_asked.wait(10)
        serve(handler)

    return answer


def unheard(text: str) -> None:
    """Takes a notice and drops it."""


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a folder, by its name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
