"""Downloads from mirrors that serve, lie, hang or are not there; all of them on this machine."""

import os
import re
import socket
import sys
import time
from pathlib import Path

import pytest
from mirrors import (
    BAD,
    CONTENTS,
    Answer,
    Handler,
    Start,
    contents,
    hang,
    missing,
    serve,
    start as start,
)

from common.data.download import DownloadError, cache_folder, download

FIRST, *OTHERS = CONTENTS


def test_what_is_not_there_is_fetched_in_silence(
    start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mirror, cache = start(serve, serve), tmp_path / "cache"
    notices: list[str] = []
    download(cache, notices.append, progress=False, mirrors=[mirror.url])
    assert mirror.fetched == list(CONTENTS)
    assert notices == [f"downloading Fashion-MNIST (30 MB) from {mirror.url[7:-1]} to {cache}"]
    (cache / FIRST).unlink()
    (cache / OTHERS[0]).write_bytes(b"damaged")
    download(cache, notices.append, progress=False, mirrors=[mirror.url])
    assert mirror.fetched == [*CONTENTS, FIRST, OTHERS[0]]
    assert contents(cache) == CONTENTS
    assert capfd.readouterr() == ("", "")


def test_progress_is_shown_where_it_is_asked_for(
    start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    download(tmp_path, print, progress=True, mirrors=[start(serve, serve).url])
    assert "100%" in capfd.readouterr().err


def test_what_draws_progress_may_be_missing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr("pooch.downloaders.tqdm", None)
    download(tmp_path, print, progress=True, mirrors=[start(serve, serve).url])
    assert contents(tmp_path) == CONTENTS


@pytest.mark.parametrize("get", BAD)
def test_the_next_mirror_gives_what_one_does_not(start: Start, tmp_path: Path, get: Answer) -> None:
    def only_the_first(handler: Handler) -> None:
        (serve if handler.name == FIRST else get)(handler)

    bad = start(serve, only_the_first)

    def later(handler: Handler) -> None:
        bad.was_asked.wait(10)
        serve(handler)

    good = start(later, serve)
    began = time.monotonic()
    download(tmp_path, print, progress=False, mirrors=[bad.url, good.url])
    assert time.monotonic() - began < 5
    assert (bad.fetched, good.fetched) == ([FIRST, OTHERS[0]], OTHERS)
    assert contents(tmp_path) == CONTENTS


def test_it_gives_up_in_time_and_says_why_for_each_mirror(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        absent = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    silent, without, cut_off = start(hang, serve), start(missing, serve), start(serve, missing)
    began = time.monotonic()
    mirrors = [absent, silent.url, without.url, cut_off.url]
    (tmp_path / FIRST).write_bytes(b"old")
    with pytest.raises(DownloadError) as caught:
        download(tmp_path, print, progress=False, mirrors=mirrors)
    assert time.monotonic() - began < 5
    reasons = "cannot be reached", "", f"does not offer {FIRST}", ".*404 "
    for url, reason in zip(mirrors, reasons, strict=True):
        assert re.search(f"{url[7:-1]}: {reason}", str(caught.value))
    assert "\n" not in str(caught.value)
    assert contents(tmp_path) == {FIRST: b"old"}


def test_it_gives_up_in_time_where_even_looking_up_the_host_hangs(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = start(serve, serve)

    def look_up(*_: object, **__: object) -> None:
        mirror.is_over.wait(10)
        raise OSError

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    with pytest.raises(DownloadError, match="no answer within 1 s"):
        download(tmp_path, print, progress=False, mirrors=[mirror.url])


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)  # no user has this number
    with pytest.raises(DownloadError, match="there is no home folder to keep it in: set HOME"):
        cache_folder()
