"""The page on speed has the bytes that a device keeps under each wrapper."""

import importlib
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from concise_steps import RATES, batches, options, start
from workers import Worker

from common.base.arrays import Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import resnet18_shapes, trainable

PAGE = Path(__file__).parents[2] / "docs/performance.md"
WIDTH = 16
WHOLE = 4 * sum(prod(shape) for name, shape in resnet18_shapes(WIDTH).items() if trainable(name))
SPLIT = {"pytorch": "fsdp", "jax": "zero3"}


def kept(chapter: Any, devices: Sequence[Any], chosen: ConciseOptions) -> Weights:
    """The bytes of weights and gradients on a device after a step."""
    trainer = chapter.trainer(start("float32", WIDTH), devices, chosen)
    (X, y), replicas = batches("float32")[0], trainer.replicas
    if chosen.wrapper == SPLIT["pytorch"]:
        trainer.train_batch(X, y, RATES[0])
        weights = list(replicas.net.parameters())
        gradients = [weight.grad for weight in weights]
    else:
        leaves = importlib.import_module("jax").tree.leaves
        _, grads, _ = chapter.listing.forward_backward(X, y, replicas, len(X))
        weights, gradients = leaves(replicas.params), leaves(grads)
    return {"weights": size(weights), "gradients": size(gradients)}


def size(tensors: Iterable[Any]) -> Any:
    """The bytes of tensors on this device."""
    local = (
        tensor.to_local() if hasattr(tensor, "to_local") else tensor.addressable_shards[0].data
        for tensor in tensors
    )
    return np.array([sum(tensor.nbytes for tensor in local)])


@pytest.mark.only(*SPLIT)
@pytest.mark.parametrize("devices", [2, 4])
def test_a_device_keeps_what_the_page_says(framework: str, tmp_path: Path, devices: int) -> None:
    chosen = options(framework, wrapper=SPLIT[framework])
    cases = {"kept": (kept, chosen)}
    sizes = Worker(framework, "concise", devices, cases, tmp_path).run()["kept"]
    (weights,), (gradients,) = sizes["weights"], sizes["gradients"]
    page = PAGE.read_text(encoding="utf-8")
    assert f"Replicated, its {WHOLE // 4:,} weights take {WHOLE:,}." in page
    row = framework, f"`{chosen.wrapper}`", f"{devices}", f"{weights:,}", f"{gradients:,}"
    assert f"| {' | '.join(row)} |" in page
