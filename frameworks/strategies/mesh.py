"""One step of any strategy on a mesh of devices.

Rows of the mesh are model-parallel groups: a row has the whole model, split by the strategy.
Columns are data-parallel groups: their devices have the same part of it, and sum their gradients.
Where each row has one device, that is data parallelism.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from common.backends.interface import Trainer
from common.base.arrays import Array, Weights, on_host, part
from common.chapters.strategies import StrategiesOptions
from common.models.nets import last_bias
from common.parallel.ledger import Event, Kept, Ledger, Usage, mesh
from common.parallel.plans import Layouts, Plan
from common.trainers.strategies import Loss, parts_of, whole, zeros
from frameworks.strategies.collectives import allreduce, allreduce_in_place
from frameworks.strategies.layers import BETAS
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica


def predict(X: Array, split: "Split") -> list[list[Tensor]]:
    """The logits of a batch: rows on several devices, maybe each in columns on several."""
    logits: list[list[Tensor]] = []
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        logits += strategy_of(split.plan).predict(row, X[shard])
    return logits


def loss_and_grads(X: Array, y: Array, split: "Split") -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss of a minibatch, and the gradients that each device needs.

    The mean is over all labels of the minibatch; -1 is none.
    """
    losses: list[Tensor] = []
    grads: list[Kept] = []
    strategy, count = strategy_of(split.plan), int((y >= 0).sum())
    shards = zip(split.rows, split.plan.rows_of(len(X)), strict=True)
    minibatches = [(row, X[shard], y[shard], count) for row, shard in shards]
    if split.plan.experts:
        results = strategy.loss_and_grads_of_rows(minibatches, split.columns)
    else:
        results = [strategy.loss_and_grads(*minibatch) for minibatch in minibatches]
    for row_losses, row_grads in results:
        losses += row_losses
        grads += row_grads
    for column in split.columns:
        held = [grads[number] for number in column.numbers]
        allreduce_in_place(split.ops, held, "gradients", column)
    return losses, grads


def clip(grads: Sequence[Kept], split: "Split") -> None:
    """Scales the gradient to a norm of `split.clip` at most: of the whole one.

    A tensor that several devices of a row have counts once.
    """
    for row in split.rows:
        local = [dict(grads[number]) for number in row.group.numbers]
        counted = [
            {name: grad for name, grad in here.items() if split.plan.counts(name, device)}
            for device, here in enumerate(local)
        ]
        squares = split.ops.on_each_device(split.ops.squares, counted)
        totals = allreduce(split.ops, squares, "gradients", row.group)
        clipped = split.ops.on_each_device(split.ops.clip, local, totals, most=split.clip)
        for number, tensors in zip(row.group.numbers, clipped, strict=True):
            grads[number].update(tensors)


def train_batch(X: Array, y: Array, split: "Split", lr: float) -> list[Tensor]:
    """One step on a minibatch; returns the parts of its mean loss."""
    plan, strategy = split.plan, strategy_of(split.plan)
    replicated = plan.updated != plan.weights
    split.ledger.begin()
    losses, grads = loss_and_grads(X, y, split)
    if split.clip:
        clip(grads, split)
    for row in split.rows:
        updated = []
        owned = strategy.owned_slices(row) if replicated else [dict(kept) for kept in row.params]
        for params, number in zip(owned, row.group.numbers, strict=True):
            state, here = split.state[number], dict(grads[number])
            stepped = split.optimize(params, dict(state), here, lr)
            updated.append(stepped[0])
            state.update(stepped[1])
            grads[number].clear()
        if replicated:
            updated = strategy.gather(updated, row)
        for kept, tensors in zip(row.params, updated, strict=True):
            kept.update(tensors)
    return losses


def strategy_of(plan: Plan) -> Any:
    """The module of this folder that carries out a plan: it is named like the plan's own module.

    It has `predict` and `loss_and_grads`. If its devices update less than they have, it also has
    `owned_slices`, what they update, and `gather`, which makes the updated slices whole.
    """
    return import_module(f"{__package__}.{type(plan).__module__.rpartition('.')[2]}")


