"""The ways to split as the harness runs them: what records and resuming need beside a listing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from common.backends.devices import ALONE, DeviceRequest, Process
from common.backends.interface import MakeDevices
from common.base.arrays import Array, Weights, part
from common.base.errors import RequestError
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event, Usage
from common.parallel.parts import whole


class Strategies(Protocol):
    """The listing of the ways to split: the `mesh.py` of each framework."""

    def distribute(self, weights: Mapping[str, Array], devices: Sequence[Any], plan: Any, /) -> Any:
        """Gives each device its part of the weights, and a momentum of 0."""

    def put(
        self, weights: Mapping[str, Array], momentum: Mapping[str, Array], split: Any, /
    ) -> None:
        """Gives each device its part of the weights and of the momentum."""

    def predict(self, X: Array, split: Any, /) -> list[Any]:
        """The logits of a batch, in parts that lie on several devices."""

    def loss_and_grads(self, X: Array, y: Array, split: Any, /) -> tuple[list[Any], list[Any]]:
        """Parts of the mean loss of a minibatch, and the gradient of what each device updates."""

    def train_batch(
        self, X: Array, y: Array, split: Any, lr: float, momentum: float, /
    ) -> list[Any]:
        """One step of SGD with momentum on a minibatch; returns the parts of its mean loss."""


@dataclass(frozen=True)
class Loss:
    """The mean loss of a minibatch, in parts that wait on devices until it is asked for."""

    parts: Sequence[Any]
    on_host: Callable[[Any], Array]

    def __float__(self) -> float:
        """Waits for all parts and adds them up, in double precision."""
        return float(sum(self.on_host(each).astype(np.float64) for each in self.parts))


@dataclass(frozen=True)
class BySplitting:
    """The chapter of strategies. Its replicas are what the devices have, each a part."""

    listing: Strategies
    on_host: Callable[[Any], Array]
    devices: MakeDevices
    synchronize: Callable[[Any], None]

    def launch(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: StrategiesOptions,
        process: Process = ALONE,
    ) -> None:
        """Calls `worker` here. Raises RequestError if there are several processes."""
        if process.count > 1:
            raise RequestError(
                "the chapter of strategies moves tensors within one process: "
                "run it on one host, with --launcher none"
            )
        worker(process)

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: StrategiesOptions
    ) -> Any:
        """Each device's part of the weights."""
        return self.listing.distribute(weights, devices, options.plan(len(devices)))

    def train_batch(
        self,
        X: Array,
        y: Array,
        replicas: Any,
        devices: Sequence[Any],
        lr: float,
        options: StrategiesOptions,
    ) -> Loss:
        """A step of the listing; returns the mean loss, which waits."""
        return Loss(self.listing.train_batch(X, y, replicas, lr, options.momentum), self.on_host)

    def gradients(
        self,
        X: Array,
        y: Array,
        replicas: Any,
        devices: Sequence[Any],
        options: StrategiesOptions,
    ) -> Weights:
        """The gradient of the mean loss over the minibatch, by canonical names."""
        _, grads = self.listing.loss_and_grads(X, y, replicas)
        found = self._whole(grads, replicas.plan.updated, replicas)
        for kept in grads:
            kept.clear()
        return found

    def predict(self, X: Array, replicas: Any, devices: Sequence[Any]) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return np.concatenate([self.on_host(each) for each in self.listing.predict(X, replicas)])

    def export(self, replicas: Any) -> Weights:
        """The whole weights. Raises RunError if the same part has other bits on another device."""
        return self._whole(replicas.params, replicas.plan.weights, replicas)

    def save(self, replicas: Any) -> Weights:
        """The whole weights and, as `momentum/NAME`, velocities; raises RunError as `export`."""
        momentum = self._whole(replicas.velocities, replicas.plan.updated, replicas)
        return self.export(replicas) | {f"momentum/{name}": v for name, v in momentum.items()}

    def restore(self, saved: Mapping[str, Array], replicas: Any, devices: Sequence[Any]) -> None:
        """Gives each device its part of what was saved, under whatever strategy."""
        weights = {name: saved[name] for name in replicas.plan.shapes}
        momentum = part(saved, "momentum/") or {name: 0 * v for name, v in weights.items()}
        self.listing.put(weights, momentum, replicas)

    def usage(self, replicas: Any, examples: int) -> tuple[Usage, list[Event]]:
        """What the last step sent and kept, and what its devices did."""
        return replicas.ledger.usage(examples), replicas.ledger.events

    def _whole(self, held: Sequence[Mapping[str, Any]], layouts: Any, replicas: Any) -> Weights:
        """Whole tensors on the host, from the parts of all devices."""
        plan = replicas.plan
        layouts = {name: layout * plan.replicas for name, layout in layouts.items()}
        parts = [{name: self.on_host(v) for name, v in each.items()} for each in held]
        return whole(parts, layouts, plan.shapes)
