"""Solutions of the exercises on strategies, for every framework."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, count, pairwise
from typing import Any

import numpy  # `np` is MXNet's in its notebooks

from common.base.arrays import Array, Weights
from common.chapters.splitting import BySplitting
from common.chapters.strategies import StrategiesOptions
from common.parallel.pipelines import balanced, bubble, order, simulate
from common.parallel.plans import Plan
from common.parallel.shards import shard_bounds


def balance(plan: Plan, cost: Callable[[str], int]) -> tuple[tuple[int, ...], float]:
    """The number of layers of each stage that makes the largest cost of a stage smallest.

    And this cost, as a share of the total. `cost` takes the name of a layer.
    """
    costs = [cost(layer) for layer in plan.layers]
    counts = balanced(costs, plan.devices)
    bounds = pairwise(accumulate(counts, initial=0))
    return tuple(counts), max(sum(costs[a:b]) for a, b in bounds) / sum(costs)


def bubble_share(schedule: str, stages: int, microbatches: int) -> float:
    """The bubble of a pipeline whose backward passes take twice as long as forward ones."""
    passes = order(schedule, stages, microbatches)
    return bubble(simulate(passes, lambda step: 1 if step.forward else 2), stages)


def fewest_microbatches(stages: int, most: float) -> int:
    """The fewest microbatches for which the bubble is at most `most` of the time."""
    return next(m for m in count(1) if bubble_share("1f1b", stages, m) <= most + 1e-9)


def row_parallel(
    X: Array, weight: Array, bias: Array, devices: int, *, bias_on_each: bool
) -> Array:
    """X W + b, where each device has some rows of W and the columns of X that meet them.

    The allreduce is a sum over the devices; the bias is added before it on each, or after it once.
    """
    slices = [slice(*bounds) for bounds in shard_bounds(len(weight), devices)]
    products = [X[:, rows] @ weight[rows] for rows in slices]
    if bias_on_each:
        products = [product + bias for product in products]
    total: Array = numpy.sum(products, axis=0)
    return total if bias_on_each else total + bias


def peak_weights(plan: Plan, device: int, *, keep: bool) -> int:
    """The peak number of weights on a device of ZeRO-3.

    It frees each gathered layer after use, or would `keep` all of them for the backward pass.
    """
    peak = plan.weights_kept(device)
    sizes = [plan.size(layer) for layer in plan.layers]
    return peak - max(sizes) + sum(sizes) if keep else peak


def gradient_on_mesh(
    chapter: BySplitting,
    weights: Mapping[str, Array],
    minibatch: tuple[Array, Array],
    devices: Sequence[Any],
    sizes: Sequence[int],
) -> Weights:
    """The gradient of a minibatch on a mesh; `sizes` has the number of examples of each row.

    Each row is tensor-parallel and returns the mean over its examples, weighted by their number.
    """
    X, y = minibatch
    length = len(devices) // len(sizes)
    options = StrategiesOptions("tensor", microbatches=1)
    total: Weights = {name: 0 * values for name, values in weights.items()}
    for row, (start, stop) in enumerate(pairwise(accumulate(sizes, initial=0))):
        group = devices[row * length : (row + 1) * length]
        trainer = chapter.trainer(weights, group, options)
        grads = trainer.gradients(X[start:stop], y[start:stop])
        for name, grad in grads.items():
            total[name] = total[name] + (stop - start) / len(y) * grad
    return total
