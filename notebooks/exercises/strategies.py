"""Solutions of the exercises on ways to split, for every framework."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, count, pairwise
from typing import Any

import numpy  # `np` is MXNet's in its notebooks

from common.base.arrays import Array, Weights
from common.chapters.splitting import BySplitting
from common.chapters.strategies import StrategiesOptions
from common.parallel.pipelines import ORDERS, balanced, bubble, simulate
from common.parallel.plans import Plan
from common.parallel.shards import shard_bounds


def cut_by(plan: Plan, cost: Callable[[str], int]) -> tuple[tuple[int, ...], float]:
    """How many layers each stage has if the largest cost of a stage is as small as can be.

    And the share of the whole cost that this stage has. `cost` takes the name of a layer.
    """
    costs = [cost(layer) for layer in plan.layers]
    stages = balanced(costs, plan.devices)
    largest = max(sum(costs[i] for i in layers) for layers in stages)
    return tuple(map(len, stages)), largest / sum(costs)


def waiting(schedule: str, stages: int, microbatches: int) -> float:
    """The bubble of a pipeline whose way back takes twice as long as its way forward."""
    order = ORDERS[schedule](stages, microbatches)
    return bubble(simulate(order, lambda one: 1 if one.forward else 2), stages)


def fewest_microbatches(stages: int, most: float) -> int:
    """The fewest microbatches with which a stage waits for `most` of the time, or for less."""
    return next(m for m in count(1) if waiting("1f1b", stages, m) <= most + 1e-9)


def cut_by_rows(X: Array, weight: Array, bias: Array, devices: int, *, bias_on_each: bool) -> Array:
    """X W + b, of which each device has some rows of W and the columns of X that belong to them.

    The allreduce is a sum over the devices; the bias is added before it on each, or after it once.
    """
    slices = [slice(*each) for each in shard_bounds(len(weight), devices)]
    products = [X[:, rows] @ weight[rows] for rows in slices]
    if bias_on_each:
        products = [product + bias for product in products]
    total: Array = numpy.sum(products, axis=0)
    return total if bias_on_each else total + bias


def most_weights(plan: Plan, device: int, *, keep: bool) -> int:
    """The most numbers of weights that a device of ZeRO-3 has.

    It lets each layer go after use, or it would `keep` what it has gathered for the way back.
    """
    again = plan.weights_kept(device)
    if not keep:
        return again
    sizes = [plan.size(layer) for layer in plan.layers]
    return again - max(sizes) + sum(sizes)


def gradient_on_mesh(
    chapter: BySplitting,
    weights: Mapping[str, Array],
    minibatch: tuple[Array, Array],
    devices: Sequence[Any],
    sizes: Sequence[int],
) -> Weights:
    """The gradient of a minibatch on a mesh whose rows take so many examples each.

    A row, by tensor parallelism, finds the mean over its own examples: it counts by their number.
    """
    X, y = minibatch
    length = len(devices) // len(sizes)
    options = StrategiesOptions("tensor", microbatches=1)
    total: Weights = {name: 0 * values for name, values in weights.items()}
    for row, (start, stop) in enumerate(pairwise(accumulate(sizes, initial=0))):
        own = devices[row * length : (row + 1) * length]
        trainer = chapter.trainer(weights, own, options)
        grads = trainer.gradients(X[start:stop], y[start:stop])
        for name, grad in grads.items():
            total[name] = total[name] + (stop - start) / len(y) * grad
    return total
