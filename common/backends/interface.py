"""What a chapter promises, and what a listing does: protocols (PEP 544), which modules satisfy.

Shapes: n examples in a minibatch, k devices. `X` is (n, 1, 28, 28) pixels in 0..1, `y` is (n,)
class indices 0..9, logits are (n, 10). Both arrive as NumPy arrays on the host.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat

from common.backends.devices import ALONE, DeviceRequest, Devices, Process
from common.base.arrays import Array, Weights
from common.parallel.schedules import Schedule

Devs = Sequence[Any]
"""The framework's own devices of one process."""

Tensor = Any
"""A framework's own."""


class Launch(Protocol):
    """How the processes of a run are started."""

    def __call__(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: Any,
        process: Process = ALONE,
        /,
    ) -> None:
        """Calls `worker` in every process that the request needs: most need one.

        `process` is this one among those that a launcher has started. The one of rank 0 speaks and
        writes for all. Raises what the worker raised, RunError if a process died, RequestError if
        the options do not go together.
        """


MakeDevices = Callable[[Process, DeviceRequest], Devices[Any]]


class Trainer(Protocol):
    """A net on the devices of this process. If there are several, all call every method."""

    @property
    def replicas(self) -> Any:
        """What a step changes: tensors for which a chapter's `synchronize` can wait."""

    def train_batch(self, X: Array, y: Array, lr: float, /) -> SupportsFloat:
        """One SGD step, in place, on one minibatch split over the devices.

        With momentum m, v = m v + g and then w = w - lr v. `lr` may be another one at every step,
        and costs no new compilation. Returns the mean loss before the step, without waiting for
        it: `float()` waits.
        """

    def gradients(self, X: Array, y: Array, /) -> Weights:
        """The gradient of the mean loss over the whole minibatch, before any update."""

    def predict(self, X: Array, /) -> Array:
        """The logits of a batch of any size, split over the devices as well."""

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""

    def save(self) -> Weights:
        """All that the next step depends on; moves nothing.

        The whole weights by their canonical names, running statistics as (k, channels): every
        device's own. With momentum, also `momentum/NAME`: the whole velocity v of each weight, in
        units of its gradient. So no tensor tells how the weights were split. Raises RunError as
        `export`.
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
        """The devices that are asked for. Called once in each process, before anything else.

        CPU devices are simulated, and share the threads. Raises RequestError if there are fewer:
        never fewer, never silently others.
        """

    def trainer(self, weights: Mapping[str, Array], devices: Devs, options: Any, /) -> Trainer:
        """The net with these weights on the devices, in their dtype; nothing shares memory."""

    def synchronize(self, replicas: Any, /) -> None:
        """Returns once all queued work on the replicas is done: read clocks only after it."""


class Scratch(Protocol):
    """The listing of the chapter from scratch, by the book's names. It knows one process."""

    def get_params(self, weights: Mapping[str, Array], device: Any, /) -> dict[str, Tensor]:
        """A copy of `weights` on one device, in their dtype; no two copies share memory."""

    def lenet(self, X: Tensor, params: dict[str, Tensor], /) -> Tensor:
        """The logits (n, 10) of `X` (n, 1, 28, 28)."""

    def loss(self, y_hat: Tensor, y: Tensor, /) -> Tensor:
        """The cross-entropy (n,) of each example, from its logits."""

    def allreduce(self, data: Sequence[Tensor], /) -> list[Tensor]:
        """The sum of k tensors that lie on k devices: one copy of it on each of them."""

    def split_batch(
        self, X: Array, y: Array, devices: Devs, /
    ) -> tuple[list[Tensor], list[Tensor]]:
        """A minibatch's k shards, each on its device; they differ by at most one example."""

    def shard_loss_and_grad(
        self, params: dict[str, Tensor], X: Tensor, y: Tensor, examples: int, /
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A shard's part of the mean loss over all `examples` of the minibatch, and its gradient.

        A shard may be empty, and adds nothing to either then.
        """

    def sgd(self, params: dict[str, Tensor], grads: dict[str, Tensor], lr: float, /) -> None:
        """One step on one device, in place."""

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
    ) -> SupportsFloat:
        """One step of SGD; returns the mean loss before it, on the first device."""


class Kernels(Protocol):
    """What a framework's `kernels.py` has for any function of a device's numbers."""

    def scatter(self, array: Array, devices: Devs, /) -> list[Any]:
        """The shards of an array, each on its device; their lengths differ by at most one."""

    @property
    def on_each_device(self) -> Callable[..., list[Any]]:
        """Calls a function with each device's arguments, and with keywords, the same for all."""


class Collectives(Protocol):
    """A framework's `collectives.py`: tensors (any shape) that lie on k devices, to their sum."""

    def by_schedule(self, schedule: Schedule, data: Sequence[Any], /) -> list[Any]:
        """The sum on each device, moved as the schedule says."""

    def native(self, data: Sequence[Any], /) -> list[Any]:
        """The sum on each device, by the framework's own collective."""


class Concise(Protocol):
    """The listing of the concise chapter: ResNet-18 and the framework's own data parallelism."""

    def replicate(
        self, weights: Mapping[str, Array], devices: Devs, batch_norm: str, wrapper: str, /
    ) -> Any:
        """The wrapped net with these weights on all devices."""

    def train_batch(
        self, X: Array, y: Array, replicas: Any, lr: float, examples: int, /
    ) -> SupportsFloat:
        """One step of SGD on a minibatch of `examples`; returns its mean loss on the device.

        `X` and `y` are those of this process's devices; so are those of `predict`.
        """

    def predict(self, X: Array, replicas: Any, /) -> Array:
        """The logits (n, 10) of a batch, each device computing those of its shard."""


class State(Protocol):
    """What a framework has to say of the concise chapter's replicas, beside its listing."""

    def gradients(self, X: Array, y: Array, replicas: Any, examples: int, /) -> Weights:
        """The gradient of the mean loss over the minibatch; running statistics stay as they are."""

    def copies(self, replicas: Any, /) -> list[Weights]:
        """Weights and running statistics of each device of this process, on the host."""

    def put(self, per_device: Sequence[Weights], replicas: Any, /) -> None:
        """Gives every device its weights and running statistics; all devices' are given."""

    def activations(self, X: Array, replicas: Any, /) -> Weights:
        """What each layer with weights makes of a batch on the first device."""
