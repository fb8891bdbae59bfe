"""What a step moves in MXNet: what its kvstore adds up, and what its executors copy."""

from collections.abc import Callable, Sequence
from typing import Any

import mxnet as mx
import numpy


def summed(store: Any, step: Callable[[], object]) -> int:
    """How many bytes of each device a kvstore adds up in a step."""
    sizes, own = list[int](), store.pushpull

    def noting(key: int, values: Sequence[Any], *args: Any, **named: Any) -> None:
        sizes.append(size_of(values[0]))
        own(key, values, *args, **named)

    store.pushpull = noting
    try:
        step()
    finally:
        del store.pushpull
    return sum(sizes)


def copied(executors: Sequence[mx.executor.Executor], step: Callable[[], object]) -> int:
    """How many bytes executors copy from device to device in a step.

    They have operators for that. From then on MXNet runs their operators one by one.
    """
    sizes = list[int]()
    monitor = mx.monitor.Monitor(1, lambda copy: sizes.append(size_of(copy)), ".*_copy_output")
    for executor in executors:
        monitor.install(executor)
    monitor.tic()
    step()
    return sum(sizes)


def size_of(tensor: Any) -> int:
    """The bytes of a tensor."""
    return int(tensor.size) * numpy.dtype(tensor.dtype).itemsize
