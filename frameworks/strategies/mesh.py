"""One step of any strategy on a mesh of devices.

Rows of the mesh are model-parallel groups: a row has the whole model, split by the strategy.
Columns are data-parallel groups: their devices have the same part of it, and sum their gradients.
Where each row has one device, that is data parallelism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept, Ledger, mesh
from common.parallel.plans import Plan
from common.parallel.replicas import parts_of
from frameworks.strategies import data, pipeline, tensor, zero
from frameworks.strategies.collectives import all_gather, allreduce
from frameworks.strategies.primitives import Params, Primitives, Tensor

STRATEGIES: Final[dict[str, ModuleType]] = {
    "data": data,
    "pipeline": pipeline,
    "tensor": tensor,
    **dict.fromkeys(("zero1", "zero2", "zero3"), zero),
}


@dataclass
class Split:
    """A model split over devices: parameters, and velocities of what each device updates."""

    ops: Primitives
    plan: Plan
    rows: Sequence[Group]
    columns: Sequence[Group]
    ledger: Ledger
    params: list[Kept]
    velocities: list[Kept]


def distribute(
    ops: Primitives, weights: Mapping[str, Array], devices: Sequence[Any], plan: Plan
) -> Split:
    """Gives each device its part of the parameters, and velocities of 0."""
    ledger = Ledger(len(devices), next(iter(weights.values())).itemsize)
    rows, columns = mesh(devices, plan.replicas, ledger)
    params = [kept for row in rows for kept in row.kept("weights")]
    velocities = [kept for row in rows for kept in row.kept("momentum")]
    split = Split(ops, plan, rows, columns, ledger, params, velocities)
    put(weights, {name: 0 * values for name, values in weights.items()}, split)
    return split


def put(weights: Mapping[str, Array], velocities: Mapping[str, Array], split: Split) -> None:
    """Gives each device its part of the parameters and of the velocities."""
    for row in split.rows:
        for column, (number, device) in enumerate(zip(row.numbers, row.devices, strict=True)):
            for name, values in parts_of(weights, split.plan.weights, column).items():
                split.params[number][name] = split.ops.place(values, device)
            for name, values in parts_of(velocities, split.plan.updated, column).items():
                split.velocities[number][name] = split.ops.place(values, device)


def predict(X: Array, split: Split) -> list[Tensor]:
    """The logits of a batch, in parts on several devices."""
    logits: list[Tensor] = []
    strategy = STRATEGIES[split.plan.strategy]
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        params = [split.params[number] for number in row.numbers]
        logits += strategy.predict(split.ops, X[shard], params, split.plan, row)
    return logits


def loss_and_grads(X: Array, y: Array, split: Split) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss of a minibatch, and the gradient of what each device updates."""
    losses: list[Tensor] = []
    grads: list[Kept] = []
    strategy = STRATEGIES[split.plan.strategy]
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        params = [split.params[number] for number in row.numbers]
        inputs = X[shard], y[shard], params, len(X)
        row_losses, row_grads = strategy.loss_and_grads(split.ops, *inputs, split.plan, row)
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
    split.ledger.begin()
    losses, grads = loss_and_grads(X, y, split)
    for row in split.rows:
        params = [split.params[number] for number in row.numbers]
        updated = [owned_slices(split.ops, kept, split.plan, i) for i, kept in enumerate(params)]
        for column, number in enumerate(row.numbers):
            velocities, here = split.velocities[number], dict(grads[number])
            updated[column], moved = split.ops.sgd_step(
                updated[column], dict(velocities), here, lr, momentum
            )
            velocities.update(moved)
            grads[number].clear()
        store(split.ops, updated, params, split.plan, row)
    return losses


def owned_slices(ops: Primitives, params: Kept, plan: Plan, device: int) -> Params:
    """The parameters that a device updates: all it has or, in ZeRO-1 and 2, its slices of them."""
    if plan.strategy not in ("zero1", "zero2"):
        return dict(params)
    return ops.split(dict(params), plan.devices)[device]


def store(
    ops: Primitives, updated: Sequence[Params], params: Sequence[Kept], plan: Plan, group: Group
) -> None:
    """Replaces the parameters by the updated ones; slices of ZeRO-1 and 2 are gathered first."""
    if plan.strategy in ("zero1", "zero2"):
        updated = all_gather(ops, updated, plan.shapes, "weights", group)
    for kept, tensors in zip(params, updated, strict=True):
        kept.update(tensors)
