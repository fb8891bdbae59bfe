"""One program for all devices: the compiler finds the collectives that layouts ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import jax
import numpy as np
from jax import Array as Tensor, numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.plans import Plan
from frameworks.jax.native.net import Params, layer, lenet, mean_loss
from frameworks.jax.native.trainer import (
    PART,
    REPLICA,
    Batch,
    Specs,
    Split,
    begin,
    mesh_of,
    padded,
)

Found: TypeAlias = tuple[Tensor, Params]
"""A loss, and its gradient."""


@dataclass(frozen=True)
class Layout:
    """What each device has: the whole of each tensor, or a part.

    It keeps `weights`, and a layer is computed with those `used`. `examples` are divided over axes.
    """

    weights: str
    used: str
    gradients: str
    velocities: str
    examples: tuple[str, ...]


LAYOUTS: Final = {
    # strategy       weights: kept, used  gradients velocities  examples
    "data": Layout("whole", "whole", "whole", "whole", (REPLICA, PART)),
    "zero1": Layout("whole", "whole", "whole", "part", (REPLICA, PART)),
    "zero2": Layout("whole", "whole", "part", "part", (REPLICA, PART)),
    "zero3": Layout("part", "whole", "part", "part", (REPLICA, PART)),
    "tensor": Layout("part", "part", "part", "part", (REPLICA,)),
}
"""All that the ways to split differ in, except for the axes along which `axis_of` cuts."""


def axis_of(name: str, plan: Plan) -> int | None:
    """The axis along which a tensor is cut; None if each device has the whole of it."""
    shape = plan.shapes[name]
    if plan.strategy != "tensor":
        return int(np.argmax(shape))
    of_layer, _, kind = name.rpartition(".")
    outputs, inputs = (0, 1) if len(shape) == 4 else (1, 0)
    if of_layer in [column for column, _ in plan.pairs]:
        return outputs if kind == "weight" else 0
    cut = of_layer in [row for _, row in plan.pairs] and kind == "weight"
    return inputs if cut else None


@dataclass(frozen=True)
class OneProgram:
    """LeNet for the whole minibatch, and the layouts of all that goes in and out."""

    plan: Plan
    mesh: Mesh

    @property
    def layout(self) -> Layout:
        """What devices have, in this strategy."""
        return LAYOUTS[self.plan.strategy]

    @cached_property
    def axes(self) -> Mapping[str, int | None]:
        """The axis along which each tensor is cut."""
        return {name: axis_of(name, self.plan) for name in self.plan.shapes}

    def specs(self, each_has: str) -> Specs:
        """Tensors of which each device has the whole, or a part."""
        cut = each_has == "part"
        return {
            name: P(*[None] * axis, PART) if cut and axis is not None else P()
            for name, axis in self.axes.items()
        }

    @property
    def weights(self) -> Specs:
        """How weights lie on the mesh."""
        return self.specs(self.layout.weights)

    @property
    def velocities(self) -> Specs:
        """How velocities do."""
        return self.specs(self.layout.velocities)

    @property
    def sharing(self) -> tuple[str, ...]:
        """The axes of the mesh over which examples are divided."""
        return self.layout.examples

    def kept(self, tensors: Mapping[str, Array]) -> Weights:
        """Tensors with zeros at the end of the axis along which they are cut."""
        return {
            name: values
            if (axis := self.axes[name]) is None
            else padded(values, axis, self.plan.devices)
            for name, values in tensors.items()
        }

    def canonical(self, kept: Mapping[str, Array]) -> Weights:
        """Tensors without these zeros."""
        return {name: values[self._true(name)] for name, values in kept.items()}

    def loss_and_grads(self, weights: Params, batch: Batch) -> tuple[Tensor, Params]:
        """The mean loss over a minibatch, and its gradient, added up over microbatches."""
        specs = self.specs(self.layout.gradients)

        def part_of_loss(weights: Params, X: Tensor, y: Tensor, share: Tensor) -> Tensor:
            return mean_loss(self._lenet(weights, X), y, share)

        def add(total: Found, microbatch: Batch) -> tuple[Found, None]:
            loss, grads = jax.value_and_grad(part_of_loss)(weights, *microbatch)
            return jax.tree.map(jnp.add, total, (loss, self._laid_out(grads, specs))), None

        none = jnp.zeros((), batch[0].dtype), jax.tree.map(jnp.zeros_like, weights)
        (loss, grads), _ = jax.lax.scan(add, none, batch)
        return loss, self._laid_out(grads, specs)

    def logits(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (n, 10) of a batch."""
        return self._lenet(weights, X[0])

    def _lenet(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (n, 10) of a batch, layer by layer."""
        gathers = self.layout.weights != self.layout.used
        # What has been gathered is let go: on the way back, it is gathered once more.
        own = jax.checkpoint(self._layer, static_argnums=0) if gathers else self._layer
        return lenet(X, weights, self.plan.layers, own)

    def _layer(self, name: str, X: Tensor, params: Params) -> Tensor:
        """A layer, with the weights that are kept."""
        if self.layout.used == "part":  # outputs whose weights are zeros change nothing
            return layer(name, X, params)
        if self.layout.weights == "part":
            params = self._laid_out(params, self.specs("whole"))
        return layer(name, X, {key: values[self._true(key)] for key, values in params.items()})

    def _true(self, name: str) -> tuple[slice, ...]:
        """Where a kept tensor has no zeros that fill it up."""
        return tuple(map(slice, self.plan.shapes[name]))

    def _laid_out(self, tensors: Params, specs: Specs) -> Params:
        """The same tensors; where they lie is asked of the compiler."""
        return {
            name: jax.lax.with_sharding_constraint(values, NamedSharding(self.mesh, specs[name]))
            for name, values in tensors.items()
        }


def make(
    weights: Mapping[str, Array], devices: Sequence[jax.Device], options: StrategiesOptions
) -> Split:
    """LeNet on devices, each of which has what its strategy's `Layout` says."""
    plan = options.plan(len(devices))
    return begin(OneProgram(plan, mesh_of(devices, plan)), weights)
