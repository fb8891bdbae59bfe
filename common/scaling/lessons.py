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
    """The calls, by what they are, and how many images a device gets in each."""

    calls: dict[Timed, Call]
    images: int


def lessons(lab: Laboratory, k: int) -> Lessons:
    """A step that only computes, and one with each allreduce, on k devices of all processes."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(k * IMAGES, 1, 28, 28)).astype(np.float32)
    y = random.randint(0, 10, k * IMAGES)
    options = ScratchOptions()
    shapes = options.shapes()
    weights = initial_weights(shapes, 0, "float32")
    replicas = lab.backend.replicate(weights, lab.devices, options)
    entries = sum(prod(shape) for shape in shapes.values())
    calls: dict[Timed, Call] = {Step(entries, ""): partial(computed, lab, X, y, replicas)}
    for name in lab.names:
        chosen = ScratchOptions(allreduce=name)
        calls[Step(entries, name)] = partial(trained, lab, X, y, replicas, chosen)
    return Lessons(calls, IMAGES)


def computed(lab: Laboratory, X: Array, y: Array, replicas: Any) -> list[Any]:
    """The gradients of this process's shards; nothing is sent."""
    shards = zip(replicas, *lab.backend.split_batch(X, y, lab.devices), strict=True)
    found = [lab.backend.shard_loss_and_grad(*each, len(X))[1] for each in shards]
    return [value for grads in found for value in grads.values()]


def trained(
    lab: Laboratory, X: Array, y: Array, replicas: Any, options: ScratchOptions
) -> list[Any]:
    """The weights after a step."""
    # The smallest rate: however often a step is made, its numbers stay what they are.
    lab.backend.train_batch(X, y, replicas, lab.devices, 1e-6, options)
    return [value for params in replicas for value in params.values()]
