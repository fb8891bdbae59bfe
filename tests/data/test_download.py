"""Downloads from mirrors that serve, lie, hang or are not there."""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from started import ROOT, SECONDS

from common.data.dataset import load
from common.data.download import SHA256, DownloadError, download

CONTENTS = {name: name.encode() * 1000 for name in SHA256}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
FIRST, *OTHERS = CONTENTS
FILL = """
import json, pathlib, sys
from common.data.download import SHA256, download
SHA256 |= json.loads(sys.argv[3])
download(pathlib.Path(sys.argv[1]), print, mirrors=[sys.argv[2]])
"""


class Handler(BaseHTTPRequestHandler):
    server: "Mirror"

    def do_HEAD(self) -> None:
        if self.server.get is silent:
            hang(self)
        self.send_error(501)

    def do_GET(self) -> None:
        self.name = self.path.rsplit("/", 1)[1]
        self.server.fetched.append(self.name)
        self.server.get(self)

    def send(self, content: bytes, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


Answer = Callable[[Handler], None]


def serve(handler: Handler) -> None:
    content = CONTENTS[handler.name]
    handler.send(content, len(content))


def hang(handler: Handler) -> None:
    handler.server.is_over.wait(10)


def silent(handler: Handler) -> None:
    """Answers nothing at all, also to who asks whether it is there."""
    hang(handler)


def half_at_first(handler: Handler) -> None:
    """Sends half of a file, and the rest once two have asked for it."""
    content, mirror = CONTENTS[handler.name], handler.server
    handler.send(content[:500], len(content))
    while mirror.fetched.count(handler.name) < 2 and not mirror.is_over.wait(0.01):
        pass
    handler.wfile.write(content[500:])


class Mirror(ThreadingHTTPServer):
    """Answers so; lists the files that were fetched."""

    daemon_threads = True

    def __init__(self, get: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.get, self.fetched, self.is_over = get, list[str](), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


Start = Callable[..., Mirror]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts mirrors, which stop at the end of the test."""
    for name, known in DIGESTS.items():
        monkeypatch.setitem(SHA256, name, known)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("common.data.download.TIMEOUT", 1.0)
    started: list[Mirror] = []

    def begin(get: Answer = serve) -> Mirror:
        started.append(Mirror(get))
        return started[-1]

    yield begin
    for mirror in started:
        mirror.is_over.set()
        mirror.shutdown()
        mirror.server_close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_what_is_not_there_is_fetched(
    start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mirror, cache = start(), tmp_path / "cache"
    notices: list[str] = []
    download(cache, notices.append, mirrors=[mirror.url])
    assert notices == [f"downloading Fashion-MNIST (30 MB) from {mirror.url[7:-1]} to {cache}"]
    (cache / FIRST).unlink()
    (cache / OTHERS[0]).write_bytes(b"damaged")
    download(cache, notices.append, mirrors=[mirror.url])
    assert mirror.fetched == [*CONTENTS, FIRST, OTHERS[0]]
    assert contents(cache) == CONTENTS
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("get", "reason"),
    [
        (
            lambda mine: mine.send(b"<html>", 6),
            f"the SHA-256 of its {FIRST} is not that of Fashion",
        ),
        (lambda mine: mine.send_error(404), "404 "),
        (lambda mine: mine.send(CONTENTS[mine.name][:500], len(CONTENTS[mine.name])), ""),
        (hang, "it does not answer"),
        (None, "it does not answer"),
    ],
)
def test_the_next_mirror_gives_what_one_does_not(
    start: Start, tmp_path: Path, get: Answer | None, reason: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        bad = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    bad = start(get).url if get else bad
    (tmp_path / OTHERS[0]).write_bytes(CONTENTS[OTHERS[0]])
    with pytest.raises(DownloadError, match=f"^{bad[7:-1]}: .*{re.escape(reason)}"):
        download(tmp_path, print, mirrors=[bad])
    assert contents(tmp_path) == {OTHERS[0]: CONTENTS[OTHERS[0]]}
    good = start()
    download(tmp_path, print, mirrors=[bad, good.url])
    assert good.fetched == [FIRST, *OTHERS[1:]]
    assert contents(tmp_path) == CONTENTS


def test_mirrors_that_stay_silent_share_their_time(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", None)  # a notebook's framework has threads
    mirrors = [start(silent).url for _ in range(3)]
    notices: list[str] = []
    begun = time.monotonic()
    with pytest.raises(DownloadError) as told:
        download(tmp_path, notices.append, mirrors=mirrors)
    assert 1.0 <= time.monotonic() - begun < 2.0
    assert str(told.value).count("it does not answer") == 3
    assert notices == []
    begun = time.monotonic()
    download(tmp_path, notices.append, mirrors=[*mirrors, start().url])
    assert time.monotonic() - begun < 1.0
    assert (len(notices), contents(tmp_path)) == (1, CONTENTS)


@pytest.mark.parametrize("killed", [False, True])
def test_processes_fill_the_cache_together(start: Start, tmp_path: Path, killed: bool) -> None:
    mirror = start(half_at_first)
    command = [sys.executable, "-c", FILL, str(tmp_path), mirror.url, json.dumps(DIGESTS)]
    both = [subprocess.Popen(command, cwd=ROOT)]
    while killed and not mirror.fetched:
        time.sleep(0.01)
    if killed:
        mirror.get = serve
        both[0].kill()
        both[0].wait()
        assert not contents(tmp_path).keys() & CONTENTS.keys()
    both.append(subprocess.Popen(command, cwd=ROOT))
    assert [each.wait(SECONDS) for each in both] == [-9 * killed, 0]
    assert {name: contents(tmp_path)[name] for name in CONTENTS} == CONTENTS
    assert len(mirror.fetched) == 8 - 3 * killed


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "FASHION_MNIST_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)  # no user has this number
    notices: list[str] = []
    assert load("auto", None, notices.append, (1, 1)).name == "synthetic"
    assert "home directory" in notices[-1]
