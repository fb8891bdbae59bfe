"""LeNet and a hand-written allreduce, as the harness runs them.

Every device has all weights and takes a shard of each minibatch.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, SupportsFloat

import numpy as np

from common.backends.interface import (
    Collectives,
    Kernels,
    Launch,
    MakeDevices,
    Scratch,
    in_this_process,
)
from common.base.arrays import Array, Weights, on_host
from common.chapters.scratch import ScratchOptions
from common.parallel.replicas import same_everywhere
from common.parallel.schedules import SCHEDULES

Params = dict[str, Any]


@dataclass(frozen=True)
class FromScratch:
    """The chapter from scratch."""

    devices: MakeDevices
    synchronize: Callable[[Any], None]
    listing: Scratch
    kernels: Kernels
    collectives: Collectives
    launch: Launch = in_this_process

    def trainer(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: ScratchOptions
    ) -> "ScratchTrainer":
        replicas = [self.listing.get_params(weights, device) for device in devices]
        return ScratchTrainer(self, replicas, devices, self.allreduce(options, devices))

    def export(self, replicas: Sequence[Params]) -> Weights:
        """The weights of the first device. Raises RunError if the copies differ."""
        copies = [{name: on_host(p) for name, p in params.items()} for params in replicas]
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
        return {name: on_host(grad) for name, grad in summed.items()}

    def predict(self, X: Array) -> Array:
        chapter, kernels = self.chapter, self.chapter.kernels
        busy = min(len(X), len(self.devices))  # the last devices may have no example
        shards = kernels.scatter(X, self.devices[:busy])
        logits = kernels.on_each_device(chapter.listing.lenet, shards, self.replicas[:busy])
        return np.concatenate([*map(on_host, logits)])

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
