"""Training steps of LeNet that are timed, over all devices of all processes."""

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from common.base.arrays import Array
from common.chapters.scratch import ScratchOptions
from common.models.initial import initial_weights
from common.scaling.workloads import Call, Laboratory, Step, Timed

IMAGES = 256
"""For each device."""


@dataclass(frozen=True)
class Lessons:
    """The calls, by what they are, and how many images a device gets in each.

    `summed` tells how many entries each tensor has that a step sums: the gradients and the loss.
    """

    calls: dict[Timed, Call]
    images: int
    summed: list[int]


def lessons(lab: Laboratory, k: int) -> Lessons:
    """A step that only computes, and one with each allreduce, on k devices of all processes."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(k * IMAGES, 1, 28, 28)).astype(np.float32)
    y = random.randint(0, 10, k * IMAGES)
    options = ScratchOptions()
    shapes = options.shapes()
    weights = initial_weights(shapes, 0, "float32")
    replicas = lab.chapter.replicate(weights, lab.devices, options)
    gradients = [prod(shape) for shape in shapes.values()]
    entries = sum(gradients)
    calls: dict[Timed, Call] = {Step(entries, ""): partial(computed, lab, X, y, replicas)}
    for name in lab.names:
        chosen = ScratchOptions(allreduce=name)
        calls[Step(entries, name)] = partial(trained, lab, X, y, replicas, chosen)
    return Lessons(calls, IMAGES, [*gradients, 1])


def computed(lab: Laboratory, X: Array, y: Array, replicas: Any) -> list[Any]:
    """The gradients of this process's shards; nothing is sent."""
    found = lab.chapter.parts(X, y, replicas, lab.devices)
    return [value for grads in found for value in grads.values()]


def trained(
    lab: Laboratory, X: Array, y: Array, replicas: Any, options: ScratchOptions
) -> list[Any]:
    """The weights after a step."""
    # The smallest rate: however often a step is made, its numbers stay what they are.
    lab.chapter.train_batch(X, y, replicas, lab.devices, 1e-6, options)
    return [value for params in replicas for value in params.values()]
