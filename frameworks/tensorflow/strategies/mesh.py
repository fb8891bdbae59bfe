"""One step of any way to split, on a mesh of devices: each row has a replica of the whole model.

A way splits the model over a row. Devices of a column have the same part of it, and sum up their
gradients. Where each row has one device, that is data parallelism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from tensorflow import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept, Ledger, mesh
from common.parallel.parts import parts_of
from common.parallel.plans import Plan
from frameworks.tensorflow.strategies import data, pipeline, tensor, zero
from frameworks.tensorflow.strategies.moves import (
    Device,
    all_gather,
    allreduce,
    cut,
    place,
    where,
)

WAYS: Final[dict[str, ModuleType]] = {
    "data": data,
    "pipeline": pipeline,
    "tensor": tensor,
    **dict.fromkeys(("zero1", "zero2", "zero3"), zero),
}


@dataclass
class Split:
    """What all devices have: parts of the weights, and of the momentum of what they update."""

    plan: Plan
    rows: Sequence[Group]
    columns: Sequence[Group]
    ledger: Ledger
    params: list[Kept]
    velocities: list[Kept]


def distribute(weights: Mapping[str, Array], devices: Sequence[Device], plan: Plan) -> Split:
    """Gives each device its part of the weights, and a momentum of 0."""
    ledger = Ledger(len(devices), next(iter(weights.values())).itemsize)
    rows, columns = mesh(devices, plan.replicas, ledger)
    params = [kept for row in rows for kept in row.kept("weights")]
    velocities = [kept for row in rows for kept in row.kept("momentum")]
    split = Split(plan, rows, columns, ledger, params, velocities)
    put(weights, {name: 0 * values for name, values in weights.items()}, split)
    return split


def put(weights: Mapping[str, Array], momentum: Mapping[str, Array], split: Split) -> None:
    """Gives each device its part of the weights and of the momentum."""
    for row in split.rows:
        for column, (number, device) in enumerate(zip(row.numbers, row.devices, strict=True)):
            for name, values in parts_of(weights, split.plan.weights, column).items():
                split.params[number][name] = place(values, device)
            for name, values in parts_of(momentum, split.plan.updated, column).items():
                split.velocities[number][name] = place(values, device)


def predict(X: Array, split: Split) -> list[Tensor]:
    """The logits of a batch, in parts that lie on several devices."""
    found: list[Tensor] = []
    for row, rows in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        params = [split.params[number] for number in row.numbers]
        found += WAYS[split.plan.strategy].predict(X[rows], params, split.plan, row)
    return found


def loss_and_grads(X: Array, y: Array, split: Split) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss of a minibatch, and the gradient of what each device updates."""
    losses: list[Tensor] = []
    grads: list[Kept] = []
    for row, rows in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        params = [split.params[number] for number in row.numbers]
        way = WAYS[split.plan.strategy].loss_and_grads
        parts, found = way(X[rows], y[rows], params, len(X), split.plan, row)
        losses += parts
        grads += found
    for column in split.columns:
        summed = allreduce([dict(grads[i]) for i in column.numbers], "gradients", column)
        for number, totals in zip(column.numbers, summed, strict=True):
            grads[number].update(totals)
    return losses, grads


def train_batch(X: Array, y: Array, split: Split, lr: float, momentum: float) -> list[Tensor]:
    """One step of SGD with momentum on a minibatch; returns the parts of its mean loss."""
    split.ledger.begin()
    losses, grads = loss_and_grads(X, y, split)
    for row in split.rows:
        params = [split.params[number] for number in row.numbers]
        updated = [own_slices(own, split.plan, i) for i, own in enumerate(params)]
        for number, own in zip(row.numbers, updated, strict=True):
            sgd(own, split.velocities[number], grads[number], lr, momentum)
            grads[number].clear()
        give_back(updated, params, split.plan, row)
    return losses


def own_slices(params: Kept, plan: Plan, device: int) -> dict[str, Tensor]:
    """What a device updates of its weights: all of them or, of ZeRO-1 and 2, a slice."""
    if plan.strategy not in ("zero1", "zero2"):
        return dict(params)
    return cut(dict(params), plan.devices)[device]


def give_back(
    updated: Sequence[dict[str, Tensor]], params: Sequence[Kept], plan: Plan, group: Group
) -> None:
    """Puts updated weights in their places; slices of ZeRO-1 and 2 are gathered first."""
    if plan.strategy in ("zero1", "zero2"):
        whole = all_gather(updated, plan.shapes, "weights", group)
        for kept, tensors in zip(params, whole, strict=True):
            kept.update(tensors)
    else:
        for kept, own in zip(params, updated, strict=True):
            kept.update(own)


def sgd(
    params: dict[str, Tensor], velocities: Kept, grads: Kept, lr: float, momentum: float
) -> None:
    """One step on one device: v = m v + g, then w = w - lr v."""
    with where(params):
        for name, param in params.items():
            velocities[name] = momentum * velocities[name] + grads[name]
            params[name] = param - lr * velocities[name]
