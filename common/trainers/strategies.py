"""Strategies as the harness runs them: recorded and resumed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from common.backends.interface import (
    DeviceRequest,
    Launch,
    MakeDevices,
    Process,
    Trainer,
    in_this_process,
)
from common.base.arrays import Array, Weights, on_host, part
from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.models.nets import Shapes
from common.parallel.plans import Layouts, Part, Plan
from common.parallel.replicas import diverged


@dataclass(frozen=True)
class Loss:
    """The mean loss of a minibatch, in parts that stay on devices until it is read."""

    parts: Sequence[Any]

    def __float__(self) -> float:
        """Waits for all parts and adds them in float64."""
        return float(sum(on_host(loss).astype(np.float64) for loss in self.parts))


class SplitTrainer(Trainer, Protocol):
    """LeNet, split over devices by a framework's own version of a strategy."""

    replicas: Any = None

    def velocities(self) -> Weights:
        """The whole velocity of each weight. Raises RunError like `export`."""

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Places each device's part of the weights and velocities."""

    def bias(self) -> Array:
        return self.export()["fc2.bias"]

    def save(self) -> Weights:
        velocities = {f"momentum/{name}": v for name, v in self.velocities().items()}
        return self.export() | velocities

    def restore(self, saved: Mapping[str, Array]) -> None:
        weights = {name: v for name, v in saved.items() if "/" not in name}
        self.put(weights, part(saved, "momentum/") or zeros(weights))


def require_parts(plan: Plan, kept: Iterable[int]) -> None:
    """Raises RunError if a device keeps more weights than planned, but for uneven or padded parts.

    Other strategies would have the right numbers, too.
    """
    whole = sum(map(plan.size, plan.layers))
    most = max(sum(plan.sizes_of(plan.weights, i).values()) for i in range(plan.devices))
    for number in kept:
        if number > most + whole // 16:
            what = f"a device keeps {number:,} of {whole:,} weights"
            raise RunError(f"{what}, by the plan of {plan.strategy} {most:,}")


def parts_of(tensors: Mapping[str, Array], layouts: Layouts, device: int) -> Weights:
    """A device's part of each tensor of which it has one."""
    parts = {name: layouts[name][device] for name in tensors}
    return {name: part.of(tensors[name]) for name, part in parts.items() if part is not None}


def whole(held: Sequence[Mapping[str, Array]], layouts: Layouts, shapes: Shapes) -> Weights:
    """The whole tensors from devices' parts. Raises RunError where copies of a part differ.

    Names may begin with the kind of a state, as in `momentum/NAME`.
    """
    tensors: Weights = {}
    for name, layout in layouts.items():
        shards: dict[Part, Array] = {}
        for device, shard in enumerate(layout):
            if shard is not None:
                values = held[device][name]
                if shards.setdefault(shard, values).tobytes() != values.tobytes():
                    raise diverged(name, device)
        shape = shapes[name.rpartition("/")[2]]
        tensors[name] = np.empty(shape, next(iter(shards.values())).dtype)
        for shard, values in shards.items():
            view = tensors[name].reshape(-1) if shard.axis is None else tensors[name]
            view[shard.index] = values
    return tensors


def zeros(tensors: Mapping[str, Array]) -> Weights:
    """Velocities before the first step."""
    return {name: 0 * values for name, values in tensors.items()}


MakeTrainer = Callable[[Mapping[str, Array], Sequence[Any], StrategiesOptions], Trainer]


@dataclass(frozen=True)
class BySplitting:
    """The chapter of strategies: `by_hand`, or `native` ones, in modules that only these load."""

    devices: MakeDevices
    synchronize: Callable[[Any], None]
    by_hand: MakeTrainer
    native: Callable[[str], Any]

    def launch(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: StrategiesOptions,
    ) -> None:
        """Calls `worker` here, or in the native version's processes. Raises RequestError."""
        launch: Launch = self.native("hosts").launch if options.native else in_this_process
        launch(worker, request, options)

    def trainer(
        self, weights: Mapping[str, Array], devices: Sequence[Any], options: StrategiesOptions
    ) -> Trainer:
        make = self.by_hand
        if options.native:
            make = self.native("native").STRATEGIES[options.strategy]
        return make(weights, devices, options)
