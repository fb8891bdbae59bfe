"""Downloads that go wrong under a command, and processes that fill one data cache together."""

import json
import subprocess
import sys
import time
from pathlib import Path
from signal import SIGKILL

import pytest
from hurt_runs import Hurt
from killed_runs import ROOT
from mirrors import (
    BAD,
    CONTENTS,
    DIGESTS,
    Answer,
    Handler,
    Mirror,
    Start,
    contents,
    send,
    serve,
    start as start,
)
from started import SECONDS

from common.data.download import cache_folder, download

pytestmark = pytest.mark.faults

FILL = """
import json, pathlib, sys
from common.data.download import SHA256, download
SHA256 |= json.loads(sys.argv[3])
download(pathlib.Path(sys.argv[1]), print, progress=False, mirrors=[sys.argv[2]])
"""


@pytest.fixture
def cache(hurt: Hurt) -> Path:
    """The user's cache, which is empty; nothing else names a place of the data."""
    hurt.monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    hurt.monkeypatch.setenv("XDG_CACHE_HOME", str(hurt.folder / "cache"))
    return cache_folder()


@pytest.mark.parametrize("get", BAD)
def test_a_run_is_refused_in_time_and_the_cache_is_empty(
    hurt: Hurt, cache: Path, start: Start, get: Answer
) -> None:
    assert download.__kwdefaults__ is not None
    mirrors = [start(serve, get).url]  # there is no other one
    hurt.monkeypatch.setitem(download.__kwdefaults__, "mirrors", mirrors)
    began = time.monotonic()
    assert hurt.run("--dataset=fashion-mnist", f"--out={hurt.folder / 'out'}") == 2
    assert time.monotonic() - began < 10
    hurt.require_one_line(
        "cannot download Fashion-MNIST .*name a folder that has it with --data-dir"
    )
    assert contents(cache) == {}
    assert not (hurt.folder / "out").exists()


def half_at_first(handler: Handler) -> None:
    """Sends half of a file, and the rest once two have asked for it."""
    content, mirror = CONTENTS[handler.name], handler.server
    send(handler, content[: len(content) // 2], length=len(content))
    handler.wfile.flush()
    while mirror.fetched.count(handler.name) < 2 and not mirror.is_over.wait(0.01):
        pass
    handler.wfile.write(content[len(content) // 2 :])


def fill(cache: Path, mirror: Mirror) -> "subprocess.Popen[bytes]":
    """Starts a process that fills the cache."""
    command = [sys.executable, "-c", FILL, str(cache), mirror.url, json.dumps(DIGESTS)]
    return subprocess.Popen(command, cwd=ROOT)


def test_two_processes_fill_it_together(cache: Path, start: Start) -> None:
    mirror = start(serve, half_at_first)
    both = [fill(cache, mirror) for _ in range(2)]
    assert [each.wait(SECONDS) for each in both] == [0, 0]
    assert contents(cache) == CONTENTS
    assert sorted(mirror.fetched) == sorted([*CONTENTS, *CONTENTS])


def test_one_of_them_is_killed(cache: Path, start: Start) -> None:
    mirror = start(serve, half_at_first)
    killed = fill(cache, mirror)
    assert mirror.was_asked.wait(SECONDS)
    killed.send_signal(SIGKILL)
    killed.wait()
    assert not contents(cache).keys() & CONTENTS.keys()
    mirror.get = serve
    assert fill(cache, mirror).wait(SECONDS) == 0
    there = contents(cache)
    assert {name: there[name] for name in CONTENTS} == CONTENTS
