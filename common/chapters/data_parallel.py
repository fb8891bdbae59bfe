"""Data parallelism as the harness runs it: recorded, and resumed.

Every device has all weights and takes a shard of each minibatch. The concise chapter may have
several processes: each passes its listing only the examples of its devices.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, SupportsFloat

import numpy as np

from common.backends.devices import ALONE, DeviceRequest, Process
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
    ONLY,
    Communicator,
    joined,
    same_everywhere,
    saved_of,
    saved_state,
    share_of,
)
from common.parallel.schedules import SCHEDULES
from common.parallel.shards import shard_bounds

Params = dict[str, Any]


def in_this_process(
    worker: Callable[[Process], None], request: DeviceRequest, options: object
) -> None:
    """Calls `worker` here, for all devices."""
    worker(ALONE)


@dataclass(frozen=True)
class FromScratch:
    """The chapter from scratch."""

    devices: MakeDevices
    synchronize: Callable[[Any], None]
    listing: Scratch
    kernels: Kernels
    collectives: Collectives
    on_host: Callable[[Any], Array]
    """Copies a tensor to the host: what follows must not see later updates."""
    launch: Launch = in_this_process

    def trainer(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: ScratchOptions
    ) -> "ScratchTrainer":
        replicas = [self.listing.get_params(weights, device) for device in devices]
        return ScratchTrainer(self, replicas, devices, self.allreduce(options, devices))

    def export(self, replicas: Sequence[Params]) -> Weights:
        """The weights of the first device. Raises RunError if the copies differ."""
        copies = [{name: self.on_host(p) for name, p in params.items()} for params in replicas]
        return same_everywhere(copies)

    def allreduce(self, options: ScratchOptions, devices: Sized) -> Any:
        if options.allreduce == "native":
            return self.collectives.native
        if options.allreduce == "star":
            return self.listing.allreduce
        return scheduled(self.collectives.by_schedule, options.allreduce, len(devices))


@dataclass(frozen=True)
class ScratchTrainer:
    """LeNet from scratch; `replicas` are the parameters of each device."""

    chapter: FromScratch
    replicas: list[Params]
    devices: Sequence[Any]
    allreduce: Callable[[Sequence[Any]], list[Any]]

    def train_batch(self, X: Array, y: Array, lr: float) -> SupportsFloat:
        return self.chapter.listing.train_batch(
            X, y, self.replicas, self.devices, lr, len(X), self.allreduce
        )

    def gradients(self, X: Array, y: Array) -> Weights:
        listing = self.chapter.listing
        shards = listing.split_batch(X, y, self.devices)
        losses_and_grads = self.chapter.kernels.on_each_device(
            listing.shard_loss_and_grad, self.replicas, *shards, examples=len(X)
        )
        grads = [grad for _, grad in losses_and_grads]
        summed = {name: self.allreduce([grad[name] for grad in grads])[0] for name in grads[0]}
        return {name: self.chapter.on_host(grad) for name, grad in summed.items()}

    def predict(self, X: Array) -> Array:
        chapter, kernels = self.chapter, self.chapter.kernels
        busy = min(len(X), len(self.devices))  # the last devices may have no example
        shards = kernels.scatter(X, self.devices[:busy])
        logits = kernels.on_each_device(chapter.listing.lenet, shards, self.replicas[:busy])
        return np.concatenate([*map(chapter.on_host, logits)])

    def export(self) -> Weights:
        return self.chapter.export(self.replicas)

    def bias(self) -> Any:
        return self.replicas[0]["fc2.bias"] + 0

    save = export
    """Plain SGD keeps nothing but the weights."""

    def restore(self, saved: Mapping[str, Array]) -> None:
        for params, device in zip(self.replicas, self.devices, strict=True):
            params.update(self.chapter.listing.get_params(saved, device))


@cache  # TensorFlow compiles a step again for each new function
def scheduled(by_schedule: Callable[..., Any], name: str, k: int) -> Callable[..., Any]:
    return partial(by_schedule, SCHEDULES[name](k))


@dataclass(frozen=True)
class ByWrapper:
    """The concise chapter: each framework's own data parallelism, maybe over several hosts."""

    devices: MakeDevices
    synchronize: Callable[[Any], None]
    listing: Concise
    state: State
    launch: Launch = in_this_process
    hosts: Communicator = ONLY

    def here(self, examples: Sized, devices: Sized) -> slice:
        """The examples of this process's devices, which the listing splits into shards."""
        shards = shard_bounds(len(examples), self.hosts.processes() * len(devices))
        bounds = share_of(shards, self.hosts)
        return slice(bounds[0][0], bounds[-1][1])

    def trainer(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: ConciseOptions
    ) -> "ConciseTrainer":
        how = options.batch_norm, options.wrapper
        return ConciseTrainer(self, self.listing.replicate(weights, devices, *how), devices)


@dataclass(frozen=True)
class ConciseTrainer:
    """ResNet-18 in a framework's wrapper."""

    chapter: ByWrapper
    replicas: Any
    devices: Sequence[Any]

    def train_batch(self, X: Array, y: Array, lr: float) -> SupportsFloat:
        here = self.chapter.here(X, self.devices)
        return self.chapter.listing.train_batch(X[here], y[here], self.replicas, lr, len(X))

    def gradients(self, X: Array, y: Array) -> Weights:
        here = self.chapter.here(X, self.devices)
        return self.chapter.state.gradients(X[here], y[here], self.replicas, len(X))

    def predict(self, X: Array) -> Array:
        here = self.chapter.here(X, self.devices)
        return joined(self.chapter.listing.predict(X[here], self.replicas), self.chapter.hosts)

    def export(self) -> Weights:
        """Weights and the first device's running statistics. Raises RunError if weights differ."""
        saved = self.save()
        dtype = saved["fc.bias"].dtype  # statistics may have another
        return {k: v if trainable(k) else v[0].astype(dtype) for k, v in saved.items()}

    def bias(self) -> Any:
        return self.chapter.state.bias(self.replicas)

    def save(self) -> Weights:
        return saved_state(self.chapter.state.copies(self.replicas), self.chapter.hosts)

    def restore(self, saved: Mapping[str, Array]) -> None:
        k = self.chapter.hosts.processes() * len(self.devices)
        self.chapter.state.put([saved_of(saved, device) for device in range(k)], self.replicas)

    def activations(self, X: Array) -> Weights:
        """The output of each layer for a batch on the first device, by the layer's name."""
        return self.chapter.state.activations(X, self.replicas)
