"""One step of any strategy on a mesh of devices.

Rows of the mesh are model-parallel groups: a row has the whole model, split by the strategy.
Columns are data-parallel groups: their devices have the same part of it, and sum their gradients.
Where each row has one device, that is data parallelism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept, Ledger, mesh
from common.parallel.plans import Plan
from common.parallel.replicas import parts_of
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.primitives import Primitives, Tensor
from frameworks.strategies.replica import Replica


@dataclass
class Split:
    """A model split over devices: parameters, and the velocities that each device updates."""

    ops: Primitives
    plan: Plan
    rows: Sequence[Replica]
    columns: Sequence[Group]
    ledger: Ledger
    params: list[Kept]
    velocities: list[Kept]


def distribute(
    ops: Primitives, weights: Mapping[str, Array], devices: Sequence[Any], plan: Plan
) -> Split:
    """Gives each device its part of the parameters, and velocities of 0."""
    ledger = Ledger(len(devices), next(iter(weights.values())).itemsize)
    groups, columns = mesh(devices, plan.replicas, ledger)
    rows = [Replica(ops, plan, group, group.kept("weights")) for group in groups]
    params = [kept for row in rows for kept in row.params]
    velocities = [kept for group in groups for kept in group.kept("momentum")]
    split = Split(ops, plan, rows, columns, ledger, params, velocities)
    put(weights, {name: 0 * values for name, values in weights.items()}, split)
    return split


def put(weights: Mapping[str, Array], velocities: Mapping[str, Array], split: Split) -> None:
    """Gives each device its part of the parameters and of the velocities."""
    for group in (row.group for row in split.rows):
        for column, (number, device) in enumerate(zip(group.numbers, group.devices, strict=True)):
            for name, values in parts_of(weights, split.plan.weights, column).items():
                split.params[number][name] = split.ops.place(values, device)
            for name, values in parts_of(velocities, split.plan.updated, column).items():
                split.velocities[number][name] = split.ops.place(values, device)


def predict(X: Array, split: Split) -> list[Tensor]:
    """The logits of a batch, in parts on several devices."""
    logits: list[Tensor] = []
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        logits += strategy_of(split.plan).predict(row, X[shard])
    return logits


def loss_and_grads(X: Array, y: Array, split: Split) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss of a minibatch, and the gradients that each device needs."""
    losses: list[Tensor] = []
    grads: list[Kept] = []
    strategy = strategy_of(split.plan)
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        row_losses, row_grads = strategy.loss_and_grads(row, X[shard], y[shard], len(X))
        losses += row_losses
        grads += row_grads
    for column in split.columns:
        local = [dict(grads[number]) for number in column.numbers]
        sums = allreduce(split.ops, local, "gradients", column)
        for number, total in zip(column.numbers, sums, strict=True):
            grads[number].update(total)
    return losses, grads


def train_batch(X: Array, y: Array, split: Split, lr: float, momentum: float) -> list[Tensor]:
    """One step of SGD with momentum on a minibatch; returns the parts of its mean loss."""
    plan, strategy = split.plan, strategy_of(split.plan)
    replicated = plan.updated != plan.weights
    split.ledger.begin()
    losses, grads = loss_and_grads(X, y, split)
    for row in split.rows:
        updated = []
        owned = strategy.owned_slices(row) if replicated else [dict(kept) for kept in row.params]
        for params, number in zip(owned, row.group.numbers, strict=True):
            velocities, here = split.velocities[number], dict(grads[number])
            stepped = split.ops.sgd_step(params, dict(velocities), here, lr, momentum)
            updated.append(stepped[0])
            velocities.update(stepped[1])
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
