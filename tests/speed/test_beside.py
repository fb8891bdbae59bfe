"""The benchmark beside busy processes: they are there, they end with it, and it says so."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from benches import fake_python
from killed_runs import descendants, require_gone
from started import SECONDS, children

from bench.__main__ import main
from bench.beside import busy
from bench.report import markdown
from bench.results import Bench
from common.report.speed import benchmark

ROOT = Path(__file__).parents[2]
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
SAID = {0: "", 1: " beside 1 busy process", 2: " beside 2 busy processes"}
NOTES = """
import os, sys
parent = os.getppid()
with open({noted!r}, "a") as noted:
    print(len(open(f"/proc/{{parent}}/task/{{parent}}/children").read().split()), file=noted)
"""
"""What a measurement does first: it notes how many processes its parent has started."""


def flags(folder: Path, count: int) -> list[str]:
    beside = [f"--beside={count}"] if count else []
    return [fake_python(folder), f"--out={folder}", "--rounds=1", "--chapters=scratch", *beside]


def seconds(process: int) -> float:
    """The processor time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def wait_for(ready: Callable[[], object]) -> None:
    limit = time.monotonic() + SECONDS
    while not ready():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_as_many_as_asked_for_are_busy_meanwhile() -> None:
    before = set(children(os.getpid()))
    with busy(2):
        started = set(children(os.getpid())) - before
        assert len(started) == 2
        wait_for(lambda: all(seconds(each) > 0.1 for each in started))
    assert set(children(os.getpid())) == before


@pytest.mark.parametrize("count", SAID)
def test_every_measurement_has_them_beside_it(count: int, tmp_path: Path) -> None:
    asked, noted, python = flags(tmp_path, count), tmp_path / "noted", tmp_path / "python"
    note = NOTES.format(noted=str(noted))
    python.write_text(python.read_text().replace("\nimport os, sys\n", note))
    before = children(os.getpid())
    assert main(asked) == 0
    assert {int(line) - len(before) for line in noted.read_text().split()} == {count + 1}
    assert children(os.getpid()) == before


@pytest.mark.parametrize("count", SAID)
def test_all_that_it_leaves_says_so(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags(tmp_path, count)) == 0
    bench = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert bench.beside == count
    page = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert page == markdown(bench)
    heading, _, where, *_ = page.splitlines()
    line, _ = benchmark(tmp_path)  # as the comparison's page has it
    for text in (heading, where, line, capsys.readouterr().out.splitlines()[-1]):
        assert SAID[count] in text
        assert ("busy" in text) == bool(count)


@pytest.mark.parametrize("number", ENDS)
def test_they_end_with_it(number: signal.Signals, tmp_path: Path) -> None:
    asked, python = flags(tmp_path, 2), tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport signal\nsignal.pause()\n")
    # Tests that run in the background may ignore Ctrl-C, and so would all that they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    bench = subprocess.Popen(
        [sys.executable, "-m", "bench", *asked], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    wait_for(lambda: len(children(bench.pid)) == 3)
    measures = children(bench.pid)[-1]
    wait_for(lambda: str(python) in Path(f"/proc/{measures}/cmdline").read_text())
    processes = descendants(bench.pid)
    bench.send_signal(number)
    _, err = bench.communicate(timeout=SECONDS)
    with suppress(ProcessLookupError):  # what measures watches its parent, unlike this one
        os.kill(measures, signal.SIGKILL)
    assert bench.returncode == ENDS[number]
    assert "Traceback" not in err
    require_gone(processes)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "1025"])
def test_it_takes_a_number_of_processes(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--python=jax={sys.executable}", "--beside", value])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"argument --beside: {value!r} is not a whole number of at least 1 and at most" in said
