"""A limit with which no framework runs is named before one is loaded."""

import resource
import threading

import pytest

from common.base import limits
from common.base.errors import RequestError


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [
        ("RLIMIT_NOFILE", 24, "`ulimit -n` is 24, and .* at least 64"),
        ("RLIMIT_AS", 600_000 * 1024, "`ulimit -v` is 600000, and .* at least 1048576"),
        ("threads", 5, "only 5 of the 24 threads .* raise `ulimit -u`"),
    ],
)
def test_a_low_limit_is_refused(
    limit: str, value: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.require_limits()
    known = {getattr(resource, limit, None): (value, value)}
    monkeypatch.setattr(resource, "getrlimit", lambda each: known.get(each, (-1, -1)))
    if limit == "threads":  # root, who may run the tests, has no such limit
        left, start = iter(range(value)), threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if next(left, None) is None:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RequestError, match=told):
        limits.require_limits()
