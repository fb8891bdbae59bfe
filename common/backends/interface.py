"""Devices, processes, and what a chapter and a listing promise: protocols, which modules satisfy.

Shapes: n examples in a minibatch, k devices. `X` is (n, 1, 28, 28) pixels in 0..1, `y` is (n,)
class indices 0..9, logits are (n, 10). Both arrive as NumPy arrays on the host.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from socket import gethostname
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, SupportsFloat, TypeVar

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.parallel.replicas import Gather, alone, joined

if TYPE_CHECKING:
    from common.parallel.schedules import Schedule

Device = TypeVar("Device")


@dataclass(frozen=True)
class Process:
    """One of the `count` processes of a run; on its host, one of `local_count`.

    `engine` is what joins processes that a launcher has started. All call `gathered`, in one order.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1
    engine: str = ""
    gathered: Gather = field(default=alone, compare=False, repr=False)

    def gather(self, value: Any) -> list[Any]:
        """What each process has given, by rank: JSON."""
        line = np.frombuffer(json.dumps(value).encode() + b"\n", np.uint8)
        lines = joined(line.astype(np.float64), self.gathered).astype(np.uint8)
        return list(map(json.loads, lines.tobytes().splitlines()))

    def any(self, holds: bool) -> bool:
        """Whether it holds in one of the processes."""
        return bool(self.gathered(np.array([holds], np.float64)).any())


ALONE: Final = Process()


@dataclass(frozen=True)
class DeviceRequest:
    """The devices of a run: how many, "cpu" or "gpu", and the threads that all CPU devices share.

    With `tf32`, GPUs may multiply float32 numbers with ten bits of the mantissa; `deterministic`
    ones give the same bits each time.
    """

    count: int
    kind: str
    threads: int
    tf32: bool = False
    deterministic: bool = False

    def on_each(self, process: Process) -> "DeviceRequest":
        """What is asked for on a process's host. Raises RequestError if shares are uneven."""
        share, over = divmod(self.count, process.count)
        if over:
            what = f"{self.count} devices cannot be shared by {process.count} processes"
            how = "--devices counts those of all, and each process has the same number"
            raise RequestError(f"{what}: {how}")
        return replace(self, count=share * process.local_count)

    def require(self, gpus: int, framework: str) -> None:
        """Raises RequestError if it is for more GPUs than a framework sees."""
        if self.kind == "cpu" or self.count <= gpus:
            return
        what = f"{framework} sees {gpus} GPU{'s' * (gpus != 1)} here, not {self.count}"
        how = "ask for fewer --devices or for --device-kind cpu"
        raise RequestError(f"{what}: {how}; docs/gpu.md tells why that may be")


@dataclass(frozen=True)
class Devices(Generic[Device]):
    """The devices of this process, and their kind."""

    kind: str
    local: list[Device]

    def names(self, process: Process) -> list[str]:
        """The names of the devices of all processes; over hosts, with the host of each."""
        if not process.engine:
            return list(chain(*process.gather(list(map(str, self.local)))))
        counts = process.gather([gethostname(), len(self.local)])
        hosts = [host for host, count in counts for _ in range(count)]
        return [f"{host} {self.kind}:{hosts[:i].count(host)}" for i, host in enumerate(hosts)]


def in_this_process(
    worker: Callable[[Process], None], request: DeviceRequest, options: object
) -> None:
    """Calls `worker` here, for all devices."""
    worker(ALONE)


Devs = Sequence[Any]
"""The framework's own devices of one process."""

Tensor = Any
"""A framework's own."""


Launch = Callable[[Callable[[Process], None], DeviceRequest, Any], None]
"""Called with a worker, a DeviceRequest and options.

Calls the worker with a Process in each process that the request needs: most need one; or, in one
that a launcher has started, here, joined with all others. Rank 0 speaks and writes for all. Raises
what the worker raised, RunError if a process died, RequestError if the options do not go together.
"""

MakeDevices = Callable[[Process, DeviceRequest], Devices[Any]]


