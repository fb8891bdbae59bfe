"""A pipeline in one program: `ppermute` sends a stage's activations to the next one.

Every device runs the same code and picks its stage by `lax.switch`. JAX's gradient of all this goes
back in the opposite order, after the last microbatch: it is the order of GPipe.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from math import prod
from typing import TypeVar

import jax
import numpy as np
from jax import Array as Tensor, numpy as jnp
from jax.sharding import PartitionSpec as P

from common.base.arrays import Array, Weights
from frameworks.jax.kernels import images
from frameworks.jax.native.net import Params, layer, mean_loss
from frameworks.jax.native.training import Batch, Training
from frameworks.strategies.layouts import PART, REPLICA

Row = TypeVar("Row", Array, Tensor)
STAGES = "stages"
"""The name under which the weights of all stages are kept: a row of numbers for each."""
ROWS, EXAMPLES = P(PART), P(None, REPLICA)
"""Each device has the row of its stage, and its group's share of each microbatch."""


class Pipeline(Training):
    """Consecutive layers on each device of a group: all of them have its examples."""

    def begin(self) -> None:
        """Gives each device the row of its stage."""
        self.weight_specs = self.velocity_specs = {STAGES: ROWS}

    @cached_property
    def names(self) -> list[list[str]]:
        """The names of the weights of each stage."""
        return [
            [k for k in self.plan.shapes if k.rpartition(".")[0] in s] for s in self.plan.stages
        ]

    @cached_property
    def width(self) -> int:
        """How many numbers of an image are handed on: those at the largest cut."""
        firsts = [stage[0] for stage in self.plan.stages]
        return max(self.plan.inputs[name] for name in firsts)

    def kept(self, tensors: Mapping[str, Array]) -> Weights:
        """A row for each stage, as long as the longest one, filled up with zeros."""
        rows = [np.concatenate([tensors[k].ravel() for k in names]) for names in self.names]
        length = max(map(len, rows))
        return {STAGES: np.stack([np.pad(row, (0, length - len(row))) for row in rows])}

    def canonical(self, kept: Mapping[str, Array]) -> Weights:
        """The weights in these rows."""
        weights: Weights = {}
        for stage, row in enumerate(kept[STAGES]):
            weights |= self.unpacked(stage, row)
        return {name: weights[name] for name in self.plan.shapes}

    def unpacked(self, stage: int, row: Row) -> dict[str, Row]:
        """The weights of a stage, from its row."""
        weights, start = {}, 0
        for name in self.names[stage]:
            shape = self.plan.shapes[name]
            weights[name] = row[start : start + prod(shape)].reshape(shape)
            start += prod(shape)
        return weights

    def run(self, stage: int, row: Tensor, X: Tensor) -> Tensor:
        """The output of a stage for flattened inputs (width, n)."""
        names, params = self.plan.stages[stage], self.unpacked(stage, row)
        Y = X[: self.plan.inputs[names[0]]]
        for name in names:
            Y = layer(name, Y, params)
        return filled(Y.reshape(-1, X.shape[1]), self.width)

    def loss_and_grads(self, weights: Params, batch: Batch) -> tuple[Tensor, Params]:
        """The mean loss over a minibatch, and its gradient."""

        @jax.shard_map(mesh=self.mesh, in_specs=(ROWS, *[EXAMPLES] * 3), out_specs=P())
        def total(rows: Tensor, X: Tensor, y: Tensor, share: Tensor) -> Tensor:
            # Groups have copies of a row. Here the gradients of these are summed, and once a step.
            row = jax.lax.pcast(rows[0], REPLICA, to="varying")
            part = mean_loss(self._through(row, X), y.reshape(-1), share.reshape(-1))
            summed: Tensor = jax.lax.psum(self._if_last(part), (REPLICA, PART))
            return summed

        loss: Tensor
        loss, grad = jax.value_and_grad(total)(weights[STAGES], *batch)
        return loss, {STAGES: grad}

    def logits(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (n, 10) of a batch."""

        @jax.shard_map(mesh=self.mesh, in_specs=(ROWS, EXAMPLES), out_specs=P(REPLICA))
        def last(rows: Tensor, X: Tensor) -> Tensor:
            logits: Tensor = jax.lax.psum(self._if_last(self._through(rows[0], X)), PART)
            return logits

        logits: Tensor = last(weights[STAGES], X)
        return logits

    def _through(self, row: Tensor, X: Tensor) -> Tensor:
        """The logits (n, 10) of microbatches that follow each other: right on the last stage."""
        count, n, stage = self.plan.devices, X.shape[1], jax.lax.axis_index(PART)
        runs = [partial(self.run, i) for i in range(count)]
        to_next = [(i, i + 1) for i in range(count - 1)]

        @jax.checkpoint  # a stage keeps its inputs only
        def tick(arrived: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
            first = filled(images(X).reshape(-1, n), self.width)
            Y = jax.lax.switch(stage, runs, row, jnp.where(stage == 0, first, arrived))
            return jax.lax.ppermute(Y, PART, to_next), Y[:10].T

        # The last stage begins once the others have begun, and the first one ends before them.
        X = jnp.pad(X, [(0, count - 1), *[(0, 0)] * 4])
        nothing = jax.lax.pcast(jnp.zeros((self.width, n), X.dtype), (REPLICA, PART), to="varying")
        logits: Tensor
        _, logits = jax.lax.scan(tick, nothing, X)
        return logits[count - 1 :].reshape(-1, 10)

    def _if_last(self, values: Tensor) -> Tensor:
        """The last stage's values, and zeros on other stages."""
        last = jax.lax.axis_index(PART) == self.plan.devices - 1
        return jnp.where(last, values, jnp.zeros_like(values))


def filled(values: Tensor, width: int) -> Tensor:
    """Numbers (some, n) as (width, n), filled up with zeros."""
    return jnp.pad(values, [(0, width - len(values)), (0, 0)])