class Split(Trainer):
    """A net split over devices: parameters, and the optimizer's `state` of what each updates."""

    def __init__(
        self,
        ops: Any,
        nets: Mapping[str, Any],
        weights: Mapping[str, Array],
        devices: Sequence[Any],
        options: StrategiesOptions,
    ) -> None:
        self.ops, self.plan = ops, options.plan(len(devices))
        self.momentum, self.clip, self.kinds = options.momentum, options.clip, options.state
        self.ledger = Ledger(len(devices), next(iter(weights.values())).itemsize)
        groups, self.columns = mesh(devices, self.plan.replicas, self.ledger)
        self.rows = [
            Replica(ops, nets[options.net], self.plan, group, group.kept("weights"))
            for group in groups
        ]
        self.params = [kept for row in self.rows for kept in row.params]
        self.state = [kept for group in groups for kept in group.kept("momentum")]
        self.restore(weights)

    @property
    def replicas(self) -> list[Params]:
        """The parameters of each device."""
        return [dict(kept) for kept in self.params]

    def train_batch(self, X: Array, y: Array, lr: float) -> Loss:
        """One step on a minibatch; returns its mean loss, which waits."""
        self.steps += 1
        return Loss(train_batch(X, y, self, lr))

    def optimize(
        self, params: Params, state: Params, grads: Params, lr: float
    ) -> tuple[Params, Params]:
        """Updated parameters and state: by Adam, or by SGD with momentum."""
        if "variance" in self.kinds:
            unbiased = [1 - beta**self.steps for beta in BETAS]
            return self.ops.adam_step(params, state, grads, lr=lr, unbiased=unbiased)
        return self.ops.sgd_step(params, state, grads, lr, self.momentum)

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        _, grads = loss_and_grads(X, y, self)
        found = self._whole(grads, self.plan.updated)
        for kept in grads:
            kept.clear()
        return found

    def predict(self, X: Array) -> Array:
        """The logits of a batch, computed as training computes them."""
        rows = predict(X, self)
        parts = [[on_host(part) for part in row] for row in rows]
        tokens = [place for i in range(self.plan.devices) for place in self.plan.tokens_of(i)]
        if tokens:  # each device has logits of its tokens
            return np.concatenate([np.concatenate(row, 1)[:, np.argsort(tokens)] for row in parts])
        return np.concatenate([np.concatenate(row, axis=-1) for row in parts])

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._whole(self.params, self.plan.weights)

    def bias(self) -> Tensor:
        """The last layer's bias, on a device that has it whole, else on the host.

        No step changes a tensor: it makes another.
        """
        name = last_bias(self.plan.shapes)
        held = [{name: kept[name]} if name in kept else {} for kept in self.params]
        first = next(params[name] for params in held if params)
        if tuple(first.shape) == self.plan.shapes[name]:
            return first
        return self._whole(held, {name: self.plan.weights[name]})[name]

    def save(self) -> Weights:
        """The whole weights, and the state of each by its kind; raises RunError as `export`."""
        layouts = {
            f"{kind}/{name}": layout
            for kind in self.kinds
            for name, layout in self.plan.updated.items()
        }
        steps = {"adam/steps": np.array([self.steps])} if "variance" in self.kinds else {}
        return self.export() | self._whole(self.state, layouts) | steps

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of the state, which else is 0."""
        self.steps = int(saved.get("adam/steps", [0])[0])
        weights = {name: values for name, values in saved.items() if "/" not in name}
        for group in (row.group for row in self.rows):
            places = zip(group.numbers, group.devices, strict=True)
            for column, (number, device) in enumerate(places):
                for name, values in parts_of(weights, self.plan.weights, column).items():
                    self.params[number][name] = self.ops.place(values, device)
                for kind in self.kinds:
                    state = part(saved, f"{kind}/") or zeros(weights)
                    for name, values in parts_of(state, self.plan.updated, column).items():
                        self.state[number][f"{kind}/{name}"] = self.ops.place(values, device)

    def usage(self, examples: int) -> tuple[Usage, list[Event]]:
        """The traffic and memory of the last step, and what its devices did."""
        return self.ledger.usage(examples), self.ledger.events

    def _whole(self, held: Sequence[Mapping[str, Tensor]], layouts: Layouts) -> Weights:
        """Whole tensors on the host, from the parts of all devices."""
        layouts = {name: layout * self.plan.replicas for name, layout in layouts.items()}
        parts = [{name: on_host(v) for name, v in kept.items()} for kept in held]
        return whole(parts, layouts, self.plan.shapes)
