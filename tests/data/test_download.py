"""Downloads from mirrors that serve, lie, hang or are not there; all of them on this machine."""

import hashlib
import io
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pooch
import pytest
import requests
from mirrors import (
    BAD,
    CONTENTS,
    MOST,
    Answer,
    Mirror,
    after,
    contents,
    garbage,
    hang,
    missing,
    only_the_first,
    serve,
    unheard,
)

from common.data.download import SHA256, DownloadError, download

FIRST, SECOND, *LAST = SHA256
Start = Callable[[Answer, Answer], Mirror]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts mirrors that answer HEAD and GET so; they stop at the end of the test."""
    for name, content in CONTENTS.items():
        monkeypatch.setitem(SHA256, name, hashlib.sha256(content).hexdigest())
    monkeypatch.setenv("no_proxy", "*")
    for module in ("download", "receive"):
        monkeypatch.setattr(f"common.data.{module}.ANSWER_TIMEOUT", 1.0)
    monkeypatch.setattr("common.data.receive.MOST", MOST)
    started: list[Mirror] = []

    def begin(head: Answer, get: Answer) -> Mirror:
        started.append(Mirror(head, get))
        return started[-1]

    yield begin
    for mirror in started:
        mirror.stop()


def test_the_four_files_are_fetched_and_nothing_else_is_left(start: Start, tmp_path: Path) -> None:
    mirror = start(serve, serve)
    notices: list[str] = []
    download(tmp_path / "cache", notices.append, progress=False, mirrors=[mirror.url])
    assert len(notices) == 1
    assert notices[0].startswith("downloading Fashion-MNIST (30 MB) from 127.0.0.1")
    assert contents(tmp_path / "cache") == CONTENTS
    assert mirror.fetched == list(SHA256)


def test_nothing_is_printed_unless_progress_is_asked_for(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.StringIO()
    for handler in pooch.get_logger().handlers:
        monkeypatch.setattr(handler, "stream", printed)
    monkeypatch.setattr("sys.stdout", printed)
    monkeypatch.setattr("sys.stderr", printed)
    download(tmp_path, unheard, progress=False, mirrors=[start(serve, serve).url])
    assert printed.getvalue() == ""


def test_files_that_are_there_are_not_fetched_again(start: Start, tmp_path: Path) -> None:
    mirror = start(serve, serve)
    download(tmp_path, unheard, progress=False, mirrors=[mirror.url])
    (tmp_path / FIRST).unlink()
    (tmp_path / SECOND).write_bytes(b"damaged")
    download(tmp_path, unheard, progress=False, mirrors=[mirror.url])
    assert mirror.fetched == [*SHA256, FIRST, SECOND]
    assert contents(tmp_path) == CONTENTS


@pytest.mark.parametrize("get", BAD)
def test_what_a_mirror_does_not_serve_rightly_leaves_nothing_behind(
    start: Start, tmp_path: Path, get: Answer
) -> None:
    mirror = start(serve, get)
    began = time.monotonic()
    with pytest.raises(DownloadError, match=mirror.url.split("/")[2]):
        download(tmp_path / "cache", unheard, progress=False, mirrors=[mirror.url])
    assert time.monotonic() - began < 5
    assert set(mirror.fetched) == {FIRST}
    assert contents(tmp_path / "cache") == {}


def test_a_wrong_file_does_not_replace_what_was_there(start: Start, tmp_path: Path) -> None:
    (tmp_path / FIRST).write_bytes(b"old")
    with pytest.raises(DownloadError, match="hash"):
        download(tmp_path, unheard, progress=False, mirrors=[start(serve, garbage).url])
    assert contents(tmp_path) == {FIRST: b"old"}


def test_a_link_in_the_cache_is_followed_and_stays(start: Start, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "file").write_bytes(b"damaged")
    (tmp_path / "cache" / FIRST).symlink_to("../file")
    download(tmp_path / "cache", unheard, progress=False, mirrors=[start(serve, serve).url])
    assert (tmp_path / "cache" / FIRST).is_symlink()
    assert (tmp_path / "file").read_bytes() == CONTENTS[FIRST]
    assert contents(tmp_path / "cache") == CONTENTS


def test_what_is_no_file_in_the_cache_stays(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FIRST)
    with pytest.raises(DownloadError, match="it is a pipe, not a file"):
        download(tmp_path, unheard, progress=False, mirrors=[start(serve, serve).url])
    assert (tmp_path / FIRST).is_fifo()


@pytest.mark.parametrize("get", BAD)
def test_the_next_mirror_takes_over_from_one_that_fails(
    start: Start, tmp_path: Path, get: Answer
) -> None:
    bad = start(serve, get)
    good = start(after(bad), serve)
    began = time.monotonic()
    download(tmp_path, unheard, progress=False, mirrors=[bad.url, good.url])
    assert time.monotonic() - began < 5
    assert set(bad.fetched) == {FIRST}
    assert contents(tmp_path) == CONTENTS


@pytest.mark.parametrize("head", [missing, hang])
def test_a_mirror_that_does_not_answer_rightly_is_asked_for_nothing(
    start: Start, tmp_path: Path, head: Answer
) -> None:
    bad, good = start(head, serve), start(serve, serve)
    download(tmp_path, unheard, progress=False, mirrors=[bad.url, good.url])
    assert bad.fetched == []
    assert contents(tmp_path) == CONTENTS


def test_files_that_one_mirror_gave_are_not_asked_of_the_next(start: Start, tmp_path: Path) -> None:
    bad = start(serve, only_the_first)
    good = start(after(bad), serve)
    download(tmp_path, unheard, progress=False, mirrors=[bad.url, good.url])
    assert bad.fetched == [FIRST, SECOND]
    assert good.fetched == [SECOND, *LAST]
    assert contents(tmp_path) == CONTENTS


def test_it_gives_up_in_time_and_says_why_for_each_mirror(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    without, silent = start(missing, serve), start(hang, serve)
    began = time.monotonic()
    with pytest.raises(DownloadError) as caught:
        download(
            tmp_path,
            unheard,
            progress=False,
            mirrors=[f"http://{nobody}/", without.url, silent.url],
        )
    assert time.monotonic() - began < 3
    assert f"{nobody}: cannot be reached" in str(caught.value)
    assert "404" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path) == {}


def test_it_gives_up_in_time_where_even_looking_up_the_host_hangs(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = start(serve, serve)

    def look_up(*_: object, **__: object) -> None:
        mirror.is_over.wait(10)
        raise requests.ConnectionError

    monkeypatch.setattr("requests.head", look_up)
    began = time.monotonic()
    with pytest.raises(DownloadError, match="did not answer within 1 s"):
        download(tmp_path, unheard, progress=False, mirrors=[mirror.url])
    assert time.monotonic() - began < 5


def test_a_cache_that_cannot_be_made_is_an_error(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DownloadError, match="Not a directory"):
        download(
            tmp_path / "file" / "cache", unheard, progress=False, mirrors=[start(serve, serve).url]
        )
