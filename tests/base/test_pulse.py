"""A process that says nothing for too long is found, and no other."""

import pytest

from common.base.pulse import LIMIT, Watch


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


@pytest.mark.parametrize("each", [0.3, 1.05])
def test_a_process_is_silent_fifteen_seconds_after_its_last_word(clock: Clock, each: float) -> None:
    """Those do not count in which the watch itself was frozen."""
    watch = Watch(["silent", "speaks", "left"])
    watch.left("left")
    clock.now += 3600
    assert watch.silent() == []
    began = clock.now
    while not watch.silent():
        clock.now += each
        watch.heard("speaks")
        assert clock.now < began + 1000
    assert watch.silent() == ["silent"]
    assert LIMIT - 1 <= clock.now - began <= LIMIT * max(1, each) + each