class Trainer(Protocol):
    """A net on the devices of this process. If there are several, all call every method."""

    @property
    def replicas(self) -> Any:
        """What a step changes: tensors for which a chapter's `synchronize` can wait."""

    def train_batch(self, X: Array, y: Array, lr: float, /) -> SupportsFloat:
        """One SGD step, in place: v = m v + g with momentum m, then w = w - lr v.

        Returns the mean loss before the step; `float()` waits for it. Another `lr` costs no new
        compilation.
        """

    def gradients(self, X: Array, y: Array, /) -> Weights:
        """The gradient of the mean loss over the whole minibatch, before any update."""

    def predict(self, X: Array, /) -> Array:
        """The logits of a batch of any size, split over the devices as well."""

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""

    def bias(self) -> Tensor:
        """A copy of the last layer's bias (10,), which may wait on its device for the step."""

    def save(self) -> Weights:
        """All that the next step depends on; no tensor tells how the weights were split.

        The whole weights by their canonical names; running statistics as (k, channels), of every
        device; with momentum, the velocity v of each weight as `momentum/NAME`, in units of its
        gradient. Raises RunError as `export`.
        """

    def restore(self, saved: Mapping[str, Array], /) -> None:
        """Continues where `save` was called, in any framework and on any number of devices.

        A device beyond those that `saved` knows takes the running statistics of the first one.
        """


class Chapter(Protocol):
    """What all chapters share, in every framework."""

    @property
    def launch(self) -> Launch:
        """Starts the processes of a run."""

    def devices(self, process: Process, request: DeviceRequest, /) -> Devices[Any]:
        """The devices of this process. Called once in each, before anything else.

        CPU devices are simulated, and share the threads. Raises RequestError if there are fewer:
        never fewer, never silently others.
        """

    def trainer(self, weights: Mapping[str, Array], devices: Devs, options: Any, /) -> Trainer:
        """The net with these weights on the devices, in their dtype; nothing shares memory."""

    def synchronize(self, replicas: Any, /) -> None:
        """Returns once all queued work on the replicas is done: read clocks only after it."""


class Scratch(Protocol):
    """The listing of the chapter from scratch; one process, whose k devices hold the parameters."""

    def get_params(self, weights: Mapping[str, Array], device: Any, /) -> dict[str, Tensor]: ...
    def lenet(self, X: Tensor, params: dict[str, Tensor], /) -> Tensor: ...
    def allreduce(self, data: Sequence[Tensor], /) -> list[Tensor]: ...
    def split_batch(
        self, X: Array, y: Array, devices: Devs, /
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def shard_loss_and_grad(
        self, params: dict[str, Tensor], X: Tensor, y: Tensor, examples: int, /
    ) -> tuple[Tensor, dict[str, Tensor]]: ...
    def train_batch(
        self,
        X: Array,
        y: Array,
        device_params: Sequence[dict[str, Tensor]],
        devices: Devs,
        lr: float,
        examples: int,
        allreduce: Callable[[Sequence[Tensor]], list[Tensor]],
        /,
    ) -> SupportsFloat: ...


class Kernels(Protocol):
    """A framework's `kernels.py`: shards of an array, and a function called for each device."""

    def scatter(self, array: Array, devices: Devs, /) -> list[Tensor]: ...
    @property
    def on_each_device(self) -> Callable[..., list[Any]]: ...


class Collectives(Protocol):
    """A framework's `collectives.py`: k tensors on k devices to their sum on each of them."""

    def by_schedule(self, schedule: "Schedule", data: Sequence[Tensor], /) -> list[Tensor]: ...
    def native(self, data: Sequence[Tensor], /) -> list[Tensor]: ...


class Concise(Protocol):
    """The listing of the concise chapter; `X` and `y` are those of this process's devices."""

    def replicate(
        self, weights: Mapping[str, Array], devices: Devs, batch_norm: str, wrapper: str, /
    ) -> Any: ...
    def train_batch(
        self, X: Array, y: Array, replicas: Any, lr: float, examples: int, /
    ) -> SupportsFloat: ...
    def predict(self, X: Array, replicas: Any, /) -> Array: ...


class State(Protocol):
    """A framework's `replicas.py`: what the wrapped net of the concise chapter holds."""

    def gradients(self, X: Array, y: Array, replicas: Any, examples: int, /) -> Weights: ...
    def bias(self, replicas: Any, /) -> Tensor: ...
    def copies(self, replicas: Any, /) -> list[Weights]: ...
    def put(self, per_device: Sequence[Weights], replicas: Any, /) -> None: ...
    def activations(self, X: Array, replicas: Any, /) -> Weights: ...
