"""Data parallelism as the harness runs it: what hosts, records and resuming need beside a listing.

Every device has all weights, and takes a shard of each minibatch. A listing knows one process, so
each process is handed the examples of its own devices alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol, SupportsFloat

import numpy as np

from common.backends.interface import Collectives, Concise, Kernels, Launch, MakeDevices, Scratch
from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.chapters.scratch import ScratchOptions
from common.parallel.replicas import (
    Communicator,
    joined,
    same_everywhere,
    saved_of,
    share_of,
    split_statistics,
    stacked,
)
from common.parallel.schedules import SCHEDULES
from common.parallel.shards import shard_bounds


@dataclass(frozen=True)
class FromScratch:
    """The chapter from scratch. Its replicas are the parameters of each device of this process."""

    listing: Scratch[Any, Any]
    kernels: Kernels
    collectives: Collectives
    on_host: Callable[[Any], Array]
    launch: Launch
    devices: MakeDevices
    synchronize: Callable[[Any], None]
    hosts: Communicator

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: ScratchOptions
    ) -> list[dict[str, Any]]:
        """One copy of the weights on each device."""
        return [self.listing.get_params(weights, device) for device in devices]

    def train_batch(
        self,
        X: Array,
        y: Array,
        replicas: list[dict[str, Any]],
        devices: Sequence[Any],
        lr: float,
        options: ScratchOptions,
    ) -> SupportsFloat:
        """A step of the listing on the examples of this process; returns the mean loss of all."""
        here = examples_here(len(X), devices, self.hosts)
        allreduce = self.allreduce(options, devices)
        batch = X[here], y[here]
        return self.listing.train_batch(*batch, replicas, devices, lr, len(X), allreduce)

    def gradients(
        self,
        X: Array,
        y: Array,
        replicas: list[dict[str, Any]],
        devices: Sequence[Any],
        options: ScratchOptions,
    ) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        allreduce, grads = self.allreduce(options, devices), self.parts(X, y, replicas, devices)
        summed = {name: allreduce([grad[name] for grad in grads])[0] for name in grads[0]}
        return {name: self.on_host(grad) for name, grad in summed.items()}

    def parts(
        self, X: Array, y: Array, replicas: list[dict[str, Any]], devices: Sequence[Any]
    ) -> list[dict[str, Any]]:
        """What each device of this process adds to the gradient; nothing is sent."""
        here = examples_here(len(X), devices, self.hosts)
        shards = self.listing.split_batch(X[here], y[here], devices)
        function = self.listing.shard_loss_and_grad
        found = self.kernels.on_each_device(function, replicas, *shards, examples=len(X))
        return [grad for _, grad in found]

    def predict(self, X: Array, replicas: list[dict[str, Any]], devices: Sequence[Any]) -> Array:
        """The logits (n, 10) of a batch, each device computing those of its shard."""
        X_here = X[examples_here(len(X), devices, self.hosts)]
        some = min(len(X_here), len(devices))  # the last devices may have no example
        shards = self.kernels.scatter(X_here, devices[:some]) if some else []
        found = self.kernels.on_each_device(self.listing.lenet, shards, replicas[:some])
        none = np.zeros((0, 10), X.dtype)
        return joined(np.concatenate([none, *map(self.on_host, found)]), self.hosts)

    def export(self, replicas: list[dict[str, Any]]) -> Weights:
        """The weights. Raises RunError if the copies are not the same."""
        copies = [{name: self.on_host(p) for name, p in params.items()} for params in replicas]
        return same_everywhere(copies, self.hosts)

    save = export
    """Plain SGD keeps nothing but the weights."""

    def restore(
        self,
        saved: Mapping[str, Array],
        replicas: list[dict[str, Any]],
        devices: Sequence[Any],
    ) -> None:
        """Gives every device a copy of what was saved."""
        for params, device in zip(replicas, devices, strict=True):
            params.update(self.listing.get_params(saved, device))

    def allreduce(self, options: ScratchOptions, devices: Sequence[Any]) -> Any:
        """The listing's own, or the one that is asked for."""
        if options.allreduce == "native":
            return self.collectives.native
        if options.allreduce == "star" and self.hosts.processes() == 1:
            return self.listing.allreduce
        k = self.hosts.processes() * len(devices)
        return scheduled(self.collectives.by_schedule, options.allreduce, k)


