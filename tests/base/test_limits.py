"""A limit with which no framework runs is named before one is loaded."""

import resource
import threading

import pytest

from common.base import limits
from common.base.errors import RequestError


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [
        (resource.RLIMIT_NOFILE, 24, "`ulimit -n` is 24, and .* at least 64"),
        (resource.RLIMIT_AS, 600_000 * 1024, "`ulimit -v` is 600000, and .* at least 1048576"),
    ],
)
def test_a_low_limit_is_refused(
    limit: int, value: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.require_limits()
    known = {limit: (value, value)}
    monkeypatch.setattr(resource, "getrlimit", lambda each: known.get(each, (-1, -1)))
    with pytest.raises(RequestError, match=told):
        limits.require_limits()


def test_threads_that_cannot_be_started_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, who may run the tests, has no such limit."""
    left, start = iter(range(5)), threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RequestError, match=r"only 5 of the 24 threads .* raise `ulimit -u`"):
        limits.require_limits()
