"""What a chapter promises. Each backend is a plain module that satisfies these protocols (PEP 544).

Shapes: n examples in a minibatch, k devices. `X` is (n, 1, 28, 28) pixels in 0..1, `y` is (n,)
class indices 0..9, logits are (n, 10). Both arrive as NumPy arrays on the host.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, SupportsFloat, TypeVar

from common.backends.devices import ALONE, DeviceRequest, Devices, Process
from common.base.arrays import Array, Weights

Device = TypeVar("Device")

Replicas = TypeVar("Replicas")

Options_contra = TypeVar("Options_contra", contravariant=True)
"""What only one chapter asks: `common.chapters` has a frozen class for each."""


class Chapter(Protocol[Device, Replicas, Options_contra]):
    """What both chapters share, in every framework."""

    def launch(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: Options_contra,
        process: Process = ALONE,
        /,
    ) -> None:
        """Calls `worker` in every process that the request needs: most need one.

        `process` is this one among those that a launcher has started. The one of rank 0 speaks and
        writes for all. Raises what the worker raised, RunError if a process died, RequestError if
        the options do not go together.
        """

    def devices(self, process: Process, request: DeviceRequest, /) -> Devices[Device]:
        """The devices that are asked for. Called once in each process, before anything else.

        CPU devices are virtual and share the threads. Raises RequestError if there are fewer:
        never fewer, never silently others.
        """

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[Device], options: Options_contra, /
    ) -> Replicas:
        """One copy of `weights` on each device, in their dtype; no two copies share memory."""

    def train_batch(
        self,
        X: Array,
        y: Array,
        replicas: Replicas,
        devices: Sequence[Device],
        lr: float,
        options: Options_contra,
        /,
    ) -> SupportsFloat:
        """One SGD step, in place, on one minibatch split over the devices.

        `lr` may be another one at every step, and costs no new compilation.
        Returns the mean loss before the step, without waiting for it: `float()` waits.
        """

    def gradients(
        self,
        X: Array,
        y: Array,
        replicas: Replicas,
        devices: Sequence[Device],
        options: Options_contra,
        /,
    ) -> Weights:
        """The gradient of the mean loss over the whole minibatch, before any update."""

    def predict(self, X: Array, replicas: Replicas, devices: Sequence[Device], /) -> Array:
        """The logits of a batch of any size, split over the devices as well."""

    def export(self, replicas: Replicas, /) -> Weights:
        """The weights. Raises RunError if the replicas are not the same bit for bit."""

    def save(self, replicas: Replicas, /) -> Weights:
        """All that the next step depends on; moves nothing.

        The weights by their canonical names, running statistics as (k, channels): every device's
        own. Every process calls it. Raises RunError if the replicas are not the same bit for bit.
        """

    def restore(
        self, saved: Mapping[str, Array], replicas: Replicas, devices: Sequence[Device], /
    ) -> None:
        """Puts replicas where `save` found others, of any framework and any number of devices.

        A device beyond those that `saved` knows takes the running statistics of the first one.
        """

    def synchronize(self, replicas: Replicas, /) -> None:
        """Returns once all queued work on the replicas is done: read clocks only after it."""


class Concise(
    Chapter[Device, Replicas, Options_contra], Protocol[Device, Replicas, Options_contra]
):
    """The concise chapter: ResNet-18 and the framework's own data parallelism."""

    def activations(self, X: Array, replicas: Replicas, devices: Sequence[Device], /) -> Weights:
        """What each layer with weights makes of a batch, by its name: (n, channels, rows, columns).

        The first device evaluates the batch alone, after `predict`. That of `fc` is (n, 10).
        """


Tensor = TypeVar("Tensor")


class Scratch(
    Chapter[Device, list[dict[str, Tensor]], Options_contra],
    Protocol[Device, Tensor, Options_contra],
):
    """The chapter from scratch: LeNet and a hand-written allreduce, by the book's names."""

    def get_params(self, weights: Mapping[str, Array], device: Device, /) -> dict[str, Tensor]:
        """A copy of `weights` on one device."""

    def lenet(self, X: Tensor, params: dict[str, Tensor], /) -> Tensor:
        """The logits (n, 10) of `X` (n, 1, 28, 28)."""

    def loss(self, y_hat: Tensor, y: Tensor, /) -> Tensor:
        """The cross-entropy (n,) of each example, from its logits."""

    def allreduce(self, data: Sequence[Tensor], /) -> list[Tensor]:
        """The sum of k tensors that lie on k devices: one copy of it on each of them."""

    def split_batch(
        self, X: Array, y: Array, devices: Sequence[Device], /
    ) -> tuple[list[Tensor], list[Tensor]]:
        """A minibatch's k shards, each on its device; they differ by at most one example."""

    def shard_loss_and_grad(
        self, params: dict[str, Tensor], X: Tensor, y: Tensor, examples: int, /
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A shard's part of the mean loss over all `examples` of the minibatch, and its gradient.

        A shard may be empty, and adds nothing to either then.
        """
