"""Downloads that go wrong under a command, and processes that fill one data cache together."""

import json
import subprocess
import sys
import time
from pathlib import Path
from signal import SIGKILL

import pytest
from disks import Disk
from figures import Figures
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


def use(hurt: Hurt, mirror: Mirror) -> None:
    """Lets this mirror be the only one there is."""
    assert download.__kwdefaults__ is not None
    hurt.monkeypatch.setitem(download.__kwdefaults__, "mirrors", [mirror.url])


@pytest.mark.parametrize("get", BAD)
def test_a_run_is_refused_in_time_and_the_cache_is_empty(
    hurt: Hurt, cache: Path, start: Start, figures: Figures, get: Answer
) -> None:
    use(hurt, start(serve, get))
    began = time.monotonic()
    assert hurt.run("--dataset=fashion-mnist", f"--out={hurt.folder / 'out'}") == 2
    assert time.monotonic() - began < 10
    hurt.require_one_line(
        "cannot download Fashion-MNIST .*name a folder that has it with --data-dir"
    )
    assert contents(cache) == {}
    assert not (hurt.folder / "out").exists()
    figures("download that goes wrong")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_cache_on_a_disk_that_takes_nothing(
    hurt: Hurt, start: Start, disk: Disk, figures: Figures, read_only: bool
) -> None:
    use(hurt, start(serve, serve))
    hurt.monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    hurt.monkeypatch.setenv("XDG_CACHE_HOME", str(disk.folder))
    disk.protect() if read_only else disk.fill()
    assert hurt.run("--dataset=fashion-mnist", f"--out={hurt.folder / 'out'}") == 2
    hurt.require_one_line("Read-only file system" if read_only else "No space left on device")
    assert contents(cache_folder()) == {}
    figures("disk read-only" if read_only else "disk full at a write")


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


def test_two_processes_fill_it_together(cache: Path, start: Start, figures: Figures) -> None:
    mirror = start(serve, half_at_first)
    both = [fill(cache, mirror) for _ in range(2)]
    assert [each.wait(SECONDS) for each in both] == [0, 0]
    assert contents(cache) == CONTENTS
    assert sorted(mirror.fetched) == sorted([*CONTENTS, *CONTENTS])
    figures("data cache filled by two")


def test_one_of_them_is_killed(cache: Path, start: Start, figures: Figures) -> None:
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
    figures("data cache filled by two")
