"""Downloads that go wrong under a command, and processes that fill one data cache together."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import Hurt
from killed_runs import ROOT
from mirrors import BAD, CONTENTS, MOST, Handler, Mirror, contents, send, serve
from started import SECONDS

from common.data.download import SHA256, cache_folder, download

pytestmark = pytest.mark.faults


def half_at_first(handler: Handler) -> None:
    """Sends half of a file, and the rest once two have asked for it."""
    content, mirror = CONTENTS[handler.name], handler.server
    send(handler, content[: len(content) // 2], length=len(content))
    handler.wfile.flush()
    while mirror.fetched.count(handler.name) < 2 and not mirror.is_over.wait(0.01):
        pass
    handler.wfile.write(content[len(content) // 2 :])


@pytest.fixture
def cache(hurt: Hurt, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, which is empty; nothing else names a place of the data."""
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(hurt.folder / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    for name, content in CONTENTS.items():
        monkeypatch.setitem(SHA256, name, hashlib.sha256(content).hexdigest())
    for module in ("download", "receive"):
        monkeypatch.setattr(f"common.data.{module}.ANSWER_TIMEOUT", 1.0)
    monkeypatch.setattr("common.data.receive.MOST", MOST)
    return cache_folder()


@pytest.fixture
def mirror(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """The only mirror there is; it answers as the test says."""
    made = Mirror(serve, request.param)
    assert download.__kwdefaults__ is not None
    monkeypatch.setitem(download.__kwdefaults__, "mirrors", [made.url])
    yield made
    made.stop()


@pytest.mark.parametrize("mirror", BAD, indirect=True, ids=lambda answer: answer.__name__)
def test_a_run_is_refused_in_time_and_the_cache_is_empty(
    hurt: Hurt, cache: Path, mirror: Mirror, figures: Figures
) -> None:
    began = time.monotonic()
    assert hurt.run("--dataset=fashion-mnist", f"--out={hurt.folder / 'out'}") == 2
    assert time.monotonic() - began < 10
    hurt.require_one_line(
        "cannot download Fashion-MNIST .*name a folder that has it with --data-dir"
    )
    assert contents(cache) == {}
    assert not (hurt.folder / "out").exists()
    figures("download that goes wrong")


@pytest.mark.parametrize("mirror", [serve], indirect=True)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_cache_on_a_disk_that_takes_nothing(
    hurt: Hurt, cache: Path, mirror: Mirror, disk: Disk, figures: Figures, read_only: bool
) -> None:
    hurt.monkeypatch.setenv("XDG_CACHE_HOME", str(disk.folder))
    disk.protect() if read_only else disk.fill()
    assert hurt.run("--dataset=fashion-mnist", f"--out={hurt.folder / 'out'}") == 2
    hurt.require_one_line("Read-only file system" if read_only else "No space left on device")
    assert contents(cache_folder()) == {}
    figures("disk read-only" if read_only else "disk full at a write")


def fill(cache: Path, mirror: Mirror) -> "subprocess.Popen[str]":
    """Starts a process that fills the cache."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests/support/filling.py"), str(cache), mirror.url],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("mirror", [half_at_first], indirect=True)
def test_two_processes_fill_it_together(cache: Path, mirror: Mirror, figures: Figures) -> None:
    both = [fill(cache, mirror) for _ in range(2)]
    for each in both:
        out, _ = each.communicate(timeout=SECONDS)
        assert each.returncode == 0, out
    assert contents(cache) == CONTENTS
    assert sorted(mirror.fetched) == sorted([*CONTENTS, *CONTENTS])
    figures("data cache filled by two")


@pytest.mark.parametrize("mirror", [half_at_first], indirect=True)
def test_one_of_them_is_killed(cache: Path, mirror: Mirror, figures: Figures) -> None:
    killed = fill(cache, mirror)
    assert mirror.was_asked.wait(SECONDS)
    killed.send_signal(SIGKILL)
    killed.communicate()
    assert not contents(cache).keys() & CONTENTS.keys()
    mirror.get = serve
    other = fill(cache, mirror)
    out, _ = other.communicate(timeout=SECONDS)
    assert other.returncode == 0, out
    there = contents(cache)
    assert {name: there[name] for name in CONTENTS} == CONTENTS
    figures("data cache filled by two")
