"""One program for all devices: the compiler finds the collectives that layouts ask for."""

from collections.abc import Mapping
from typing import TypeAlias

import jax
from jax import Array as Tensor, numpy as jnp
from jax.sharding import PartitionSpec as P

from common.base.arrays import Array, Weights
from frameworks.jax.native.net import Params, layer, lenet, mean_loss
from frameworks.jax.native.training import Batch, Specs, Training
from frameworks.strategies.layouts import LAYOUTS, PART, Padding

Found: TypeAlias = tuple[Tensor, Params]
"""A loss, and its gradient."""


class OneProgram(Training):
    """LeNet for the whole minibatch, sharded as the strategy's `Layout` says."""

    def begin(self) -> None:
        """Sets the layouts."""
        self.layout, self.padding = LAYOUTS[self.plan.strategy], Padding(self.plan)
        self.weight_specs = self.specs(self.layout.weights)
        self.velocity_specs = self.specs(self.layout.velocities)
        self.sharing = self.layout.examples

    def specs(self, each_has: str) -> Specs:
        """Tensors on the devices, replicated or sharded."""
        cut = each_has == "part"
        return {
            name: P(*[None] * axis, PART) if cut and axis is not None else P()
            for name, axis in self.padding.axes.items()
        }

    def kept(self, tensors: Mapping[str, Array]) -> Weights:
        """Tensors with zeros at the end of the axis along which they are cut."""
        return self.padding.padded(tensors)

    def canonical(self, kept: Mapping[str, Array]) -> Weights:
        """Tensors without these zeros."""
        return {name: values[self.padding.inner(name)] for name, values in kept.items()}

    def loss_and_grads(self, weights: Params, batch: Batch) -> Found:
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
        # Gathered weights are freed: the backward pass gathers them again.
        own = jax.checkpoint(self._layer, static_argnums=0) if gathers else self._layer
        return lenet(X, weights, self.plan.layers, own)

    def _layer(self, name: str, X: Tensor, params: Params) -> Tensor:
        """A layer, with the weights that are kept."""
        if self.layout.used == "part":  # outputs whose weights are zeros change nothing
            return layer(name, X, params)
        if self.layout.weights == "part":
            params = self._laid_out(params, self.specs("whole"))
        return layer(name, X, {k: values[self.padding.inner(k)] for k, values in params.items()})

    def _laid_out(self, tensors: Params, specs: Specs) -> Params:
        """The same tensors, with a sharding constraint for the compiler."""
        return {
            name: jax.lax.with_sharding_constraint(values, self.on_mesh(specs[name]))
            for name, values in tensors.items()
        }
