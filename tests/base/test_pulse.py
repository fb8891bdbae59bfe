"""A process that says nothing for too long is found, and no other."""

import time
from multiprocessing.connection import Pipe

import pytest

from common.base.pulse import ALIVE, LIMIT, Pulse, Watch


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("common.base.pulse.time", found)
    return found


def seconds_until_silent(clock: Clock, watch: Watch[str], each: float) -> float:
    """How long it takes until a process is silent, if one asks every so many seconds."""
    began = clock.now
    while not watch.silent():
        clock.now += each
        assert clock.now < began + 1000
    return clock.now - began


@pytest.mark.parametrize("each", [0.3, 1.0, 1.05])
def test_what_says_nothing_is_silent_after_fifteen_seconds(clock: Clock, each: float) -> None:
    found = seconds_until_silent(clock, Watch(["a"]), each)
    assert LIMIT - 1e-6 <= found <= LIMIT * max(1, each) + each + 1e-6


def test_what_was_heard_is_not(clock: Clock) -> None:
    watch = Watch(["a", "b", "c"])
    watch.left("c")
    for _ in range(40):
        clock.now += 0.9
        watch.heard("a")
        found = watch.silent()
        assert found in ([], ["b"])
    assert found == ["b"]


def test_the_time_in_which_the_watch_itself_is_frozen_does_not_count(clock: Clock) -> None:
    watch = Watch(["a"])
    clock.now += 3600
    assert watch.silent() == []
    assert seconds_until_silent(clock, watch, 0.5) >= LIMIT - 1


def test_a_pulse_beats_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.base.pulse.BEAT", 0.02)
    heard, says = Pipe(duplex=False)
    pulse = Pulse(says)
    assert [heard.recv() for _ in range(3)] == [ALIVE] * 3
    pulse.end()
    while heard.poll():
        heard.recv()
    time.sleep(0.1)
    assert not heard.poll()
