"""The book's own package, `d2l`, as a witness: one module for each framework."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import concise_steps
import numpy as np

from bench.d2l_package import package as package
from common.base.arrays import Array, Weights
from common.compare.distances import distance


@contextmanager
def keras_in_float64() -> Iterator[None]:
    """What is made of Keras in here, and says nothing else, computes in float64."""
    config: Any = import_module("keras").config
    before = config.floatx()
    config.set_floatx("float64")
    try:
        yield
    finally:
        config.set_floatx(before)


def renamed(name: str, rules: Mapping[str, str]) -> str:
    """What the package's net calls a weight."""
    for pattern, replacement in rules.items():
        name = re.sub(pattern, replacement, name)
    return name


def start() -> Weights:
    """ResNet-18 as wide as the package's; by running statistics too, logits stay small."""
    weights = concise_steps.start("float64", 64)
    return {k: 0.3 * values if values.ndim > 1 else values for k, values in weights.items()}


def minibatch() -> tuple[Array, Array]:
    """Four images and their labels: the package's net is wide."""
    X, y = concise_steps.batches("float64")[0]
    return X[:4], y[:4]


def apart(found: Weights, expected: Weights) -> float:
    """The largest difference, relative to the largest entry of all.

    Biases whose true gradient is 0 have no measure of their own.
    """
    assert found.keys() == expected.keys()
    largest = max(np.abs(values).max() for values in expected.values())
    return max(distance(found[k], expected[k], largest)[0] for k in expected)
