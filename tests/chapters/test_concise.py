"""What a device keeps of ResNet-18, where the wrapper shards it."""

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import pytest
from workers import Worker

from common.base.arrays import Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import trainable

START = concise_steps.start("float64")


def kept(framework: str, chapter: Any, devices: Sequence[Any], options: ConciseOptions) -> Weights:
    """The elements of the weights on the first device."""
    replicas = chapter.trainer(START, devices, options).replicas
    if framework == "pytorch":
        sizes = [weight.to_local().numel() for weight in replicas.net.parameters()]
    else:
        leaves = importlib.import_module("jax").tree.leaves(replicas.params)
        sizes = [leaf.addressable_shards[0].data.size for leaf in leaves]
    return {"elements": np.array([sum(sizes)])}


@pytest.mark.only("pytorch", "jax")
def test_the_wrapper_shards_the_weights(framework: str, tmp_path: Path) -> None:
    wrapper = {"pytorch": "fsdp", "jax": "zero3"}[framework]
    case = partial(kept, framework), concise_steps.options(framework, "sync", wrapper)
    found = Worker(framework, "concise", 3, {wrapper: case}, tmp_path).run()[wrapper]
    whole = sum(values.size for name, values in START.items() if trainable(name))
    assert 0.2 * whole <= found["elements"] <= 0.4 * whole
