"""Data parallelism as the harness runs it: what hosts, records and resuming need beside a listing.

Every device has all weights, and takes a shard of each minibatch. A listing knows one process, so
each process is handed the examples of its own devices alone.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, SupportsFloat

import numpy as np

from common.backends.interface import (
    Collectives,
    Concise,
    Kernels,
    Launch,
    MakeDevices,
    Scratch,
    State,
)
from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.chapters.scratch import ScratchOptions
from common.models.nets import trainable
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

Devs = Sequence[Any]

Replicas = list[dict[str, Any]]
"""Tensors of each device of this process, by name."""


@dataclass(frozen=True)
class DataParallel:
    """What both chapters have of a framework: it satisfies a part of `Chapter`."""

    launch: Launch
    devices: MakeDevices
    synchronize: Callable[[Any], None]
    hosts: Communicator

    def here(self, examples: Sized, devices: Devs) -> slice:
        """The examples of this process's devices: split here, they give the shards of all."""
        shards = shard_bounds(len(examples), self.hosts.processes() * len(devices))
        bounds = share_of(shards, self.hosts)
        return slice(bounds[0][0], bounds[-1][1])


@dataclass(frozen=True)
class FromScratch(DataParallel):
    """The chapter from scratch. Its replicas are the parameters of each device of this process."""

    listing: Scratch
    kernels: Kernels
    collectives: Collectives
    on_host: Callable[[Any], Array]

    def replicate(self, weights: Mapping[str, Array], devices: Devs, *_: Any) -> Replicas:
        """One copy of the weights on each device."""
        return [self.listing.get_params(weights, device) for device in devices]

    def train_batch(
        self,
        X: Array,
        y: Array,
        replicas: Replicas,
        devices: Devs,
        lr: float,
        options: ScratchOptions,
    ) -> SupportsFloat:
        """A step of the listing on the examples of this process; returns the mean loss of all."""
        here, allreduce = self.here(X, devices), self.allreduce(options, devices)
        batch = X[here], y[here]
        return self.listing.train_batch(*batch, replicas, devices, lr, len(X), allreduce)

    def gradients(
        self, X: Array, y: Array, replicas: Replicas, devices: Devs, options: ScratchOptions
    ) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        allreduce, grads = self.allreduce(options, devices), self.parts(X, y, replicas, devices)
        summed = {name: allreduce([grad[name] for grad in grads])[0] for name in grads[0]}
        return {name: self.on_host(grad) for name, grad in summed.items()}

    def parts(self, X: Array, y: Array, replicas: Replicas, devices: Devs) -> Replicas:
        """What each device of this process adds to the gradient; nothing is sent."""
        here = self.here(X, devices)
        shards = self.listing.split_batch(X[here], y[here], devices)
        function = self.listing.shard_loss_and_grad
        found = self.kernels.on_each_device(function, replicas, *shards, examples=len(X))
        return [grad for _, grad in found]

    def predict(self, X: Array, replicas: Replicas, devices: Devs) -> Array:
        """The logits (n, 10) of a batch, each device computing those of its shard."""
        X_here = X[self.here(X, devices)]
        some = min(len(X_here), len(devices))  # the last devices may have no example
        shards = self.kernels.scatter(X_here, devices[:some]) if some else []
        found = self.kernels.on_each_device(self.listing.lenet, shards, replicas[:some])
        none = np.zeros((0, 10), X.dtype)
        return joined(np.concatenate([none, *map(self.on_host, found)]), self.hosts)

    def export(self, replicas: Replicas) -> Weights:
        """The weights. Raises RunError if the copies are not the same."""
        copies = [{name: self.on_host(p) for name, p in params.items()} for params in replicas]
        return same_everywhere(copies, self.hosts)

    save = export
    """Plain SGD keeps nothing but the weights."""

    def restore(self, saved: Mapping[str, Array], replicas: Replicas, devices: Devs) -> None:
        """Gives every device a copy of what was saved."""
        for params, device in zip(replicas, devices, strict=True):
            params.update(self.listing.get_params(saved, device))

    def allreduce(self, options: ScratchOptions, devices: Devs) -> Any:
        """The listing's own, or the one that is asked for."""
        if options.allreduce == "native":
            return self.collectives.native
        if options.allreduce == "star" and self.hosts.processes() == 1:
            return self.listing.allreduce
        k = self.hosts.processes() * len(devices)
        return scheduled(self.collectives.by_schedule, options.allreduce, k)


@cache  # TensorFlow compiles a step again for a function that it does not know
def scheduled(by_schedule: Callable[..., Any], name: str, k: int) -> Callable[..., Any]:
    """An allreduce by a schedule for k devices."""
    return partial(by_schedule, SCHEDULES[name](k))


@dataclass(frozen=True)
class ByWrapper(DataParallel):
    """The concise chapter: each framework's own data parallelism."""

    listing: Concise
    state: State

    def replicate(
        self, weights: Mapping[str, Array], devices: Devs, options: ConciseOptions
    ) -> Any:
        """The wrapped net on all devices."""
        return self.listing.replicate(weights, devices, options.batch_norm, options.wrapper)

    def train_batch(
        self, X: Array, y: Array, replicas: Any, devices: Devs, lr: float, *_: Any
    ) -> SupportsFloat:
        """A step of the listing on the examples of this process; returns the mean loss of all."""
        here = self.here(X, devices)
        return self.listing.train_batch(X[here], y[here], replicas, lr, len(X))

    def gradients(self, X: Array, y: Array, replicas: Any, devices: Devs, *_: Any) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        here = self.here(X, devices)
        return self.state.gradients(X[here], y[here], replicas, len(X))

    def predict(self, X: Array, replicas: Any, devices: Devs) -> Array:
        """The logits (n, 10) of a batch, each device computing those of its shard."""
        return joined(self.listing.predict(X[self.here(X, devices)], replicas), self.hosts)

    def export(self, replicas: Any) -> Weights:
        """Weights and the first device's running statistics.

        Raises RunError if the devices' weights are not the same.
        """
        saved = self.save(replicas)
        dtype = saved["fc.bias"].dtype  # that of the statistics may be another
        return {k: v if trainable(k) else v[0].astype(dtype) for k, v in saved.items()}

    def save(self, replicas: Any) -> Weights:
        """The weights, and every device's running statistics; raises RunError as `export`."""
        weights, statistics = split_statistics(self.state.copies(replicas))
        return same_everywhere(weights, self.hosts) | stacked(statistics, self.hosts)

    def restore(self, saved: Mapping[str, Array], replicas: Any, devices: Devs) -> None:
        """Gives every device the weights, and running statistics of its own."""
        k = self.hosts.processes() * len(devices)
        self.state.put([saved_of(saved, device) for device in range(k)], replicas)

    def activations(self, X: Array, replicas: Any, devices: Devs) -> Weights:
        """What each layer with weights makes of a batch on the first device, by its name."""
        return self.state.activations(X, replicas)
