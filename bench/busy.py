"""Other work on the machine, as long as something is timed beside it."""

from collections.abc import Iterator
from contextlib import contextmanager

from common.base.children import end, start


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Meanwhile, so many processes are busy; they end with this one, whatever ends it."""
    started = []
    try:
        for _ in range(count):
            started.append(start(compute))
        yield
    finally:
        end(started)


def compute() -> None:
    """Never waits, and never ends."""
    while True:
        sum(number * number for number in range(1000))
