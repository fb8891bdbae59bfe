"""ResNet-18 in a framework's own data parallelism, as the harness runs it.

There may be several processes: each passes its listing only the examples of its devices.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, SupportsFloat

from common.backends.interface import (
    ALONE,
    Concise,
    DeviceRequest,
    Devices,
    Launch,
    MakeDevices,
    Process,
    State,
)
from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import trainable
from common.parallel.replicas import joined, saved_of, saved_state
from common.parallel.shards import shard_bounds, share_of


@dataclass
class ByWrapper:
    """The concise chapter: each framework's own data parallelism, maybe over several hosts."""

    launch: Launch
    make_devices: MakeDevices
    synchronize: Callable[[Any], None]
    listing: Concise
    state: State
    process: Process = ALONE

    def devices(self, process: Process, request: DeviceRequest) -> Devices[Any]:
        """The devices of this process, which is kept."""
        self.process = process
        return self.make_devices(process, request)

    def here(self, examples: Sized, devices: Sized) -> slice:
        """The examples of this process's devices, which the listing splits into shards."""
        world_size = self.process.count
        shards = shard_bounds(len(examples), world_size * len(devices))
        bounds = share_of(shards, self.process.rank, world_size)
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
        here, before = self.chapter.here(X, self.devices), self.save()
        found = self.chapter.state.gradients(X[here], y[here], self.replicas, len(X))
        self.restore(before)  # a pass moves running statistics
        return found

    def predict(self, X: Array) -> Array:
        here = self.chapter.here(X, self.devices)
        logits = self.chapter.listing.predict(X[here], self.replicas)
        return joined(logits, self.chapter.process.gathered)

    def export(self) -> Weights:
        """Weights and the first device's running statistics. Raises RunError if weights differ."""
        saved = self.save()
        dtype = saved["fc.bias"].dtype  # statistics may have another
        return {k: v if trainable(k) else v[0].astype(dtype) for k, v in saved.items()}

    def bias(self) -> Any:
        return self.chapter.state.bias(self.replicas)

    def save(self) -> Weights:
        copies = self.chapter.state.copies(self.replicas)
        return saved_state(copies, self.chapter.process.gathered)

    def restore(self, saved: Mapping[str, Array]) -> None:
        k = self.chapter.process.count * len(self.devices)
        self.chapter.state.put([saved_of(saved, device) for device in range(k)], self.replicas)

    def activations(self, X: Array) -> Weights:
        """The output of each layer for a batch on the first device, by the layer's name."""
        return self.chapter.state.activations(X, self.replicas)
