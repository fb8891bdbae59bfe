"""How processes on several hosts are joined in MXNet: by its dist kvstore.

It has no messages from one process to another. Each process gets from the servers what all have,
and adds it up itself: servers would add in the order of arrival, which changes from run to run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import mxnet as mx
import numpy
from mxnet import np, npx
from mxnet.base import _LIB, check_call

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.arrays import Array
from common.base.errors import RequestError
from frameworks.mxnet.servers import in_time, served

Tensor: TypeAlias = np.ndarray

FIRST_KEY: Final = 1 << 20
"""The first key of these collectives; keys of Gluon's Trainer count from 0."""

ENGINE: Final = "dist_sync"
"""The kvstore whose servers add, once all workers have pushed."""


@dataclass
class Membership:
    """The rank of this process, and the kvstore that all share, with its keys."""

    process: Process = ALONE
    store: Any = None
    keys: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def key(self, shape: tuple[int, ...], dtype: Any, stype: str = "default") -> int:
        """The key of a kind of message; all processes ask for keys in the same order."""
        kind = (shape, numpy.dtype(dtype), stype)
        if kind not in self.keys:
            self.keys[kind] = FIRST_KEY + len(self.keys)
            # A server takes no sparse array without rows.
            self.store.init(self.keys[kind], mx.nd.ones(shape, dtype=dtype).tostype(stype))
        return self.keys[kind]


ours = Membership()


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: Any,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, joined with all processes that a launcher has started.

    Raises RunError if they cannot meet.
    """
    if process.count == 1 and getattr(options, "wrapper", "") != ENGINE:
        worker(process)
        return
    with served(process), member(process):
        worker(process)


@contextmanager
def member(process: Process) -> Iterator[None]:
    """Meanwhile this process has the kvstore of all."""
    with in_time():
        ours.process, ours.store = process, mx.kv.create(ENGINE)
    try:
        yield
    except Exception:
        if process.count == 1:  # else others may still run; their launcher ends them
            leave()
        raise
    process.gather(0)
    leave()


def leave() -> None:
    """Frees the kvstore, and ends its servers, once all processes have come here.

    Else MXNet would try to at the end of Python, and wait forever, or abort.
    """
    npx.waitall()
    check_call(_LIB.MXKVStoreFree(ours.store.handle))
    ours.store.handle = None
    ours.process, ours.store = ALONE, None
    ours.keys.clear()


def processes() -> int:
    """How many processes there are."""
    return ours.process.count


def common_store() -> mx.kv.KVStore:
    """The kvstore of all processes. Raises RequestError if this one was not launched with one."""
    if ours.store is None:
        raise RequestError(f"a chapter that was not launched has no {ENGINE}: take device or local")
    return ours.store


def rank() -> int:
    """Which of them this one is."""
    return ours.process.rank


def all_gather_tensors(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The tensors of all devices, on the first of this process's; all are of one shape."""
    if processes() == 1:
        return tensors
    rows = np.stack([tensor.reshape(-1).as_in_ctx(mx.cpu()) for tensor in tensors])
    first = tensors[0]
    return [row.reshape(first.shape).as_in_ctx(first.ctx) for row in all_gather_rows(rows)]


def all_gather_rows(rows: Tensor) -> Tensor:
    """All-gathers rows (m, n) to (k, n); blocks until every process calls it.

    Each one pushes its rows only; the servers join them.
    """
    devices = list(range(processes() * len(rows)))
    shape, dtype = (len(devices), rows.shape[1]), rows.dtype
    mine = mx.nd.array(devices[rank() * len(rows) :][: len(rows)], dtype="int64")
    key = ours.key(shape, dtype, "row_sparse")
    pushed = mx.nd.sparse.row_sparse_array((rows.as_nd_ndarray(), mine), shape=shape, dtype=dtype)
    ours.store.push(key, pushed)
    gathered_rows = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype)
    ours.store.row_sparse_pull(key, out=gathered_rows, row_ids=mx.nd.array(devices, dtype="int64"))
    whole = gathered_rows.data.as_np_ndarray()
    whole.wait_to_read()  # no process pushes again before all of this is here
    return whole


def summed_by_servers(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of vectors on all devices of all processes, in the order in which they arrive."""
    summed = [tensor.copy() for tensor in data]  # a push writes to its argument
    ours.store.pushpull(ours.key(summed[0].shape, summed[0].dtype), summed)
    return summed


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    copies = all_gather_tensors([np.array(values, values.dtype)])
    return numpy.stack([copy.asnumpy() for copy in copies])