def examples_here(examples: int, devices: Sequence[Any], hosts: Communicator) -> slice:
    """The examples of this process's devices: split here, they give the shards of all."""
    bounds = share_of(shard_bounds(examples, hosts.processes() * len(devices)), hosts)
    return slice(bounds[0][0], bounds[-1][1])


@cache  # TensorFlow compiles a step again for a function that it does not know
def scheduled(by_schedule: Callable[..., Any], name: str, k: int) -> Callable[..., Any]:
    """An allreduce by a schedule for k devices."""
    return partial(by_schedule, SCHEDULES[name](k))


class State(Protocol):
    """What a framework has to say of the concise chapter's replicas, beside its listing."""

    def gradients(self, X: Array, y: Array, replicas: Any, examples: int, /) -> Weights:
        """The gradient of the mean loss over the minibatch; running statistics stay as they are."""

    def copies(self, replicas: Any, /) -> list[Weights]:
        """Weights and running statistics of each device of this process, on the host."""

    def put(self, everyones: Sequence[Weights], replicas: Any, /) -> None:
        """Gives every device its weights and running statistics; all devices' are given."""

    def activations(self, X: Array, replicas: Any, /) -> Weights:
        """What each layer with weights makes of a batch on the first device."""


@dataclass(frozen=True)
class ByWrapper:
    """The concise chapter: each framework's own data parallelism."""

    listing: Concise[Any, Any]
    state: State
    launch: Launch
    devices: MakeDevices
    synchronize: Callable[[Any], None]
    hosts: Communicator

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: ConciseOptions
    ) -> Any:
        """The wrapped net on all devices."""
        return self.listing.replicate(weights, devices, options.batch_norm, options.wrapper)

    def train_batch(
        self,
        X: Array,
        y: Array,
        replicas: Any,
        devices: Sequence[Any],
        lr: float,
        options: ConciseOptions,
    ) -> SupportsFloat:
        """A step of the listing on the examples of this process; returns the mean loss of all."""
        here = examples_here(len(X), devices, self.hosts)
        return self.listing.train_batch(X[here], y[here], replicas, lr, len(X))

    def gradients(
        self, X: Array, y: Array, replicas: Any, devices: Sequence[Any], options: ConciseOptions
    ) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        here = examples_here(len(X), devices, self.hosts)
        return self.state.gradients(X[here], y[here], replicas, len(X))

    def predict(self, X: Array, replicas: Any, devices: Sequence[Any]) -> Array:
        """The logits (n, 10) of a batch, each device computing those of its shard."""
        here = examples_here(len(X), devices, self.hosts)
        return joined(self.listing.predict(X[here], replicas), self.hosts)

    def export(self, replicas: Any) -> Weights:
        """Weights and the first device's running statistics.

        Raises RunError if the devices' weights are not the same.
        """
        weights, statistics = split_statistics(self.state.copies(replicas))
        same = same_everywhere(weights, self.hosts)
        dtype = same["fc.bias"].dtype  # that of the statistics may be another
        stacks = stacked(statistics, self.hosts)
        return same | {name: stack[0].astype(dtype) for name, stack in stacks.items()}

    def save(self, replicas: Any) -> Weights:
        """The weights, and every device's running statistics."""
        weights, statistics = split_statistics(self.state.copies(replicas))
        return same_everywhere(weights, self.hosts) | stacked(statistics, self.hosts)

    def restore(self, saved: Mapping[str, Array], replicas: Any, devices: Sequence[Any]) -> None:
        """Gives every device the weights, and running statistics of its own."""
        k = self.hosts.processes() * len(devices)
        self.state.put([saved_of(saved, device) for device in range(k)], replicas)

    def activations(self, X: Array, replicas: Any, devices: Sequence[Any]) -> Weights:
        """What each layer with weights makes of a batch on the first device, by its name."""
        return self.state.activations(X, replicas)
