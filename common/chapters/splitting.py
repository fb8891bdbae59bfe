"""The ways to split as the harness runs them: what records and resuming need beside a listing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, SupportsFloat

import numpy as np

from common.backends.devices import ALONE, DeviceRequest, Process
from common.backends.interface import Launch, MakeDevices
from common.base.arrays import Array, Weights, part
from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event, Usage
from common.parallel.replicas import whole


@dataclass(frozen=True)
class Loss:
    """The mean loss of a minibatch, in parts that wait on devices until it is asked for."""

    parts: Sequence[Any]
    on_host: Callable[[Any], Array]

    def __float__(self) -> float:
        """Waits for all parts and adds them up, in double precision."""
        return float(sum(self.on_host(each).astype(np.float64) for each in self.parts))


class Trainer(Protocol):
    """LeNet, split over devices in one way. In several processes, all call every method."""

    def train_batch(self, X: Array, y: Array, lr: float, momentum: float, /) -> SupportsFloat:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""

    def gradients(self, X: Array, y: Array, /) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""

    def predict(self, X: Array, /) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""

    def weights(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""

    def velocities(self) -> Weights:
        """The whole velocity of each weight."""

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array], /) -> None:
        """Gives each device its part of the weights and of their velocities."""


@dataclass(frozen=True)
class ByHand:
    """A split of the hand-written listing."""

    listing: ModuleType
    split: Any
    on_host: Callable[[Any], Array]

    def train_batch(self, X: Array, y: Array, lr: float, momentum: float) -> Loss:
        """A step of the listing; returns the mean loss, which waits."""
        return Loss(self.listing.train_batch(X, y, self.split, lr, momentum), self.on_host)

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        _, grads = self.listing.loss_and_grads(X, y, self.split)
        found = self._whole(grads, self.split.plan.updated)
        for kept in grads:
            kept.clear()
        return found

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return np.concatenate([self.on_host(each) for each in self.listing.predict(X, self.split)])

    def weights(self) -> Weights:
        """The whole weights. Raises RunError if the same part has other bits on another device."""
        return self._whole(self.split.params, self.split.plan.weights)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `weights`."""
        return self._whole(self.split.velocities, self.split.plan.updated)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of what was saved, under whatever strategy."""
        self.listing.put(weights, velocities, self.split)

    def _whole(self, held: Sequence[Mapping[str, Any]], layouts: Any) -> Weights:
        """Whole tensors on the host, from the parts of all devices."""
        plan = self.split.plan
        layouts = {name: layout * plan.replicas for name, layout in layouts.items()}
        parts = [{name: self.on_host(v) for name, v in each.items()} for each in held]
        return whole(parts, layouts, plan.shapes)


Worker = Callable[[Process], None]

MakeTrainer = Callable[[Mapping[str, Array], Sequence[Any], StrategiesOptions], Trainer]


@dataclass(frozen=True)
class BySplitting:
    """The chapter of strategies: by hand or, with `--native`, by the framework's own means.

    `native` loads these, by strategy; `native_launch` starts the processes that they need.
    """

    framework: str
    listing: ModuleType
    primitives: Any
    on_host: Callable[[Any], Array]
    devices: MakeDevices
    synchronize: Callable[[Any], None]
    native: Callable[[], Mapping[str, MakeTrainer]]
    native_launch: Launch | None = None

    def launch(
        self, worker: Worker, request: DeviceRequest, options: Any, process: Process = ALONE
    ) -> None:
        """Calls `worker` here, or in the processes that the framework's own means need.

        Raises RequestError if it has none for the strategy, or if there are too many processes.
        """
        if options.native:
            self.own_means(options)
            if self.native_launch:
                self.native_launch(worker, request, options, process)
                return
        if process.count > 1:
            raise RequestError(
                "the chapter of strategies moves tensors within one process: "
                "run it on one host, with --launcher none"
            )
        worker(process)

    def own_means(self, options: StrategiesOptions) -> MakeTrainer:
        """What trains so in the framework. Raises RequestError if it has nothing."""
        if lacking := options.no_native(self.framework):
            raise RequestError(f"--native --strategy {options.strategy}: {lacking}")
        return self.native()[options.strategy]

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: StrategiesOptions
    ) -> Trainer:
        """Each device's part of the weights, and a velocity of 0."""
        if options.native:
            return self.own_means(options)(weights, devices, options)
        plan = options.plan(len(devices))
        split = self.listing.distribute(self.primitives, weights, devices, plan)
        return ByHand(self.listing, split, self.on_host)

    def train_batch(
        self, X: Array, y: Array, replicas: Trainer, _: Any, lr: float, options: StrategiesOptions
    ) -> SupportsFloat:
        """One step; returns the mean loss, which waits."""
        return replicas.train_batch(X, y, lr, options.momentum)

    def gradients(self, X: Array, y: Array, replicas: Trainer, *_: Any) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        return replicas.gradients(X, y)

    def predict(self, X: Array, replicas: Trainer, *_: Any) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return replicas.predict(X)

    def export(self, replicas: Trainer) -> Weights:
        """The whole weights. Raises RunError if the same part has other bits on another device."""
        return replicas.weights()

    def save(self, replicas: Trainer) -> Weights:
        """The whole weights and, as `momentum/NAME`, velocities; raises RunError as `export`."""
        velocities = {f"momentum/{name}": v for name, v in replicas.velocities().items()}
        return self.export(replicas) | velocities

    def restore(self, saved: Mapping[str, Array], replicas: Trainer, *_: Any) -> None:
        """Gives each device its part of what was saved, under whatever strategy."""
        velocities = part(saved, "momentum/")
        weights = {name: v for name, v in saved.items() if "/" not in name}
        replicas.put(weights, velocities or {name: 0 * v for name, v in weights.items()})

    def usage(self, replicas: Any, examples: int) -> tuple[Usage, list[Event]]:
        """What the last step sent and kept, and what its devices did."""
        ledger = replicas.split.ledger
        return ledger.usage(examples), ledger.events
